//! Attackers, and a well-behaved client beside them: it is served, probes are answered, and the process
//! stays. What bounds each attack is in `docs/performance.md`.
//!
//! Each attack is a row of a table and has a server of its own, with a limit of its memory so that the
//! machine survives. A short run has fewer rows. Scenarios print the figures of each row.

mod beside;
mod connections;
mod crowd;
mod expensive;
mod floods;
mod held;
mod istio;
mod measure;
mod overload;
mod target;
