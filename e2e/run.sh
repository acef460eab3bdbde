#!/bin/sh
# usage: e2e/run.sh [--kube 1.NN] [--long] [NAME…]
#
# Runs the end-to-end scenarios whose names contain a NAME [all], in any order; with --long at full
# length. The first one that needs a cluster starts a Kubernetes API server of this release. With
# $KUBECONFIG they use that cluster, and those that need loopback are skipped. Variables: lab.sh. What
# follows the options is for the test binary, such as --exact.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
while :; do
    case ${1:-} in
        --kube)
            KUBE_RELEASE=${2:?--kube needs a release, such as 1.36}
            export KUBE_RELEASE
            shift 2
            ;;
        --long)
            E2E_LONG=1
            export E2E_LONG
            shift
            ;;
        *) break ;;
    esac
done

# --workspace gives dependencies the same features as for `cargo test`. The binary runs without cargo,
# because cargo does not forward signals.
scenarios=$(cd "$root" && cargo test --locked --workspace --test scenarios --no-run \
    --message-format=json-render-diagnostics |
    sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | grep '/scenarios-[^/]*$')
if [ -z "${INJECTD:-}" ]; then
    INJECTD=${CARGO_TARGET_DIR:-$root/target}/release/injectd
    [ -x "$INJECTD" ] || (cd "$root" && cargo build --release --locked)
fi
export INJECTD

# A name of no scenario would pass, with no test.
exact=
for word; do [ "$word" != --exact ] || exact=--exact; done
is_value=false
for word; do
    if $is_value; then
        is_value=false
        continue
    fi
    case $word in
        --skip | --test-threads | --format | --color | --logfile | --shuffle-seed | -Z) is_value=true ;;
        -*) ;;
        *)
            # shellcheck disable=SC2086 # one flag, or no word
            if ! "$scenarios" --list $exact "$word" | grep ': test$' >/dev/null; then
                echo "run.sh: no scenario has $word in its name; e2e/run.sh --list prints all names" >&2
                exit 64
            fi
            ;;
    esac
done
exec "$scenarios" --show-output "$@"
