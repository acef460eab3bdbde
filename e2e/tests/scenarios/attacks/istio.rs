//! Attacks on evaluations of Istio's templates, beside a well-behaved tenant.
//!
//! The tenant sends a review every 20 ms over a kept connection: pods whose answer is known, and in one
//! of five a pod that has to be evaluated.

mod answers;
mod bodies;
mod explained;
mod large;
mod names;
mod shapes;
