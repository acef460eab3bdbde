#!/bin/sh
# usage: e2e/lab.sh PROGRAM [ARGUMENT…]
#
# Runs a program against a Kubernetes control plane of its own (kube-lab: etcd, kube-apiserver,
# kube-controller-manager). Scenarios and the load test start it.
#
#   $KUBE_RELEASE  release of Kubernetes, one of lab/releases [1.36]
#   $KUBE_LAB      binary of kube-lab [that of the release, built if missing: lab/build.sh]
#   $E2E_AUDIT     not empty: the API server writes an audit log, and the program gets $E2E_AUDIT_LOG
#   $LAB_FLAGS     flags of kube-lab, such as -memory=2GiB
#   $INJECTD       binary under test [target/release/injectd, built if missing]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")

if [ -z "${INJECTD:-}" ]; then
    INJECTD=${CARGO_TARGET_DIR:-$root/target}/release/injectd
    [ -x "$INJECTD" ] || (cd "$root" && cargo build --release --locked)
fi
export INJECTD

lab=${KUBE_LAB:-$("$here/lab/build.sh")}

dir=$(mktemp -d)
if [ -n "${E2E_AUDIT:-}" ]; then
    E2E_AUDIT_LOG=$dir/audit.log
    export E2E_AUDIT_LOG
    LAB_FLAGS="${LAB_FLAGS:-} -apiserver-flag=--audit-policy-file=$here/audit-policy.yaml \
        -apiserver-flag=--audit-log-path=$E2E_AUDIT_LOG"
fi
pid=
trap 'rm -rf "$dir"' EXIT
trap 'trap - INT TERM; [ -z "$pid" ] || { kill "$pid"; wait "$pid" || true; }; exit 130' INT TERM
# The program reads what this script is given: else the input of a background process is empty.
exec 3<&0
# shellcheck disable=SC2086 # flags are words
"$lab" up ${LAB_FLAGS:-} "$dir/lab" -- "$@" <&3 &
pid=$!
wait "$pid"
