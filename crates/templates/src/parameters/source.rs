//! Where the values of parameters are.

use std::{borrow::Cow, fmt};

use crate::object::{KeyPlace, Parameter, ParameterKeys, ParameterSource, ParameterType};

impl ParameterSource {
    /// The key, or the prefix of keys.
    #[must_use]
    pub fn key(&self) -> &str {
        match self {
            Self::PodAnnotation(key)
            | Self::PodAnnotationPrefix(key)
            | Self::PodLabel(key)
            | Self::NamespaceAnnotation(key)
            | Self::NamespaceAnnotationPrefix(key)
            | Self::NamespaceLabel(key)
            | Self::ServiceAccountAnnotation(key) => key,
        }
    }

    /// Whether it is a prefix of keys.
    #[must_use]
    pub fn is_prefix(&self) -> bool {
        matches!(self, Self::PodAnnotationPrefix(_) | Self::NamespaceAnnotationPrefix(_))
    }

    /// A key in one of the places where keys are looked up.
    #[must_use]
    pub fn of_place(place: KeyPlace, key: String) -> Self {
        match place {
            KeyPlace::PodLabel => Self::PodLabel(key),
            KeyPlace::PodAnnotation => Self::PodAnnotation(key),
            KeyPlace::NamespaceLabel => Self::NamespaceLabel(key),
            KeyPlace::NamespaceAnnotation => Self::NamespaceAnnotation(key),
        }
    }
}

/// As messages name it: `annotation example.com/a of the namespace`.
impl fmt::Display for ParameterSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, of) = match self {
            Self::PodAnnotation(_) => ("annotation", ""),
            Self::PodAnnotationPrefix(_) => ("annotations with prefix", ""),
            Self::PodLabel(_) => ("label", ""),
            Self::NamespaceAnnotation(_) => ("annotation", " of the namespace"),
            Self::NamespaceAnnotationPrefix(_) => ("annotations with prefix", " of the namespace"),
            Self::NamespaceLabel(_) => ("label", " of the namespace"),
            Self::ServiceAccountAnnotation(_) => ("annotation", " of the ServiceAccount"),
        };
        write!(f, "{what} {}{of}", self.key())
    }
}

/// The sources of a parameter in their order: its own, then those of its key.
#[must_use]
pub fn sources<'p>(
    parameter: &'p Parameter,
    keys: Option<&ParameterKeys>,
) -> Cow<'p, [ParameterSource]> {
    // A Map reads prefixes only.
    let key = parameter.key.as_ref().filter(|_| parameter.r#type != ParameterType::Map);
    let (Some(key), Some(keys)) = (key, keys) else { return Cow::Borrowed(&parameter.from) };
    let of_place =
        |place: &KeyPlace| ParameterSource::of_place(*place, format!("{}{key}", keys.prefix));
    let of_key = keys.r#in.iter().map(of_place);
    parameter.from.iter().cloned().chain(of_key).collect()
}
