use super::*;

fn field(path: &str) -> &'static Field {
    let mut kind = &POD;
    let mut found = None;
    for name in path.split('.') {
        while let Kind::List(inner) = kind {
            kind = inner;
        }
        let types = kind.as_struct().expect("the path must go through structs");
        let field = types.field(name).expect("the field must be there");
        kind = &field.kind;
        found = Some(field);
    }
    found.expect("the path must have a field")
}

#[test]
fn lists_have_their_keys() {
    for (path, key) in [
        ("spec.containers", "name"),
        ("spec.initContainers", "name"),
        ("spec.ephemeralContainers", "name"),
        ("spec.volumes", "name"),
        ("spec.imagePullSecrets", "name"),
        ("spec.schedulingGates", "name"),
        ("spec.resourceClaims", "name"),
        ("spec.hostAliases", "ip"),
        ("spec.topologySpreadConstraints", "topologyKey"),
        ("spec.containers.ports", "containerPort"),
        ("spec.ephemeralContainers.ports", "containerPort"),
        ("spec.containers.env", "name"),
        ("spec.containers.volumeMounts", "mountPath"),
        ("spec.containers.volumeDevices", "devicePath"),
        ("metadata.ownerReferences", "uid"),
        ("status.conditions", "type"),
    ] {
        assert_eq!(field(path).merge, Merge::ByKey(key), "{path}");
    }
    assert_eq!(field("metadata.finalizers").merge, Merge::Set);
    for path in [
        "spec.containers.args",
        "spec.containers.command",
        "spec.containers.envFrom",
        "spec.tolerations",
        "spec.readinessGates",
        "spec.volumes.projected.sources",
        "spec.securityContext.supplementalGroups",
        "spec.dnsConfig.nameservers",
    ] {
        assert_eq!(field(path).merge, Merge::Replace, "{path}");
    }
}

#[test]
fn fields_know_how_go_writes_them() {
    assert!(field("spec.containers.name").written);
    assert!(field("spec.containers.resources").written);
    assert!(!field("spec.containers.image").written);
    assert!(field("spec.securityContext.runAsUser").pointer);
    assert_eq!(field("spec.volumes.emptyDir").embedded_in, "VolumeSource");
    assert_eq!(field("spec.containers.imagePullPolicy").kind.go_type(), "v1.PullPolicy");
    assert_eq!(field("spec.containers").kind.go_type(), "[]v1.Container");
    assert_eq!(field("spec.containers.resources.limits").kind.go_type(), "v1.ResourceList");
}

#[test]
fn keys_are_found_in_any_case() {
    let container = StructRef(3).get();
    assert!(POD.as_struct().is_some_and(|pod| pod.name == "Pod"));
    let spec = field("spec").kind.as_struct().expect("the spec must be a struct");
    let name = |key| spec.field_ignoring_case(key).map(|field| field.name);
    assert_eq!(name("CONTAINERS"), Some("containers"));
    assert_eq!(name("container\u{17f}"), Some("containers"));
    assert_eq!(name("container"), None);
    assert!(spec.field("Containers").is_none());
    assert!(!container.fields().is_empty());
}

#[test]
fn exactly_the_names_of_fields_are_found() {
    for of in &*STRUCTS {
        for (place, field) in of.fields().iter().enumerate() {
            assert_eq!(
                of.indexed(field.name).map(|(place, _)| place),
                Some(place),
                "{} {}",
                of.name,
                field.name
            );
        }
        let names = STRUCTS.iter().flat_map(Struct::fields).map(|field| field.name);
        for name in names.chain(["", "x", "Name", "nam", "namee"]) {
            let is_known = of.fields().iter().any(|field| field.name == name);
            assert_eq!(of.field(name).is_some(), is_known, "{} {name}", of.name);
        }
    }
}

#[test]
fn fields_of_a_later_release_are_no_fields_of_a_merge() {
    let spec = field("spec").kind.as_struct().expect("the spec must be a struct");
    assert!(spec.field("evictionResponders").is_none());
    assert!(spec.field_at("evictionResponders", RELEASE).is_none());
    let newer = spec.field_at("evictionResponders", NEWEST_RELEASE).expect("a field of 1.37");
    assert_eq!(newer.since, Some(37));
    let Kind::List(item) = &newer.kind else { panic!("a list") };
    let responder = item.as_struct().expect("a struct");
    assert!(responder.field_at("priority", 37).is_some() && responder.fields().is_empty());
    let claims = StructRef::named("NodeAllocatableResourceClaimStatus").expect("a type").get();
    assert!(
        claims.field_at("resources", 36).is_some() && claims.field_at("resources", 37).is_none()
    );
    assert!(spec.field_at("containers", 36).is_some() && spec.field_at("containers", 37).is_some());
}
