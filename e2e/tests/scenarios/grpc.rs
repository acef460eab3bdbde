//! The gRPC server of the real process: foreign clients, sockets, certificates, tokens, abuse. What a
//! message is answered with is tested in the process, by `tests/grpc`.

mod abuse;
mod clients;
mod load;
mod mtls;
pub(crate) mod server;
mod signals;
mod tokens;
mod unix;
