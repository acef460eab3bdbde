//! Generated values for the variables of an environment, to see what an expression costs for a pod of
//! some shape.

use injectd_merge::schema::{Kind, StructRef};
use serde_json::{Map, Value, json};

use super::{Datum, Environment, Program, TypeDef, Typed, Variables};

/// Depth of the generated parts of a pod.
const MAX_DEPTH: usize = 3;
/// Elements of generated lists, and entries of maps.
const ELEMENTS: usize = 16;
/// Mounts of a generated container, and labels and annotations of the pod.
const MOUNTS: usize = 10;
const LABELS: usize = 20;
const TEXT: &str = "a-text-of-a-usual-length";

/// The shape of a generated pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Its containers.
    pub containers: usize,
    /// The variables of each container.
    pub variables: usize,
}

/// Values of all variables of an environment, for a pod of some shape.
#[derive(Debug)]
pub struct Sample {
    values: Vec<(Box<str>, Typed)>,
}

impl Shape {
    /// A large pod: the cost for it is compared with the limits.
    pub const LARGE: Self = Self { containers: 20, variables: 100 };

    /// A pod of this shape.
    #[must_use]
    pub fn pod(self) -> Value {
        let texts = |prefix: &str| -> Map<String, Value> {
            (0..LABELS).map(|at| (format!("example.com/{prefix}-{at}"), TEXT.into())).collect()
        };
        let containers: Vec<_> = (0..self.containers).map(|at| self.container(at)).collect();
        let volume = |at: usize| json!({"name": format!("volume-{at}"), "emptyDir": {}});
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": "sample",
                "namespace": "sample",
                "labels": texts("label"),
                "annotations": texts("annotation"),
                "ownerReferences": [{
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": "sample-5d8c7b",
                    "uid": "b0e0c4e1-2d1f-4f3b-8d0a-6f3f1f0d5a11",
                    "controller": true,
                }],
            },
            "spec": {
                "containers": containers,
                "serviceAccountName": "sample",
                "restartPolicy": "Always",
                "volumes": (0..MOUNTS).map(volume).collect::<Vec<_>>(),
            },
            "status": {},
        })
    }

    fn container(self, at: usize) -> Value {
        let variable = |at: usize| json!({"name": format!("VARIABLE_{at}"), "value": TEXT});
        let mount = |at: usize| json!({"name": format!("volume-{at}"), "mountPath": format!("/var/lib/volume-{at}")});
        json!({
            "name": format!("container-{at}"),
            "image": "registry.example.com/team/image:1.0",
            "args": [TEXT, TEXT],
            "env": (0..self.variables).map(variable).collect::<Vec<_>>(),
            "ports": [{"name": "http", "containerPort": 8080 + at}],
            "volumeMounts": (0..MOUNTS).map(mount).collect::<Vec<_>>(),
            "resources": {
                "requests": {"cpu": "100m", "memory": "128Mi"},
                "limits": {"cpu": "1", "memory": "1Gi"},
            },
            "securityContext": {"runAsUser": 1000, "runAsNonRoot": true},
        })
    }

    /// A value of a type.
    fn value(self, of: &TypeDef) -> Value {
        match of {
            TypeDef::Null | TypeDef::Bytes => Value::Null,
            TypeDef::Bool => true.into(),
            TypeDef::Int | TypeDef::Uint => 8080.into(),
            TypeDef::Double => 0.5.into(),
            TypeDef::Quantity => "100m".into(),
            TypeDef::Duration => "30s".into(),
            TypeDef::Dyn | TypeDef::String | TypeDef::Timestamp | TypeDef::Other(_) => TEXT.into(),
            TypeDef::Optional(of) => self.value(of),
            TypeDef::List(of) => vec![self.value(of); ELEMENTS].into(),
            TypeDef::Map(of) => {
                let entry = |at: usize| (format!("key-{at}"), self.value(of));
                (0..ELEMENTS).map(entry).collect()
            }
            TypeDef::Object { fields, .. } => {
                fields.iter().map(|field| (field.name.clone(), self.value(&field.of))).collect()
            }
            TypeDef::PodPart(of) => match of.get().name {
                "Pod" => self.pod(),
                "Container" => self.container(0),
                _ => part(*of, 0),
            },
        }
    }
}

