//! What is not wrong in a template, and should be looked at.

mod grows;
mod jobs;
mod joined;
mod reads;

use crate::{Problem, Template};

/// What an advice is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Topic {
    /// A parameter without `pattern` becomes a part of a text that a program reads.
    JoinedParameter,
    /// Pods of a Job may never end.
    Jobs,
    /// A field that an expression reads may be absent.
    MayBeAbsent,
    /// An expression reads all of a pod.
    ReadsAll,
    /// A rule reads the field that it replaces.
    ReadsOwn,
}

/// Something that should be looked at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Advice {
    /// Where it is, and what to do.
    pub problem: Problem,
    /// What it is about.
    pub topic: Topic,
}

/// All advice for a template, by field.
#[must_use]
pub fn advice(template: &Template) -> Vec<Advice> {
    let topics = [
        (Topic::JoinedParameter, joined::problems(template)),
        (Topic::Jobs, jobs::problem(template).into_iter().collect()),
        (Topic::MayBeAbsent, reads::unguarded(template)),
        (Topic::ReadsAll, reads::whole(template)),
        (Topic::ReadsOwn, grows::problems(template)),
    ];
    let of_topic = |(topic, problems): (Topic, Vec<Problem>)| {
        problems.into_iter().map(move |problem| Advice { problem, topic })
    };
    let mut all: Vec<_> = topics.into_iter().flat_map(of_topic).collect();
    all.sort();
    all.dedup();
    all
}

#[cfg(test)]
mod tests;
