//! The reference lists all fields of the schema: `BLESS=1` writes them into the page.

#![expect(clippy::disallowed_types, reason = "schemas are trees")]

use std::{collections::HashMap, env, fmt::Write as _, fs};

use injectd_templates::{limits::MAX_ITEMS, schema::crds};
use serde_json::Value;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/templates/reference.md");
const BEGIN: &str = "<!-- fields of the schema -->\n";
const END: &str = "<!-- end of fields -->\n";
/// The width of the pages.
const WIDTH: usize = 150;

/// The sections of the objects, the outer ones first.
#[derive(Default)]
struct Reference {
    text: String,
    /// The headings of objects, by their fields: some objects occur several times.
    known: HashMap<String, String>,
}

impl Reference {
    fn object(&mut self, path: &str, schema: &Value) {
        let Some(fields) = schema["properties"].as_object() else { return };
        let _ = write!(self.text, "\n## {path}\n\n{}", wrapped("", &about(schema)));
        let written = schema["properties"].to_string();
        if let Some(same) = self.known.get(&written) {
            let anchor = same.replace(['.', '[', ']'], "").to_lowercase();
            let text = format!("It has the fields of [{same}](#{anchor}).");
            let _ = write!(self.text, "\n{}", wrapped("", &text));
            return;
        }
        self.known.insert(written, path.to_owned());
        self.text.push('\n');
        let required: Vec<_> = schema["required"].as_array().into_iter().flatten().collect();
        for (name, of) in fields {
            let is_required = required.iter().any(|required| *required == name);
            let text = format!("`{name}` ({}): {}", facts(of, is_required), about(of));
            self.text.push_str(&wrapped("- ", &text));
        }
        for rule in rules(schema) {
            self.text.push('\n');
            self.text.push_str(&wrapped("", &format!("Expected: {rule}.")));
        }
        for (name, of) in fields {
            let path = format!("{path}.{name}");
            match of.get("items") {
                Some(items) => self.object(&format!("{path}[]"), items),
                None => self.object(&path, of),
            }
        }
    }
}

fn about(schema: &Value) -> String {
    let about = schema["description"].as_str().expect("a description");
    about.replace("${…}", "`${…}`")
}

/// What the rules of an object expect.
fn rules(schema: &Value) -> Vec<String> {
    let rules = schema["x-kubernetes-validations"].as_array().into_iter().flatten();
    let messages = rules.filter_map(|rule| rule["message"].as_str());
    let expected = |message: &str| message.strip_prefix("expected ").unwrap_or(message).to_owned();
    let mut found: Vec<_> = messages.map(expected).collect();
    if let Some(alternatives) = schema["oneOf"].as_array() {
        let names = alternatives.iter().filter_map(|one| one["required"][0].as_str());
        found.push(format!("exactly one of {}", names.collect::<Vec<_>>().join(" and ")));
    }
    found
}

/// The type, the bounds and the default of a field.
fn facts(schema: &Value, is_required: bool) -> String {
    let mut facts = vec![kind(schema)];
    facts.extend(is_required.then(|| "required".to_owned()));
    facts.extend(values(schema));
    facts.extend(bounds(schema, ["minLength", "maxLength"], "characters"));
    facts.extend(bounds(schema, ["minItems", "maxItems"], "items"));
    let most = ["minProperties", "maxProperties"];
    facts.extend(bounds(schema, most, "fields").filter(|_| schema["maxProperties"] != 0));
    facts.extend(bounds(schema, ["minimum", "maximum"], ""));
    if let Some(pattern) = schema["pattern"].as_str() {
        facts.push(format!("matches `{pattern}`"));
    }
    if schema.get("properties").is_none() {
        facts.extend(rules(schema));
    }
    if let Some(items) = schema.get("items").filter(|items| items.get("properties").is_none()) {
        facts.push(format!("items: {}", self::facts(items, false)));
    }
    if let Some(values) = schema.get("additionalProperties") {
        facts.push(format!("values: {}", self::facts(values, false)));
    }
    match &schema["default"] {
        Value::Null => {}
        Value::String(text) => facts.push(format!("default `{text}`")),
        other => facts.push(format!("default `{other}`")),
    }
    facts.join(", ")
}

fn kind(schema: &Value) -> String {
    let name = match schema["type"].as_str() {
        Some("array") => match schema["x-kubernetes-list-map-keys"][0].as_str() {
            Some(key) => return format!("list with each `{key}` once"),
            None => "list",
        },
        Some("object") if schema.get("additionalProperties").is_some() => "map",
        Some("object") => "object",
        Some("integer") => "integer",
        Some("boolean") => "`true` or `false`",
        Some("string") => "string",
        _ => "any type",
    };
    name.to_owned()
}

fn values(schema: &Value) -> Option<String> {
    let values = schema["enum"].as_array()?.iter().filter_map(Value::as_str);
    let values: Vec<_> = values.map(|value| format!("`{value}`")).collect();
    let (last, first) = values.split_last()?;
    Some(format!("{} or {last}", first.join(", ")))
}

fn bounds(schema: &Value, [least, most]: [&str; 2], of: &str) -> Option<String> {
    let text = match [schema[least].as_i64(), schema[most].as_i64()] {
        [Some(least), Some(most)] => format!("{least} to {most} {of}"),
        [Some(least), None] => format!("at least {least} {of}"),
        [None, Some(most)] => format!("at most {most} {of}"),
        [None, None] => return None,
    };
    Some(text.trim_end().to_owned())
}

/// A paragraph, or an item of a list, in lines of the pages' width.
fn wrapped(mark: &str, text: &str) -> String {
    let (mut lines, mut width) = (mark.to_owned(), mark.len());
    for word in text.split(' ') {
        let length = word.chars().count();
        let is_first = width == mark.len();
        if !is_first && width + 1 + length > WIDTH {
            lines.extend(["\n", &" ".repeat(mark.len())]);
            width = mark.len();
        } else if !is_first {
            lines.push(' ');
            width += 1;
        }
        lines.push_str(word);
        width += length;
    }
    lines.push('\n');
    lines
}

#[test]
fn the_reference_lists_the_fields_of_the_schema() {
    let [cluster, _] = crds();
    let schema = &cluster["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
    let mut reference = Reference::default();
    for name in ["spec", "status"] {
        reference.object(name, &schema[name]);
    }
    let page = fs::read_to_string(PAGE).expect("the page");
    let (before, rest) = page.split_once(BEGIN).expect("the marker");
    let (_, after) = rest.split_once(END).expect("the marker of the end");
    let found = [before, BEGIN, &reference.text, END, after].concat();
    if env::var_os("BLESS").is_some() {
        fs::write(PAGE, &found).expect("the page must be written");
        return;
    }
    // Both texts are long.
    assert!(page == found, "{PAGE} is stale: run with BLESS=1");
}

/// The schema does not have it.
#[test]
fn the_reference_names_the_bound_of_for_each() {
    let page = fs::read_to_string(PAGE).expect("the page");
    let expected = format!("A `forEach` has at most {MAX_ITEMS} items.");
    assert!(page.contains(&expected), "{PAGE} lacks: {expected}");
}
