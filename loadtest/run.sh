#!/bin/sh
# The load test: injectd against an echo with the same connections and TLS, on this machine alone.
#
# Both answer in turn under the same load, several times in a round: a shared machine changes its
# speed from one second to the next. The figure that counts is CPU per request, injectd's divided by
# the echo's: rates and times move with the machine, the ratio hardly does.
set -eu

usage() {
    cat <<'TEXT'
usage: loadtest/run.sh [--rounds N] [--turns N] [--seconds N | --requests N] [--connections N]
                       [--review FILE] [--smoke]

  --rounds N        rounds; figures are their medians                   (3)
  --turns N         turns of a round, each of the echo and of injectd   (5)
  --seconds N       length of a turn                                    (1)
  --requests N      requests of a turn, instead of its length
  --connections N   kept-alive HTTP/1.1 connections                     (16)
  --review FILE     the AdmissionReview to send                         (loadtest/review-12k.json)
  --smoke           three rounds of one turn of a second; fails if a request fails or the ratio is
                    above 5

  $INJECTD, $ECHO   the servers' binaries      (target/release/injectd and examples/echo, built)

Needs h2load from the Debian package nghttp2-client, and cargo unless both binaries are set.
TEXT
}

# shellcheck source=loadtest/measure.sh
. "$(dirname "$0")/measure.sh"

rounds=3
turns=5
seconds=1
requests=
connections=16
smoke=false
max_ratio=5
budget=1.6

cd "$(dirname "$0")/.."
review=loadtest/review-12k.json

while [ $# -gt 0 ]; do
    case $1 in
        --smoke) smoke=true rounds=3 turns=1 seconds=1 requests= ;;
        --help | -h) usage && exit 0 ;;
        --rounds | --turns | --seconds | --requests | --connections | --review)
            [ $# -ge 2 ] || die "$1 needs a value"
            case $1 in
                --rounds) rounds=$2 ;;
                --turns) turns=$2 ;;
                --seconds) seconds=$2 ;;
                --requests) requests=$2 ;;
                --connections) connections=$2 ;;
                --review) review=$2 ;;
            esac
            shift
            ;;
        *) usage >&2 && exit 64 ;;
    esac
    shift
done

for count in "$rounds" "$turns" "$seconds"; do
    [ "$count" -gt 0 ] 2>/dev/null || die "rounds, turns and seconds must be above 0, not $count"
done
command -v h2load >/dev/null || die "h2load is missing: apt-get install nghttp2-client"

