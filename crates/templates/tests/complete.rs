//! Nothing of the language is left out: each field and each function has a sentence in the reference, an
//! example that uses it, and a broken template.

#![expect(clippy::disallowed_types, reason = "templates and schemas are trees")]

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs,
};

use injectd_cel::{Datum, Environment, OWN_CONTAINERS, Program, TypeDef, Variables};
use injectd_core::yaml;
use injectd_templates::schema::crds;
use regex::Regex;
use serde_json::{Value, json};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// The functions, each with its types.
const TYPES: &str = include_str!("../../cel/src/check/functions.rs");
const BROKEN: &str = include_str!("../testdata/broken.txt");
const PARAMETERS: &str = include_str!("../testdata/parameters.txt");
const SCHEMA: &str = include_str!("../testdata/schema.yaml");

fn read(path: &str) -> String {
    fs::read_to_string(format!("{ROOT}/{path}")).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The texts of the examples.
fn examples() -> Vec<String> {
    let entries = fs::read_dir(format!("{ROOT}/examples/templates")).expect("the examples");
    let paths = entries.map(|entry| entry.expect("an entry").path().join("template.yaml"));
    paths.filter_map(|path| fs::read_to_string(path).ok()).collect()
}

/// Fields that no template may have: a scalar has no items. The tables have what the check says.
const OF_NO_TEMPLATE: [&str; 2] =
    ["spec.parameters[].items.minItems", "spec.parameters[].items.maxItems"];

/// The fields of the schema: an object that occurs several times is one.
#[derive(Default)]
struct Fields {
    /// The paths of objects, by their fields.
    known: HashMap<String, String>,
    /// The first path of each object, by all of its paths.
    first: BTreeMap<String, String>,
    /// The paths of all fields, with their descriptions.
    found: BTreeMap<String, String>,
}

impl Fields {
    fn of_spec() -> Self {
        let [cluster, _] = crds();
        let schema = &cluster["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
        let mut fields = Self::default();
        fields.object("spec", &schema["spec"]);
        fields
    }

    fn object(&mut self, path: &str, schema: &Value) {
        let Some(properties) = schema["properties"].as_object() else { return };
        let written = schema["properties"].to_string();
        let first = self.known.entry(written).or_insert_with(|| path.to_owned()).clone();
        let is_new = first == path;
        self.first.insert(path.to_owned(), first);
        for (name, of) in properties {
            let path = format!("{path}.{name}");
            if is_new {
                let about = of["description"].as_str().unwrap_or_default();
                self.found.insert(path.clone(), about.to_owned());
            }
            match of.get("items") {
                Some(items) => self.object(&format!("{path}[]"), items),
                None => self.object(&path, of),
            }
        }
    }

    /// The field of a path in which items have no index: a field of the object's first place.
    fn field(&self, path: &str) -> Option<String> {
        let (object, name) = path.rsplit_once('.')?;
        let field = format!("{}.{name}", self.first.get(object)?);
        self.found.contains_key(&field).then_some(field)
    }

    /// The fields that a value has.
    fn used(&self, path: &str, value: &Value, used: &mut BTreeSet<String>) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    let path = format!("{path}.{name}");
                    if let Some(field) = self.field(&path) {
                        used.insert(field);
                        self.used(&path, value, used);
                    }
                }
            }
            Value::Array(items) => {
                for item in items {
                    self.used(&format!("{path}[]"), item, used);
                }
            }
            _ => {}
        }
    }
}

#[test]
fn each_field_has_a_sentence() {
    let fields = Fields::of_spec().found;
    assert!(fields.len() > 80, "{}", fields.len());
    for (field, about) in fields {
        assert!(about.len() > 20 && about.ends_with('.'), "{field}: {about:?}");
    }
}

#[test]
fn each_field_has_an_example_that_uses_it() {
    let (mut fields, mut used) = (Fields::of_spec(), BTreeSet::new());
    for field in OF_NO_TEMPLATE {
        fields.found.remove(field).expect("the schema has no such field any more");
    }
    for text in examples() {
        for template in yaml::parse_all(&text).expect("YAML") {
            fields.used("spec", &template["spec"], &mut used);
        }
    }
    let unused: Vec<_> = fields.found.keys().filter(|field| !used.contains(*field)).collect();
    assert!(unused.is_empty(), "no template of examples/templates uses {unused:#?}");
}

