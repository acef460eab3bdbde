#!/bin/sh
# The whole load test: webhook, bursts, cold paths, a million reviews, Istio, gRPC, an API server. It
# prints figures beside their budgets and writes them to loadtest/runs/DATE. It fails if a request
# does not get the expected answer, and not if a budget is missed.
set -eu

usage() {
    cat <<'TEXT'
usage: loadtest/load.sh [--smoke] [--out FOLDER] [--only "PART…"]

  --smoke         each part for a second or so; keeps no figures
  --out FOLDER    folder for the figures                       (loadtest/runs/DATE)
  --only "PART…"  some of: rounds curve mixed burst cold soak istio templates ghz apiserver

  $INJECTD        the binary to measure                        (built by deploy/pgo.sh, as in the
                                                                image; --smoke: cargo's release)
  $ECHO           the echo                                     (examples/echo, built)
  $PACED          the client with a constant rate              (examples/paced, built)
  $OVERLOAD       the client beyond the capacity               (examples/overload, built)
  $LOAD           the load test                                (examples/load, built)
  $INJECTD_CORPUS folder with a recorded configuration of Istio (without it, a small one)
  $K6             k6      [${XDG_CACHE_HOME:-~/.cache}/injectd-ci/tools/bin/k6, built with go if missing]
  $GHZ            ghz     [beside k6, built with go if missing]
  $KUBE_LAB       the control plane of apiserver [that of e2e/lab, built with go if missing]

Needs cargo, Go for what is missing of k6, ghz and the control plane, python3 for a picture, and h2load
from the Debian package nghttp2-client; without $INJECTD what deploy/pgo.sh needs. Takes twenty to thirty
minutes after the builds, --smoke one or two.
TEXT
}

die() {
    echo "load: $*" >&2
    exit 1
}

smoke=false
out=
only="rounds curve mixed burst cold soak istio templates ghz apiserver"
# The time limit of a part: of apiserver, the longest, with seven rounds of three minutes at most.
max_seconds=1400

while [ $# -gt 0 ]; do
    case $1 in
        --smoke) smoke=true max_seconds=120 ;;
        --help | -h) usage && exit 0 ;;
        --out | --only)
            [ $# -ge 2 ] || die "$1 needs a value"
            case $1 in
                --out) mkdir -p "$2" && out=$(cd "$2" && pwd) ;;
                --only) only=$2 ;;
            esac
            shift
            ;;
        *) usage >&2 && exit 64 ;;
    esac
    shift
done

# Before anything is built: that takes half an hour.
for part in $only; do
    case $part in
        rounds | curve | mixed | burst | cold | soak | istio | templates | ghz | apiserver) ;;
        *) die "--only: unknown part $part; --help lists them" ;;
    esac
done
cd "$(dirname "$0")/.."
command -v h2load >/dev/null || die "h2load is missing: apt-get install nghttp2-client"
# What parts need is built before all else, because their time limits are too short for that.
# has PART: whether the part was asked for.
has() {
    case " $only " in
        *" $1 "*) true ;;
        *) false ;;
    esac
}
lacks() {
    die "the part $1 needs Go, which builds $2; leave it out by --only"
}
if has mixed; then
    K6=${K6:-${XDG_CACHE_HOME:-$HOME/.cache}/injectd-ci/tools/bin/k6}
    if [ ! -x "$K6" ]; then
        . .ci/tools.sh
        GOBIN=$(dirname "$K6") go install "go.k6.io/k6@$K6_VERSION" || lacks mixed k6
    fi
    export K6
fi
if has ghz; then
    GHZ=$(loadtest/ghz/build.sh) || lacks ghz ghz
    export GHZ
fi
if has apiserver; then
    KUBE_LAB=${KUBE_LAB:-$(e2e/lab/build.sh)} || lacks apiserver "a control plane"
    export KUBE_LAB
fi
mkdir -p "${CARGO_TARGET_DIR:-target}"
target=$(cd "${CARGO_TARGET_DIR:-target}" && pwd)
wanted=
examples="--example echo --example load --example overload --example paced"
[ -n "${ECHO:-}" ] && [ -n "${LOAD:-}" ] && [ -n "${OVERLOAD:-}" ] && [ -n "${PACED:-}" ] ||
    wanted=$examples
if [ -n "${INJECTD:-}" ]; then
    BUILD="given by \$INJECTD"
elif $smoke; then
    wanted="--bin injectd $examples"
    INJECTD=$target/release/injectd BUILD="cargo build --release"
else
    deploy/pgo.sh
    INJECTD=$target/pgo/injectd BUILD="deploy/pgo.sh"
fi
# shellcheck disable=SC2086 # words
[ -z "$wanted" ] || cargo build --quiet --release --locked $wanted
ECHO=${ECHO:-$target/release/examples/echo}
LOAD=${LOAD:-$target/release/examples/load}
OVERLOAD=${OVERLOAD:-$target/release/examples/overload}
PACED=${PACED:-$target/release/examples/paced}
export INJECTD BUILD ECHO OVERLOAD PACED

scratch=
pid=
clean_up() {
    if [ -n "$pid" ]; then
        kill "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    fi
    [ -z "$scratch" ] || rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

if [ -z "$out" ] && $smoke; then
    scratch=$(mktemp -d)
    out=$scratch
elif [ -z "$out" ]; then
    out=$PWD/loadtest/runs/$(date -u +%Y-%m-%d)
    mkdir -p "$out"
fi

# measure PART [FLAG...]: runs a part within the time limit, prints how long it took, and counts failures.
failed=0
measure() {
    name=$1
    begin=$(date +%s)
    printf '\n== %s\n' "$name"
    timeout "$max_seconds" "$LOAD" "$@" --out "$out" 2>&1 &
    pid=$!
    code=0
    wait "$pid" || code=$?
    pid=
    [ "$code" -eq 0 ] || failed=$((failed + 1))
    echo "$name: exit code $code, $(($(date +%s) - begin)) s," \
        "load average $(cut -d ' ' -f 1 /proc/loadavg)" | tee -a "$out/parts.txt"
}

flags=
! $smoke || flags=--smoke
"$LOAD" summary --out "$out" --setup
cat "$out/setup.txt"
: >"$out/parts.txt"
for part in $only; do
    case $part in
        ghz)
            # shellcheck disable=SC2086 # one flag, or no word
            measure ghz --seconds 3 $flags
            ;;
        *)
            # shellcheck disable=SC2086 # one flag, or no word
            measure "$part" $flags
            ;;
    esac
done
"$LOAD" summary --out "$out"
printf '\n'
sed -n '/^## Budgets/,/^## [^B]/p' "$out/summary.md" | sed '$d'
$smoke || echo "figures: $out"
[ "$failed" -eq 0 ] || die "$failed parts failed"