work=$(mktemp -d)
pids=
clean_up() {
    for pid in $pids; do
        kill "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

# start NAME COMMAND...: starts a server; sets NAME_pid and NAME_addr.
start() {
    name=$1
    shift
    # The server writes its log at the default level; the test discards it.
    "$@" >"$work/$name.out" 2>/dev/null &
    pid=$!
    pids="$pids $pid"
    addr=
    tries=0
    while [ -z "$addr" ]; do
        kill -0 "$pid" 2>/dev/null || die "$name exited during start"
        [ $tries -lt 200 ] || die "$name printed no address"
        tries=$((tries + 1))
        sleep 0.05
        addr=$(sed -n 's/^\(echo\|webhook\) server: \([^ ]*\).*/\2/p' "$work/$name.out")
    done
    eval "${name}_pid=$pid ${name}_addr=$addr"
}

# load PID ADDR EXTENT...: runs h2load once and prints "requests ticks seconds".
load() {
    pid=$1
    addr=$2
    shift 2
    before=$(cpu_ticks "$pid")
    timeout 600 h2load --h1 -t 1 -c "$connections" "$@" -d "$review" \
        -H 'content-type: application/json' "https://$addr/?timeout=10s" >"$work/h2load" ||
        die "h2load failed: $(tail -n 3 "$work/h2load")"
    ticks=$(($(cpu_ticks "$pid") - before))
    [ "$ticks" -gt 0 ] || die "too few requests to measure"
    awk -v ticks="$ticks" '
        { gsub(",", "") }
        /^finished in/ { rate = $4 }
        /^requests:/ { done = $6; bad = $10 + $12 + $14 }
        /^status codes:/ { good = $3 }
        END {
            if (done == 0 || bad > 0 || good < done) exit 1
            print done, ticks, done / rate
        }' "$work/h2load" || die "requests failed: $(grep -E '^(requests|status)' "$work/h2load")"
}

# sum FILE: prints "requests/s CPU-µs/request" of all runs in it.
sum() {
    awk -v per_second="$(getconf CLK_TCK)" '
        { done += $1; ticks += $2; seconds += $3 }
        END { printf "%.0f %.2f\n", done / seconds, ticks / per_second * 1000000 / done }' "$1"
}

if [ -z "${INJECTD:-}" ] || [ -z "${ECHO:-}" ]; then
    cargo build --quiet --release --bin injectd --example echo
    target=${CARGO_TARGET_DIR:-target}/release
    INJECTD=${INJECTD:-$target/injectd} ECHO=${ECHO:-$target/examples/echo}
fi
"$INJECTD" review "$review" | grep -q '"patch":' ||
    die "injectd does not inject the pod of $review"

load_average=$(cut -d ' ' -f 1 /proc/loadavg)
start echo "$ECHO" "$review" --addr 127.0.0.1:0
start injectd "$INJECTD" serve --standalone --addr 127.0.0.1:0 \
    --metrics-addr 127.0.0.1:0 --grpc-addr ''
# shellcheck disable=SC2154 # start sets them
echo_at="$echo_pid $echo_addr" injectd_at="$injectd_pid $injectd_addr"

if [ -n "$requests" ]; then
    extent="-n $requests"
else
    extent="-D $seconds"
fi

# shellcheck disable=SC2086 # pairs of words
{
    load $echo_at -n 2000 >/dev/null
    load $injectd_at -n 2000 >/dev/null
    round=0
    while [ "$round" -lt "$rounds" ]; do
        round=$((round + 1))
        : >"$work/echo.turns"
        : >"$work/injectd.turns"
        turn=0
        while [ "$turn" -lt "$turns" ]; do
            turn=$((turn + 1))
            load $echo_at $extent >>"$work/echo.turns"
            load $injectd_at $extent >>"$work/injectd.turns"
        done
        sum "$work/echo.turns" >>"$work/echo.runs"
        sum "$work/injectd.turns" >>"$work/injectd.runs"
        paste -d ' ' "$work/echo.runs" "$work/injectd.runs" | tail -n 1 |
            awk -v round="$round" '{ printf "round %d: echo %d requests/s, %.1f µs; ", round, $1, $2
                printf "injectd %d requests/s, %.1f µs; ratio %.2f\n", $3, $4, $4 / $2 }'
    done
}

model=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
echo "machine: $(nproc) cores, ${model:-unknown}; client on the same cores;" \
    "load average $load_average before"
echo "load: POST of $(wc -c <"$review") bytes, TLS 1.3, HTTP/1.1, $connections connections, $rounds × $turns × $extent"
printf '%-16s %12s %s\n' "median" "requests/s" "   CPU µs/request"
printf '%-16s %12s %17s\n' \
    "echo (baseline)" "$(median 1 "$work/echo.runs" %.0f)" "$(median 2 "$work/echo.runs" %.1f)" \
    "injectd" "$(median 1 "$work/injectd.runs" %.0f)" "$(median 2 "$work/injectd.runs" %.1f)"
paste -d ' ' "$work/echo.runs" "$work/injectd.runs" |
    awk '{ printf "%.3f %.3f\n", $4 / $2, $3 / $1 }' >"$work/ratios"
ratio=$(median 1 "$work/ratios" %.2f)
echo "CPU of injectd ÷ echo: $ratio (median of rounds; budget $budget)"
echo "rate of injectd ÷ echo: $(median 2 "$work/ratios" %.2f)"

if $smoke && awk -v ratio="$ratio" -v most="$max_ratio" 'BEGIN { exit !(ratio > most) }'; then
    die "the ratio is above $max_ratio"
fi
