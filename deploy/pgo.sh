#!/bin/sh
# The release build, optimized by profile (PGO): an instrumented injectd answers reviews for some
# seconds, then injectd is built again with the counts as the profile.
set -eu

usage() {
    cat <<'TEXT'
usage: deploy/pgo.sh [FILE]

  FILE            file for the binary        (pgo/injectd in cargo's target folder)

  $LLVM_PROFDATA  llvm-profdata of rustc's LLVM (that of rustup's component llvm-tools, else
                  llvm-profdata-N of the Debian package llvm-N)

Builds everything twice: half an hour on two cores, less if $CARGO_TARGET_DIR has an earlier build.
Ignores $RUSTFLAGS. Needs make, and h2load from the Debian package nghttp2-client. With cargo-auditable,
the binary lists the crates that it is built from.
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
# Relative paths are relative to the caller's folder.
absolute() {
    case $1 in
        '' | /*) echo "$1" ;;
        *) echo "$PWD/$1" ;;
    esac
}
out=$(absolute "${1-}")
[ -z "$out" ] || [ -d "$(dirname "$out")" ] || die "the folder of $out does not exist"

for tool in rustc cargo make h2load; do
    command -v "$tool" >/dev/null || die "$tool is missing (h2load: apt-get install nghttp2-client)"
done
host=$(rustc -vV | sed -n 's/^host: //p')
llvm=$(rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
if [ -n "${LLVM_PROFDATA:-}" ]; then
    profdata=$(command -v "$LLVM_PROFDATA") || die "LLVM_PROFDATA: $LLVM_PROFDATA is not a program"
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

# Kernels for arm64 have pages of up to 64 KiB; jemalloc must know the largest.
case $host in
    aarch64-*) export JEMALLOC_SYS_WITH_LG_PAGE=16 ;;
esac

# build FOLDER FLAG COMMAND [ARG...]: builds injectd, and what the ARGs name. With --target, cargo does not
# use the flag for build scripts and macros. COMMAND, if not empty, is one of cargo that wraps `build`.
build() {
    folder=$1 flag=$2 command=$3
    shift 3
    CARGO_ENCODED_RUSTFLAGS=$flag cargo ${command:+"$command"} build --release --locked --bin injectd "$@" \
        --features profiling,jemalloc --target "$host" --target-dir "$work/$folder"
}

instrumented=$work/instrumented/$host/release
profile=$work/injectd.profdata
# The client is built with injectd's packages, and so instrumented as well.
build instrumented "-Cprofile-generate=$work/raw" "" --example load
# The counts of another program, or of another training, are not valid for this one.
trained=$(cat "$instrumented/injectd" loadtest/load/*.rs loadtest/istio/* crates/testkit/src/istio/* crates/templates-mesh/benches/*.yaml \
    crates/testkit/src/reviews.rs crates/testkit/src/reviews/* crates/core/tests/golden/pod-of-*/object.yaml \
    crates/harness/src/*.rs crates/harness/src/*/*.rs loadtest/review-12k.json |
    sha256sum)
if [ ! -f "$work/trained" ] || [ "$(cat "$work/trained")" != "$trained" ]; then
    # Cargo does not notice a changed profile: libraries would keep the old one.
    rm -rf "$work/raw" "$work/optimized" "$work/trained"
    # Without the counts of the client, which starts injectd without this variable.
    LLVM_PROFILE_FILE=/dev/null INJECTD=$instrumented/injectd "$instrumented/examples/load" train
    "$profdata" merge --output "$profile" "$work/raw"
    echo "$trained" >"$work/trained"
fi
# Scanners for vulnerabilities read the list of crates.
auditable=
! command -v cargo-auditable >/dev/null || auditable=auditable
build optimized "-Cprofile-use=$profile" "$auditable"
cp --remove-destination "$work/optimized/$host/release/injectd" "$out"
echo "optimized by profile: $out"
