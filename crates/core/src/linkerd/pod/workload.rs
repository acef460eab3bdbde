//! Specs of workloads, which contain a pod template, and of services.

use super::{Metadata, ServicePort, Spec};
use crate::{
    json::{Read, ReadError, Reader},
    view::{List, view},
};

/// The spec of a pod, a workload or a service. A template contains only the fields of pods, so that
/// templates do not nest.
#[derive(Debug, Default)]
pub struct ObjectSpec<'a> {
    /// The fields of pods.
    pub pod: Spec<'a>,
    /// The fields of other kinds.
    pub other: OtherSpec<'a>,
}

view! {
    /// The fields of workloads and services that pods do not have.
    pub struct OtherSpec {
        /// Service: its ports.
        pub ports: List<ServicePort<'a>, 0> = "ports",
        /// Workload: its pod template.
        pub template: Option<Box<Template<'a>>> = "template",
        /// `CronJob`: its job template.
        pub job_template: Option<Box<JobTemplate<'a>>> = "jobTemplate",
    }
}

view! {
    /// A pod template.
    pub struct Template {
        /// Metadata of the pods.
        pub metadata: Metadata<'a> = "metadata",
        /// Spec of the pods.
        pub spec: Spec<'a> = "spec",
    }
}

view! {
    /// The job template of a `CronJob`.
    pub struct JobTemplate {
        /// The spec of the jobs.
        pub spec: JobSpec<'a> = "spec",
    }
}

view! {
    /// The spec of a job.
    pub struct JobSpec {
        /// Its pod template.
        pub template: Option<Box<Template<'a>>> = "template",
    }
}

// === impl ObjectSpec ===

impl<'a> Read<'a> for ObjectSpec<'a> {
    fn read(&mut self, reader: &mut Reader<'a>) -> Result<(), ReadError> {
        let Self { pod, other } = self;
        let (mut seen, mut seen_of_other) = (0, 0);
        reader.object(|reader, key| {
            let is_read = pod.member(reader, &key, &mut seen)?
                || other.member(reader, &key, &mut seen_of_other)?;
            if is_read { Ok(()) } else { reader.skip() }
        })?;
        Ok(())
    }
}
