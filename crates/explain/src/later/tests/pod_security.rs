use super::*;

/// Who objects to a pod in a namespace with these labels.
fn found(labels: &Value, minor: u16, pod: &Value) -> Vec<String> {
    let labels: serde_json::Map<_, _> = labels
        .as_object()
        .expect("labels")
        .iter()
        .map(|(key, value)| (format!("pod-security.kubernetes.io/{key}"), value.clone()))
        .collect();
    let namespace = json!({"metadata": {"labels": labels}});
    let checks = Checks { namespace: Some(&namespace), ..on(minor) };
    let found = objections(checks, pod, pod);
    let found = found.into_iter().filter(|objection| objection.by.starts_with("PodSecurity"));
    found
        .map(|objection| format!("{:?} {}: {}", objection.effect, objection.by, objection.text))
        .collect()
}

fn is_refused(level: &str, version: &str, minor: u16, pod: &Value) -> bool {
    !found(&json!({"enforce": level, "enforce-version": version}), minor, pod).is_empty()
}

/// A pod that the level restricted has nothing against, with these fields besides.
fn safe(of_spec: Value, of_container: Value) -> Value {
    let mut pod = json!({"spec": {
        "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{"name": "app", "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]},
        }}],
    }});
    merge(&mut pod["spec"], of_spec);
    merge(&mut pod["spec"]["containers"][0], of_container);
    pod
}

fn merge(into: &mut Value, more: Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, more) => *into = more,
    }
}

#[test]
fn it_refuses_the_capabilities_of_the_init_container() {
    let (before, injected) = pods();
    let namespace = json!({"metadata": {"labels": {
        "pod-security.kubernetes.io/enforce": "baseline",
        "pod-security.kubernetes.io/warn": "privileged",
    }}});
    let checks = Checks { namespace: Some(&namespace), ..Checks::default() };
    let found = objections(checks, &before, &injected);
    let text = "container linkerd-init adds the capabilities NET_ADMIN";
    assert_eq!(texts(&found), [("PodSecurity baseline", text, true)]);
}

#[test]
fn the_restricted_level_names_the_containers_of_the_user_too() {
    let (before, injected) = pods();
    let labels = json!({"pod-security.kubernetes.io/warn": "restricted"});
    let namespace = json!({"metadata": {"labels": labels}});
    let checks = Checks { namespace: Some(&namespace), ..Checks::default() };
    let found = objections(checks, &before, &injected);
    assert!(found.iter().all(|objection| objection.effect == Effect::Warns));
    let of_app: Vec<_> =
        found.iter().filter(|objection| objection.text.contains("container app")).collect();
    assert_eq!(of_app.len(), 4);
    assert!(of_app.iter().all(|objection| !objection.due_to_sidecar));
    assert!(found.iter().any(|objection| objection.due_to_sidecar));
}

#[test]
fn labels_that_are_not_valid_count_as_the_api_server_counts_them() {
    let pod = pod(&json!({}));
    assert!(
        found(&json!({"enforce": "strict"}), 37, &pod)[0]
            .starts_with("Refuses PodSecurity restricted:")
    );
    assert_eq!(
        found(&json!({"warn": "strict", "audit": "strict"}), 37, &pod),
        Vec::<String>::new()
    );
    let is_newest = |version| {
        !is_refused(
            "baseline",
            version,
            37,
            &safe(
                json!({"securityContext": {"sysctls": [{"name": "net.ipv4.tcp_notsent_lowat"}]}}),
                json!({}),
            ),
        )
    };
    for version in ["latest", "v1.037", "1.25", "v2.1", "v1.99", "v1.37"] {
        assert!(is_newest(version), "{version}");
    }
    assert!(!is_newest("v1.36") && !is_newest("v1.0"));
}

#[test]
fn the_version_of_the_label_is_named() {
    let pod = safe(json!({"hostPID": true}), json!({}));
    assert_eq!(
        found(&json!({"enforce": "baseline", "enforce-version": "v1.25"}), 37, &pod),
        ["Refuses PodSecurity baseline:v1.25: the pod sets hostPID"]
    );
    let warned = found(&json!({"enforce": "privileged", "warn-version": "v1.25"}), 37, &pod);
    assert_eq!(warned, Vec::<String>::new());
}

