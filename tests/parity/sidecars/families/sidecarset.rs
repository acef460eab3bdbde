//! `OpenKruise`: one template of the `SidecarSet`s that match, in their order, as the webhook treats them
//! as one list.

mod quantities;

use std::collections::BTreeMap;

use injectd_k8s::selector::{LabelSelector, Selector};
use serde_json::{Value, json};

use super::{
    super::{case::Case, example::Example},
    constant, flag, items, text,
};

const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";
const OWN_FIELDS: [&str; 7] = [
    "podInjectPolicy",
    "shareVolumePolicy",
    "upgradeStrategy",
    "transferEnv",
    "resourcesPolicy",
    "shareVolumeDevicePolicy",
    "env",
];

pub(super) fn fit(case: &Case, example: &Example) -> Vec<Value> {
    let mut sets: Vec<_> = case.of_kind("SidecarSet").filter(|set| matches(case, set)).collect();
    sets.sort_by_key(|set| !names_namespace(&set["spec"]["namespaceSelector"]));
    if sets.is_empty() {
        return Vec::new();
    }
    vec![template(&sets, flag(&case.config, "sortByName"), example.clone())]
}

fn matches(case: &Case, set: &Value) -> bool {
    let spec = &set["spec"];
    let selector = &spec["selector"];
    !flag(&spec["injectionStrategy"], "paused")
        && selector.as_object().is_some_and(|selector| !selector.is_empty())
        && selects(selector, &case.pod["metadata"]["labels"])
        && selects(&spec["namespaceSelector"], &case.namespace_object()["metadata"]["labels"])
}

fn selects(selector: &Value, labels: &Value) -> bool {
    let selector: LabelSelector = serde_json::from_value(selector.clone()).unwrap_or_default();
    let selector = Selector::new(selector).expect("the recorded selectors must be valid");
    selector.matches(|key| labels[key].as_str())
}

/// Whether a selector names the namespace.
fn names_namespace(selector: &Value) -> bool {
    !selector["matchLabels"][NAMESPACE_NAME].is_null()
        || items(&selector["matchExpressions"])
            .iter()
            .any(|expression| expression["key"] == NAMESPACE_NAME && expression["operator"] == "In")
}

/// What is collected of the sets.
struct Parts {
    example: Example,
    before: Vec<Value>,
    after: Vec<Value>,
    init: Vec<Value>,
    last_init: Vec<Value>,
    volumes: Vec<Value>,
    secrets: Vec<Value>,
    count: usize,
    hot: BTreeMap<String, Value>,
    sidecars: Vec<String>,
}

fn template(sets: &[&Value], sorts: bool, mut example: Example) -> Value {
    example.spec("match")["podSelector"] = json!({});
    let common = ["applications", "mounts", "shared", "sets"];
    let variables = example.spec("variables").as_array_mut().expect("there must be variables");
    variables.retain(|variable| common.contains(&text(variable, "name")));
    let names: Vec<_> = sets.iter().map(|set| text(&set["metadata"], "name")).collect();
    example.replace("['logs']", &json!(names).to_string().replace('"', "'"));
    let sidecars = sets.iter().flat_map(|set| {
        ["containers", "initContainers"].map(|list| items(&set["spec"][list])).concat()
    });
    let sidecars: Vec<_> = sidecars.map(|sidecar| text(&sidecar, "name").to_owned()).collect();
    let is_empty = sidecars.is_empty();
    let mut parts = Parts {
        example,
        before: Vec::new(),
        after: Vec::new(),
        init: Vec::new(),
        last_init: Vec::new(),
        volumes: Vec::new(),
        secrets: Vec::new(),
        count: 0,
        hot: BTreeMap::new(),
        sidecars,
    };
    for (index, set) in sets.iter().enumerate() {
        parts.add(&set["spec"]);
        metadata(index, &set["spec"]["patchPodMetadata"], &mut parts.example);
    }
    if sorts {
        parts.before.sort_by_key(|container| text(container, "name").to_owned());
        parts.after.sort_by_key(|container| text(container, "name").to_owned());
    }
    parts.init.sort_by_key(|container| text(container, "name").to_owned());
    parts.last_init.sort_by_key(|container| text(container, "name").to_owned());
    parts.finish(is_empty)
}

