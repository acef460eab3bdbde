//! Records what templates read of a pod.

#![expect(clippy::disallowed_types, reason = "patches are trees")]

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

use injectd_gotemplate::{Origin, Reads, Step, Template, Use, Value};
use injectd_memory::{Place, Places, Reading};
use injectd_merge::schema::{Kind, Merge, POD, Struct};
use serde_json::Value as Json;

use super::slot;
use crate::{
    pod,
    process::tree::{CONTAINERS, INIT_CONTAINERS},
    release::{Delta, Release},
};

/// The key by which the items of a merged list are distinguished here.
const NAME: &str = "name";

/// Functions that read the variables of the injector, which never change.
const FUNCTIONS_OF_VARIABLES: [&str; 2] = ["env", "expandenv"];

/// What one evaluation has read so far.
#[derive(Debug)]
pub(crate) struct Record {
    state: RefCell<State>,
}

#[derive(Debug, Default)]
struct State {
    /// What patches read.
    reading: Reading,
    /// Values of the pod that a template has seen.
    places: Places<Option<&'static Kind>>,
    /// The parts of the pod in the template's data, by their fields.
    parts: BTreeMap<&'static str, Part>,
    /// The place of `.DeploymentMeta`, in which the name and the namespace are those of the owner.
    owner: Option<usize>,
    /// The place of the owner's name.
    owner_name: Option<usize>,
    /// Whether `.DeploymentMeta` has all metadata of the pod.
    has_whole_owner: bool,
    /// Whether the owner's name was used with all of the data, or written where it is no plain text.
    reads_owner_name: bool,
    /// Something was used that is not a function of what was read.
    is_unknown: bool,
}

/// What an evaluation has read.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    /// Of the pod.
    pub(super) reading: Reading,
    /// Whether the name of the owner was used otherwise than to copy it.
    pub(crate) reads_owner_name: bool,
    /// Whether something else was used, such as the time.
    pub(super) is_unknown: bool,
}

/// What the templates have read of the metadata of a pod.
#[derive(Debug)]
pub(crate) struct ReadOfMetadata(Reading);

/// A part of the pod, and its place.
#[derive(Debug)]
struct Part {
    key: &'static str,
    place: usize,
}

/// The number of the first place after [`Origin::ROOT`].
const FIRST_PLACE: u32 = Origin::ROOT.0 + 1;

impl Record {
    /// Of an evaluation for a release.
    pub(crate) fn new(release: Release) -> Self {
        let has_whole_owner = !release.has(Delta::BareOwner);
        Self { state: RefCell::new(State { has_whole_owner, ..State::default() }) }
    }

    /// A template is evaluated.
    pub(crate) fn template(&self, template: &Template) {
        let is_known = template.functions().all(|function| {
            let is_constant = !function.volatile || FUNCTIONS_OF_VARIABLES.contains(&function.name);
            is_constant && !function.changes
        });
        self.state.borrow_mut().is_unknown |= !is_known;
    }

    /// A template has written a text. The name of the owner may stand only where YAML reads every
    /// plain name as a text.
    pub(crate) fn text(&self, text: &str) {
        self.state.borrow_mut().reads_owner_name |= !slot::is_text_only(text);
    }

    /// A patch that a template has made is laid over the pod.
    pub(crate) fn patch(&self, patch: &Json, has_directives: bool) {
        let mut state = self.state.borrow_mut();
        add_patch(&mut state.reading, patch, POD.as_struct());
        state.is_unknown |= has_directives;
    }

    /// What the templates have read of the pod's metadata.
    pub(crate) fn read_of_metadata(&self) -> ReadOfMetadata {
        let state = self.state.borrow();
        let mut metadata = Reading::default();
        if state.reading.member_is_whole("metadata") {
            metadata.read_whole();
        }
        for part in state.parts.values().filter(|part| part.key == "metadata") {
            state.places.add_to(part.place, &mut metadata);
        }
        ReadOfMetadata(metadata)
    }

