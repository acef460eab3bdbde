//! Types as Kubernetes prints them.

use std::{fmt, sync::Arc};

use super::Type;

impl Type {
    /// The type with a name that an expression may have.
    pub(super) fn of_name(name: &str) -> Self {
        match name {
            "list" => Self::list_of(Self::Dyn),
            "map" => Self::Map(Arc::new((Self::Dyn, Self::Dyn))),
            "null_type" => Self::named("null"),
            "google.protobuf.Duration" => Self::named("duration"),
            "google.protobuf.Timestamp" => Self::named("timestamp"),
            "net.CIDR" => Self::named("cidr"),
            "net.IP" => Self::named("ip"),
            name => Self::named(name),
        }
    }

    /// The name of a type without parts.
    pub(crate) fn name(&self) -> Option<&'static str> {
        match self {
            Self::Named(name) => Some(shown(name)),
            _ => None,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Var(_) | Self::Dyn | Self::Any(_) => f.write_str("dyn"),
            Self::Named(name) => f.write_str(shown(name)),
            Self::List(item) => write!(f, "list({item})"),
            Self::Map(pair) => write!(f, "map({}, {})", pair.0, pair.1),
            Self::Of(of) => write!(f, "type({of})"),
            Self::Optional(item) => write!(f, "optional_type({item})"),
            Self::Object(object) => write!(f, "kubernetes.{}", object.name),
            Self::Record(of) => f.write_str(&of.name),
            Self::Pod(of) => f.write_str(of.get().name),
        }
    }
}

/// The names that Kubernetes prints.
fn shown(name: &'static str) -> &'static str {
    match name {
        "null" => "null_type",
        "duration" => "google.protobuf.Duration",
        "timestamp" => "google.protobuf.Timestamp",
        "url" => "kubernetes.URL",
        "ip" => "net.IP",
        "cidr" => "net.CIDR",
        "quantity" => "kubernetes.Quantity",
        "semver" => "kubernetes.Semver",
        "format" => "kubernetes.NamedFormat",
        "authorizer" => "kubernetes.authorization.Authorizer",
        "path" => "kubernetes.authorization.PathCheck",
        "group" => "kubernetes.authorization.GroupCheck",
        "check" => "kubernetes.authorization.ResourceCheck",
        "decision" => "kubernetes.authorization.Decision",
        other => other,
    }
}
