#!/bin/sh
# usage: e2e/grpc.sh [PART…]
#
# Runs grpc_server.py, or parts of it, against a Kubernetes API server of its own (kube-lab). Builds
# missing clients first: a Python with grpcio, one in Go, and grpcurl.
#
#   $KUBE_RELEASE, $KUBE_LAB, $INJECTD  as for lab.sh
#   $GRPCURL  grpcurl [${XDG_CACHE_HOME:-~/.cache}/injectd-ci/tools/bin/grpcurl]
#
# Needs go, python3 with venv, openssl and curl.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
cache=${XDG_CACHE_HOME:-$HOME/.cache}/injectd-ci

if [ -z "${INJECTD:-}" ]; then
    INJECTD=${CARGO_TARGET_DIR:-$root/target}/release/injectd
    [ -x "$INJECTD" ] || (cd "$root" && cargo build --release --locked)
fi

lab=${KUBE_LAB:-$("$here/lab/build.sh")}

GRPCURL=${GRPCURL:-$cache/tools/bin/grpcurl}
if [ ! -x "$GRPCURL" ]; then
    GOBIN=$(dirname "$GRPCURL") go install github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.4
fi

python=$cache/venv/bin/python
if ! "$python" -c 'import grpc, grpc_tools' 2>/dev/null; then
    python3 -m venv "$cache/venv"
    "$cache/venv/bin/pip" install --quiet -r "$here/clients/python/requirements.txt"
fi

dir=$(mktemp -d)
pid=
trap 'rm -rf "$dir"' EXIT
trap 'trap - INT TERM; [ -z "$pid" ] || { kill "$pid"; wait "$pid" || true; }; exit 130' INT TERM

# The Java package comes from the proto; Go and Python are generated below.
if command -v protoc >/dev/null; then
    mkdir "$dir/java"
    well_known=$("$python" -c 'import grpc_tools; print(grpc_tools.__path__[0])')/_proto
    protoc -I "$root/proto" -I "$well_known" --java_out="$dir/java" injectd/v1/injectd.proto
    [ -s "$dir/java/dev/injectd/v1/InjectRequest.java" ]
    echo "ok protoc generates Java"
else
    echo "grpc: skipped: Java, which needs protoc"
fi

GO_CLIENT=$dir/go-client
(cd "$here/clients/go" && go generate && go build -o "$GO_CLIENT" .)

# Many connections are refused on purpose: no log of them.
GRPC_VERBOSITY=NONE
export INJECTD GRPCURL GO_CLIENT GRPC_VERBOSITY
"$lab" up "$dir/lab" -- "$python" -B "$here/grpc_server.py" "$@" &
pid=$!
wait "$pid"
