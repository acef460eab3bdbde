#!/bin/sh
# usage: e2e/lab/release.sh VERSION
#
# Writes releases/1.NN.mod and releases/1.NN.sum for a release of Kubernetes, such as v1.37.2: the
# etcd server that the release requires, and the published form of the modules that it replaces.
set -eu
version=${1:?usage: release.sh VERSION, such as v1.37.2}
kube=$(echo "$version" | sed -n 's/^v\(1\.[0-9]*\)\.[0-9]*$/\1/p')
[ -n "$kube" ] || { echo "lab: $version is not a version such as v1.37.2" >&2; exit 64; }
cd "$(dirname "$0")"

upstream=$(go mod download -json "k8s.io/kubernetes@$version" | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
staging=v0.${version#v1.}
etcd=$(sed -n 's|^.*go.etcd.io/etcd/client/v3 \(v[^ ]*\).*|\1|p' "$upstream")
mod=releases/$kube.mod
{
    echo "// Written by release.sh $version."
    echo "module kube-lab"
    sed -n '/^go /p; /^godebug /p' "$upstream"
    echo "require ("
    echo "go.etcd.io/etcd/server/v3 $etcd"
    for module in apimachinery client-go component-base; do
        echo "k8s.io/$module $staging"
    done
    echo "k8s.io/kubernetes $version"
    echo ")"
    # k8s.io/kubernetes requires these at v0.0.0 and replaces them by folders. Go reads no
    # replacements of a dependency.
    echo "replace ("
    sed -n "s|^.*\(k8s.io/[^ ]*\) => ./staging/src/.*|\1 => \1 $staging|p" "$upstream"
    echo ")"
} >"$mod"
go mod tidy -modfile="$mod"