    /// Whether the templates have read something of a pod's `spec` for which this holds. It is asked of
    /// all that was read whole, and of nothing else.
    pub(crate) fn has_read_of_spec(&self, spec: &Json, is_found: &dyn Fn(&Json) -> bool) -> bool {
        let state = self.state.borrow();
        if state.reading.member_is_whole("spec") {
            return is_found(spec);
        }
        let mut parts = state.parts.values().filter(|part| part.key == "spec");
        parts.any(|part| has_read(&state.places, part.place, spec, is_found))
    }

    /// What was read.
    pub(crate) fn into_recorded(self) -> Recorded {
        let state = self.state.into_inner();
        let is_whole = |index: usize| state.places.get(index).is_some_and(Place::is_whole);
        let mut names = [state.owner, state.owner_name].into_iter().flatten();
        let reads_owner_name = state.reads_owner_name || names.any(is_whole);
        let State { mut reading, places, parts, is_unknown, .. } = state;
        for part in parts.values() {
            places.add_to(part.place, reading.member(part.key));
        }
        Recorded { reading, reads_owner_name, is_unknown }
    }
}

/// Reads what laying a patch over a value reads of the value. What a directive reads is not known.
fn add_patch(reading: &mut Reading, patch: &Json, of: Option<&'static Struct>) {
    let Json::Object(members) = patch else { return reading.read_whole() };
    for (key, value) in members {
        let field = of.and_then(|of| of.field_ignoring_case(key));
        let name = field.map_or(&**key, |field| field.name);
        let own = reading.member(name);
        match (value, field.map(|field| (&field.kind, field.merge))) {
            (Json::Array(items), Some((Kind::List(_), Merge::ByKey(NAME)))) => {
                let names = items.iter().filter_map(|item| item.get(NAME)?.as_str());
                let names: BTreeSet<Box<str>> = names.map(Into::into).collect();
                // The merge looks for items of these names; what the pod has in its others does not
                // matter.
                own.read_names(names.iter().cloned());
                if name == INIT_CONTAINERS {
                    // A container of the pod may be the user's version of an init container.
                    reading.member(CONTAINERS).read_names(names);
                }
            }
            (value, kind) => add_patch(own, value, kind.and_then(|(kind, _)| kind.as_struct())),
        }
    }
}

impl ReadOfMetadata {
    /// Whether an entry of the annotations or the labels was read, or all of them.
    pub(crate) fn has(&self, map: &str, key: &str) -> bool {
        let map = self.0.get(map);
        let value = map.and_then(|map| map.get(key));
        [Some(&self.0), map, value].into_iter().flatten().any(Reading::is_whole)
    }
}

/// Whether something that is read whole of a value at a place is found.
fn has_read<K>(
    places: &Places<K>,
    index: usize,
    value: &Json,
    is_found: &dyn Fn(&Json) -> bool,
) -> bool {
    let Some(place) = places.get(index) else { return false };
    if place.is_whole() {
        return is_found(value);
    }
    match value {
        Json::Object(values) => place.members().any(|(key, member)| {
            values.get(key).is_some_and(|value| has_read(places, member, value, is_found))
        }),
        Json::Array(items) => place
            .item()
            .is_some_and(|item| items.iter().any(|value| has_read(places, item, value, is_found))),
        _ => false,
    }
}

/// The index of a place; `None` if the origin is not in the pod.
fn index_of(origin: Origin) -> Option<usize> {
    Some(origin.0.checked_sub(FIRST_PLACE)? as usize)
}

fn origin_of(index: usize) -> Origin {
    Origin(FIRST_PLACE.saturating_add(u32::try_from(index).unwrap_or(u32::MAX)))
}

