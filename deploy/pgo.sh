#!/bin/sh
# The release build, optimized by profile: an instrumented injectd answers reviews for some seconds,
# then injectd is built again for what it was seen to do (PGO).
set -eu

usage() {
    cat <<'TEXT'
usage: deploy/pgo.sh [FILE]

  FILE            where the binary goes      (pgo/injectd in cargo's target folder)

  $LLVM_PROFDATA  llvm-profdata of the LLVM that rustc has (rustup's component llvm-tools, else
                  llvm-profdata-N of the Debian package llvm-N)

Builds everything twice: half an hour on two cores, less where $CARGO_TARGET_DIR is kept. $RUSTFLAGS
does not count. Needs python3, and h2load from the Debian package nghttp2-client.
TEXT
}

die() {
    echo "pgo: $*" >&2
    exit 1
}

case $#:${1-} in
    1:--help | 1:-h) usage && exit 0 ;;
    0: | 1:[!-]*) ;;
    *) usage >&2 && exit 64 ;;
esac
# FILE and programs are given from the caller's folder.
absolute() {
    case $1 in
        '' | /*) echo "$1" ;;
        *) echo "$PWD/$1" ;;
    esac
}
out=$(absolute "${1-}")
[ -z "$out" ] || [ -d "$(dirname "$out")" ] || die "there is no folder for $out"

for tool in rustc cargo python3 h2load; do
    command -v "$tool" >/dev/null || die "$tool is missing (h2load: apt-get install nghttp2-client)"
done
host=$(rustc -vV | sed -n 's/^host: //p')
llvm=$(rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
if [ -n "${LLVM_PROFDATA:-}" ]; then
    profdata=$(command -v "$LLVM_PROFDATA") || die "LLVM_PROFDATA: there is no $LLVM_PROFDATA"
    profdata=$(absolute "$profdata")
else
    profdata=$(rustc --print sysroot)/lib/rustlib/$host/bin/llvm-profdata
    [ -x "$profdata" ] || profdata=$(command -v "llvm-profdata-$llvm") ||
        die "llvm-profdata of LLVM $llvm is missing: rustup component add llvm-tools," \
            "or apt-get install llvm-$llvm"
fi

cd "$(dirname "$0")/.."
mkdir -p "${CARGO_TARGET_DIR:-target}/pgo"
work=$(cd "${CARGO_TARGET_DIR:-target}/pgo" && pwd)
out=${out:-$work/injectd}

# build FOLDER FLAG: with a target named, the flag is not for build scripts and macros.
build() {
    CARGO_ENCODED_RUSTFLAGS=$2 cargo build --release --locked --features profiling --bin injectd \
        --target "$host" --target-dir "$work/$1"
}

instrumented=$work/instrumented/$host/release/injectd
profile=$work/injectd.profdata
build instrumented "-Cprofile-generate=$work/raw"
# What was counted by another program, or by other work, is not for this one.
trained=$(cat "$instrumented" loadtest/load/*.py loadtest/ghz/data.py loadtest/review-12k.json |
    sha256sum)
if [ ! -f "$work/trained" ] || [ "$(cat "$work/trained")" != "$trained" ]; then
    # Cargo does not see that a profile has changed: libraries would keep the one before.
    rm -rf "$work/raw" "$work/optimized" "$work/trained"
    INJECTD=$instrumented PYTHONDONTWRITEBYTECODE=1 python3 loadtest/load/train.py
    "$profdata" merge --output "$profile" "$work/raw"
    echo "$trained" >"$work/trained"
fi
build optimized "-Cprofile-use=$profile"
cp --remove-destination "$work/optimized/$host/release/injectd" "$out"
echo "optimized by profile: $out"
