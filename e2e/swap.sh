#!/bin/sh
# usage: e2e/swap.sh
#
# Tests deploy/linkerd-swap on Linkerd's own manifests and a Kubernetes API server of its own
# (kube-lab): the swap and the way back, with injectd running as the swapped Deployment describes it
# (swap.py). It runs in namespaces of its own: it uses no port of this machine, and leaves no mount
# or process behind.
#
#   $KUBE_RELEASE, $KUBE_LAB, $INJECTD  as for lab.sh
#   $INJECTD_CORPUS  manifests/*.yaml: Linkerd's control plane as its chart renders it
#
# Needs root, kubectl, openssl, and util-linux (unshare). Takes less than two minutes.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")

if [ -z "${INJECTD_CORPUS:-}" ]; then
    echo "swap: skipped: \$INJECTD_CORPUS is unset"
    exit 0
fi
if [ "$(id -u)" != 0 ]; then
    echo "swap: needs root, to start a container as another user" >&2
    exit 1
fi
if [ -z "${INJECTD:-}" ]; then
    INJECTD=${CARGO_TARGET_DIR:-$root/target}/release/injectd
    [ -x "$INJECTD" ] || (cd "$root" && cargo build --release --locked)
fi
export INJECTD

lab=${KUBE_LAB:-$("$here/lab/build.sh")}

dir=$(mktemp -d)
export TMPDIR="$dir"
pid=
trap 'rm -rf "$dir"' EXIT
# unshare ignores SIGINT and SIGTERM; its children end with it.
trap 'trap - INT TERM; [ -z "$pid" ] || { kill -KILL "$pid"; wait "$pid" || true; }; exit 130' INT TERM
# Another user must be able to read the mounts, whatever the umask was.
# shellcheck disable=SC2016 # the inner shell expands it
unshare --mount --net --pid --fork --kill-child --mount-proc sh -eu -c '
    ip link set lo up
    umask 022
    exec "$@"
' sh "$lab" up \
    -apiserver-flag=--audit-policy-file="$here/audit-policy.yaml" \
    -apiserver-flag=--audit-log-path="$dir/audit.log" \
    "$dir/lab" -- python3 -B "$here/swap.py" --audit-log "$dir/audit.log" &
pid=$!
wait "$pid"