impl Parts {
    fn add(&mut self, spec: &Value) {
        for sidecar in items(&spec["initContainers"]) {
            let container = self.container(sidecar, spec);
            let is_last = sidecar["podInjectPolicy"] == "AfterAppContainer";
            let list = if is_last { &mut self.last_init } else { &mut self.init };
            list.push(container);
        }
        for sidecar in items(&spec["containers"]) {
            let is_before = sidecar["podInjectPolicy"] == "BeforeAppContainer";
            for sidecar in self.versions(sidecar) {
                let container = self.container(&sidecar, spec);
                let list = if is_before { &mut self.before } else { &mut self.after };
                list.push(container);
            }
        }
        self.secrets.extend_from_slice(items(&spec["imagePullSecrets"]));
    }

    /// A sidecar that is replaced while it runs is there twice: one of them is idle.
    fn versions(&mut self, sidecar: &Value) -> Vec<Value> {
        let strategy = &sidecar["upgradeStrategy"];
        if strategy["upgradeType"] != "HotUpgrade" {
            return vec![sidecar.clone()];
        }
        let name = text(sidecar, "name");
        let version = |number: usize, image: &Value| {
            let mut version = sidecar.clone();
            let name = format!("{name}-{number}");
            let field = |prefix: &str| {
                let path = format!("metadata.annotations['{prefix}.sidecarset.kruise.io/{name}']");
                json!({"fieldRef": {"fieldPath": path}})
            };
            version["hotEnv"] = json!([
                {"name": "SIDECARSET_VERSION", "valueFrom": field("version")},
                {"name": "SIDECARSET_VERSION_ALT", "valueFrom": field("versionalt")}]);
            version["name"] = name.into();
            version["image"] = image.clone();
            version
        };
        self.hot.insert(name.to_owned(), format!("{name}-1").into());
        vec![version(1, &sidecar["image"]), version(2, &strategy["hotUpgradeEmptyImage"])]
    }

    fn variable(&mut self, name: &str, expression: &str) {
        let variable = json!({"name": name, "expression": expression});
        self.example.spec("variables").as_array_mut().expect("variables").push(variable);
    }

    fn container(&mut self, sidecar: &Value, spec: &Value) -> Value {
        let id = self.count;
        self.count += 1;
        let is_sharing = sidecar["shareVolumePolicy"]["type"] == "enabled";
        let own_mounts = items(&sidecar["volumeMounts"]);
        for mount in own_mounts {
            let used =
                items(&spec["volumes"]).iter().filter(|volume| volume["name"] == mount["name"]);
            for volume in used {
                if self.volumes.iter().all(|known| known["name"] != volume["name"]) {
                    self.volumes.push(constant(volume));
                }
            }
        }
        let paths: Vec<_> = own_mounts.iter().map(|mount| text(mount, "mountPath")).collect();
        let shared = if is_sharing {
            format!("variables.shared.filter(m, !(m.mountPath in {}))", json!(paths))
        } else {
            "variables.shared.filter(m, false)".to_owned()
        };
        self.variable(&format!("shared{id}"), &shared);
        let mut own = items(&sidecar["env"]).to_vec();
        own.retain(|entry| entry["name"] != "IS_INJECTED");
        own.push(json!({"name": "IS_INJECTED", "value": "true"}));
        own.extend_from_slice(items(&sidecar["hotEnv"]));
        let value = json!({"name": format!("own{id}"), "value": constant(&own.into())});
        let mounts = constant(&own_mounts.into());
        let mounts = json!({"name": format!("ownMounts{id}"), "value": mounts});
        let variables = self.example.spec("variables").as_array_mut().expect("variables");
        variables.extend([value, mounts]);
        self.lend(id, sidecar);

        let mut container = constant(sidecar);
        let fields = container.as_object_mut().expect("a sidecar must be an object");
        fields.retain(|field, _| !OWN_FIELDS.contains(&field.as_str()) && field != "hotEnv");
        container["env"] = format!("${{variables.env{id}}}").into();
        container["volumeMounts"] =
            format!("${{dyn(variables.ownMounts{id}) + dyn(variables.shared{id})}}").into();
        if !sidecar["resourcesPolicy"].is_null() {
            container["resources"] = self.resources(id, &sidecar["resourcesPolicy"]);
        }
        container
    }

