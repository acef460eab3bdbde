#!/bin/sh
# Measures what a sidecar costs in a real API server: with injectd as the webhook, with a
# MutatingAdmissionPolicy that adds the same sidecar, and pods with neither.
#
# All ways take turns under the same load, on a control plane of their own (e2e/lab.sh, which
# describes the variables). The figures that count are CPU per pod and their ratios within a round.
set -eu

usage() {
    cat <<'TEXT'
usage: loadtest/apiserver/run.sh [--smoke] [--out DIR] [--rounds N] [--seconds S] [--creators N,…]

  --smoke         one short round with 8 creators; less than 40 seconds
  --out DIR       writes raw.csv and summary.md there
  --rounds N      rounds, each with every way in another order      (5)
  --seconds S     length of a run                                   (1.5)
  --creators N,…  pods that are created at a time                   (1,8,32)

Takes less than six minutes: it skips rounds that do not fit.
TEXT
}

die() {
    echo "apiserver: $*" >&2
    exit 64
}

here=$(cd "$(dirname "$0")" && pwd)
rounds=5 seconds=1.5 creators=1,8,32 max_seconds=340 out=
while [ $# -gt 0 ]; do
    case $1 in
        --smoke) rounds=1 seconds=0.5 creators=8 ;;
        --help | -h) usage && exit 0 ;;
        --out | --rounds | --seconds | --creators)
            [ $# -ge 2 ] || die "$1 needs a value"
            case $1 in
                --out) mkdir -p "$2" && out=$(cd "$2" && pwd) ;;
                --rounds) rounds=$2 ;;
                --seconds) seconds=$2 ;;
                --creators) creators=$2 ;;
            esac
            shift
            ;;
        *) usage >&2 && exit 64 ;;
    esac
    shift
done

LAB_FLAGS="${LAB_FLAGS:-} -memory=2GiB -apiserver-flag=--delete-collection-workers=8"
export LAB_FLAGS
exec "$here/../../e2e/lab.sh" python3 -B "$here/measure.py" --rounds "$rounds" \
    --seconds "$seconds" --creators "$creators" --max-seconds "$max_seconds" --out "$out" \
    --load "$(cut -d " " -f 1 /proc/loadavg)"
