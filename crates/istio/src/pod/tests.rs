use super::*;
use injectd_gotemplate::{Context, Functions, Template};

fn rendered(text: &str, pod: &Json) -> String {
    let pod = Arc::new(pod.clone());
    let functions = Functions::istio();
    let template = Template::parse("test", text, &functions).expect("a template");
    let data = BTreeMap::from([
        (Text::from("Spec"), spec(&pod, Release::new(31, 0))),
        (Text::from("ObjectMeta"), object_meta(&pod, Release::new(31, 0))),
    ]);
    let data = Value::Map(Map::frozen(data));
    template.execute(&data, &mut Context::default()).unwrap_or_else(|error| error.to_string())
}

#[test]
fn fields_have_gos_names_and_zeros() {
    let pod = json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {
            "hostNetwork": true,
            "terminationGracePeriodSeconds": 30,
            "containers": [{
                "name": "web",
                "ports": [{"containerPort": 80, "hostIP": "1.2.3.4", "protocol": "TCP"}],
                "livenessProbe": {"httpGet": {"port": "http", "path": "/"}},
                "resources": {"limits": {"cpu": "1"}},
            }],
        },
    });
    for (text, expected) in [
        ("{{ .Spec.HostNetwork }} {{ .Spec.NodeName }}.", "true ."),
        ("{{ .Spec.TerminationGracePeriodSeconds }} {{ .Spec.Priority }}", "30 <nil>"),
        ("{{ (index .Spec.Containers 0).Name }} {{ len .Spec.InitContainers }}", "web 0"),
        (
            "{{ range .Spec.Containers }}{{ range .Ports }}{{ .HostIP }}{{ end }}{{ end }}",
            "1.2.3.4",
        ),
        ("{{ range .Spec.Containers }}{{ eq (index .Ports 0).Protocol \"TCP\" }}{{ end }}", "true"),
        ("{{ (index .Spec.Containers 0).LivenessProbe.HTTPGet.Path }}", "/"),
        (
            "{{ structToJSON (index (index .Spec.Containers 0).Ports 0) }}",
            "{\"containerPort\":80,\"protocol\":\"TCP\",\"hostIP\":\"1.2.3.4\"}",
        ),
        (
            "{{ index .ObjectMeta.Labels \"app\" }}{{ isset .ObjectMeta.Annotations \"x\" }}",
            "webfalse",
        ),
        (
            "{{ annotation .ObjectMeta \"x\" \"none\" }} {{ applicationPorts .Spec.Containers }}",
            "none 80",
        ),
    ] {
        assert_eq!(rendered(text, &pod), expected, "{text}");
    }
    let error = rendered("{{ .Spec.Nope }}", &pod);
    assert!(error.contains("can't evaluate field Nope"), "{error}");
}
