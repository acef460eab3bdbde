//! The meshes that a process serves: the choice between them and between the revisions of Istio, and
//! the objects of a cluster that their configurations consist of.

pub mod control_plane;
pub mod template_plane;

mod profile;

pub use profile::{
    DEFAULT_REVISION, Injector, IstioInjector, NoWebhook, Profile, Profiles, Revisions,
    TEMPLATES_PATH, TemplatesInjector,
};
