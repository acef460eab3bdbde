//! What the expressions of sidecar templates read: the text of a pod, without a tree of it.

mod text;

pub use text::PodText;

#[cfg(test)]
mod tests;
