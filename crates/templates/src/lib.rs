//! What the expressions of sidecar templates read: the text of a pod, without a tree of it.

#![cfg_attr(
    test,
    expect(clippy::disallowed_types, reason = "trees are what texts are compared with")
)]

mod text;

pub use text::PodText;

#[cfg(test)]
mod tests;
