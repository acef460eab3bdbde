#!/bin/sh
# usage: post-render.sh [IMAGE] <MANIFESTS >MANIFESTS
#
# Reads Linkerd's manifests and prints them with IMAGE [default: that of image.yaml] for the
# proxy-injector; fails if they have no proxy-injector. For `helm --post-renderer`, and for
# `linkerd install | post-render.sh`.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cp "$here/kustomization.yaml" "$here/image.yaml" "$dir"
if [ $# -gt 0 ]; then
    sed "s|image: .*|image: $1|" "$here/image.yaml" >"$dir/image.yaml"
fi
cat >"$dir/linkerd.yaml"
kubectl kustomize "$dir"
