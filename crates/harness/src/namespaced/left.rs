//! What a scenario leaves in the cluster although its clean-up has ended.

use crate::{
    api::{Api, NAMESPACES, WEBHOOK_CONFIGURATIONS, collection},
    expect::{Outcome, expect, expect_listed},
};

const ADMISSION: &str = "admissionregistration.k8s.io/v1";
const RBAC: &str = "rbac.authorization.k8s.io/v1";
/// Kinds without a namespace of which scenarios, or what they install, make objects.
const KINDS: [(&str, &str); 5] = [
    (ADMISSION, "ValidatingWebhookConfiguration"),
    (ADMISSION, "ValidatingAdmissionPolicy"),
    (ADMISSION, "ValidatingAdmissionPolicyBinding"),
    (RBAC, "ClusterRole"),
    (RBAC, "ClusterRoleBinding"),
];

/// Fails if an object outside of namespaces has the name of the scenario in its own. One that is about
/// to go, such as a namespace, is not left.
pub(super) async fn expect_nothing(api: &Api, scenario: &str) -> Outcome {
    let others = KINDS.map(|(version, kind)| collection(version, kind, None));
    let mut left = Vec::new();
    for path in
        [NAMESPACES, WEBHOOK_CONFIGURATIONS].into_iter().chain(others.iter().map(|path| &**path))
    {
        let list = api.get(path).await?;
        // A release of Kubernetes may not have the kind.
        expect_listed(format!("the status of GET {path}"), list.status, &[200, 404])?;
        let metadata =
            list.body["items"].as_array().into_iter().flatten().map(|object| &object["metadata"]);
        let stays = metadata.filter(|metadata| metadata["deletionTimestamp"].is_null());
        let names = stays
            .filter_map(|metadata| metadata["name"].as_str())
            .filter(|name| name.contains(scenario));
        left.extend(names.map(|name| format!("{path}/{name}")));
    }
    expect("the objects that are left", [""; 0].as_slice(), left.as_slice())
}
