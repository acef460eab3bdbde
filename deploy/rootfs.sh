#!/bin/sh
# The files of the image: the binary, the libraries it is linked to, and their licences.
set -eu

usage() {
    cat <<'TEXT'
usage: deploy/rootfs.sh BINARY FOLDER

  BINARY          injectd, built on this machine
  FOLDER          new folder for the files

Takes the libraries of this machine, which must be Debian or Ubuntu. Copies the binary without
debug information, and keeps the names of its functions: CPU profiles and panics need them.
TEXT
}

die() {
    echo "rootfs: $*" >&2
    exit 1
}

case $#:${1-} in
    1:--help | 1:-h) usage && exit 0 ;;
    2:[!-]*) ;;
    *) usage >&2 && exit 64 ;;
esac
binary=$1
root=$2
mkdir "$root"
here=$(cd "$(dirname "$0")" && pwd)

for tool in dpkg-query ldd strip; do
    command -v "$tool" >/dev/null || die "$tool is missing"
done

strip --strip-debug -o "$root/injectd" "$binary"
cp "$here/../LICENSE" "$root"
# The loader looks for the libraries at the paths where they are here.
libraries=$(ldd "$root/injectd" | grep -o '/[^ ]*')
echo "$libraries" | xargs cp --parents --dereference -t "$root"

# Scanners for vulnerabilities find the release of Debian in os-release, and the packages of the
# libraries in status.d.
packages='libc6 libgcc-s1'
mkdir -p "$root/var/lib/dpkg/status.d"
for package in $packages; do
    dpkg-query --status "$package" >"$root/var/lib/dpkg/status.d/$package"
    cp --parents --dereference -t "$root" "/usr/share/doc/$package/copyright"
done
cp --parents --dereference -t "$root" /etc/os-release
for library in $libraries; do
    # shellcheck disable=SC2086 # several packages
    dpkg-query --listfiles $packages | grep -q "/$(basename "$library")\$" ||
        die "$library is in none of the packages $packages: add its package to \$packages"
done

# jemalloc is in the binary only with the feature of that name.
if grep -q '<jemalloc>' "$root/injectd"; then
    crates=${CARGO_HOME:-$HOME/.cargo}/registry/src
    for copying in "$crates"/*/tikv-jemalloc-sys-*/jemalloc/COPYING; do
        [ -f "$copying" ] || die "the licence of jemalloc is missing: no $copying"
    done
    mkdir "$root/usr/share/doc/jemalloc"
    cp "$copying" "$root/usr/share/doc/jemalloc/copyright"
fi
chmod -R u=rwX,go=rX "$root"
