#!/bin/sh
# usage: post-render.sh [IMAGE] <MANIFESTS >MANIFESTS
#
# Linkerd's manifests in, the same with IMAGE [that of image.yaml] for its proxy-injector out; fails
# if it is not among them. For `helm --post-renderer`, and for `linkerd install | post-render.sh`.
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
