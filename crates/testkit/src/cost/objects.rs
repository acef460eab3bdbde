//! Fields of objects and reviews, kinds of objects.

use super::{Shape, annotated, container, fill, items, pod, review};

pub(super) fn shapes() -> Vec<Shape> {
    let mut shapes = containers();
    shapes.extend(first_container());
    shapes.extend(metadata());
    shapes.extend(envelope());
    shapes.extend(kinds());
    shapes
}

/// An annotated pod with a spec.
fn spec(name: &str, spec: impl Fn(usize) -> String + 'static) -> Shape {
    Shape::of_body(name, move |bytes| annotated("", &spec(bytes)))
}

/// Lists over the maximum length, in many containers.
fn in_containers(bytes: usize, member: &str, item: impl Fn(usize) -> String) -> String {
    const LIST_BYTES: usize = 16 << 10;
    let container = |index: usize| {
        let length = item(0).len() + 1;
        let first = index * LIST_BYTES / length;
        let list = items(LIST_BYTES, length, |index| item(first + index));
        format!(r#"{{"{member}":[{list}]}}"#)
    };
    format!(r#"{{"containers":[{}]}}"#, items(bytes, LIST_BYTES, container))
}

fn containers() -> Vec<Shape> {
    vec![
        spec("containers", |bytes| {
            format!(
                r#"{{"containers":[{}]}}"#,
                items(bytes.min(300_000), 30, |_| r#"{"name":"a"}"#.into())
            )
        }),
        spec("containers: empty", |bytes| {
            format!(r#"{{"containers":[{}{{}}]}}"#, fill("{},", bytes.min(29_990)))
        }),
        spec("containers: empty init containers", |bytes| {
            format!(
                r#"{{"initContainers":[{}{{}}],"containers":[{{}}]}}"#,
                fill("{},", bytes.min(29_990))
            )
        }),
        spec("containers: image", |bytes| {
            container(&format!(r#","image":"{}""#, fill("a", bytes)))
        }),
        spec("containers: environment", |bytes| {
            let env = fill(r#"{"name":"A","value":"b"},"#, bytes);
            container(&format!(r#","env":[{env}{{}}]"#))
        }),
        spec("ports", |bytes| {
            in_containers(bytes, "ports", |index| {
                format!(r#"{{"containerPort":{}}}"#, 10_000 + index * 7919 % 50_000)
            })
        }),
        spec("ports: empty", |bytes| in_containers(bytes, "ports", |_| "{}".to_owned())),
        spec("ports: opaque", |bytes| {
            in_containers(bytes, "ports", |_| r#"{"containerPort":3306}"#.to_owned())
        }),
        spec("probes", |bytes| {
            let probe = |index: usize| {
                let port = 10_000 + index % 50_000;
                format!(
                    r#"{{"livenessProbe":{{"httpGet":{{"port":{port}}}}},"readinessProbe":{{"httpGet":{{"port":"http"}}}}}}"#
                )
            };
            format!(r#"{{"containers":[{}]}}"#, items(bytes.min(800_000), 95, probe))
        }),
    ]
}

fn first_container() -> Vec<Shape> {
    let capabilities = |name: &str, list: &'static str, unit: &'static str| {
        spec(name, move |bytes| {
            let names = fill(unit, bytes.min(unit.len() * 9_990));
            container(&format!(
                r#","securityContext":{{"capabilities":{{"{list}":[{names}"A"]}}}}"#
            ))
        })
    };
    vec![
        capabilities("capabilities: added", "add", r#""","#),
        capabilities("capabilities: dropped", "drop", r#""NET_ADMIN","#),
        spec("capabilities: long", |bytes| {
            let name = fill("A", bytes);
            container(&format!(r#","securityContext":{{"capabilities":{{"drop":["{name}"]}}}}"#))
        }),
        spec("mounts", |bytes| {
            container(&format!(r#","volumeMounts":[{}{{}}]"#, fill(r#"{"name":"a"},"#, bytes)))
        }),
        spec("mounts: empty", |bytes| {
            container(&format!(r#","volumeMounts":[{}{{}}]"#, fill("{},", bytes)))
        }),
        spec("mounts: name", |bytes| {
            let path = "/var/run/secrets/kubernetes.io/serviceaccount";
            let name = fill("a", bytes);
            container(&format!(r#","volumeMounts":[{{"mountPath":"{path}","name":"{name}"}}]"#))
        }),
        spec("volumes", |bytes| {
            let volumes = fill(r#"{"name":"a"},"#, bytes);
            format!(r#"{{"volumes":[{volumes}{{}}],"containers":[{{}}]}}"#)
        }),
        spec("unknown fields", |bytes| {
            let fields = fill(r#""a":"b","#, bytes);
            format!(r#"{{{fields}"containers":[{{}}]}}"#)
        }),
        spec("nesting", |bytes| {
            let depth = bytes / 2;
            format!(r#"{{"x":{}{},"containers":[{{}}]}}"#, "[".repeat(depth), "]".repeat(depth))
        }),
        spec("repeated key", |bytes| {
            format!(r#"{{{}"containers":[{{}}]}}"#, fill(r#""containers":[{}],"#, bytes))
        }),
        spec("blanks", |bytes| format!(r#"{{{}"containers":[{{}}]}}"#, fill(" ", bytes))),
    ]
}

fn metadata() -> Vec<Shape> {
    let inject = r#""annotations":{"linkerd.io/inject":"enabled"}"#;
    let member = |name: &str, key: &'static str, value: fn(usize) -> String| {
        Shape::of_body(name, move |bytes| {
            let metadata = format!(r#",{inject},"{key}":{}"#, value(bytes));
            review(&pod(&metadata, &container("")))
        })
    };
    let text = |bytes| format!(r#""{}""#, fill("a", bytes));
    vec![
        member("name", "name", text),
        member("name: of a namespace", "namespace", text),
        Shape::of_body("name: generated", move |bytes| {
            let name = fill("ä", bytes);
            let metadata = format!(r#"{{{inject},"generateName":"{name}-"}}"#);
            review(&format!(
                r#"{{"kind":"Pod","metadata":{metadata},"spec":{{"containers":[{{}}]}}}}"#
            ))
        }),
        member("managed fields", "managedFields", |bytes| {
            let fields = fill(r#"{"f:metadata":{"f:labels":{".":{}}}},"#, bytes);
            format!("[{fields}{{}}]")
        }),
        member("finalizers", "finalizers", |bytes| format!("[{}0]", fill(r#""[","#, bytes))),
        member("owners", "ownerReferences", |bytes| {
            format!("[{}{{}}]", fill("{},", bytes.min(29_990)))
        }),
        member("owner: name", "ownerReferences", |bytes| {
            format!(r#"[{{"kind":"StatefulSet","name":"{}"}}]"#, fill("a", bytes))
        }),
        member("owner: kind", "ownerReferences", |bytes| {
            format!(r#"[{{"kind":"{}","name":"a"}}]"#, fill("A", bytes))
        }),
        member("owner: escaped uid", "ownerReferences", |bytes| {
            format!(r#"[{{"kind":"ReplicaSet","name":"a","uid":"{}"}}]"#, fill(r"\u0041", bytes))
        }),
    ]
}

fn envelope() -> Vec<Shape> {
    let changed = |name: &str, from: &'static str, to: fn(usize) -> String| {
        Shape::of_body(name, move |bytes| {
            annotated("", &container("")).replacen(from, &to(bytes), 1)
        })
    };
    vec![
        changed("request: namespace", r#""namespace":"shop""#, |bytes| {
            format!(r#""namespace":"{}""#, fill("a", bytes))
        }),
        changed("request: uid", r#""uid":"u""#, |bytes| {
            format!(r#""uid":"{}""#, fill("a", bytes.min(64 << 10)))
        }),
        changed("request: kind", r#""kind":{"kind":"Pod"}"#, |bytes| {
            format!(r#""kind":{{"kind":"{}"}}"#, fill("a", bytes))
        }),
        changed("review: kind", "AdmissionReview", |bytes| fill("a", bytes)),
        changed("review: version", "admission.k8s.io/v1", |bytes| fill("ä", bytes)),
        changed("object: kind", r#"{"kind":"Pod","m"#, |bytes| {
            format!(r#"{{"kind":"{}","m"#, fill("a", bytes))
        }),
        changed("review: user", r#""uid":"u""#, |bytes| {
            let groups = fill(r#""system:authenticated","#, bytes);
            format!(r#""uid":"u","userInfo":{{"groups":[{groups}""]}}"#)
        }),
    ]
}

fn kinds() -> Vec<Shape> {
    let ports = |bytes| in_containers(bytes, "ports", |_| r#"{"containerPort":80}"#.to_owned());
    let inject = r#""metadata":{"annotations":{"linkerd.io/inject":"enabled"}}"#;
    vec![
        Shape::of_body("skipped pod", move |bytes| review(&pod("", &ports(bytes)))),
        Shape::of_body("Deployment", move |bytes| {
            let template = format!(r#"{{{inject},"spec":{}}}"#, ports(bytes));
            review(&format!(r#"{{"kind":"Deployment","spec":{{"template":{template}}}}}"#))
        }),
        Shape::of_body("CronJob", move |bytes| {
            let template = format!(r#"{{{inject},"spec":{}}}"#, ports(bytes));
            let job = format!(r#"{{"spec":{{"template":{template}}}}}"#);
            review(&format!(r#"{{"kind":"CronJob","spec":{{"jobTemplate":{job}}}}}"#))
        }),
        Shape::of_body("Service", |bytes| {
            let ports = fill(r#"{"port":3306},"#, bytes.min(139_000));
            review(&format!(r#"{{"kind":"Service","spec":{{"ports":[{ports}{{}}]}}}}"#))
        }),
        Shape::of_body("unknown kind", |bytes| {
            let spec = fill(r#"{"containers":1},"#, bytes);
            review(&format!(r#"{{"kind":"Widget","spec":{{"containers":[{spec}1]}}}}"#))
        }),
        Shape::of_body("unreadable object", |bytes| {
            let ports = in_containers(bytes, "ports", |_| r#"{"containerPort":80}"#.to_owned());
            let spec = ports.replacen(r#"{"containers""#, r#"{"hostNetwork":7,"containers""#, 1);
            annotated("", &spec)
        }),
        Shape::of_body("unreadable object, seen late", |bytes| {
            let ports = in_containers(bytes, "ports", |_| r#"{"containerPort":80}"#.to_owned());
            let cut = ports.len() - 1;
            annotated("", &format!(r#"{},"hostNetwork":7}}"#, &ports[..cut]))
        }),
        Shape::of_body("not JSON at the end", |bytes| {
            let fields = fill(r#""a":"b","#, bytes);
            annotated("", &format!(r#"{{{fields}"containers":[{{}}]}}"#)) + "x"
        }),
        Shape::of_body("nested templates", |bytes| {
            // Below the maximum depth.
            let levels = 50;
            let containers = fill("{},", bytes / levels);
            let nested = (0..levels).fold("{}".to_owned(), |inner, _| {
                format!(r#"{{"containers":[{containers}{{}}],"template":{{"spec":{inner}}}}}"#)
            });
            annotated("", &nested)
        }),
    ]
}
