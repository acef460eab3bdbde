//! Records what templates read of a pod.

#![expect(clippy::disallowed_types, reason = "patches are trees")]

use std::{cell::RefCell, collections::HashMap};

use injectd_gotemplate::{Origin, Reads, Step, Template, Use, Value};
use injectd_merge::schema::{Kind, POD};
use serde_json::Value as Json;

use super::reading::Reading;
use crate::{pod, release::Release};

/// Functions that read the variables of the injector, which never change.
const FUNCTIONS_OF_VARIABLES: [&str; 2] = ["env", "expandenv"];

/// What one evaluation has read so far.
#[derive(Debug)]
pub(crate) struct Record {
    state: RefCell<State>,
}

#[derive(Debug, Default)]
struct State {
    reading: Reading,
    places: Vec<Place>,
    known: HashMap<(u32, Segment), Origin>,
    /// `.DeploymentMeta` of a release in which it has all metadata of the pod.
    owner: Option<Origin>,
    /// Whether the release is such a one.
    has_whole_owner: bool,
    /// Something was used that is not a function of what was read.
    is_unknown: bool,
}

/// A value of the pod that a template has seen.
#[derive(Debug, Clone)]
struct Place {
    path: Vec<Segment>,
    kind: Option<&'static Kind>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Segment {
    Key(Box<str>),
    Item,
}

/// The number of the first place after [`Origin::ROOT`].
const FIRST_PLACE: u32 = Origin::ROOT.0 + 1;

impl Record {
    /// Of an evaluation for a release.
    pub(crate) fn new(release: Release) -> Self {
        let has_whole_owner = pod::has_whole_owner(release);
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

    /// A patch that a template has made is laid over the pod.
    pub(crate) fn patch(&self, patch: &Json) {
        let mut state = self.state.borrow_mut();
        let has_only_values = state.reading.add_patch(patch);
        state.is_unknown |= !has_only_values;
    }

    /// What was read; `None` if something else was used, such as the time.
    pub(super) fn into_reading(self) -> Option<Reading> {
        let state = self.state.into_inner();
        (!state.is_unknown).then_some(state.reading)
    }
}

impl State {
    /// The reading of a place, or of the first value around it that is read whole.
    fn at(&mut self, path: &[Segment]) -> &mut Reading {
        path.iter().fold(&mut self.reading, |reading, segment| match segment {
            _ if reading.whole => reading,
            Segment::Key(key) => reading.member(key),
            Segment::Item => reading.item(),
        })
    }

    fn place(&self, origin: Origin) -> Option<&Place> {
        self.places.get(origin.0.checked_sub(FIRST_PLACE)? as usize)
    }

    fn read_whole(&mut self, origin: Origin) {
        if origin == Origin::ROOT {
            self.reading.read_members(["metadata", "spec"]);
        } else if let Some(path) = self.place(origin).map(|place| place.path.clone()) {
            self.at(&path).read_whole();
        }
    }

    fn add_place(&mut self, place: Place) -> Origin {
        self.places.push(place);
        let count = u32::try_from(self.places.len()).unwrap_or(u32::MAX);
        Origin(Origin::ROOT.0.saturating_add(count))
    }

    fn used(&mut self, origin: Origin, how: Use) {
        let Some(place) = self.place(origin) else { return self.read_whole(origin) };
        let (path, is_list) = (place.path.clone(), matches!(place.kind, Some(Kind::List(_))));
        match how {
            Use::Truth => self.at(&path).read_truth(),
            Use::Keys if is_list => self.at(&path).read_count(),
            Use::Keys | Use::Whole => self.at(&path).read_whole(),
        }
    }

    /// The place one step from another.
    fn below(&mut self, from: Origin, segment: Segment, kind: Option<&'static Kind>) -> Origin {
        if let Some(known) = self.known.get(&(from.0, segment.clone())) {
            return *known;
        }
        let mut path = self.place(from).map(|place| place.path.clone()).unwrap_or_default();
        path.push(segment.clone());
        self.at(&path);
        let origin = self.add_place(Place { path, kind });
        self.known.insert((from.0, segment), origin);
        origin
    }

    fn step(&mut self, from: Origin, step: Step<'_>) -> Origin {
        if from == Origin::ROOT {
            return self.part(from, step);
        }
        if self.owner == Some(from) && matches!(step, Step::Field("Name" | "Namespace")) {
            return Origin::NONE;
        }
        let kind = self.place(from).and_then(|place| place.kind);
        let next = match (kind, step) {
            (Some(Kind::Struct(of)), Step::Field(name)) => {
                let of = of.get();
                pod::json_key(of.name, name)
                    .and_then(|key| of.field(key))
                    .map(|field| (Segment::Key(field.name.into()), Some(&field.kind)))
            }
            (Some(Kind::Map(_, inner)), Step::Field(key)) => {
                Some((Segment::Key(key.into()), Some(&**inner)))
            }
            (Some(Kind::Map(_, inner)), Step::Key(key)) => {
                let key = std::str::from_utf8(key).ok();
                key.map(|key| (Segment::Key(key.into()), Some(&**inner)))
            }
            (Some(Kind::List(inner)), Step::Item(_)) => Some((Segment::Item, Some(&**inner))),
            _ => None,
        };
        let Some((segment, kind)) = next else {
            self.read_whole(from);
            return Origin::NONE;
        };
        self.below(from, segment, kind)
    }

    /// A part of the template's data. Others than these are the same for all pods with the same
    /// answers to the fixed questions.
    fn part(&mut self, from: Origin, step: Step<'_>) -> Origin {
        let (key, is_owner) = match step {
            Step::Field("ObjectMeta") => ("metadata", false),
            Step::Field("DeploymentMeta") if self.has_whole_owner => ("metadata", true),
            Step::Field("Spec") => ("spec", false),
            Step::Field(_) => return Origin::NONE,
            _ => {
                self.read_whole(from);
                return Origin::NONE;
            }
        };
        let kind = POD.as_struct().and_then(|pod| pod.field(key)).map(|field| &field.kind);
        if !is_owner {
            return self.below(from, Segment::Key(key.into()), kind);
        }
        if let Some(owner) = self.owner {
            return owner;
        }
        let owner = self.add_place(Place { path: vec![Segment::Key(key.into())], kind });
        self.owner = Some(owner);
        owner
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
