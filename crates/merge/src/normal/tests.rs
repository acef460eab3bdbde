use serde_json::json;

use super::normal;

#[test]
fn what_means_nothing_is_absent() {
    let pod = json!({
        "metadata": {"labels": {"a": ""}, "annotations": {}, "name": "", "creationTimestamp": null},
        "spec": {
            "hostNetwork": false,
            "securityContext": {"runAsUser": 0},
            "volumes": [{"name": "v", "emptyDir": {}}],
            "containers": [{"name": "a", "resources": {}, "env": [], "command": [""]}],
            "xUnknown": {},
        },
        "status": {},
    });
    let expected = json!({
        "metadata": {"labels": {"a": ""}},
        "spec": {
            "securityContext": {"runAsUser": 0},
            "volumes": [{"name": "v", "emptyDir": {}}],
            "containers": [{"name": "a", "command": [""]}],
            "xUnknown": {},
        },
    });
    assert_eq!(normal(&pod), expected);
}

#[test]
fn quantities_are_compared_by_value() {
    let limits = |cpu, memory| {
        let limits = json!({"cpu": cpu, "memory": memory});
        normal(&json!({"spec": {"containers": [{"resources": {"limits": limits}}]}}))
    };
    assert_eq!(limits(json!("1000m"), json!("1Gi")), limits(json!(1), json!("1073741824")));
    assert_eq!(limits(json!("1.5Gi"), json!("1e3")), limits(json!("1536Mi"), json!("1k")));
    assert_ne!(limits(json!("1"), json!("1")), limits(json!("1"), json!("1001m")));
    assert_eq!(
        limits(json!("x"), json!(true))["spec"]["containers"][0]["resources"]["limits"],
        json!({"cpu": "x", "memory": true})
    );
}
