#!/bin/sh
# usage: e2e/dropin.sh [dropin | endurance] [ARGUMENT…]
#
# The binary in the place of Linkerd's proxy-injector: started as the Deployment of each manifest
# says (dropin.py), or under load while its files are swapped (endurance.py). In namespaces of its
# own: no port of this machine is taken, and no mount or process outlives it.
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
    echo "$what: passed over: \$INJECTD_CORPUS names no manifests"
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

# Mounts that another user can read, whatever the umask was. As many descriptors
# as there may be, and ports for the clients' ends.
# shellcheck disable=SC2016 # the inner shell expands it
exec unshare --mount --net --pid --fork --kill-child --mount-proc sh -eu -c '
    ip link set lo up
    umask 022
    ulimit -S -n "$(ulimit -H -n)"
    echo 1024 65000 >/proc/sys/net/ipv4/ip_local_port_range
    exec python3 -B "$@"
' sh "$here/$what.py" "$@"
