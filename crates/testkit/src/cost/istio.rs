//! Reviews that grow in one place each, for Istio: with each template of a configuration.

use injectd_core::{injector::Injector, standalone::Standalone};
use injectd_istio::{mesh::Istio, proto::layers::Resources};

use super::{Shape, annotated, container, escaped, fill, items, objects};
use crate::istio;

/// The annotation that every shape has, which the templates of a pod are added to.
const INJECT: &str = r#""linkerd.io/inject":"enabled""#;
/// The template that a pod gets if it asks for none.
const SIDECAR: &str = "sidecar";

/// A configuration of Istio.
#[expect(missing_debug_implementations, reason = "the injector has no use for it in a test")]
pub struct Configuration {
    /// The names of its templates.
    pub templates: Vec<String>,
    annotations: Vec<String>,
    mesh: Istio,
}

impl Configuration {
    /// That of [`istio::found`].
    pub fn find() -> Self {
        let (_, mesh) = istio::found();
        let owned = |names: &mut dyn Iterator<Item = &str>| names.map(str::to_owned).collect();
        let templates = owned(&mut mesh.revision().template_names());
        let annotations = owned(&mut mesh.revision().known_annotations());
        Self { templates, annotations, mesh }
    }

    /// An injector without a cluster, which knows no answers.
    pub fn injector(&self) -> Injector<Istio, Standalone> {
        istio::injector_with(self.mesh.with_resources(Resources::default()))
    }

    /// Every shape with the template of sidecars, and lists with every template.
    pub fn shapes(&self) -> Vec<Shape> {
        self.templates.iter().flat_map(|template| self.shapes_with(template)).collect()
    }

    fn shapes_with(&self, template: &str) -> Vec<Shape> {
        let mut shapes = listing();
        shapes.extend(yaml());
        shapes.extend(lists());
        if template == SIDECAR {
            shapes.extend(objects::shapes());
            shapes.extend(self.annotations.iter().map(|key| annotation(key, "letters", "a")));
        }
        shapes.into_iter().map(|shape| with_template(shape, template)).collect()
    }
}

