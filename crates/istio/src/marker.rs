//! Texts in place of a pod's own, to find where templates put them: no request can guess them.

use std::{
    hash::{BuildHasher as _, Hasher as _, RandomState},
    sync::LazyLock,
};

/// The name in place of the owner's: a plain name.
pub(crate) fn owner_name() -> &'static str {
    static MARKER: LazyLock<String> =
        LazyLock::new(|| format!("injectd-{:016x}{:016x}", random(), random()));
    &MARKER
}

/// What stands in a value in place of the characters that YAML may read as more than text. It is short,
/// since templates cut some values.
pub(crate) fn in_value() -> &'static str {
    static MARKER: LazyLock<String> = LazyLock::new(|| format!("x{:016x}", random()));
    &MARKER
}

fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