    /// Variables that a container of the pod lends, and those in the paths of shared mounts.
    fn lend(&mut self, id: usize, sidecar: &Value) {
        let mut lent: Vec<(String, String)> = Vec::new();
        for transfer in items(&sidecar["transferEnv"]) {
            let source = source(transfer);
            let one = &transfer["envName"];
            for name in items(&transfer["envNames"]).iter().chain(one.as_str().map(|_| one)) {
                let name = name.as_str().unwrap_or_default().to_owned();
                let expression = format!(
                    "object.spec.containers.filter(c, c.name == {source} && env(c, '{name}').isSet)\
                     .map(c, env(c, '{name}').entry.value())"
                );
                lent.push((name, expression));
            }
        }
        lent.sort();
        let lists: Vec<_> = lent.into_iter().map(|(_, expression)| expression).collect();
        let lists = if lists.is_empty() { "[]".to_owned() } else { lists.join(" + ") };
        let names = format!(
            "variables.shared{id}.map(m, m.?subPathExpr.orValue('').findAll('[$][(][^)]+[)]')).flatten()\
             .map(n, n.substring(2, size(n) - 1)).distinct()"
        );
        let paths = format!(
            "{names}.filter(n, variables.applications.exists(c, env(c, n).isSet)).map(n, \
             variables.applications.filter(c, env(c, n).isSet).map(c, env(c, n).entry.value())[0])"
        );
        self.variable(&format!("more{id}"), &format!("{lists} + {paths}"));
        let env = format!(
            "dyn(variables.own{id}) + dyn(variables.more{id}.transformList(at, e, \
             !variables.own{id}.exists(o, o.name == e.name) && !variables.more{id}.transformList(before, \
             f, before < at, f.name).exists(n, n == e.name), e))"
        );
        self.variable(&format!("env{id}"), &env);
    }

    fn resources(&mut self, id: usize, policy: &Value) -> Value {
        let pattern = text(policy, "targetContainersNameRegex");
        let sidecars = json!(self.sidecars);
        let targets = format!(
            "(object.spec.containers + object.spec.?initContainers.orValue([])\
             .filter(c, c.?restartPolicy.orValue('') == 'Always'))\
             .filter(c, c.name.matches({}) && !(c.name in {sidecars}))",
            json!(pattern)
        );
        let pattern_is_good = regex::Regex::new(pattern).is_ok();
        let targets = if pattern_is_good { targets } else { "[]".to_owned() };
        self.variable(&format!("targets{id}"), &targets);
        self.deny_unless(&format!("size(variables.targets{id}) > 0"));
        let mode = text(policy, "targetContainersMode");
        let mut resources = json!({});
        for list in ["limits", "requests"] {
            for (name, expression) in
                policy["resourcesExpr"][list].as_object().into_iter().flatten()
            {
                let places =
                    quantities::Places { targets: format!("variables.targets{id}"), list, mode };
                let expression = expression.as_str().unwrap_or_default();
                match quantities::cel(expression, &places) {
                    Some(cel) if list == "limits" => {
                        let all = format!(
                            "variables.targets{id}.all(c, c.?resources.?limits[?'{name}'].hasValue())"
                        );
                        resources[list][name] =
                            format!("${{{all} ? optional.of({cel}) : optional.none()}}").into();
                    }
                    Some(cel) => resources[list][name] = format!("${{{cel}}}").into(),
                    None => self.deny_unless("false"),
                }
            }
        }
        resources
    }

    fn deny_unless(&mut self, expression: &str) {
        let validation = json!({"expression": expression,
            "message": "the resources of a sidecar cannot be computed"});
        let validations = self.example.spec("validations").as_array_mut();
        validations.expect("there must be validations").push(validation);
    }