/// A part of a pod with all of its fields, down to a depth.
fn part(of: StructRef, depth: usize) -> Value {
    let fields = of.get().fields().iter().filter_map(|field| {
        let value = of_kind(&field.kind, depth)?;
        Some((field.name.to_owned(), value))
    });
    fields.collect()
}

fn of_kind(kind: &Kind, depth: usize) -> Option<Value> {
    Some(match kind {
        Kind::Boolean => true.into(),
        Kind::Int32 | Kind::Int64 => 8080.into(),
        Kind::Quantity => "100m".into(),
        Kind::Text(_) | Kind::IntOrString | Kind::Time | Kind::Any => TEXT.into(),
        Kind::Struct(of) if depth < MAX_DEPTH => part(*of, depth + 1),
        Kind::List(item) if depth < MAX_DEPTH => vec![of_kind(item, depth + 1)?].into(),
        Kind::Map(_, value) if depth < MAX_DEPTH => json!({"key": of_kind(value, depth + 1)?}),
        Kind::Struct(_) | Kind::List(_) | Kind::Map(..) => return None,
    })
}

impl Sample {
    /// A value for each variable of an environment.
    #[must_use]
    pub fn of(environment: &Environment, shape: Shape) -> Self {
        let value = |of: &TypeDef| Typed::of(of, Some(&shape.value(of)));
        let values = environment.variables().map(|(name, of)| (name.into(), value(&of)));
        Self { values: values.collect() }
    }
}

impl Variables for Sample {
    fn get(&self, name: &str) -> Option<Datum<'_>> {
        self.values.iter().find(|(known, _)| **known == *name).map(|(_, value)| value.datum())
    }
}

impl Program {
    /// What the expression costs for generated values: those of its own variables, or others that a
    /// caller knows better. An evaluation that fails costs what was evaluated, and one that costs more
    /// than it may ends there.
    #[must_use]
    pub fn cost_for(&self, variables: &(dyn Variables + Sync)) -> u64 {
        self.value(variables).cost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(expression: &str, shape: Shape) -> u64 {
        let params = TypeDef::object(
            "params",
            vec![crate::FieldDef::optional("ports", TypeDef::Int.list())],
        );
        let environment =
            Environment::templates().with("container", TypeDef::container()).with("params", params);
        let program = Program::compile_in(&environment, expression).expect(expression);
        let sample = Sample::of(&environment, shape);
        assert!(program.value(&sample).value.is_ok(), "{expression}");
        program.cost_for(&sample)
    }

    #[test]
    fn costs_grow_with_the_shape() {
        let small = Shape { containers: 2, variables: 10 };
        let of_containers = "object.spec.containers.map(c, c.env.filter(e, e.name == 'X')).size()";
        assert!(cost(of_containers, Shape::LARGE) > 90 * cost(of_containers, small) / 2);
        let of_variables = "env(container, 'VARIABLE_3').value";
        assert!(cost(of_variables, Shape::LARGE) > cost(of_variables, small) + 89);
        let name = "object.metadata.name";
        assert_eq!(cost(name, Shape::LARGE), cost(name, small));
    }

    #[test]
    fn every_variable_has_a_value() {
        for expression in [
            "owner.labels.size() + owners.size() + params.ports[0]",
            "controller.?kind.orValue('').size()",
            "serviceAccount.?metadata.?annotations.orValue({}).size()",
            "namespaceObject.metadata.labels.size()",
            "freePorts(8080, 3).size()",
            "object.spec.volumes[0].name.size()",
        ] {
            assert!(cost(expression, Shape::LARGE) > 0, "{expression}");
        }
    }
}
