//! Faults: the real binary on real sockets, with clients that are slow, rude or too many, files that
//! change under it, and signals.

#[path = "faults/lib.rs"]
mod faults;
