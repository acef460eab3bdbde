#!/bin/sh
# usage: e2e/lab/tables.sh
#
# Writes the tables of crates/webhooks/src/check/builtin from the releases of Kubernetes in releases/:
# resources.txt and fields.txt (tables/ says what is in them). Needs Go, which downloads the modules
# and compiles some 1,500 packages for each release: the first time takes half an hour on two cores.
# $JOBS is the number of packages at a time [2].
set -eu
cd "$(dirname "$0")"
out=../../crates/webhooks/src/check/builtin
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for mod in releases/*.mod; do
    go build -modfile="$mod" -trimpath -p "${JOBS:-2}" -o "$folder/tables" ./tables
    kube=$(go list -modfile="$mod" -m -f '{{.Dir}}' k8s.io/kubernetes)
    "$folder/tables" read "$kube/api/discovery" >"$folder/$(basename "$mod" .mod).json"
done
"$folder/tables" write "$out" "$folder"/*.json
