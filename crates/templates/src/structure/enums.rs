//! Texts of which Kubernetes knows all values: an API server refuses a pod with another one.

/// The values that fields of a type may have, by Go's name of the type. An empty text is an unset field.
const VALUES: [(&str, &[&str]); 29] = [
    ("v1.AppArmorProfileType", &["Localhost", "RuntimeDefault", "Unconfined"]),
    ("v1.AzureDataDiskCachingMode", &["None", "ReadOnly", "ReadWrite"]),
    ("v1.AzureDataDiskKind", &["Dedicated", "Managed", "Shared"]),
    ("v1.ContainerRestartPolicy", &["Always", "Never", "OnFailure"]),
    ("v1.ContainerRestartRuleAction", &["Restart", "RestartAllContainers"]),
    ("v1.ContainerRestartRuleOnExitCodesOperator", &["In", "NotIn"]),
    ("v1.DNSPolicy", &["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"]),
    (
        "v1.HostPathType",
        &[
            "BlockDevice",
            "CharDevice",
            "Directory",
            "DirectoryOrCreate",
            "File",
            "FileOrCreate",
            "Socket",
        ],
    ),
    ("v1.MountPropagationMode", &["Bidirectional", "HostToContainer", "None"]),
    ("v1.NodeInclusionPolicy", &["Honor", "Ignore"]),
    ("v1.NodeSelectorOperator", &["DoesNotExist", "Exists", "Gt", "In", "Lt", "NotIn"]),
    ("v1.OSName", &["linux", "windows"]),
    ("v1.PersistentVolumeMode", &["Block", "Filesystem"]),
    ("v1.PodFSGroupChangePolicy", &["Always", "OnRootMismatch"]),
    ("v1.PodSELinuxChangePolicy", &["MountOption", "Recursive"]),
    ("v1.PreemptionPolicy", &["Never", "PreemptLowerPriority"]),
    ("v1.ProcMountType", &["Default", "Unmasked"]),
    ("v1.Protocol", &["SCTP", "TCP", "UDP"]),
    ("v1.PullPolicy", &["Always", "IfNotPresent", "Never"]),
    ("v1.RecursiveReadOnlyMode", &["Disabled", "Enabled", "IfPossible"]),
    ("v1.ResourceResizeRestartPolicy", &["NotRequired", "RestartContainer"]),
    ("v1.RestartPolicy", &["Always", "Never", "OnFailure"]),
    ("v1.SeccompProfileType", &["Localhost", "RuntimeDefault", "Unconfined"]),
    ("v1.SupplementalGroupsPolicy", &["Merge", "Strict"]),
    ("v1.TaintEffect", &["NoExecute", "NoSchedule", "PreferNoSchedule"]),
    ("v1.TerminationMessagePolicy", &["FallbackToLogsOnError", "File"]),
    ("v1.TolerationOperator", &["Equal", "Exists", "Gt", "Lt"]),
    ("v1.URIScheme", &["HTTP", "HTTPS"]),
    ("v1.UnsatisfiableConstraintAction", &["DoNotSchedule", "ScheduleAnyway"]),
];

/// The values of a type; `None` if it may have any.
pub(super) fn values(of: &str) -> Option<&'static [&'static str]> {
    VALUES.iter().find(|(name, _)| *name == of).map(|(_, values)| *values)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use injectd_merge::schema::{Kind, POD, Struct};

    use super::*;

    /// Calls a function with the name of each type of texts in a struct.
    fn each_type(of: &'static Struct, depth: usize, then: &mut dyn FnMut(&str)) {
        for field in of.fields() {
            match &field.kind {
                Kind::Text(name) => then(name),
                Kind::Struct(inner) if depth > 0 => each_type(inner.get(), depth - 1, then),
                Kind::List(item) => match &**item {
                    Kind::Struct(inner) if depth > 0 => each_type(inner.get(), depth - 1, then),
                    Kind::Text(name) => then(name),
                    _ => {}
                },
                _ => {}
            }
        }
    }

    #[test]
    fn each_type_is_one_of_a_pod() {
        let mut found = BTreeSet::new();
        let pod = POD.as_struct().expect("a Pod must be a struct");
        each_type(pod, 8, &mut |name| found.extend([name.to_owned()]));
        for (name, values) in VALUES {
            assert!(found.contains(name), "{name}: {found:?}");
            assert!(values.is_sorted(), "{name}");
        }
    }
}
