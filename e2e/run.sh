#!/bin/sh
# usage: e2e/run.sh [--kube 1.NN] [--long] [SUITE[/TEXT]… | -- NAME…]
#
# Runs the end-to-end scenarios against a Kubernetes API server of its own, of this release; with
# --long at full length. SUITE: those of tests/e2e, which run in their order. NAME: those of
# tests/scenarios whose names contain it, in any order. With $KUBECONFIG it uses that cluster, and
# skips scenarios that need loopback. Variables: lab.sh.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
long= is_alone=
while :; do
    case ${1:-} in
        --kube)
            KUBE_RELEASE=${2:?--kube needs a release, such as 1.36}
            export KUBE_RELEASE
            shift 2
            ;;
        --long)
            long=--long
            E2E_LONG=1
            export E2E_LONG
            shift
            ;;
        *) break ;;
    esac
done

# --workspace gives dependencies the same features as for `cargo test`. The binaries run without
# cargo, because cargo does not forward signals.
executables=$(cd "$root" && cargo test --locked --workspace --test e2e --test scenarios --no-run \
    --message-format=json-render-diagnostics |
    sed -n 's/.*"executable":"\([^"]*\)".*/\1/p')
suites=$(echo "$executables" | grep '/e2e-[^/]*$')
scenarios=$(echo "$executables" | grep '/scenarios-[^/]*$')
case ${1:-} in
    "")
        # Both, and both fail the run.
        # shellcheck disable=SC2016 # the variables are those of the inner shell
        set -- sh -c '
            trap "kill \$pid; wait \$pid; exit 130" INT TERM
            "$1" --show-output & pid=$!
            wait $pid; code=$?
            shift
            "$@" & pid=$!
            wait $pid || code=$?
            exit $code' run "$scenarios" "$suites" $long
        ;;
    --)
        # The first scenario that needs a cluster starts one.
        shift
        set -- "$scenarios" --show-output "$@"
        is_alone=true
        ;;
    *) set -- "$suites" $long "$@" ;;
esac

if [ -n "${KUBECONFIG:-}${is_alone:-}" ]; then
    if [ -z "${INJECTD:-}" ]; then
        INJECTD=${CARGO_TARGET_DIR:-$root/target}/release/injectd
        [ -x "$INJECTD" ] || (cd "$root" && cargo build --release --locked)
    fi
    export INJECTD
    exec "$@"
fi

E2E_AUDIT=1 exec "$here/lab.sh" "$@"
