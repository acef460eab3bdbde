//! A Pod as templates see it: Kubernetes' structs under Go's names, with Go's zero values.
//!
//! The types are those of `injectd_merge::schema`. JSON of another type than Kubernetes' is the zero
//! value, since a Pod is checked before.

#![expect(clippy::disallowed_types, reason = "templates may read any field")]

use std::{
    any::Any,
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

use injectd_gotemplate::{Element, Entries, IntKind, List, Map, Object, Shape, Text, Value};
use injectd_merge::schema::{Field, Kind, POD, Struct};
use serde_json::Value as Json;

mod names;

use self::names::go_name;

/// `.ObjectMeta` of a Pod.
#[must_use]
pub fn object_meta(pod: &Json) -> Value {
    part(pod, "metadata")
}

/// `.Spec` of a Pod.
#[must_use]
pub fn spec(pod: &Json) -> Value {
    part(pod, "spec")
}

fn part(pod: &Json, key: &str) -> Value {
    let field = POD.as_struct().and_then(|pod| pod.field(key));
    field.map_or(Value::Nil, |field| of_field(field, pod.get(key)))
}

/// A struct, or a pointer to one.
#[derive(Debug)]
struct Record {
    kind: &'static Struct,
    is_pointer: bool,
    fields: BTreeMap<&'static str, Value>,
    json: String,
}

impl Object for Record {
    fn type_name(&self) -> Cow<'static, str> {
        let pointer = if self.is_pointer { "*" } else { "" };
        format!("{pointer}v1.{}", self.kind.name).into()
    }

    fn shape(&self) -> Shape {
        if self.is_pointer { Shape::Pointer } else { Shape::Struct }
    }

    fn field(&self, name: &str) -> Option<Value> {
        if let Some(value) = self.fields.get(name) {
            return Some(value.clone());
        }
        let names = GO_NAMES.get(self.kind.name)?;
        names.get(name).map(|field| of_field(field, None))
    }

    fn fields(&self) -> Vec<(Cow<'static, str>, Value)> {
        let field = |field: &'static Field| {
            let name = go_name(field.name);
            self.field(name).map(|value| (name.into(), value))
        };
        self.kind.fields().iter().filter_map(field).collect()
    }

    fn json(&self) -> Result<String, String> {
        Ok(self.json.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A value of a named type, or a pointer to a value, or a value that prints itself.
#[derive(Debug)]
struct Scalar {
    type_name: Cow<'static, str>,
    shape: Shape,
    text: Option<Text>,
    json: String,
}

impl Object for Scalar {
    fn type_name(&self) -> Cow<'static, str> {
        self.type_name.clone()
    }

    fn shape(&self) -> Shape {
        self.shape.clone()
    }

    fn text(&self) -> Option<Text> {
        self.text.clone()
    }

    fn json(&self) -> Result<String, String> {
        Ok(self.json.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The fields of each struct by Go's names.
static GO_NAMES: LazyLock<HashMap<&'static str, HashMap<&'static str, &'static Field>>> =
    LazyLock::new(|| {
        let mut all = HashMap::new();
        if let Some(pod) = POD.as_struct() {
            add_names(pod, &mut all);
        }
        all
    });

fn add_names(
    of: &'static Struct,
    all: &mut HashMap<&'static str, HashMap<&'static str, &'static Field>>,
) {
    if all.contains_key(of.name) {
        return;
    }
    let names = of.fields().iter().map(|field| (go_name(field.name), field)).collect();
    all.insert(of.name, names);
    for field in of.fields() {
        if let Some(inner) = inner_struct(&field.kind) {
            add_names(inner, all);
        }
    }
}

fn inner_struct(kind: &'static Kind) -> Option<&'static Struct> {
    match kind {
        Kind::List(inner) | Kind::Map(_, inner) => inner_struct(inner),
        kind => kind.as_struct(),
    }
}

fn of_field(field: &'static Field, json: Option<&Json>) -> Value {
    let json = json.filter(|json| !json.is_null());
    if !field.pointer {
        return of_kind(&field.kind, json.unwrap_or(&Json::Null));
    }
    let Some(json) = json else {
        return scalar(format!("*{}", field.kind.go_type()), Shape::NilPointer, None, &Json::Null);
    };
    if let Some(kind) = field.kind.as_struct() {
        return record(kind, true, json);
    }
    // It prints as what it points to.
    let text = Text::from(shown(json));
    scalar(format!("*{}", field.kind.go_type()), Shape::Pointer, Some(text), json)
}

fn of_kind(kind: &'static Kind, json: &Json) -> Value {
    match kind {
        Kind::Text("string") => json.as_str().unwrap_or_default().into(),
        Kind::Text(name) => {
            let text = json.as_str().unwrap_or_default();
            scalar((*name).to_owned(), Shape::Named(text.into()), None, json)
        }
        Kind::Boolean => json.as_bool().unwrap_or_default().into(),
        Kind::Int32 => Value::Int(json.as_i64().unwrap_or_default(), IntKind::Int32),
        Kind::Int64 => Value::Int(json.as_i64().unwrap_or_default(), IntKind::Int64),
        Kind::IntOrString | Kind::Quantity | Kind::Time => {
            let text = Text::from(shown(json));
            scalar(kind.go_type(), Shape::Struct, Some(text), json)
        }
        Kind::Any => Value::from_json(json),
        Kind::Struct(inner) => record(inner.get(), false, json),
        Kind::List(inner) => {
            let element = element(inner);
            match json.as_array() {
                None => List::nil(element).into(),
                Some(items) => {
                    let items = items.iter().map(|item| of_kind(inner, item));
                    List::of(element, items.collect()).into()
                }
            }
        }
        Kind::Map(name, inner) => {
            let key = name.strip_prefix("map[").and_then(|rest| rest.split(']').next());
            let element = element(inner);
            let Some(entries) = json.as_object() else { return Map::nil(element).into() };
            let entries = entries
                .iter()
                .map(|(key, value)| (Text::from(key.as_str()), of_kind(inner, value)));
            Map::of(key.unwrap_or("string"), element, entries.collect::<Entries>()).into()
        }
    }
}

fn record(kind: &'static Struct, is_pointer: bool, json: &Json) -> Value {
    let entries = json.as_object().into_iter().flatten();
    let fields = entries.filter_map(|(key, value)| {
        let field = kind.field(key)?;
        Some((go_name(field.name), of_field(field, Some(value))))
    });
    let fields = fields.collect();
    Value::Object(Arc::new(Record { kind, is_pointer, fields, json: compact(json) }))
}

fn scalar(type_name: String, shape: Shape, text: Option<Text>, json: &Json) -> Value {
    let json = json.to_string();
    Value::Object(Arc::new(Scalar { type_name: type_name.into(), shape, text, json }))
}

fn shown(json: &Json) -> String {
    json.as_str().map_or_else(|| json.to_string(), str::to_owned)
}

/// As Go writes JSON, with escapes for HTML.
fn compact(json: &Json) -> String {
    let text = if json.is_object() { json.to_string() } else { "{}".to_owned() };
    text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// The type of the items of a list. Its name lives as long as the program: there are as many as types.
fn element(kind: &Kind) -> Element {
    static NAMES: Mutex<BTreeMap<String, &'static str>> = Mutex::new(BTreeMap::new());
    if matches!(kind, Kind::Text("string")) {
        return Element::Text;
    }
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let name = names.entry(kind.go_type()).or_insert_with_key(|name| name.clone().leak());
    Element::Other(name, || Value::Nil)
}

#[cfg(test)]
mod tests {
    use injectd_gotemplate::{Context, Functions, Template};
    use serde_json::json;

    use super::*;

    fn rendered(text: &str, pod: &Json) -> String {
        let functions = Functions::istio();
        let template = Template::parse("test", text, &functions).expect("a template");
        let data = BTreeMap::from([
            (Text::from("Spec"), spec(pod)),
            (Text::from("ObjectMeta"), object_meta(pod)),
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
            (
                "{{ range .Spec.Containers }}{{ eq (index .Ports 0).Protocol \"TCP\" }}{{ end }}",
                "true",
            ),
            ("{{ (index .Spec.Containers 0).LivenessProbe.HTTPGet.Path }}", "/"),
            (
                "{{ structToJSON (index (index .Spec.Containers 0).Ports 0) }}",
                "{\"containerPort\":80,\"hostIP\":\"1.2.3.4\",\"protocol\":\"TCP\"}",
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
}
