//! Objects that an answer depends on and --objects lacks, and which differences they can explain.

use crate::{
    linkerd::{annotations::Annotation, render::OPAQUE_PORTS_VARIABLE},
    objects::Objects,
    pod::Kind,
    review::{self, Subject},
    workloads,
};

/// An object that is missing.
#[derive(Debug)]
pub(super) struct Missing {
    /// Kind, namespace and name.
    pub(super) object: String,
    effect: Effect,
}

/// What an object changes in the answer to a review.
#[derive(Debug)]
enum Effect {
    /// The verdict and the annotations that the pod inherits; the list of opaque ports, which the
    /// defaults may set as well; the variables, where the pod adds some to the namespace's.
    Namespace { adds_variables: bool },
    /// The label that names the workload.
    Owner,
}

/// The missing objects that an answer to `review` depends on.
pub(super) fn missing(objects: &Objects, review: &[u8]) -> Vec<Missing> {
    let Ok(request) = review::decode(review) else { return Vec::new() };
    let namespace = &*request.namespace;
    let object = match &request.subject {
        Subject::Object(object) => Some(object),
        _ => None,
    };
    let mut missing = Vec::new();
    if objects.namespace(namespace).is_none() {
        let annotations = object.map(|object| &object.metadata.annotations);
        let key = Annotation::AdditionalEnv.key();
        let adds_variables = annotations.is_some_and(|annotations| annotations.get(key).is_some());
        missing.push(Missing {
            object: format!("Namespace {namespace}"),
            effect: Effect::Namespace { adds_variables },
        });
    }
    let owner = object.filter(|_| request.kind == Kind::Pod).and_then(|it| it.metadata.owner());
    if let Some(owner) = owner.filter(|owner| workloads::is_missing(objects, namespace, owner)) {
        let object = format!("{} {namespace}/{}", &*owner.kind, &*owner.name);
        missing.push(Missing { object, effect: Effect::Owner });
    }
    missing
}

impl Missing {
    /// Whether a difference at `place` can come from the missing object.
    ///
    /// Injectors write what a pod inherits from its namespace into the patch, so that two patches
    /// with the same annotations do not differ because of the namespace.
    pub(super) fn may_change(&self, place: &str) -> bool {
        match self.effect {
            Effect::Owner => place.contains("/metadata/labels/"),
            Effect::Namespace { adds_variables } => {
                let variable = place.strip_prefix("linkerd-proxy/env");
                place == "answer"
                    || place.contains("/metadata/annotations/")
                    || variable.is_some_and(|name| {
                        adds_variables || name.starts_with(&format!("/{OPAQUE_PORTS_VARIABLE}/"))
                    })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(object: &str) -> Vec<Missing> {
        let review = format!(
            r#"{{"request":{{"uid":"u","namespace":"a","object":{{"kind":"Pod","metadata":{object}}}}}}}"#
        );
        missing(&Objects::default(), review.as_bytes())
    }

    #[test]
    fn jobs_replica_sets_and_namespaces_can_be_missing() {
        let objects =
            |metadata: &str| of(metadata).into_iter().map(|it| it.object).collect::<Vec<_>>();
        for (kind, expected) in [
            ("Job", &["Namespace a", "Job a/o"][..]),
            ("ReplicaSet", &["Namespace a", "ReplicaSet a/o"]),
            ("DaemonSet", &["Namespace a"]),
        ] {
            let owned = format!(r#"{{"ownerReferences":[{{"kind":"{kind}","name":"o"}}]}}"#);
            assert_eq!(objects(&owned), expected);
        }
    }

    #[test]
    fn a_missing_object_changes_what_depends_on_it() {
        let plain = of(r#"{"ownerReferences":[{"kind":"Job","name":"o"}]}"#);
        let adding = of(r#"{"annotations":{"config.linkerd.io/proxy-additional-env":"[]"}}"#);
        let ports = format!("linkerd-proxy/env/{OPAQUE_PORTS_VARIABLE}/value");
        for (place, by_namespace, by_owner, by_namespace_of_adding) in [
            ("answer", true, false, true),
            (r#"operations: - +"/metadata/annotations/a""#, true, false, true),
            ("/spec/template/metadata/annotations/a", true, false, true),
            (r#"operations: -"/metadata/labels/a" +"/metadata/labels/b""#, false, true, false),
            (r#"operations: - +"/spec/volumes/-""#, false, false, false),
            ("order of operations", false, false, false),
            ("linkerd-proxy/image", false, false, false),
            (&ports, true, false, true),
            ("linkerd-proxy/env/LINKERD2_PROXY_LOG/value", false, false, true),
            ("linkerd-proxy/env", false, false, true),
        ] {
            assert_eq!(plain[0].may_change(place), by_namespace, "{place}");
            assert_eq!(plain[1].may_change(place), by_owner, "{place}");
            assert_eq!(adding[0].may_change(place), by_namespace_of_adding, "{place}");
        }
    }
}
