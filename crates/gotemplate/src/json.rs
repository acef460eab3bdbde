//! JSON as Go's `encoding/json` writes and reads it.

mod read;
mod write;

pub use read::check as check_json;
pub(crate) use read::read;
pub(crate) use write::{Style, float, write};

/// Lists and objects inside of one another. Go: 10,000.
const MAX_NESTING: usize = crate::context::MAX_DEPTH;