/// The same reviews, of pods that ask for a template.
fn with_template(shape: Shape, template: &str) -> Shape {
    let asked = format!(r#"{INJECT},"inject.istio.io/templates":"{template}""#);
    Shape::of_body(format!("{template}: {}", shape.name), move |bytes| {
        shape.grow(bytes).body.replacen(INJECT, &asked, 1)
    })
}

/// A pod with an annotation that repeats a text.
fn annotation(key: &str, name: &str, unit: &'static str) -> Shape {
    written(key, name, move |bytes| fill(unit, bytes))
}

fn written(key: &str, name: &str, value: impl Fn(usize) -> String + 'static) -> Shape {
    let (name, key) = (format!("{key}: {name}"), key.to_owned());
    let spec = container(r#","image":"a","ports":[{"name":"http","containerPort":8080}]"#);
    Shape::of_body(name, move |bytes| {
        annotated(&format!(r#","{key}":"{}""#, escaped(&value(bytes)).replace('\n', r"\n")), &spec)
    })
}

/// Lists in annotations, of the kinds that Istio reads.
fn listing() -> Vec<Shape> {
    const OVERRIDES: &str = "proxy.istio.io/overrides";
    const PORTS: &str = "traffic.sidecar.istio.io/includeInboundPorts";
    const RANGES: &str = "traffic.sidecar.istio.io/excludeOutboundIPRanges";
    const STATUS: &str = "sidecar.istio.io/status";
    const TARGETS: &str = "prometheus.istio.io/scrape-targets";
    const VOLUMES: &str = "sidecar.istio.io/userVolume";
    const MOUNTS: &str = "sidecar.istio.io/userVolumeMount";
    let named = |bytes, rest: &'static str| {
        items(bytes, 12 + rest.len(), move |index| format!(r#""n{index:06}":{rest}"#))
    };
    let containers = |bytes| items(bytes, 20, |index| format!(r#"{{"name":"c{index:06}"}}"#));
    vec![
        annotation(PORTS, "ports", "80,"),
        annotation(PORTS, "commas", ","),
        annotation(RANGES, "ranges", "10.0.0.0/8,"),
        annotation(TARGETS, "ports", "80,"),
        written(VOLUMES, "volumes", move |bytes| {
            format!("{{{}}}", named(bytes, r#"{"emptyDir":{}}"#))
        }),
        written(MOUNTS, "mounts", move |bytes| {
            format!("{{{}}}", named(bytes, r#"{"mountPath":"/a"}"#))
        }),
        written(OVERRIDES, "containers", move |bytes| {
            format!(r#"{{"containers":[{}]}}"#, containers(bytes))
        }),
        written(OVERRIDES, "one container", |bytes| {
            format!(r#"{{"containers":[{}{{}}]}}"#, fill(r#"{"name":"a"},"#, bytes))
        }),
        written(STATUS, "containers", |bytes| {
            format!(
                r#"{{"containers":[{}]}}"#,
                items(bytes, 10, |index| format!(r#""c{index:06}""#))
            )
        }),
        Shape::of_body("names of an earlier injection", move |bytes| {
            let injected = items(bytes / 2, 10, |index| format!(r#""c{index:06}""#));
            let status = escaped(&format!(r#"{{"containers":[{injected}]}}"#));
            annotated(
                &format!(r#","{STATUS}":"{status}""#),
                &format!(r#"{{"containers":[{}]}}"#, containers(bytes / 2)),
            )
        }),
    ]
}

/// YAML in annotations: read by Istio, and pasted by its templates.
fn yaml() -> Vec<Shape> {
    const CONFIG: &str = "proxy.istio.io/config";
    const LOG_LEVEL: &str = "sidecar.istio.io/logLevel";
    vec![
        annotation(LOG_LEVEL, "line breaks", "\n"),
        annotation(LOG_LEVEL, "quotes", "\""),
        annotation(LOG_LEVEL, "backslashes", "\\"),
        written(CONFIG, "variables", |bytes| {
            format!("proxyMetadata: {{{}}}", items(bytes, 9, |index| format!("A{index:06}: v")))
        }),
        written(CONFIG, "nesting", |bytes| "[".repeat(bytes) + &"]".repeat(bytes)),
        written(CONFIG, "anchors", |bytes| {
            let depth = 250;
            let open = (0..depth).map(|at| format!("&a{at} ["));
            let open = open.fold(String::new(), |all, anchor| all + &anchor);
            format!("x: {open}{}{}", fill("1,", bytes), "]".repeat(depth))
        }),
        written(CONFIG, "lines in quotes", |bytes| {
            format!("x:{}\"y\n{}\"", fill(" ", bytes / 2), fill("y\n", bytes / 2))
        }),
        written(CONFIG, "lines of tabs", |bytes| format!("a: x\n{}b: y\n", fill(" \t\n", bytes))),
        written(CONFIG, "tabs in a line", |bytes| {
            format!("a: x\n{}{}\nb: y\n", fill(" ", bytes / 2), fill("\t", bytes / 2))
        }),
        written(CONFIG, "block scalars before blanks", |bytes| {
            let scalars = (0..bytes / 40).map(|at| format!("a{at:06}: >\n    x\n"));
            scalars.fold(String::new(), |all, scalar| all + &scalar) + &fill(" ", bytes / 2)
        }),
        written(CONFIG, "texts in quotes", |bytes| format!("x: [{}]", fill(r#""a\'b","#, bytes))),
        pasted("containers of the pod", |_| 1),
        pasted("a container again and again", |count| count),
        written(LOG_LEVEL, "pasted aliases", |bytes| {
            format!("x\n    tty: [&a {}{}]", fill("b", bytes / 2), fill(", *a", bytes / 2))
        }),
    ]
}

/// A list of containers after the log level; each name stands `repeats` times in it, and the pod has a
/// container of each name.
fn pasted(name: &str, repeats: impl Fn(usize) -> usize + 'static) -> Shape {
    Shape::of_body(format!("sidecar.istio.io/logLevel: pasted {name}"), move |bytes| {
        let count = bytes / 55;
        let names = count.div_ceil(repeats(count));
        let lines = (0..count).map(|index| format!(r"\n  - name: c{}", index % names));
        let value = lines.fold("x".to_owned(), |all, line| all + &line);
        let containers =
            items(names * 33, 33, |index| format!(r#"{{"name":"c{index}","image":"x"}}"#));
        annotated(
            // The list of the proxy's arguments goes on after the value.
            &format!(r#","sidecar.istio.io/logLevel":"{value}\n    args:""#),
            &format!(r#"{{"containers":[{containers}]}}"#),
        )
    })
}

/// Lists whose items have names, as the merges of templates ask for.
pub(super) fn lists() -> Vec<Shape> {
    const WEB: &str = r#"],"containers":[{"name":"web","image":"a"}]"#;
    const VARIABLES: &str = r#""containers":[{"name":"web","image":"a","env":["#;
    const PORTS: &str = r#""containers":[{"name":"web","image":"a","ports":["#;
    let spec = |name: &str, [before, after]: [&'static str; 2], item: fn(usize) -> String| {
        Shape::of_body(format!("named {name}"), move |bytes| {
            let list = items(bytes, item(0).len() + 1, item);
            annotated("", &format!("{{{before}{list}{after}}}"))
        })
    };
    let container = |at| format!(r#"{{"name":"c{at:06}","image":"a"}}"#);
    vec![
        spec("containers", [r#""containers":["#, "]"], container),
        spec("init containers", [r#""initContainers":["#, WEB], container),
        spec("volumes", [r#""volumes":["#, WEB], |at| {
            format!(r#"{{"name":"v{at:06}","emptyDir":{{}}}}"#)
        }),
        spec("secrets", [r#""imagePullSecrets":["#, WEB], |at| format!(r#"{{"name":"s{at:06}"}}"#)),
        spec("variables", [VARIABLES, "]}]"], |at| format!(r#"{{"name":"E{at:06}","value":"v"}}"#)),
        spec("ports", [PORTS, "]}]"], |at| {
            format!(r#"{{"containerPort":{},"name":"p{at:06}"}}"#, 1 + at % 65_535)
        }),
        spec("probes", [r#""containers":["#, "]"], |at| {
            format!(r#"{{"name":"c{at:06}","livenessProbe":{{"httpGet":{{"port":80}}}}}}"#)
        }),
    ]
}
