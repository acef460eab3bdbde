//! Records what templates read of a pod.

#![expect(clippy::disallowed_types, reason = "patches are trees")]

use std::{cell::RefCell, collections::BTreeMap};

use injectd_gotemplate::{Origin, Reads, Step, Template, Use, Value};
use injectd_merge::schema::{Kind, POD};
use serde_json::Value as Json;

use super::{reading::Reading, slot};
use crate::{
    pod,
    release::{Delta, Release},
};

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
    places: Vec<Place>,
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

/// A part of the pod, and its place.
#[derive(Debug)]
struct Part {
    key: &'static str,
    place: usize,
}

/// A value of the pod, and what was read of it.
#[derive(Debug, Default)]
struct Place {
    kind: Option<&'static Kind>,
    whole: bool,
    truth: bool,
    count: bool,
    /// The keys in JSON of its members by their names in Go, and their places.
    members: BTreeMap<Box<str>, (Box<str>, usize)>,
    item: Option<usize>,
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
        state.reading.add_patch(patch);
        state.is_unknown |= has_directives;
    }

    /// Whether the templates have read an annotation or a label, or all of them.
    pub(crate) fn has_read(&self, map: &str, key: &str) -> bool {
        let state = self.state.borrow();
        let mut metadata = Reading::default();
        for part in state.parts.values().filter(|part| part.key == "metadata") {
            add(&state.places, part.place, &mut metadata);
        }
        let map = metadata.members.get(map);
        let value = map.and_then(|map| map.members.get(key));
        [Some(&metadata), map, value].into_iter().flatten().any(|reading| reading.whole)
            || state.reading.member_is_whole("metadata")
    }

    /// Whether the templates have read something of a pod's `spec` for which this holds. It is asked of
    /// all that was read whole, and of nothing else.
    pub(crate) fn has_read_of_spec(&self, spec: &Json, is_found: &dyn Fn(&Json) -> bool) -> bool {
        let state = self.state.borrow();
        let mut reading = Reading::default();
        if state.reading.member_is_whole("spec") {
            reading.read_whole();
        }
        for part in state.parts.values().filter(|part| part.key == "spec") {
            add(&state.places, part.place, &mut reading);
        }
        has_read(&reading, spec, is_found)
    }

    /// What was read.
    pub(crate) fn into_recorded(self) -> Recorded {
        let state = self.state.into_inner();
        let is_whole = |index: usize| state.places.get(index).is_some_and(|place| place.whole);
        let mut names = [state.owner, state.owner_name].into_iter().flatten();
        let reads_owner_name = state.reads_owner_name || names.any(is_whole);
        let State { mut reading, places, parts, is_unknown, .. } = state;
        for part in parts.values() {
            add(&places, part.place, reading.member(part.key));
        }
        Recorded { reading, reads_owner_name, is_unknown }
    }
}

/// Adds what was read of a place and of those in it.
fn add(places: &[Place], index: usize, reading: &mut Reading) {
    let Some(place) = places.get(index) else { return };
    if place.whole || reading.whole {
        return reading.read_whole();
    }
    if place.truth {
        reading.read_truth();
    }
    if place.count {
        reading.read_count();
    }
    for (key, member) in place.members.values() {
        add(places, *member, reading.member(key));
    }
    if let Some(item) = place.item {
        add(places, item, reading.item());
    }
}

/// Whether something that is read whole of a value is found.
fn has_read(reading: &Reading, value: &Json, is_found: &dyn Fn(&Json) -> bool) -> bool {
    if reading.whole {
        return is_found(value);
    }
    match value {
        Json::Object(members) => reading.members.iter().any(|(key, reading)| {
            members.get(&**key).is_some_and(|value| has_read(reading, value, is_found))
        }),
        Json::Array(items) => reading
            .items
            .as_ref()
            .is_some_and(|reading| items.iter().any(|item| has_read(reading, item, is_found))),
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
    fn place(&mut self, origin: Origin) -> Option<&mut Place> {
        self.places.get_mut(index_of(origin)?)
    }

    fn read_whole(&mut self, origin: Origin) {
        if origin == Origin::ROOT {
            self.reads_owner_name = true;
            self.reading.read_members(["metadata", "spec"]);
        } else if let Some(place) = self.place(origin) {
            place.whole = true;
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
            Use::Truth => place.truth = true,
            Use::Keys if is_list => place.count = true,
            Use::Keys | Use::Whole | Use::Copied => place.whole = true,
        }
    }

    fn add_place(&mut self, kind: Option<&'static Kind>) -> usize {
        self.places.push(Place { kind, ..Place::default() });
        self.places.len() - 1
    }

    fn step(&mut self, from: Origin, step: Step<'_>) -> Origin {
        if from == Origin::ROOT {
            return self.part(from, step);
        }
        if self.owner.is_some() && self.owner == index_of(from) {
            match step {
                Step::Field("Name") => return self.owner_name(),
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
            (Some(Kind::List(inner)), Step::Item(_)) => Some(self.item(from, inner)),
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
        let place = self.place(from)?;
        if let Some((_, known)) = place.members.get(name) {
            return Some(*known);
        }
        let (key, kind) = match place.kind? {
            Kind::Struct(of) => {
                let field = of.get().field(pod::json_key(of.get().name, name)?)?;
                (field.name, &field.kind)
            }
            Kind::Map(_, inner) => (name, &**inner),
            _ => return None,
        };
        let key = Box::from(key);
        let member = self.add_place(Some(kind));
        self.place(from)?.members.insert(name.into(), (key, member));
        Some(member)
    }

    /// The place of the owner's name, in which there are no places.
    fn owner_name(&mut self) -> Origin {
        let place = self.owner_name.unwrap_or_else(|| self.add_place(None));
        self.owner_name = Some(place);
        origin_of(place)
    }

    /// The place of all items of a list.
    fn item(&mut self, from: Origin, kind: &'static Kind) -> usize {
        if let Some(known) = self.place(from).and_then(|place| place.item) {
            return known;
        }
        let item = self.add_place(Some(kind));
        if let Some(place) = self.place(from) {
            place.item = Some(item);
        }
        item
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
        let place = self.add_place(kind);
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
