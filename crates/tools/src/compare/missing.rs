//! Objects that an answer depends on and that --objects does not contain, and the differences they
//! can cause.

use injectd_core::{
    linkerd::{
        annotations::Annotation, pod::Object, render::OPAQUE_PORTS_VARIABLE,
        workload::may_have_owner,
    },
    object::{Kind, OwnerReference},
    objects::Objects,
    request::Subject,
    review,
    standalone::claimed_owner,
};
use injectd_templates_tree::mesh::Templates;
use serde_json::Value;

/// An object missing in --objects.
#[derive(Debug)]
pub(super) struct Missing {
    /// Kind, namespace and name.
    pub(super) object: String,
    effect: Effect,
}

/// The part of an answer that an object affects.
#[derive(Debug)]
enum Effect {
    /// The verdict, the inherited annotations, and the opaque ports, which the defaults may set as
    /// well; also the variables, if the pod adds some to the namespace's.
    Namespace { adds_variables: bool },
    /// The label with the name of the workload.
    Owner,
    /// Anything: templates say what they do with it.
    Any,
}

/// The missing objects that the answer to `review` depends on.
pub(super) fn missing(objects: &Objects, review: &[u8]) -> Vec<Missing> {
    let Ok(request) = review::decode::<Object<'_>>(review) else { return Vec::new() };
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
    let owner = object.filter(|_| request.kind == Kind::Pod).and_then(|pod| pod.metadata.owner());
    if let Some(owner) = owner.filter(|owner| is_missing(objects, namespace, owner)) {
        let object = format!("{} {namespace}/{}", &*owner.kind, &*owner.name);
        missing.push(Missing { object, effect: Effect::Owner });
    }
    missing
}

/// The objects that the answer of templates to a request depends on, and that --objects does not have.
pub(super) fn of_templates(templates: &Templates, request: &Value) -> Vec<Missing> {
    let namespace = request["namespace"].as_str().unwrap_or_default();
    let unknown = templates.unknown(&request["object"], namespace).into_iter();
    unknown.map(|object| Missing { object, effect: Effect::Any }).collect()
}

fn is_missing(objects: &Objects, namespace: &str, owner: &OwnerReference<'_>) -> bool {
    may_have_owner(&owner.kind) && claimed_owner(objects, namespace, owner).is_none()
}

impl Missing {
    /// Whether the missing object can cause a difference at `place`.
    ///
    /// Injectors write inherited annotations into the patch, so two patches with the same
    /// annotations do not differ because of the namespace.
    pub(super) fn may_change(&self, place: &str) -> bool {
        match self.effect {
            Effect::Any => true,
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

    fn missing_for(object: &str) -> Vec<Missing> {
        let review = format!(
            r#"{{"request":{{"uid":"u","namespace":"a","object":{{"kind":"Pod","metadata":{object}}}}}}}"#
        );
        missing(&Objects::default(), review.as_bytes())
    }

    #[test]
    fn jobs_replica_sets_and_namespaces_can_be_missing() {
        let objects = |metadata: &str| -> Vec<_> {
            missing_for(metadata).into_iter().map(|missing| missing.object).collect()
        };
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
    fn a_missing_object_causes_differences_only_where_it_has_an_effect() {
        let plain = missing_for(r#"{"ownerReferences":[{"kind":"Job","name":"o"}]}"#);
        let adding =
            missing_for(r#"{"annotations":{"config.linkerd.io/proxy-additional-env":"[]"}}"#);
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
