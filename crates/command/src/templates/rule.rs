//! The kinds of findings of `template check`, with their names for programs.

use injectd_templates::advice::Topic;
use serde::{Serialize, Serializer};

/// A kind of finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// A field, type or name is wrong.
    Invalid,
    /// Another template has the kind and the name.
    DuplicateName,
    /// A `SidecarTemplate` is above its Pod Security level.
    Ceiling,
    /// The release of Kubernetes does not use a field.
    Kubernetes,
    /// Kubernetes has no such field.
    UnknownField,
    /// Another template adds another thing of the name.
    Conflict,
    /// A parameter without a pattern is joined to a text for a program.
    JoinedParameter,
    /// A Job with the container would not end.
    Jobs,
    /// A field that is read may be absent.
    MayBeAbsent,
    /// The pod is read as a whole.
    ReadsAll,
    /// A rule reads the field that it replaces.
    ReadsOwn,
    /// An expression costs much.
    Cost,
    /// A policy cannot have it.
    Portability,
}

impl Rule {
    /// All, with what they are about.
    pub const ALL: [(Self, &str, &str); 13] = [
        (
            Self::Invalid,
            "invalid",
            "A template must have the fields, types and names of the reference",
        ),
        (Self::DuplicateName, "duplicate-name", "A kind and a name must be given once"),
        (Self::Ceiling, "ceiling", "A SidecarTemplate must stay below its Pod Security level"),
        (Self::Kubernetes, "kubernetes", "The release of Kubernetes should use each field"),
        (Self::UnknownField, "unknown-field", "A field should be one that Kubernetes has"),
        (Self::Conflict, "conflict", "Templates should not add different things of one name"),
        (
            Self::JoinedParameter,
            "joined-parameter",
            "A parameter that is joined to a text for a program should have a pattern",
        ),
        (Self::Jobs, "jobs", "A container should not keep Jobs from ending"),
        (Self::MayBeAbsent, "may-be-absent", "An expression should not fail for some pods"),
        (Self::ReadsAll, "reads-all", "An expression should name the fields that it needs"),
        (Self::ReadsOwn, "reads-own", "A rule should not read the field that it replaces"),
        (Self::Cost, "cost", "An expression should cost less than a tenth of its limit"),
        (Self::Portability, "portability", "A policy of Kubernetes cannot have all of a template"),
    ];

    /// Its name.
    #[must_use]
    pub fn id(self) -> &'static str {
        let row = Self::ALL.iter().find(|(rule, ..)| *rule == self);
        row.map_or("", |(_, id, _)| id)
    }
}

impl From<Topic> for Rule {
    fn from(topic: Topic) -> Self {
        match topic {
            Topic::JoinedParameter => Self::JoinedParameter,
            Topic::Jobs => Self::Jobs,
            Topic::MayBeAbsent => Self::MayBeAbsent,
            Topic::ReadsAll => Self::ReadsAll,
            Topic::ReadsOwn => Self::ReadsOwn,
        }
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.id())
    }
}
