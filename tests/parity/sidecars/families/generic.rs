//! tumblr's injector: a template for each configuration of its directory.

use serde_json::{Map, Value, json};

use super::{
    super::{case::Case, example::Example},
    constant, items, text,
};

/// Lists that are merged by name.
const LISTS: [&str; 6] =
    ["containers", "initContainers", "volumes", "volumeMounts", "env", "hostAliases"];

pub(super) fn fit(case: &Case, example: &Example) -> Vec<Value> {
    let files = &case.config["files"];
    let names = files.as_object().into_iter().flat_map(Map::keys);
    names.map(|name| template(case, example.clone(), &configuration(files, name))).collect()
}

/// A configuration, merged over the one that it inherits from.
pub(crate) fn configuration(files: &Value, name: &str) -> Value {
    let file = &files[name];
    let mut merged = match file["inherits"].as_str() {
        Some(parent) => configuration(files, parent),
        None => json!({}),
    };
    for (field, value) in file.as_object().into_iter().flatten() {
        if LISTS.contains(&field.as_str()) && field != "hostAliases" {
            let mut entries = items(&merged[field]).to_vec();
            for entry in items(value) {
                match entries.iter_mut().find(|known| known["name"] == entry["name"]) {
                    Some(known) => known.clone_from(entry),
                    None => entries.push(entry.clone()),
                }
            }
            merged[field] = entries.into();
        } else if field == "hostAliases" {
            merged[field] = [items(&merged[field]), items(value)].concat().into();
        } else {
            merged[field] = value.clone();
        }
    }
    merged
}

fn template(case: &Case, mut example: Example, configuration: &Value) -> Value {
    let name = text(configuration, "name").to_lowercase();
    let (name, version) = name.split_once(':').unwrap_or((&name, "latest"));
    example.name(&format!("{name}-{version}").replace('.', "-"));
    example.set(json!({"name": name, "version": version}));
    let annotations = format!("{}/", text(&case.config, "annotationNamespace"));
    example.replace("injector.tumblr.com/", &annotations);

    let volumes = items(&configuration["volumes"]);
    if volumes.is_empty() {
        example.remove_step("volumes");
    } else {
        example.step("volumes")["overlay"]["spec"]["volumes"] = constant(&volumes.into());
    }
    example.step("pod")["overlay"]["spec"] = added(configuration);
    if example.step("pod")["overlay"]["spec"].as_object().is_none_or(Map::is_empty) {
        example.remove_step("pod");
    }
    let rules = rules(configuration);
    if items(&rules).is_empty() {
        example.remove_step("containers");
    } else {
        example.step("containers")["containers"] = rules;
    }
    if configuration["hostNetwork"] == true || configuration["hostPID"] == true {
        let fields = ["hostNetwork", "hostPID"].into_iter();
        let spec: Map<String, Value> = fields
            .filter(|field| !configuration[field].is_null())
            .map(|field| (field.to_owned(), configuration[field].clone()))
            .collect();
        let step = json!({"name": "host", "existing": "Replace", "overlay": {"spec": spec}});
        example.insert_step("mark", step);
    }
    if let Some(account) = configuration["serviceAccountName"].as_str() {
        let expression = "!(object.spec.?serviceAccountName.orValue('') in ['', 'default'])";
        let message = format!("set serviceAccountName to {account}: a template cannot change it");
        let validations = example.spec("validations").as_array_mut();
        let validations = validations.expect("the example must have validations");
        validations.push(json!({"expression": expression, "message": message}));
    }
    example.into_template()
}

/// What is added to the pod. Added containers get variables and mounts, too.
fn added(configuration: &Value) -> Value {
    let mut spec = Map::new();
    for list in ["containers", "initContainers"] {
        let containers: Vec<_> = items(&configuration[list])
            .iter()
            .map(|container| {
                let mut container = container.clone();
                for field in ["env", "volumeMounts"] {
                    let mut entries = items(&container[field]).to_vec();
                    for entry in items(&configuration[field]) {
                        if entries.iter().all(|known| known["name"] != entry["name"]) {
                            entries.push(entry.clone());
                        }
                    }
                    if !entries.is_empty() {
                        container[field] = entries.into();
                    }
                }
                constant(&container)
            })
            .collect();
        if !containers.is_empty() {
            spec.insert(list.to_owned(), containers.into());
        }
    }
    if !configuration["hostAliases"].is_null() {
        spec.insert("hostAliases".to_owned(), configuration["hostAliases"].clone());
    }
    spec.into()
}

/// What all containers of the pod get.
fn rules(configuration: &Value) -> Value {
    let kinds = ["InitContainer", "Sidecar", "Container"];
    let mut rules = Vec::new();
    if !items(&configuration["env"]).is_empty() {
        rules.push(json!({"kinds": kinds, "overlay": {"env": constant(&configuration["env"])}}));
    }
    for mount in items(&configuration["volumeMounts"]) {
        let expression = format!("!mount(container, '{}').hasValue()", text(mount, "name"));
        rules.push(json!({"kinds": kinds, "select": {"expression": expression},
            "overlay": {"volumeMounts": [constant(mount)]}}));
    }
    rules.into()
}
