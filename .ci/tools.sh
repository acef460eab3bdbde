# The versions of the tools that checks install; scripts read this file. Rust's is rust-version in
# Cargo.toml, those of Kubernetes are in e2e/lab/releases.
# shellcheck shell=sh disable=SC2034 # others read them
BUF_VERSION=1.75.0
CARGO_DENY_VERSION=0.20.2
GHZ_VERSION=v0.120.0
GRPCURL_VERSION=v1.9.4
HELM_VERSION=v3.22.0
K6_VERSION=v1.8.1
MDBOOK_VERSION=0.5.4
PROMETHEUS_OPERATOR_VERSION=v0.85.0
PROMTOOL_VERSION=v0.305.0
