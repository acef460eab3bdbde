#!/bin/sh
# usage: e2e/lab.sh PROGRAM [ARGUMENT…]
#
# Runs a program, or FILE.py in this folder, against a Kubernetes control plane of its own
# (kube-lab: etcd, kube-apiserver, kube-controller-manager). Started by run.sh, storm.sh, memory.sh.
#
#   $KUBE_LAB  the binary of kube-lab [${XDG_CACHE_HOME:-~/.cache}/injectd-ci/kube-lab/kube-lab],
#              built if missing from $KUBE_LAB_SOURCES [../shared/kube]
#   $LAB_FLAGS flags of kube-lab, such as -memory=2GiB
#   $INJECTD   the binary under test [target/release/injectd, built if missing]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")

if [ -z "${INJECTD:-}" ]; then
    INJECTD=${CARGO_TARGET_DIR:-$root/target}/release/injectd
    [ -x "$INJECTD" ] || (cd "$root" && cargo build --release --locked)
fi
export INJECTD

lab=${KUBE_LAB:-${XDG_CACHE_HOME:-$HOME/.cache}/injectd-ci/kube-lab/kube-lab}
sources=${KUBE_LAB_SOURCES:-$root/../shared/kube}
if [ ! -x "$lab" ] && [ -x "$sources/build.sh" ]; then
    "$sources/build.sh" "$(dirname "$lab")"
fi
if [ ! -x "$lab" ]; then
    echo "lab: no kube-lab at $lab and no sources at $sources; set KUBE_LAB" >&2
    exit 1
fi

dir=$(mktemp -d)
pid=
trap 'rm -rf "$dir"' EXIT
trap 'trap - INT TERM; [ -z "$pid" ] || { kill "$pid"; wait "$pid" || true; }; exit 130' INT TERM
case $1 in
    *.py)
        program=$here/$1
        shift
        set -- python3 -B "$program" "$@"
        ;;
esac
# shellcheck disable=SC2086 # flags are words
"$lab" up ${LAB_FLAGS:-} "$dir/lab" -- "$@" &
pid=$!
wait "$pid"