impl State {
    fn place(&mut self, origin: Origin) -> Option<&mut Place<Option<&'static Kind>>> {
        self.places.get_mut(index_of(origin)?)
    }

    fn read_whole(&mut self, origin: Origin) {
        if origin == Origin::ROOT {
            self.reads_owner_name = true;
            self.reading.read_members(["metadata", "spec"]);
        } else if let Some(place) = self.place(origin) {
            place.read_whole();
        }
    }

    fn used(&mut self, origin: Origin, how: Use) {
        let is_owner_name = self.owner_name.is_some() && self.owner_name == index_of(origin);
        if is_owner_name && matches!(how, Use::Truth | Use::Copied) {
            return;
        }
        let Some(place) = self.place(origin) else { return self.read_whole(origin) };
        let is_list = matches!(place.kind, Some(Kind::List(_)));
        match how {
            Use::Truth => place.read_truth(),
            // The keys of a list are its indexes, which its length says.
            Use::Keys if is_list => place.read_count(),
            Use::Keys | Use::Whole | Use::Copied => place.read_whole(),
        }
    }

    fn step(&mut self, from: Origin, step: Step<'_>) -> Origin {
        if from == Origin::ROOT {
            return self.part(from, step);
        }
        if self.owner.is_some() && self.owner == index_of(from) {
            match step {
                Step::Field("Name") => return self.owner_name(),
                // The namespace is in the first key of every pod.
                Step::Field("Namespace") => return Origin::NONE,
                _ if !self.has_whole_owner => {
                    self.read_whole(from);
                    return Origin::NONE;
                }
                _ => {}
            }
        }
        let kind = self.place(from).and_then(|place| place.kind);
        let next = match (kind, step) {
            (Some(Kind::Struct(_)), Step::Field(name)) => self.member(from, name),
            (Some(Kind::Map(..)), Step::Field(key)) => self.member(from, key),
            (Some(Kind::Map(..)), Step::Key(key)) => {
                std::str::from_utf8(key).ok().and_then(|key| self.member(from, key))
            }
            (Some(Kind::List(inner)), Step::Item(_)) => {
                index_of(from).map(|from| self.places.item(from, Some(&**inner)))
            }
            _ => None,
        };
        let Some(next) = next else {
            self.read_whole(from);
            return Origin::NONE;
        };
        origin_of(next)
    }

    /// The place of a member of a struct or a map by its name in Go; `None` if the struct has none.
    fn member(&mut self, from: Origin, name: &str) -> Option<usize> {
        let from = index_of(from)?;
        if let Some(known) = self.places.member(from, name) {
            return Some(known);
        }
        let (key, kind) = match self.places.get(from)?.kind? {
            Kind::Struct(of) => {
                let field = of.get().field(pod::json_key(of.get().name, name)?)?;
                (field.name, &field.kind)
            }
            Kind::Map(_, inner) => (name, &**inner),
            _ => return None,
        };
        Some(self.places.add_member(from, name, key.into(), Some(kind)))
    }

    /// The place of the owner's name, in which there are no places.
    fn owner_name(&mut self) -> Origin {
        origin_of(*self.owner_name.get_or_insert_with(|| self.places.add(None)))
    }

    /// A part of the template's data. Others than these are the same for all pods with the same
    /// answers to the fixed questions.
    fn part(&mut self, from: Origin, step: Step<'_>) -> Origin {
        let (field, key, is_owner) = match step {
            Step::Field("ObjectMeta") => ("ObjectMeta", "metadata", false),
            Step::Field("DeploymentMeta") => ("DeploymentMeta", "metadata", true),
            Step::Field("Spec") => ("Spec", "spec", false),
            Step::Field(_) => return Origin::NONE,
            _ => {
                self.read_whole(from);
                return Origin::NONE;
            }
        };
        if let Some(part) = self.parts.get(field) {
            return origin_of(part.place);
        }
        if let (true, Some(place)) = (is_owner, self.owner) {
            return origin_of(place);
        }
        let kind = POD.as_struct().and_then(|pod| pod.field(key)).map(|field| &field.kind);
        let place = self.places.add(kind);
        self.owner = self.owner.or_else(|| is_owner.then_some(place));
        if !is_owner || self.has_whole_owner {
            self.parts.insert(field, Part { key, place });
        }
        origin_of(place)
    }
}

impl Reads for &Record {
    fn step(&mut self, from: Origin, step: Step<'_>, _: Option<&Value>) -> Origin {
        self.state.borrow_mut().step(from, step)
    }

    fn used(&mut self, place: Origin, how: Use, _: Option<&Value>) {
        self.state.borrow_mut().used(place, how);
    }
}
