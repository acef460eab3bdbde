//! The injection core: decides about a pod and writes its patch.
//!
//! Knows no server, no cluster and no command line: the package `injectd` has those. The modules
//! are listed in the order in which a review passes through them; each module uses only modules
//! below it. `ARCHITECTURE.md` describes the life of a review.

pub mod injector;

pub mod linkerd;

pub mod explain;
pub mod mesh;
pub mod namespace;

pub mod review;

pub mod standalone;

pub mod objects;

pub mod lookups;

pub mod outcome;

pub mod patch;
pub mod request;

pub mod object;

pub mod view;

pub mod causes;
pub mod json;
pub mod spelling;
pub mod text;
pub mod yaml;
