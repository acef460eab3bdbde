//! What a template reads of a pod, its namespace, its ServiceAccount and its owners.

use super::{
    Pattern, Reads,
    lay::{LISTS, container_kind, field_kind, lay, lay_field, mounted, pattern, volumes},
};
use crate::{
    Message, Rule, Select, Step, Template,
    expression::Expression,
    mark,
    object::{ContainerKind, KeyPlace, ParameterSource, SystemPods},
    parameters::sources,
    structure::Structure,
};
use injectd_cel::reads::Path;
use injectd_merge::schema::POD;

/// What a template reads.
#[derive(Debug, Clone, Default)]
pub struct Needs {
    /// Of the pod, as long as it has none of the template's containers.
    pub pod: Reads,
    /// Whether an excerpt of the pod never says enough.
    pub reads_all: bool,
    /// Of the namespace.
    pub namespace: Reads,
    /// Of the metadata of the ServiceAccount, if anything.
    pub service_account: Option<Reads>,
    /// Whether owners are read.
    pub reads_owners: bool,
}

impl Needs {
    /// Adds what another template reads.
    pub fn add(&mut self, other: &Self) {
        self.pod.add(&other.pod);
        self.reads_all |= other.reads_all;
        self.namespace.add(&other.namespace);
        if let Some(reads) = &other.service_account {
            self.service_account.get_or_insert_default().add(reads);
        }
        self.reads_owners |= other.reads_owners;
    }
}

/// What a template reads.
#[must_use]
pub fn of_template(template: &Template) -> Needs {
    let mut walk = Walk { needs: Needs::default(), container_lists: &[] };
    walk.always(template);
    walk.matching(template);
    walk.sources(template);
    for condition in &template.conditions {
        walk.expression(&condition.expression);
    }
    for variable in &template.variables {
        variable.value.each_expression(&mut |expression| walk.expression(expression));
    }
    for validation in &template.validations {
        walk.expression(&validation.expression);
        if let Message::Expression(message) = &validation.message {
            walk.expression(message);
        }
    }
    let own_volumes = volumes(template);
    for step in &template.steps {
        walk.step(step, &own_volumes);
    }
    walk.needs
}

struct Walk {
    needs: Needs,
    /// The lists whose containers are `container`.
    container_lists: &'static [&'static str],
}

