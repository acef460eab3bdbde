//! The meshes that a process serves: the choice between them and between the revisions of Istio, and
//! the objects of a cluster that Istio's configurations consist of.

pub mod control_plane;

mod profile;

pub use profile::{
    DEFAULT_REVISION, Injector, IstioInjector, NoWebhook, Profile, Profiles, Revisions,
    TEMPLATES_PATH, TemplatesInjector,
};