#[test]
fn each_check_has_the_version_that_changed_it() {
    let sysctl =
        |name: &str| safe(json!({"securityContext": {"sysctls": [{"name": name}]}}), json!({}));
    let context = |context: Value| safe(json!({}), json!({"securityContext": context}));
    let own_users =
        |context: Value| safe(json!({"hostUsers": false}), json!({"securityContext": context}));
    let windows = json!({"spec": {
        "os": {"name": "windows"},
        "securityContext": {"runAsNonRoot": true},
        "containers": [{"name": "app"}],
    }});
    // Refused before a release, or since one.
    for (level, since, refused_since, pod) in [
        ("baseline", 27, false, sysctl("net.ipv4.ip_local_reserved_ports")),
        ("baseline", 29, false, sysctl("net.ipv4.tcp_keepalive_time")),
        ("baseline", 32, false, sysctl("net.ipv4.tcp_rmem")),
        ("baseline", 37, false, sysctl("net.ipv4.tcp_notsent_lowat")),
        ("baseline", 31, false, context(json!({"seLinuxOptions": {"type": "container_engine_t"}}))),
        (
            "baseline",
            34,
            true,
            safe(json!({}), json!({"livenessProbe": {"tcpSocket": {"host": "a"}}})),
        ),
        ("baseline", 35, false, own_users(json!({"procMount": "Unmasked"}))),
        ("restricted", 25, false, windows),
        ("restricted", 23, true, context(json!({"runAsUser": 0}))),
        ("restricted", 35, false, own_users(json!({"runAsUser": 0, "runAsNonRoot": false}))),
        (
            "restricted",
            19,
            true,
            safe(json!({"securityContext": {"seccompProfile": null}}), json!({})),
        ),
    ] {
        let of = |minor: u16| is_refused(level, &format!("v1.{minor}"), 37, &pod);
        assert_eq!((of(since - 1), of(since)), (!refused_since, refused_since), "{pod}");
        // No API server knows newer checks than its own.
        let newest = |server| is_refused(level, "latest", server, &pod);
        // Of older ones than 1.34 the checks of 1.34 apply.
        let known = |server: u16| of(server.max(34));
        assert_eq!((newest(since - 1), newest(since)), (known(since - 1), known(since)), "{pod}");
    }
    let unmasked = own_users(json!({"procMount": "Unmasked"}));
    assert!(is_refused("restricted", "latest", 37, &unmasked));
}

#[test]
fn what_the_levels_refuse() {
    let context = |context: Value| safe(json!({"securityContext": context}), json!({}));
    let own = |context: Value| safe(json!({}), json!({"securityContext": context}));
    let volume = |volume: Value| safe(json!({"volumes": [volume]}), json!({}));
    let mut annotated = safe(json!({}), json!({}));
    annotated["metadata"] = json!({"annotations": {"container.apparmor.security.beta.kubernetes.io/app": "unconfined"}});
    for (baseline, restricted, pod) in [
        (false, false, safe(json!({}), json!({}))),
        (true, true, annotated),
        (true, true, own(json!({"appArmorProfile": {"type": "Unconfined"}}))),
        (true, true, context(json!({"windowsOptions": {"hostProcess": true}}))),
        (true, true, context(json!({"seccompProfile": {"type": "Unconfined"}}))),
        (true, true, context(json!({"seLinuxOptions": {"user": "u"}}))),
        (false, false, own(json!({"seLinuxOptions": {"level": "s0"}}))),
        (true, true, own(json!({"privileged": true}))),
        (true, true, own(json!({"capabilities": {"add": ["NET_RAW"]}}))),
        (false, true, own(json!({"capabilities": {"add": ["CHOWN"]}}))),
        (false, false, own(json!({"capabilities": {"add": ["NET_BIND_SERVICE"]}}))),
        (false, true, own(json!({"allowPrivilegeEscalation": null}))),
        // The pod's own values are wrong even if each container has a better one.
        (
            false,
            true,
            safe(
                json!({"securityContext": {"runAsNonRoot": false}}),
                json!({"securityContext": {"runAsNonRoot": true}}),
            ),
        ),
        (false, true, context(json!({"runAsUser": 0}))),
        (true, true, safe(json!({}), json!({"ports": [{"hostPort": 1}]}))),
        (false, false, safe(json!({}), json!({"ports": [{"hostPort": 0}]}))),
        (true, true, volume(json!({"name": "v", "hostPath": {}}))),
        (false, true, volume(json!({"name": "v", "nfs": {}}))),
        (false, false, volume(json!({"name": "v", "nfs": null}))),
        (false, false, volume(json!({"name": "v", "image": {}}))),
        (true, true, safe(json!({"hostIPC": true}), json!({}))),
    ] {
        let of = |level| is_refused(level, "latest", 37, &pod);
        assert_eq!((of("baseline"), of("restricted")), (baseline, restricted), "{pod}");
    }
}
