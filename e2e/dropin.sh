#!/bin/sh
# usage: e2e/dropin.sh [dropin | endurance] [ARGUMENT…]
#
# Runs the binary in place of Linkerd's proxy-injector: as the Deployment of each manifest describes
# it (dropin.py), or under load while its files are swapped (endurance.py). It runs in namespaces of
# its own: it uses no port of this machine, and leaves no mount or process behind.
#
#   $INJECTD         the binary under test [target/release/injectd, built if missing]
#   $INJECTD_CORPUS  manifests/*.yaml: Linkerd's control plane as its chart renders it
#
# Needs root, openssl, and util-linux (unshare). Takes less than five minutes.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")

what=${1:-dropin}
[ $# -eq 0 ] || shift
case $what in
    dropin | endurance) ;;
    *) sed -n 's/^# \(usage: .*\)/\1/p' "$0" >&2 && exit 64 ;;
esac

if [ -z "${INJECTD_CORPUS:-}" ]; then
    echo "$what: skipped: \$INJECTD_CORPUS is unset"
    exit 0
fi
if [ "$(id -u)" != 0 ]; then
    echo "$what: needs root, to start a container as another user" >&2
    exit 1
fi
if [ -z "${INJECTD:-}" ]; then
    INJECTD=${CARGO_TARGET_DIR:-$root/target}/release/injectd
    [ -x "$INJECTD" ] || (cd "$root" && cargo build --release --locked)
fi
export INJECTD

# Another user must be able to read the mounts, whatever the umask was. The clients
# need many descriptors and ports.
# shellcheck disable=SC2016 # the inner shell expands it
exec unshare --mount --net --pid --fork --kill-child --mount-proc sh -eu -c '
    ip link set lo up
    umask 022
    ulimit -S -n "$(ulimit -H -n)"
    echo 1024 65000 >/proc/sys/net/ipv4/ip_local_port_range
    exec python3 -B "$@"
' sh "$here/$what.py" "$@"
