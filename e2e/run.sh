#!/bin/sh
# usage: e2e/run.sh [--kube 1.NN] [--long] [SUITE[/TEXT]…]
#
# Runs the scenarios of tests/e2e, or those of a suite whose names contain a text, against a
# Kubernetes API server of its own, of this release; with --long at full length. With $KUBECONFIG it
# uses that cluster, and skips scenarios that need loopback. Variables: lab.sh.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
if [ "${1:-}" = --kube ]; then
    KUBE_RELEASE=${2:?--kube needs a release, such as 1.36}
    export KUBE_RELEASE
    shift 2
fi

# --workspace gives dependencies the same features as for `cargo test`. The binary runs without
# cargo, because cargo does not forward signals.
scenarios=$(cd "$root" && cargo test --locked --workspace --test e2e --no-run \
    --message-format=json-render-diagnostics |
    sed -n 's/.*"executable":"\([^"]*\)".*/\1/p')

if [ -n "${KUBECONFIG:-}" ]; then
    if [ -z "${INJECTD:-}" ]; then
        INJECTD=${CARGO_TARGET_DIR:-$root/target}/release/injectd
        [ -x "$INJECTD" ] || (cd "$root" && cargo build --release --locked)
    fi
    export INJECTD
    exec "$scenarios" "$@"
fi

E2E_AUDIT_LOG=$(mktemp)
export E2E_AUDIT_LOG
trap 'rm -f "$E2E_AUDIT_LOG"' EXIT
trap 'trap - INT TERM; kill "$pid"; wait "$pid" || true; exit 130' INT TERM
LAB_FLAGS="-apiserver-flag=--audit-policy-file=$here/audit-policy.yaml \
    -apiserver-flag=--audit-log-path=$E2E_AUDIT_LOG" \
    "$here/lab.sh" "$scenarios" "$@" &
pid=$!
wait "$pid"
