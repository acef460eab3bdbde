#!/bin/sh
# usage: e2e/run.sh [KUBE_LAB_DIR]
#
# Runs scenarios.py, watched.py and tutorial.py against a Kubernetes API server of its own (kube-lab: etcd,
# kube-apiserver, kube-controller-manager); or scenarios.py against the cluster of $KUBECONFIG, less
# what needs loopback.
#
#   KUBE_LAB_DIR  sources of kube-lab, built once if its binary is missing [../shared/kube]
#   $KUBE_LAB     its binary [${XDG_CACHE_HOME:-~/.cache}/injectd-ci/kube-lab/kube-lab]
#   $INJECTD      the binary under test [target/release/injectd, built if missing]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")

if [ -z "${INJECTD:-}" ]; then
    INJECTD=${CARGO_TARGET_DIR:-$root/target}/release/injectd
    [ -x "$INJECTD" ] || (cd "$root" && cargo build --release --locked)
fi
export INJECTD

if [ -n "${KUBECONFIG:-}" ]; then
    exec python3 -B "$here/scenarios.py"
fi

lab=${KUBE_LAB:-${XDG_CACHE_HOME:-$HOME/.cache}/injectd-ci/kube-lab/kube-lab}
sources=${1:-$root/../shared/kube}
if [ ! -x "$lab" ] && [ -x "$sources/build.sh" ]; then
    "$sources/build.sh" "$(dirname "$lab")"
fi
if [ ! -x "$lab" ]; then
    echo "e2e: no kube-lab at $lab and no sources at $sources; set KUBE_LAB or KUBECONFIG" >&2
    exit 1
fi

dir=$(mktemp -d)
pid=
trap 'rm -rf "$dir"' EXIT
trap 'trap - INT TERM; [ -z "$pid" ] || { kill "$pid"; wait "$pid" || true; }; exit 130' INT TERM
"$lab" up \
    -apiserver-flag=--audit-policy-file="$here/audit-policy.yaml" \
    -apiserver-flag=--audit-log-path="$dir/audit.log" \
    "$dir/lab" -- "$here/programs.sh" "$dir/audit.log" "$here/scenarios.py" "$here/watched.py" "$here/tutorial.py" &
pid=$!
wait "$pid"
