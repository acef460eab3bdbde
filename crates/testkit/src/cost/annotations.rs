//! Annotations and labels, and their values.

use injectd_core::linkerd::{annotations::Keys, release::Release};

use super::{Shape, annotated, container, escaped, fill, items, pod, review};

const ADDITIONAL_ENV: &str = "config.linkerd.io/proxy-additional-env";
const OPAQUE_PORTS: &str = "config.linkerd.io/opaque-ports";

pub(super) fn shapes() -> Vec<Shape> {
    let mut shapes = every_annotation();
    shapes.extend(numbers());
    shapes.extend(additional_env());
    shapes.extend(opaque_ports());
    shapes.extend(maps());
    shapes.extend(texts());
    shapes.extend(namespaces());
    shapes
}

/// A pod with an annotation.
fn value_of(key: &'static str, value: impl Fn(usize) -> String + 'static) -> Shape {
    named(key, key, value)
}

fn named(name: &str, key: &'static str, value: impl Fn(usize) -> String + 'static) -> Shape {
    let spec = container(r#","ports":[{"name":"http","containerPort":8080}]"#);
    Shape::of_body(name, move |bytes| {
        annotated(&format!(r#","{key}":"{}""#, escaped(&value(bytes))), &spec)
    })
}

/// Each annotation with a long value, in letters.
fn every_annotation() -> Vec<Shape> {
    let known = Keys::supported_by(Release::NEWEST);
    let all = known.iter().filter(|annotation| annotation.key() != "linkerd.io/inject");
    all.map(|annotation| value_of(annotation.key(), |bytes| fill("a", bytes))).collect()
}

/// Long numbers, which are parsed digit by digit.
fn numbers() -> Vec<Shape> {
    let quantity = |name, whole: &'static str, rest: &'static str| {
        named(name, "config.linkerd.io/proxy-cpu-limit", move |bytes| {
            [&fill(whole, bytes), rest].concat()
        })
    };
    vec![
        quantity("quantity: digits", "9", ""),
        quantity("quantity: binary", "9", "Ki"),
        quantity("quantity: zeros", "0", "1"),
        named("quantity: fraction", "config.linkerd.io/proxy-memory-request", |bytes| {
            format!("0.{}Ki", fill("9", bytes))
        }),
        named("quantity: exponent", "config.linkerd.io/proxy-memory-limit", |bytes| {
            format!("1e{}", fill("9", bytes))
        }),
        named("port: digits", "config.linkerd.io/admin-port", |bytes| fill("0", bytes) + "1"),
        named("uid: digits", "config.linkerd.io/proxy-uid", |bytes| fill("0", bytes) + "1"),
        named("duration: terms", "config.linkerd.io/shutdown-grace-period", |bytes| {
            fill("0h", bytes)
        }),
        named("duration: fraction", "config.linkerd.io/proxy-inbound-connect-timeout", |bytes| {
            format!("0.{}s", fill("3", bytes))
        }),
        named("ratio: digits", "config.linkerd.io/proxy-cpu-ratio-limit", |bytes| {
            format!("0.{}", fill("37", bytes))
        }),
        named("ratio: hexadecimal", "config.linkerd.io/proxy-cpu-ratio-limit", |bytes| {
            format!("0x0.{}p0", fill("3f", bytes))
        }),
    ]
}

fn additional_env() -> Vec<Shape> {
    let env = |name: &str, list: fn(usize) -> String| {
        named(&format!("env: {name}"), ADDITIONAL_ENV, move |bytes| format!("[{}]", list(bytes)))
    };
    vec![
        env("many names", |bytes| items(bytes, 24, |index| format!(r#"{{"name":"{index:06}"}}"#))),
        env("one name", |bytes| fill(r#"{"name":"a"},"#, bytes) + "{}"),
        env("nothing", |bytes| fill("{},", bytes) + "{}"),
        env("null", |bytes| fill("null,", bytes) + "{}"),
        env("one value", |bytes| format!(r#"{{"name":"a","value":"{}"}}"#, fill("v", bytes))),
        env("escapes", |bytes| format!(r#"{{"name":"a","value":"{}"}}"#, fill(r"\n", bytes))),
        env("unknown keys", |bytes| {
            format!("{{{}}}", items(bytes, 14, |index| format!(r#""{index:06}":1"#)))
        }),
        env("keys in another case", |bytes| {
            format!("{{{}}}", fill(r#""NAME":"a","#, bytes) + r#""nAme":"b""#)
        }),
        env("nesting", |bytes| {
            let depth = bytes / 2;
            format!(r#"{{"x":{}{}}}"#, "[".repeat(depth), "]".repeat(depth))
        }),
        env("references", |bytes| {
            items(bytes, 90, |index| {
                format!(r#"{{"name":"{index:06}","valueFrom":{{"secretKeyRef":{{"key":"k"}}}}}}"#)
            })
        }),
        env("divisor", |bytes| {
            let digits = fill("9", bytes);
            format!(r#"{{"valueFrom":{{"resourceFieldRef":{{"divisor":"{digits}Ki"}}}}}}"#)
        }),
        env("wrong type at the end", |bytes| fill(r#"{"name":"a"},"#, bytes) + "1"),
        env("not JSON at the end", |bytes| fill(r#"{"name":"a"},"#, bytes) + "x"),
    ]
}

fn opaque_ports() -> Vec<Shape> {
    let opaque = |name: &str, unit: &'static str| {
        named(&format!("opaque ports: {name}"), OPAQUE_PORTS, move |bytes| fill(unit, bytes))
    };
    vec![
        opaque("commas", ","),
        opaque("numbers", "80,"),
        opaque("ranges", "1-65535,"),
        opaque("names", "http,"),
        opaque("unknown names", "a,"),
        opaque("blanks", " "),
        Shape::of_body("opaque ports: names of as many ports", |bytes| {
            let ports = |first: usize| {
                items(30_000, 40, |index| {
                    format!(r#"{{"name":"p{}","containerPort":65535}}"#, first + index)
                })
            };
            let containers = items(bytes / 2, 30_000, |index| {
                format!(r#"{{"ports":[{}]}}"#, ports(index * 1000))
            });
            let value = items(bytes / 2, 6, |index| format!("p{index}"));
            annotated(
                &format!(r#","{OPAQUE_PORTS}":"{value}""#),
                &format!(r#"{{"containers":[{containers}]}}"#),
            )
        }),
    ]
}

/// Many entries of labels and annotations, and long ones.
fn maps() -> Vec<Shape> {
    let spec = container("");
    let annotations = |name: &str, entry: fn(usize) -> String| {
        let spec = spec.clone();
        Shape::of_body(format!("annotations: {name}"), move |bytes| {
            annotated(&format!(",{}", items(bytes, entry(0).len() + 1, entry)), &spec)
        })
    };
    let labels = |name: &str, entry: fn(usize) -> String| {
        let spec = spec.clone();
        Shape::of_body(format!("labels: {name}"), move |bytes| {
            let labels = items(bytes, entry(0).len() + 1, entry);
            let metadata = format!(
                r#","labels":{{{labels}}},"annotations":{{"linkerd.io/inject":"enabled"}}"#
            );
            review(&pod(&metadata, &spec))
        })
    };
    vec![
        annotations("other keys", |index| format!(r#""{index:07}":"""#)),
        annotations("Linkerd's keys", |index| format!(r#""linkerd.io/{index:07}":"""#)),
        annotations("one key", |_| r#""linkerd.io/inject":"enabled""#.to_owned()),
        annotations("for traces", |index| format!(r#""resource.opentelemetry.io/{index:07}":"""#)),
        labels("other keys", |index| format!(r#""{index:07}":"""#)),
        labels("Linkerd's keys", |index| format!(r#""linkerd.io/{index:07}":"""#)),
        Shape::of_body("labels: name", |bytes| {
            let labels = format!(
                r#","labels":{{"app.kubernetes.io/name":"{}"}},"annotations":{{"linkerd.io/inject":"enabled"}}"#,
                fill("a", bytes)
            );
            review(&pod(&labels, &container("")))
        }),
        Shape::of_body("labels: hash of the template", |bytes| {
            let labels = format!(r#","labels":{{"pod-template-hash":"{}"}}"#, fill("a", bytes));
            review(&pod(&labels, &container("")))
        }),
        Shape::of_body("annotations: long key", |bytes| {
            annotated(&format!(r#","{}.linkerd.io/x":"""#, fill("a", bytes)), &container(""))
        }),
        Shape::of_body("annotations: long key with a wrong type", |bytes| {
            annotated(&format!(r#","{}.linkerd.io/x":1"#, fill("a", bytes)), &container(""))
        }),
    ]
}

/// Texts that need escapes, in the annotation that is copied most often.
fn texts() -> Vec<Shape> {
    let text = |name: &str, unit: &'static str| {
        Shape::of_body(format!("text: {name}"), move |bytes| {
            let text = fill(unit, bytes);
            annotated(&format!(r#","config.linkerd.io/proxy-version":"{text}""#), &container(""))
        })
    };
    vec![
        text("escaped letters", r"\u0041"),
        text("escaped quotes", r#"\""#),
        text("escaped backslashes", r"\\"),
        text("escaped control characters", r"\u0001"),
        text("surrogate pairs", r"\ud83d\ude00"),
        text("not ASCII", "ä"),
        text("no value", "<no value>"),
    ]
}

fn namespaces() -> Vec<Shape> {
    let one = |name: &str, key: &'static str, value: fn(usize) -> String| {
        Shape::of_namespace(name, move |bytes| vec![(key.to_owned(), value(bytes))])
    };
    vec![
        one("proxy-version", "config.linkerd.io/proxy-version", |bytes| fill("a", bytes)),
        one("skip-subnets", "config.linkerd.io/skip-subnets", |bytes| fill("\"", bytes)),
        one("opaque ports", OPAQUE_PORTS, |bytes| fill(",", bytes)),
        one("env", ADDITIONAL_ENV, |bytes| {
            format!("[{}]", items(bytes, 18, |index| format!(r#"{{"name":"{index:06}"}}"#)))
        }),
        Shape::of_namespace("Linkerd's keys", |bytes| {
            (0..bytes / 18).map(|index| (format!("linkerd.io/{index:07}"), String::new())).collect()
        }),
    ]
}