impl Walk {
    /// What the evaluator reads for every template.
    fn always(&mut self, template: &Template) {
        let pod = &mut self.needs.pod;
        pod.at(["metadata", "annotations", mark::ANNOTATION]).read_whole();
        pod.at(["metadata", "labels", mark::LABEL]).read_whole();
        let spec = pod.member("spec");
        spec.member("hostNetwork").read_whole();
        for list in LISTS {
            spec.member(list).has_names = true;
            let container = spec.at([list, "*"]);
            for key in ["name", "restartPolicy", "ports"] {
                container.member(key).read_whole();
            }
            container.member("name").is_name = true;
        }
        if template.spec.r#match.system_pods == SystemPods::Exclude {
            spec.member("priorityClassName").read_whole();
        }
    }

    fn matching(&mut self, template: &Template) {
        let of = &template.spec.r#match;
        for (selector, reads) in [
            (&of.pod_selector, &mut self.needs.pod),
            (&of.namespace_selector, &mut self.needs.namespace),
        ] {
            let Some(selector) = selector else { continue };
            let expressions = selector.match_expressions.iter().map(|one| &one.key);
            for key in selector.match_labels.keys().chain(expressions) {
                reads.at(["metadata", "labels", key]).read_whole();
            }
        }
        if let Some(enablement) = &template.spec.enablement {
            for place in &enablement.r#in {
                self.key(*place).member(&enablement.key).read_whole();
            }
        }
    }

    /// The labels or annotations at a place.
    fn key(&mut self, place: KeyPlace) -> &mut Reads {
        let Needs { pod, namespace, .. } = &mut self.needs;
        match place {
            KeyPlace::PodLabel => pod.at(["metadata", "labels"]),
            KeyPlace::PodAnnotation => pod.at(["metadata", "annotations"]),
            KeyPlace::NamespaceLabel => namespace.at(["metadata", "labels"]),
            KeyPlace::NamespaceAnnotation => namespace.at(["metadata", "annotations"]),
        }
    }

    fn sources(&mut self, template: &Template) {
        let keys = template.spec.parameter_keys.as_ref();
        for parameter in &template.spec.parameters {
            for source in &*sources(parameter, keys) {
                self.source(source);
            }
        }
        // Keys with the prefix that no parameter has are warned of.
        for place in keys.into_iter().flat_map(|keys| keys.r#in.iter().copied()) {
            let prefix = keys.map(|keys| keys.prefix.as_str()).unwrap_or_default();
            self.key(place).read_family(prefix);
        }
    }

    fn source(&mut self, source: &ParameterSource) {
        let key = source.key();
        match source {
            ParameterSource::PodAnnotation(_) => self.key(KeyPlace::PodAnnotation).member(key),
            ParameterSource::PodLabel(_) => self.key(KeyPlace::PodLabel).member(key),
            ParameterSource::NamespaceAnnotation(_) => {
                self.key(KeyPlace::NamespaceAnnotation).member(key)
            }
            ParameterSource::NamespaceLabel(_) => self.key(KeyPlace::NamespaceLabel).member(key),
            ParameterSource::ServiceAccountAnnotation(_) => {
                self.service_account().at(["annotations", key])
            }
            ParameterSource::PodAnnotationPrefix(_) => {
                return self.key(KeyPlace::PodAnnotation).read_family(key);
            }
            ParameterSource::NamespaceAnnotationPrefix(_) => {
                return self.key(KeyPlace::NamespaceAnnotation).read_family(key);
            }
        }
        .read_whole();
    }

    fn service_account(&mut self) -> &mut Reads {
        self.needs.service_account.get_or_insert_default()
    }

    fn step(&mut self, step: &Step, own_volumes: &[Pattern]) {
        let placed = [&step.init_containers, &step.containers];
        let names = placed.into_iter().filter_map(|place| place.name.as_ref());
        for structure in names.chain(&step.overlay) {
            structure.each_expression(&mut |expression| self.expression(expression));
        }
        step.when.iter().for_each(|when| self.expression(when));
        if let Some(each) = &step.for_each {
            self.expression(&each.items);
            for variable in &each.variables {
                variable.value.each_expression(&mut |expression| self.expression(expression));
            }
        }
        if let Some(overlay) = &step.overlay {
            self.overlay(overlay, own_volumes);
        }
        for rule in &step.rules {
            self.rule(rule, own_volumes);
        }
    }

    /// What laying the overlay of a step reads.
    fn overlay(&mut self, overlay: &Structure, own_volumes: &[Pattern]) {
        let Needs { pod, reads_all, .. } = &mut self.needs;
        let Some(Structure::Map(spec)) = overlay.field("spec") else {
            return lay(pod, overlay, &POD);
        };
        if let Some(metadata) = overlay.field("metadata") {
            lay(pod.member("metadata"), metadata, field_kind(&POD, "metadata"));
        }
        *reads_all |= spec.from.is_some();
        let of_spec = field_kind(&POD, "spec");
        for (key, value) in &spec.fields {
            if !LISTS.contains(&&**key) {
                let list = of_spec.as_struct().and_then(|of| of.field(key));
                lay_field(pod.member("spec").member(key), value, list);
                continue;
            }
            let Structure::List(containers) = value else {
                *reads_all = true;
                continue;
            };
            for container in containers {
                match container.field("name").and_then(pattern) {
                    Some(name) => {
                        for list in LISTS {
                            pod.at(["spec", list, "*", "name"]).read_own_name(name.clone());
                        }
                    }
                    None => *reads_all = true,
                }
                mounted(pod, container, own_volumes);
            }
        }
    }

    fn rule(&mut self, rule: &Rule, own_volumes: &[Pattern]) {
        let is_init = |kind: &ContainerKind| {
            matches!(kind, ContainerKind::Sidecar | ContainerKind::InitContainer)
        };
        self.container_lists = match rule.kinds.iter().any(is_init) {
            true if rule.kinds.contains(&ContainerKind::Container) => &LISTS[..2],
            true => &LISTS[..1],
            false => &LISTS[1..2],
        };
        match &rule.select {
            Some(Select::Expression(expression)) => self.expression(expression),
            Some(Select::Names(names)) => {
                names.each_expression(&mut |expression| self.expression(expression));
            }
            None => {}
        }
        rule.overlay.each_expression(&mut |expression| self.expression(expression));
        for list in self.container_lists {
            let container = self.needs.pod.at(["spec", list, "*"]);
            lay(container, &rule.overlay, container_kind());
        }
        mounted(&mut self.needs.pod, &rule.overlay, own_volumes);
        self.container_lists = &[];
    }

    fn expression(&mut self, expression: &Expression) {
        for path in expression.program.reads_of() {
            self.path(&path);
        }
    }

    fn path(&mut self, path: &Path) {
        let Some((variable, steps)) = path.steps.split_first() else { return };
        let steps = || steps.iter().map(String::as_str);
        let reads = |reads: &mut Reads| {
            let reads = reads.at(steps());
            if !path.is_presence {
                reads.read_whole();
            }
        };
        match variable.as_str() {
            "object" => reads(&mut self.needs.pod),
            "container" => {
                for list in self.container_lists {
                    reads(self.needs.pod.at(["spec", list, "*"]));
                }
            }
            "namespaceObject" => reads(&mut self.needs.namespace),
            "serviceAccount" => reads(self.service_account()),
            "controller" => self.needs.pod.at(["metadata", "ownerReferences"]).read_whole(),
            "owner" | "owners" => self.owners(),
            _ => {}
        }
    }

    /// A pod without a controller is its own root.
    fn owners(&mut self) {
        self.needs.reads_owners = true;
        let pod = &mut self.needs.pod;
        for key in ["apiVersion", "kind"] {
            pod.member(key).read_whole();
        }
        for key in ["ownerReferences", "name", "uid", "labels"] {
            pod.at(["metadata", key]).read_whole();
        }
    }
}