    fn finish(mut self, is_empty: bool) -> Value {
        let example = &mut self.example;
        for (name, list, containers, position) in [
            ("init", "initContainers", &self.init, "First"),
            ("lastInit", "initContainers", &self.last_init, "Last"),
            ("before", "containers", &self.before, "First"),
            ("after", "containers", &self.after, "Last"),
        ] {
            if name == "before" {
                example.remove_step("before");
            }
            if containers.is_empty() {
                continue;
            }
            for (round, containers) in rounds(containers).into_iter().enumerate() {
                let name = if round == 0 { name.to_owned() } else { format!("{name}{round}") };
                let placement = json!({list: {"position": position}});
                example.insert_step(
                    "mark",
                    json!({"name": name, "onConflict": "Replace",
                    "placement": placement, "overlay": {"spec": {list: containers}}}),
                );
            }
        }
        if !self.volumes.is_empty() {
            example.insert_step(
                "mark",
                json!({"name": "volumes", "onConflict": "Keep",
                "overlay": {"spec": {"volumes": self.volumes}}}),
            );
        }
        if !self.secrets.is_empty() && !is_empty {
            let mut secrets: Vec<Value> = Vec::new();
            self.secrets.retain(|secret| {
                let is_new = !secrets.contains(secret);
                secrets.push(secret.clone());
                is_new
            });
            example.insert_step(
                "mark",
                json!({"name": "secrets",
                "overlay": {"spec": {"imagePullSecrets": self.secrets}}}),
            );
        }
        let annotations = &mut example.step("mark")["overlay"]["metadata"]["annotations"];
        for (name, working) in &self.hot {
            for (number, version, other) in [(1, "1", "0"), (2, "0", "1")] {
                annotations[format!("version.sidecarset.kruise.io/{name}-{number}")] =
                    version.into();
                annotations[format!("versionalt.sidecarset.kruise.io/{name}-{number}")] =
                    other.into();
            }
            let working = json!({name: working}).to_string();
            annotations["kruise.io/sidecarset-working-hotupgrade-container"] = working.into();
        }
        if is_empty {
            example.remove_step("mark");
        }
        self.example.into_template()
    }
}

/// CEL for the name of the container that lends variables.
fn source(transfer: &Value) -> String {
    let path = text(&transfer["sourceContainerNameFrom"]["fieldRef"], "fieldPath");
    for map in ["labels", "annotations"] {
        let key = path.strip_prefix(&format!("metadata.{map}['"));
        if let Some(key) = key.and_then(|key| key.strip_suffix("']")) {
            return format!("object.metadata.?{map}[?'{key}'].orValue('')");
        }
    }
    format!("'{}'", text(transfer, "sourceContainerName"))
}

/// Steps for the annotations that a set patches.
fn metadata(set: usize, patches: &Value, example: &mut Example) {
    for (index, patch) in items(patches).iter().enumerate() {
        let policy = text(patch, "patchPolicy");
        let mut annotations = json!({});
        for (key, value) in patch["annotations"].as_object().into_iter().flatten() {
            annotations[key] =
                if policy == "MergePatchJson" { merged(key, value) } else { constant(value) };
        }
        let existing = if policy.is_empty() || policy == "Retain" { "Keep" } else { "Replace" };
        example.insert_step(
            "before",
            json!({"name": format!("metadata{set}x{index}"),
            "existing": existing, "overlay": {"metadata": {"annotations": annotations}}}),
        );
    }
}

/// A JSON merge patch of an annotation.
fn merged(key: &str, patch: &Value) -> Value {
    let patch: Value = serde_json::from_str(patch.as_str().unwrap_or_default()).unwrap_or_default();
    let fields = patch.as_object().into_iter().flatten();
    let (removed, set): (Vec<_>, Vec<_>) = fields.partition(|(_, value)| value.is_null());
    let removed: Vec<_> = removed.into_iter().map(|(key, _)| key).collect();
    let set: Vec<_> = set.iter().map(|(key, value)| format!("'{key}': dyn({value})")).collect();
    let own = format!("fromJson(object.metadata.?annotations[?'{key}'].orValue('{{}}'))");
    let kept = format!("{own}.transformMap(k, v, !(k in {}), v)", json!(removed));
    format!("${{toJson(merge({kept}, {{{}}}))}}", set.join(", ")).into()
}

/// Lists in which each name is once: two sets may have a container of one name.
fn rounds(containers: &[Value]) -> Vec<Vec<Value>> {
    let mut rounds: Vec<Vec<Value>> = Vec::new();
    for container in containers {
        let has = |round: &Vec<Value>| round.iter().any(|other| other["name"] == container["name"]);
        match rounds.iter_mut().find(|round| !has(round)) {
            Some(round) => round.push(container.clone()),
            None => rounds.push(vec![container.clone()]),
        }
    }
    rounds
}
