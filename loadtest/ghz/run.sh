#!/bin/sh
# The load test of the gRPC server. In turn, ghz calls it, and h2load calls the webhook of the same
# process over HTTP/1.1 and HTTP/2, with the same object, on this machine alone.
#
# The figure that counts is CPU per answer, gRPC's divided by the webhook's: rates and times move with
# the machine and with the cost of the client, the ratio hardly does.
set -eu

usage() {
    cat <<'TEXT'
usage: loadtest/ghz/run.sh [--rounds N] [--seconds N] [--callers "N…"] [--smoke] [--review FILE]

  --rounds N      rounds, each a run of the webhook, of calls by h2load, and by ghz  (3)
  --seconds N     length of a run                                                    (5)
  --callers "N…"  callers at a time, each over a connection of its own               ("1 25 100")
  --review FILE   the AdmissionReview whose object is sent                           (loadtest/review-12k.json)
  --smoke         one round of a second; fails if a call fails or a ratio is above 5

  $INJECTD        the binary under test [target/release/injectd, built]
  $GHZ            ghz [${XDG_CACHE_HOME:-~/.cache}/injectd-ci/tools/bin/ghz, built with go if missing]

Needs python3, and h2load from the Debian package nghttp2-client.
TEXT
}

# shellcheck source=loadtest/measure.sh
. "$(dirname "$0")/../measure.sh"

rounds=3
seconds=5
callers='1 25 100'
smoke=false
max_ratio=5
budget=1.4
# Requests of a stream.
stream_requests=100

cd "$(dirname "$0")/../.."
review=loadtest/review-12k.json

while [ $# -gt 0 ]; do
    case $1 in
        --smoke) smoke=true rounds=1 seconds=1 ;;
        --help | -h) usage && exit 0 ;;
        --rounds | --seconds | --callers | --review)
            [ $# -ge 2 ] || die "$1 needs a value"
            case $1 in
                --rounds) rounds=$2 ;;
                --seconds) seconds=$2 ;;
                --callers) callers=$2 ;;
                --review) review=$2 ;;
            esac
            shift
            ;;
        *) usage >&2 && exit 64 ;;
    esac
    shift
done

command -v h2load >/dev/null || die "h2load is missing: apt-get install nghttp2-client"
ghz=${GHZ:-${XDG_CACHE_HOME:-$HOME/.cache}/injectd-ci/tools/bin/ghz}
if [ ! -x "$ghz" ]; then
    . .ci/tools.sh
    GOBIN=$(dirname "$ghz") go install "github.com/bojand/ghz/cmd/ghz@$GHZ_VERSION"
fi

work=$(mktemp -d)
pid=
clean_up() {
    if [ -n "$pid" ]; then
        kill "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    fi
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

# server NAME: the address that injectd printed.
server() {
    sed -n "s/^$1 server: \([^ ]*\).*/\1/p" "$work/out"
}

# per_answer TICKS ANSWERS SECONDS: prints "answers/s CPU-µs/answer".
per_answer() {
    [ "$1" -gt 0 ] || die "too few calls to measure"
    awk -v ticks="$1" -v done="$2" -v seconds="$3" -v per_second="$(getconf CLK_TCK)" 'BEGIN {
        if (done == 0) exit 1
        printf "%.0f %.2f\n", done / seconds, ticks / per_second * 1000000 / done }'
}

