//! Faults: the real binary on real sockets, with slow, malicious or too many clients, changing
//! files, and signals.

#[path = "faults/lib.rs"]
mod faults;
