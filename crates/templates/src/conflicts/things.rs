//! What a template adds to a pod under a name.

use injectd_merge::schema::Merge;
use serde_json::Value;

use crate::{
    Rule, Select, Template,
    limits::MAX_BYTES_OF_SPEC,
    object::{ContainerKind, Existing, OnConflict},
    spot::{Part, Spot},
    structure::Structure,
    template::CONTAINER_LISTS,
};

/// What is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Container,
    Volume,
    /// A mount in containers of the pod.
    Mount,
    /// A port of a container.
    Port,
}

impl Kind {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Container => "container",
            Self::Volume => "volume",
            Self::Mount => "mount path",
            Self::Port => "port",
        }
    }
}

/// Something with a name.
#[derive(Debug)]
pub(super) struct Thing<'t> {
    pub(super) kind: Kind,
    /// Its name: of a port its number and protocol.
    pub(super) name: String,
    /// Where it is written.
    pub(super) field: String,
    /// What happens if it comes second, and what to do.
    pub(super) effect: String,
    /// All of it as text; `None` if expressions decide a part of it.
    content: Option<String>,
    /// The rule that adds it to containers of the pod.
    rule: Option<&'t Rule>,
}

impl Thing<'_> {
    /// Whether both cannot be there.
    pub(super) fn conflicts(&self, other: &Self) -> bool {
        let is_same = self.content.is_some() && self.content == other.content;
        self.kind == other.kind && self.name == other.name && !is_same && self.may_meet(other)
    }

    /// Whether both may be in one container, or anywhere in the pod.
    fn may_meet(&self, other: &Self) -> bool {
        let (Some(one), Some(other)) = (self.rule, other.rule) else { return true };
        let is_shared =
            |kind: &ContainerKind| *kind != ContainerKind::Added && other.kinds.contains(kind);
        let shares_names = match (names(one), names(other)) {
            (Some(names), Some(others)) => names.iter().any(|name| others.contains(name)),
            _ => true,
        };
        one.kinds.iter().any(is_shared) && shares_names
    }
}

/// The names of containers that a rule is for, if they are constant.
fn names(rule: &Rule) -> Option<Vec<&str>> {
    let Some(Select::Names(Structure::List(names))) = &rule.select else { return None };
    names.iter().map(constant_text).collect()
}

fn constant_text(of: &Structure) -> Option<&str> {
    match of {
        Structure::Constant(text) => text.as_str(),
        _ => None,
    }
}

/// What a template adds under constant names.
pub(super) fn things(template: &Template) -> Vec<Thing<'_>> {
    let mut found = Vec::new();
    for step in 0..template.steps.len() {
        let on_conflict = template.steps[step].on_conflict.unwrap_or_default();
        let spec = Spot::overlay(template, step).and_then(|overlay| overlay.get("spec"));
        if let Some(spec) = spec {
            added(&spec, on_conflict, &mut found);
        }
        for (rule, overlay) in Spot::rules(template, step) {
            of_rule(rule, &overlay, &mut found);
        }
    }
    found
}

fn added<'t>(spec: &Spot<'t>, on_conflict: OnConflict, found: &mut Vec<Thing<'t>>) {
    let effect = match on_conflict {
        OnConflict::Fail => "a pod that is for both is denied; use another name, or set onConflict",
        OnConflict::SkipStep => "this step is left out then (onConflict: SkipStep)",
        OnConflict::SkipTemplate => "this template is left out then (onConflict: SkipTemplate)",
        OnConflict::Keep => "that one stays (onConflict: Keep)",
        OnConflict::Replace => "this one takes its place (onConflict: Replace)",
    };
    let mut add = |kind, spot: &Spot<'t>| {
        let Some(name) = spot.get("name").and_then(|name| name.text()) else { return };
        found.push(Thing {
            kind,
            name: format!("{name:?}"),
            field: spot.field().to_owned(),
            effect: effect.to_owned(),
            content: content(spot),
            rule: None,
        });
    };
    for volume in &spec.list("volumes").0 {
        add(Kind::Volume, volume);
    }
    let containers: Vec<_> =
        CONTAINER_LISTS.into_iter().flat_map(|list| spec.list(list).0).collect();
    for container in &containers {
        add(Kind::Container, container);
    }
    for container in &containers {
        let owner = container.get("name").and_then(|name| name.text()).unwrap_or_default();
        ports(container, owner, None, found);
    }
}

fn of_rule<'t>(rule: &'t Rule, overlay: &Spot<'t>, found: &mut Vec<Thing<'t>>) {
    let effect = match rule.existing.unwrap_or_default() {
        Existing::Keep => "that one stays (existing: Keep)",
        Existing::Replace => "this one takes its place (existing: Replace)",
        Existing::Fail => "a pod that is for both is denied (existing: Fail); use another path",
    };
    for mount in overlay.list("volumeMounts").0 {
        let Some(path) = mount.get("mountPath").and_then(|path| path.text()) else { continue };
        found.push(Thing {
            kind: Kind::Mount,
            name: path.trim_end_matches('/').to_owned(),
            field: mount.field().to_owned(),
            effect: effect.to_owned(),
            content: content(&mount),
            rule: Some(rule),
        });
    }
    ports(overlay, "", Some(rule), found);
}

/// The ports of a container: those of a pod share its network. A container of the same name is a conflict of its own.
fn ports<'t>(
    container: &Spot<'t>,
    owner: &str,
    rule: Option<&'t Rule>,
    found: &mut Vec<Thing<'t>>,
) {
    for port in container.list("ports").0 {
        let number = port.get("containerPort").and_then(|port| port.constant());
        let Some(number) = number.as_ref().and_then(Value::as_i64) else { continue };
        // The API server completes a port without a protocol so.
        let protocol = port.get("protocol").and_then(|protocol| protocol.text()).unwrap_or("TCP");
        let effect = "containers of a pod share its ports; use another one, or freePorts";
        found.push(Thing {
            kind: Kind::Port,
            name: format!("{number}/{protocol}"),
            field: port.field().to_owned(),
            effect: effect.to_owned(),
            content: (!owner.is_empty()).then(|| owner.to_owned()),
            rule,
        });
    }
}

/// All of a place as text, the same for all places that become the same. `None` if an expression decides a
/// part of it, or if it is very large: a variable may name another one several times.
fn content(spot: &Spot<'_>) -> Option<String> {
    let mut text = String::new();
    write(spot, &mut text).map(|()| text)
}

fn write(spot: &Spot<'_>, text: &mut String) -> Option<()> {
    if spot.is_open() || text.len() > MAX_BYTES_OF_SPEC {
        return None;
    }
    match spot.part()? {
        Part::Constant(value) => text.push_str(&value.to_value().to_string()),
        Part::Open(_) | Part::Text(_) => return None,
        Part::List(_) => {
            text.push('[');
            for item in spot.items(Merge::Replace) {
                write(&item, text)?;
                text.push(',');
            }
            text.push(']');
        }
        Part::Map(_) => {
            let mut fields = spot.fields();
            // Fields have no order: two containers that differ in it are equal.
            fields.sort_by_key(|(name, _)| *name);
            text.push('{');
            for (name, value) in fields {
                text.extend([name, ":"]);
                write(&value, text)?;
                text.push(',');
            }
            text.push('}');
        }
    }
    Some(())
}
