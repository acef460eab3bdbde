#!/bin/sh
# usage: e2e/lab/build.sh [--kube 1.NN] [FOLDER]
#
# Builds kube-lab with a release of Kubernetes of releases/ [$KUBE_RELEASE, 1.36] into a folder
# [${XDG_CACHE_HOME:-~/.cache}/injectd-ci/kube-lab/1.NN], unless the folder has it, and prints the path
# of the binary. Needs Go, which downloads the modules.
#
# The first build compiles about 2,500 packages: some ten minutes on two cores, and 2 GiB in Go's
# cache. The next builds take seconds. $JOBS is the number of packages at a time [2].
set -eu
here=$(cd "$(dirname "$0")" && pwd)
kube=${KUBE_RELEASE:-1.36}
if [ "${1:-}" = --kube ]; then
    kube=${2:?--kube needs a release, such as 1.36}
    shift 2
fi
mod=releases/$kube.mod
if [ ! -f "$here/$mod" ]; then
    releases=$(cd "$here/releases" && ls ./*.mod | sed 's|^./||; s|.mod$||' | xargs)
    echo "lab: no release $kube of Kubernetes; there are: $releases (release.sh adds one)" >&2
    exit 64
fi
out=$(realpath -m "${1:-${XDG_CACHE_HOME:-$HOME/.cache}/injectd-ci/kube-lab/$kube}")
binary=$out/kube-lab

cd "$here"
sources=$(cat ./*.go "$mod" "releases/$kube.sum" build.sh | cksum)
if [ ! -x "$binary" ] || [ "$(cat "$out/sources" 2>/dev/null)" != "$sources" ]; then
    if ! command -v go >/dev/null; then
        echo "lab: kube-lab of Kubernetes $kube is not in $out, and without Go it cannot be built" >&2
        exit 1
    fi
    version=$(go list -modfile="$mod" -m -f '{{.Version}}' k8s.io/kubernetes)
    echo "lab: builds kube-lab of Kubernetes $version; the first time takes minutes" >&2
    # Without these variables the API server reports the version v0.0.0-master.
    x="-X k8s.io/component-base/version"
    go build -modfile="$mod" -trimpath -p "${JOBS:-2}" -o "$binary" -ldflags "-s -w \
        $x.gitVersion=$version $x.gitMajor=1 $x.gitMinor=${kube#1.} $x.gitTreeState=clean" . >&2
    echo "$sources" >"$out/sources"
fi
echo "$binary"
