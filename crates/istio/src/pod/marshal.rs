//! Kubernetes' structs as `json.Marshal` writes them: fields in the order of Go, without those that
//! are empty or unknown, and quantities in their canonical form.

use injectd_merge::schema::{Field, Kind, Struct};
use serde_json::{Map, Value as Json};

use super::{
    Holder,
    layout::{Content, Layout},
    quantity::Quantity,
};

/// From this version of Kubernetes on, a time that is not set is left out; before, it is null.
const TIMES_LEFT_OUT: u16 = 34;

/// A struct; anything but an object is one without values.
pub(super) fn of_struct(json: &Json, of: &Struct, layout: &Layout, kubernetes: u16) -> Json {
    let mut fields = Map::new();
    add_fields(&mut fields, json, of, layout, kubernetes);
    Json::Object(fields)
}

fn add_fields(
    fields: &mut Map<String, Json>,
    json: &Json,
    of: &Struct,
    layout: &Layout,
    kubernetes: u16,
) {
    for row in layout.rows(kubernetes) {
        match row.content {
            Content::Embedded(name) => {
                add_fields(fields, json, of, Layout::of(name), kubernetes);
            }
            Content::Key(key) => {
                let field = of.field(key);
                let value = field.and_then(|field| of_field(field, json.get(key), kubernetes));
                fields.extend(value.map(|value| (key.to_owned(), value)));
            }
        }
    }
}

/// The value of a field; `None` if Go leaves it out.
fn of_field(field: &Field, json: Option<&Json>, kubernetes: u16) -> Option<Json> {
    let json = json.unwrap_or(&Json::Null);
    if field.pointer {
        let is_written = !json.is_null() || field.written;
        return is_written.then(|| {
            if json.is_null() { Json::Null } else { of_kind(&field.kind, json, kubernetes) }
        });
    }
    let value = of_kind(&field.kind, json, kubernetes);
    let is_written = match field.kind {
        Kind::Struct(_) | Kind::Quantity | Kind::IntOrString => true,
        Kind::Time => !value.is_null() || kubernetes < TIMES_LEFT_OUT,
        _ => field.written || !is_empty(&value),
    };
    is_written.then_some(value)
}

fn of_kind(kind: &Kind, json: &Json, kubernetes: u16) -> Json {
    match kind {
        Kind::Text(_) => json.as_str().unwrap_or_default().into(),
        Kind::Boolean => json.as_bool().unwrap_or_default().into(),
        Kind::IntOrString if json.is_string() => json.clone(),
        Kind::Int32 | Kind::Int64 | Kind::IntOrString => json.as_i64().unwrap_or_default().into(),
        Kind::Quantity => Quantity::of(json, Holder::Copy).shown().into(),
        Kind::Time | Kind::Any => json.clone(),
        Kind::Struct(of) => {
            let of = of.get();
            of_struct(json, of, Layout::of(of.name), kubernetes)
        }
        Kind::List(inner) => {
            let items = json
                .as_array()
                .map(|items| items.iter().map(|item| of_kind(inner, item, kubernetes)).collect());
            items.map_or(Json::Null, Json::Array)
        }
        Kind::Map(_, inner) => json.as_object().map_or(Json::Null, |map| of_map(inner, map)),
    }
}

/// A map, whose keys Go sorts. The values of a Pod's maps are texts, bytes or quantities.
pub(super) fn of_map(inner: &Kind, map: &Map<String, Json>) -> Json {
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    let value = |(key, value): (&String, &Json)| (key.clone(), of_kind(inner, value, 0));
    Json::Object(entries.into_iter().map(value).collect())
}

fn is_empty(json: &Json) -> bool {
    match json {
        Json::Null => true,
        Json::Bool(value) => !value,
        Json::Number(number) => number.as_i64() == Some(0),
        Json::String(text) => text.is_empty(),
        Json::Array(items) => items.is_empty(),
        Json::Object(map) => map.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use injectd_merge::schema::POD;
    use serde_json::json;

    use super::*;

    fn json_of(key: &str, json: &Json, kubernetes: u16) -> String {
        let field = POD.as_struct().and_then(|pod| pod.field(key)).expect("a part of a pod");
        of_kind(&field.kind, json, kubernetes).to_string()
    }

    #[test]
    fn structs_are_written_as_go_writes_them() {
        let spec = json!({"unknown": 1, "containers": [{
            "ports": [{"protocol": "TCP", "hostPort": 0, "containerPort": 80, "name": "h"}],
            "command": [], "name": "web", "env": [{"value": "", "name": "A"}],
            "resources": {"limits": {"memory": "1024Mi", "cpu": "0.5"}},
            "livenessProbe": {"timeoutSeconds": 0, "httpGet": {"port": "h", "path": ""}},
        }]});
        let expected = concat!(
            r#"{"containers":[{"name":"web","#,
            r#""ports":[{"name":"h","containerPort":80,"protocol":"TCP"}],"env":[{"name":"A"}],"#,
            r#""resources":{"limits":{"cpu":"500m","memory":"1Gi"}},"#,
            r#""livenessProbe":{"httpGet":{"port":"h"}}}]}"#,
        );
        assert_eq!(json_of("spec", &spec, 36), expected);
        assert_eq!(json_of("spec", &json!({}), 36), r#"{"containers":null}"#);
        assert_eq!(json_of("metadata", &json!({}), 33), r#"{"creationTimestamp":null}"#);
        assert_eq!(json_of("metadata", &json!({}), 34), "{}");
    }
}
