//! Random manifests of Kubernetes: what people and tools write, in odd but legal styles.

mod block;
mod flow;

use crate::generator::random::Random;
use serde_json::{Map, Value, json};

/// The manifest of a seed: one document. All comments are `# c1`, `# c2` and so on.
pub fn text(seed: u64) -> String {
    let mut random = Random::new(seed);
    let value = workload(&mut random);
    let text = match random.below(8) {
        0 => flow::json(&mut random, &value),
        _ => block::document(&mut random, &value),
    };
    match random.below(10) {
        0 => text.replace('\n', "\r\n"),
        1 => text.trim_end_matches('\n').to_owned(),
        2 => text + "\n\n",
        _ => text,
    }
}

/// A workload: where its pod is, see [`pod`].
fn workload(random: &mut Random) -> Value {
    let mut template = Map::new();
    if random.percent(85) {
        template.insert("metadata".into(), metadata(random));
    }
    let spec = pod_spec(random);
    template.insert("spec".into(), spec);
    if random.percent(15) {
        let head = json!({"apiVersion": "v1", "kind": "Pod"});
        return joined(head, Value::Object(template));
    }
    let mut spec = Map::new();
    if random.percent(60) {
        spec.insert("replicas".into(), json!(random.below(4)));
    }
    if random.percent(70) {
        spec.insert("selector".into(), json!({"matchLabels": {"app": "web"}}));
    }
    spec.insert("template".into(), Value::Object(template));
    if random.percent(30) {
        spec.insert("strategy".into(), json!({"rollingUpdate": {}, "type": "RollingUpdate"}));
    }
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(random),
        "spec": spec,
    })
}

fn joined(mut one: Value, other: Value) -> Value {
    if let (Some(one), Value::Object(other)) = (one.as_object_mut(), other) {
        one.extend(other);
    }
    one
}

fn metadata(random: &mut Random) -> Value {
    const VALUES: &[&str] =
        &["web", "true", "8080", "enabled", "a b", "", "http://x/?y=z#w", "x: y", "{\"a\": [1]}\n"];
    let mut metadata = Map::new();
    if random.percent(60) {
        metadata.insert("name".into(), json!("web"));
    }
    for key in ["labels", "annotations"] {
        let names = ["app", "app.kubernetes.io/name", "linkerd.io/inject", "note"];
        let value = match random.below(8) {
            0 => Value::Null,
            1 => json!({}),
            2..=3 => continue,
            _ => {
                let count = random.between(1, names.len());
                let labels = names.iter().take(count);
                Value::Object(
                    labels.map(|name| ((*name).into(), json!(random.pick(VALUES)))).collect(),
                )
            }
        };
        metadata.insert(key.into(), value);
    }
    if metadata.is_empty() && random.percent(40) { Value::Null } else { Value::Object(metadata) }
}

fn pod_spec(random: &mut Random) -> Value {
    let mut spec = Map::new();
    if random.percent(25) {
        spec.insert("initContainers".into(), containers(random, "init"));
    }
    if random.percent(30) {
        spec.insert("serviceAccountName".into(), json!("web"));
    }
    spec.insert("containers".into(), containers(random, "web"));
    if random.percent(40) {
        let volumes: Vec<_> = (0..random.below(3))
            .map(|at| match random.below(3) {
                0 => json!({"name": format!("v{at}"), "emptyDir": {}}),
                1 => json!({"name": format!("v{at}"), "configMap": {"name": "c", "items": []}}),
                _ => json!({"name": format!("v{at}"), "emptyDir": {"medium": "Memory"}}),
            })
            .collect();
        spec.insert("volumes".into(), Value::Array(volumes));
    }
    if random.percent(20) {
        spec.insert("nodeSelector".into(), json!({"kubernetes.io/os": "linux"}));
    }
    if random.percent(15) {
        spec.insert("tolerations".into(), json!([]));
    }
    Value::Object(spec)
}

fn containers(random: &mut Random, name: &str) -> Value {
    (0..random.between(1, 3)).map(|at| container(random, &format!("{name}-{at}"))).collect()
}

fn container(random: &mut Random, name: &str) -> Value {
    const SCRIPTS: &[&str] = &[
        "echo a",
        "set -e\nexec web\n",
        "#!/bin/sh\n\nif true; then\n  # not a comment\n  x\nfi\n",
        "one\ntwo",
        "one\n\n\n",
        "one\n\n two\n",
        "  first\nx\n",
        "a: b\n- c\n",
    ];
    let mut fields = vec![("name", json!(name)), ("image", json!("nginx:1.25"))];
    if random.percent(40) {
        let args = (0..random.below(4)).map(|_| random.pick(SCRIPTS));
        fields.push(("args", args.collect()));
    }
    if random.percent(40) {
        let command = json!(["sh", "-c", random.pick(SCRIPTS)]);
        fields.push(("command", command));
    }
    if random.percent(40) {
        let one = |at: usize, random: &mut Random| match random.below(3) {
            0 => json!({"name": format!("E{at}"), "value": random.pick(SCRIPTS)}),
            1 => json!({"name": format!("E{at}"), "value": "1"}),
            _ => {
                let field = json!({"fieldPath": "metadata.name"});
                json!({"name": format!("E{at}"), "valueFrom": {"fieldRef": field}})
            }
        };
        let count = random.below(3);
        fields.push(("env", (0..count).map(|at| one(at, random)).collect()));
    }
    if random.percent(40) {
        fields.push(("ports", json!([{"containerPort": 8080, "name": "http"}])));
    }
    if random.percent(40) {
        let memory = json!({"memory": "64Mi", "cpu": 0.5});
        fields.push(("resources", random.one_of(&[json!({}), json!({"limits": memory})]).clone()));
    }
    if random.percent(20) {
        fields.push(("tty", random.one_of(&[json!(true), Value::Null]).clone()));
    }
    if random.percent(30) {
        random.shuffle(&mut fields);
    }
    Value::Object(fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}
