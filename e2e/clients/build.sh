#!/bin/sh
# usage: e2e/clients/build.sh python | grpcurl | go FOLDER | java FOLDER
#
# Builds a client of the gRPC server and prints its path:
#
#   python   a Python with grpcio, for python/inject.py; kept in the cache
#   grpcurl  [$GRPCURL]; kept in the cache
#   go       the program of go/
#   java     the folder with what protoc generates from the proto; there is no program
#
# The cache is ${XDG_CACHE_HOME:-~/.cache}/injectd-ci. Exit code 69: what it needs is not there; the last
# line of standard error says what.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$(dirname "$here")")
cache=${XDG_CACHE_HOME:-$HOME/.cache}/injectd-ci
# shellcheck source=.ci/tools.sh
. "$root/.ci/tools.sh"

lacks() {
    echo "$1" >&2
    exit 69
}

needs() {
    command -v "$1" >/dev/null || lacks "it needs $1"
}

python() {
    python=$cache/venv/bin/python
    if ! "$python" -c 'import grpc, grpc_tools' 2>/dev/null; then
        needs python3
        python3 -m venv "$cache/venv" >&2 || lacks "python3 has no venv"
        "$cache/venv/bin/pip" install --quiet -r "$here/python/requirements.txt" >&2 ||
            lacks "pip cannot install grpcio"
    fi
    echo "$python"
}

case ${1:-} in
    python) python ;;
    grpcurl)
        grpcurl=${GRPCURL:-$cache/tools/bin/grpcurl}
        if [ ! -x "$grpcurl" ]; then
            needs go
            GOBIN=$(dirname "$grpcurl") \
                go install "github.com/fullstorydev/grpcurl/cmd/grpcurl@$GRPCURL_VERSION" >&2 ||
                lacks "go cannot install grpcurl"
        fi
        echo "$grpcurl"
        ;;
    go)
        needs go
        cd "$here/go"
        go mod download >&2 || lacks "go cannot download the client's modules"
        go generate >&2
        go build -o "$2/go-client" . >&2
        echo "$2/go-client"
        ;;
    java)
        needs protoc
        # The messages that Protocol Buffers bring come with grpcio-tools.
        python=$(python)
        known=$("$python" -c 'import grpc_tools; print(grpc_tools.__path__[0])')/_proto
        protoc -I "$root/proto" -I "$known" --java_out="$2" injectd/v1/injectd.proto >&2
        echo "$2"
        ;;
    *)
        sed -n 2,12p "$0" >&2
        exit 64
        ;;
esac