/// The problems of the tables of broken templates, without indices.
fn problems() -> Vec<String> {
    let table = yaml::parse(SCHEMA).expect("YAML");
    let cases = table["cases"].as_array().expect("cases").iter();
    let of_schema = cases.filter_map(|case| case["problem"].as_str());
    let lines = BROKEN.lines().chain(PARAMETERS.lines());
    let of_lines = lines.filter_map(|line| line.strip_prefix("  "));
    let index = Regex::new(r"\[[0-9]+\]").expect("a pattern");
    of_schema.chain(of_lines).map(|text| index.replace_all(text, "[]").into_owned()).collect()
}

#[test]
fn each_field_has_a_broken_template() {
    let (fields, problems) = (Fields::of_spec(), problems());
    let mut broken = BTreeSet::new();
    for problem in &problems {
        let Some((path, _)) = problem.split_once(": ") else { panic!("{problem:?} has no field") };
        // A problem inside of a field is one of the field.
        let ends = path.char_indices().filter(|(_, letter)| ".[".contains(*letter));
        let ends = ends.map(|(end, _)| end).chain([path.len()]);
        broken.extend(ends.filter_map(|end| fields.field(&path[..end])));
    }
    let missing: Vec<_> = fields.found.keys().filter(|field| !broken.contains(*field)).collect();
    assert!(missing.is_empty(), "no table in testdata has a problem of {missing:#?}");
}

/// The names of the functions that only templates have.
fn functions() -> Vec<&'static str> {
    let (_, rest) = TYPES.split_once("const OF_TEMPLATES: &str = \"\n").expect("the functions");
    let (lines, _) = rest.split_once("\";").expect("the end of the functions");
    let names: Vec<_> = lines.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(names.len() >= 17, "{names:?}");
    names
}

/// The section of the reference about functions.
fn section() -> String {
    let page = read("docs/templates/reference.md");
    let (_, rest) = page.split_once("\n## Functions\n").expect("the section");
    rest.split_once("<!--").expect("the fields").0.to_owned()
}

#[test]
fn each_function_has_a_sentence_an_example_and_a_broken_template() {
    let (section, examples) = (section(), examples());
    let broken: Vec<_> = BROKEN.lines().filter(|line| line.starts_with('[')).collect();
    let entries: Vec<_> = section.split("\n- ").skip(1).collect();
    let called = |name: &str| Regex::new(&format!(r"(^|[^A-Za-z.]){name}\(")).expect("a pattern");
    for name in functions() {
        let is_entry = |entry: &&&str| entry.starts_with(&format!("`{name}("));
        let entry = entries.iter().find(is_entry);
        let entry = entry.unwrap_or_else(|| panic!("the reference has no sentence on {name}"));
        let words: Vec<_> = entry.split_whitespace().collect();
        let is_given = words.windows(2).any(|pair| pair[0].ends_with('`') && pair[1] == "is");
        assert!(is_given, "the reference has no value of {name}");
        let called = called(name);
        assert!(examples.iter().any(|text| called.is_match(text)), "no example calls {name}");
        assert!(broken.iter().any(|line| called.is_match(line)), "broken.txt does not call {name}");
    }
    assert_eq!(entries.len(), functions().len(), "the reference has a function that is not there");
}

/// The pod that the section names.
struct World(Value, Value);

impl Variables for World {
    fn get(&self, name: &str) -> Option<Datum<'_>> {
        match name {
            "object" => Some((&self.0).into()),
            "container" => Some((&self.0["spec"]["containers"][0]).into()),
            OWN_CONTAINERS => Some((&self.1).into()),
            _ => None,
        }
    }
}

#[test]
fn functions_have_the_values_that_the_reference_shows() {
    let section = section().replace("\n  ", " ");
    let example = Regex::new(r"`([^`]+)`\s+is\s+`([^`]+)`").expect("a pattern");
    let pod = json!({"spec": {"containers": [
        {"name": "app", "image": "registry.example.com/team/app:1.2",
            "ports": [{"containerPort": 8080}, {"containerPort": 8082}],
            "env": [{"name": "OPTS", "value": "-a"}],
            "volumeMounts": [{"name": "data", "mountPath": "/data"}]}]}});
    let world = World(pod, json!([]));
    let environment = Environment::templates().with("container", TypeDef::container());
    let mut count = 0;
    for parts in example.captures_iter(&section) {
        let (text, shown) = (&parts[1], &parts[2]);
        let program =
            Program::compile_in(&environment, text).unwrap_or_else(|e| panic!("{text}: {e}"));
        let value = program.value(&world).value.unwrap_or_else(|e| panic!("{text}: {e}"));
        let expected: Value =
            serde_json::from_str(shown).unwrap_or_else(|e| panic!("{shown}: {e}"));
        assert_eq!(value, Some(expected), "{text}");
        count += 1;
    }
    assert!(count >= functions().len(), "{count} values");
}
