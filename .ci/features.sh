#!/bin/sh
# Fails if a package of the binary has more features beside tests, examples and benches: cargo would build it,
# and all that is built with it, a second time.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

features() {
  # The packages of build scripts and macros are listed as well: prost-derive has an either of its own.
  cargo tree --locked --prefix none --format '{p} [{f}]' "$@" |
    sed 's/ (\*)$//; s/ (proc-macro)//; s| (/[^)]*)||' | grep -v '^either ' | sort -u
}

features --package injectd --edges normal >"$folder/binary"
features --edges normal,build,dev >"$folder/all"
differ=$(comm -23 "$folder/binary" "$folder/all")
[ -z "$differ" ] || {
  echo "these packages have other features in tests; ask for those in Cargo.toml too:"
  echo "$differ"
  exit 1
}