# h2 CALLERS ARGUMENT…: runs h2load with a connection for each caller.
h2() {
    connections=$1
    shift
    before=$(cpu_ticks "$pid")
    timeout 600 h2load -t 1 -c "$connections" -m 1 "$@" >"$work/h2load" ||
        die "h2load failed: $(tail -n 3 "$work/h2load")"
    ticks=$(($(cpu_ticks "$pid") - before))
    answers=$(awk '
        /^requests:/ { done = $6; bad = $10 + $12 + $14 }
        /^status codes:/ { good = $3 }
        END { if (bad > 0 || good < done) exit 1; print done }' "$work/h2load") ||
        die "requests failed: $(grep -E '^(requests|status)' "$work/h2load")"
}

# webhook CALLERS EXTENT…: reviews over HTTP/1.1, as an API server calls a Service.
webhook() {
    webhook_h2 "$@" --h1
}

# webhook_h2 CALLERS EXTENT…: reviews over HTTP/2, as gRPC does and as an API server calls a URL.
webhook_h2() {
    connections=$1
    shift
    h2 "$connections" "$@" -d "$review" -H 'content-type: application/json' \
        "https://$webhook_addr/?timeout=10s"
    per_answer "$ticks" "$answers" "$(h2_seconds)"
}

# call CALLERS EXTENT…: unary calls by the webhook's client, so that only the server differs.
call() {
    connections=$1
    shift
    answered=$(answered_by_grpc)
    h2 "$connections" "$@" -d "$work/call" -H 'content-type: application/grpc' -H 'te: trailers' \
        "https://$grpc_addr/injectd.v1.Injector/Inject"
    # The status of a call is in its trailers, which h2load does not check.
    answered=$(($(answered_by_grpc) - answered))
    [ "$answered" -ge "$answers" ] || die "$answers calls were made, $answered were injected"
    per_answer "$ticks" "$answers" "$(h2_seconds)"
}

h2_seconds() {
    awk '/^finished in/ { sub(",", "", $3); print ($3 ~ /ms$/ ? $3 / 1000 : $3 + 0) }' "$work/h2load"
}

# grpc unary|stream CALLERS EXTENT…
grpc() {
    kind=$1
    connections=$2
    shift 2
    before=$(cpu_ticks "$pid")
    answered=$(answered_by_grpc)
    timeout 600 "$ghz" --config "loadtest/ghz/$kind.json" --data-file "$work/$kind.json" \
        --concurrency "$connections" --connections "$connections" "$@" \
        --format summary "$grpc_addr" >"$work/ghz" 2>&1 || die "ghz failed: $(tail -n 3 "$work/ghz")"
    ticks=$(($(cpu_ticks "$pid") - before))
    answered=$(($(answered_by_grpc) - answered))
    # Every call must be OK, and each of its requests injected. One exception: the gRPC library of
    # this ghz (grpc-go 1.34) counts a larger window only after the server may use it, and then ends
    # a stream itself, about one in some hundred.
    counts=$(awk '
        /^ *Count:/ { count = $2 }
        $1 == "[OK]" { ok = $2 }
        /data exceeding the limit|desc = unexpected EOF/ { sub(/^ *\[/, ""); broken += $1 + 0 }
        END {
            if (count == 0 || ok + broken != count || broken > 1 + count / 50) exit 1
            print ok, count
        }' "$work/ghz") || die "calls failed: $(sed -n '/^Status code/,$p' "$work/ghz")"
    least=${counts% *} most=${counts#* }
    if [ "$kind" = stream ]; then
        least=$((least * stream_requests)) most=$((most * stream_requests))
    elif [ "$least" -ne "$most" ]; then
        die "calls failed: $(sed -n '/^Status code/,$p' "$work/ghz")"
    fi
    if [ "$answered" -lt "$least" ] || [ "$answered" -gt "$most" ]; then
        die "$least to $most requests were sent, $answered were injected"
    fi
    answers=$answered
    per_answer "$ticks" "$answers" "$(awk '/^ *Total:/ {
        print $3 == "ms" ? $2 / 1000 : $2 }' "$work/ghz")"
}

# answered_by_grpc: prints the number of pods that the gRPC server has injected so far.
answered_by_grpc() {
    python3 - "$admin_addr" <<'PYTHON'
import re, sys, urllib.request
text = urllib.request.urlopen(f"http://{sys.argv[1]}/metrics").read().decode()
lines = re.findall(r"^injectd_reviews_total\{(.*)\} (\d+)$", text, re.MULTILINE)
wanted = 'server="grpc"', 'verdict="injected"'
print(sum(int(value) for labels, value in lines if all(label in labels for label in wanted)))
PYTHON
}

if [ -z "${INJECTD:-}" ]; then
    cargo build --quiet --release --bin injectd
    INJECTD=${CARGO_TARGET_DIR:-target}/release/injectd
fi
"$INJECTD" review "$review" | grep -q '"patch":' || die "injectd does not inject the pod of $review"
python3 loadtest/ghz/data.py "$review" body >"$work/call"
python3 loadtest/ghz/data.py "$review" 1 >"$work/unary.json"
python3 loadtest/ghz/data.py "$review" "$stream_requests" >"$work/stream.json"

load_average=$(cut -d ' ' -f 1 /proc/loadavg)
# The server writes its log at the default level; the test discards it.
"$INJECTD" serve --standalone --addr 127.0.0.1:0 --metrics-addr 127.0.0.1:0 --grpc-addr 127.0.0.1:0 \
    >"$work/out" 2>/dev/null &
pid=$!
tries=0
until grep -q '^try it' "$work/out"; do
    kill -0 "$pid" 2>/dev/null || die "injectd exited during start"
    [ $tries -lt 200 ] || die "injectd printed no addresses"
    tries=$((tries + 1))
    sleep 0.05
done
webhook_addr=$(server webhook) grpc_addr=$(server gRPC) admin_addr=$(server admin)

webhook 1 -n 2000 >/dev/null
call 1 -n 2000 >/dev/null
grpc unary 1 --total 2000 >/dev/null
grpc stream 1 --total 20 >/dev/null

for count in $callers; do
    round=0
    while [ "$round" -lt "$rounds" ]; do
        round=$((round + 1))
        webhook "$count" -D "$seconds" >>"$work/webhook.$count"
        webhook_h2 "$count" -D "$seconds" >>"$work/webhook_h2.$count"
        call "$count" -D "$seconds" >>"$work/call.$count"
        grpc unary "$count" --duration "${seconds}s" >>"$work/unary.$count"
        grpc stream "$count" --duration "${seconds}s" >>"$work/stream.$count"
        paste -d ' ' "$work/webhook.$count" "$work/call.$count" "$work/unary.$count" \
            "$work/stream.$count" "$work/webhook_h2.$count" | tail -n 1 |
            awk -v round="$round" -v count="$count" '{
                printf "%d callers, round %d: webhook %d/s, %.1f µs, ", count, round, $1, $2
                printf "over HTTP/2 %d/s, %.1f µs, ratio %.2f; ", $9, $10, $10 / $2
                printf "call %d/s, %.1f µs, ratio %.2f; ", $3, $4, $4 / $2
                printf "unary %d/s, %.1f µs, ratio %.2f; ", $5, $6, $6 / $2
                printf "stream %d/s, %.1f µs, ratio %.2f\n", $7, $8, $8 / $2 }'
    done
done

model=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
echo "machine: $(nproc) cores, ${model:-unknown}; clients on the same cores;" \
    "load average $load_average before"
echo "load: object of a review of $(wc -c <"$review") bytes, TLS 1.3, $rounds × $seconds s each;" \
    "webhook: h2load over HTTP/1.1 and HTTP/2; call: h2load over gRPC; unary and stream: ghz," \
    "$stream_requests requests a stream"
printf '%-8s %-10s %12s %16s %8s %14s\n' callers server answers/s 'CPU µs/answer' ratio 'to HTTP/2'

# ratio KIND BASELINE: prints the median of the rounds.
ratio() {
    paste -d ' ' "$work/$2.$count" "$work/$1.$count" | awk '{ printf "%.3f\n", $4 / $2 }' >"$work/ratios"
    median 1 "$work/ratios" %.2f
}

worst=0
for count in $callers; do
    for kind in webhook webhook_h2 call unary stream; do
        to_webhook=$(ratio "$kind" webhook)
        printf '%-8s %-10s %12s %15s %8s %14s\n' "$count" "$kind" \
            "$(median 1 "$work/$kind.$count" %.0f)" "$(median 2 "$work/$kind.$count" %.1f)" \
            "$to_webhook" "$(ratio "$kind" webhook_h2)"
        case $kind in webhook*) continue ;; esac
        worst=$(awk -v a="$worst" -v b="$to_webhook" 'BEGIN { print (a > b ? a : b) }')
    done
done
echo "CPU of gRPC ÷ webhook: $worst at most (medians of rounds; budget $budget)"

if $smoke && awk -v ratio="$worst" -v most="$max_ratio" 'BEGIN { exit !(ratio > most) }'; then
    die "the ratio is above $max_ratio"
fi
