#!/bin/sh
# usage: e2e/run.sh
#
# Runs scenarios.py, watched.py and tutorial.py against a Kubernetes API server of its own; or
# scenarios.py against the cluster of $KUBECONFIG, less what needs loopback. Variables: lab.sh.
set -eu
here=$(cd "$(dirname "$0")" && pwd)

if [ -n "${KUBECONFIG:-}" ]; then
    if [ -z "${INJECTD:-}" ]; then
        INJECTD=${CARGO_TARGET_DIR:-$here/../target}/release/injectd
        [ -x "$INJECTD" ] || (cd "$here/.." && cargo build --release --locked)
    fi
    export INJECTD
    exec python3 -B "$here/scenarios.py"
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
trap 'trap - INT TERM; kill "$pid"; wait "$pid" || true; exit 130' INT TERM
LAB_FLAGS="-apiserver-flag=--audit-policy-file=$here/audit-policy.yaml \
    -apiserver-flag=--audit-log-path=$log" \
    "$here/lab.sh" programs.sh "$log" "$here/scenarios.py" "$here/watched.py" "$here/tutorial.py" &
pid=$!
wait "$pid"
