#!/bin/sh
# The image without a daemon: the last stage of deploy/Dockerfile, from a binary that is already
# built. Then runs the image as a kubelet confines it.
set -eu

usage() {
    cat <<'TEXT'
usage: deploy/image.sh BINARY [FILE]

  BINARY          injectd, built on this machine: by deploy/pgo.sh, or cargo build --release
  FILE            OCI archive to write     (none: the image is only checked)

Needs root, and buildah from the Debian package buildah. Takes the libraries of this machine. Prints
the size of the image and its configuration.
TEXT
}

die() {
    echo "image: $*" >&2
    exit 1
}

case $#:${1-} in
    1:--help | 1:-h) usage && exit 0 ;;
    [12]:[!-]*) ;;
    *) usage >&2 && exit 64 ;;
esac
[ "$(id -u)" = 0 ] || die "needs root, to run the image in a root filesystem of its own"
for tool in buildah setpriv unshare; do
    command -v "$tool" >/dev/null || die "$tool is missing (buildah: apt-get install buildah)"
done
binary=$(realpath "$1")
top=$(cd "$(dirname "$0")/.." && pwd)

work=$(mktemp -d)
# A store of its own: no images of this machine are read or changed.
bud() { buildah --root "$work/store" --runroot "$work/run" --storage-driver vfs "$@"; }
cleanup() {
    bud umount --all >/dev/null 2>&1 || true
    rm -rf "$work"
}
trap cleanup EXIT
archive=${2:-$work/injectd.tar}
archive=$(realpath "$archive")

"$top/deploy/rootfs.sh" "$binary" "$work/rootfs"
mkdir "$work/builder"
mv "$work/rootfs" "$work/builder/image"

# Without git, as in an unpacked archive, the commit is unknown.
commit=$(git -C "$top" rev-parse HEAD 2>/dev/null) || commit=unknown
seconds=$(git -C "$top" log -1 --format=%ct 2>/dev/null) || seconds=0
rm -f "$archive"
# The folder takes the place of the stage `builder`, which is not run: its image is any.
bud build --quiet --isolation chroot --format oci --identity-label=false \
    --disable-compression=false --file "$top/deploy/Dockerfile" \
    --build-context "builder=$work/builder" \
    --build-arg BUILDER=scratch \
    --build-arg VERSION="$("$binary" --version | sed -n '1s/.* //p')" \
    --build-arg COMMIT="$commit" \
    --build-arg CREATED="$(date --utc --date="@$seconds" +%Y-%m-%dT%H:%M:%SZ)" \
    --timestamp "$seconds" --tag "oci-archive:$archive" "$work/builder" >/dev/null

# What was written is what is run.
container=$(bud from --quiet "oci-archive:$archive")
config() { bud inspect --format "{{$1}}" "$container"; }
root=$(bud mount "$container")
user=$(config .OCIv1.Config.User)
entrypoint=$(config 'index .OCIv1.Config.Entrypoint 0')
size_of() { numfmt --to=iec-i --suffix=B "$1"; }
packed=$(stat -c %s "$archive")
unpacked=$(du -sb "$root" | cut -f1)
# shellcheck disable=SC2016 # variables of the templates
cat <<TEXT
size:        $(size_of "$packed") compressed, $(size_of "$unpacked") in $(find "$root" -type f | wc -l) files
digest:      $(tar -xOf "$archive" index.json | grep -o 'sha256:[0-9a-f]*')
platform:    $(config .OCIv1.OS)/$(config .OCIv1.Architecture)
user:        $user
entrypoint:  $entrypoint
ports:       $(config 'range $port, $_ := .OCIv1.Config.ExposedPorts}}{{$port}} {{end')
labels:
$(config 'range $key, $value := .OCIv1.Config.Labels}}  {{$key}}={{$value}}
{{end')
TEXT
case $user in
    [1-9]*:[1-9]*) ;;
    *) die "the image runs as user \"$user\", not by the number of another than root" ;;
esac

# run ARGUMENT...: the entrypoint, with a read-only root and no capabilities or new privileges.
run() {
    # shellcheck disable=SC2016 # expanded by the inner shell
    unshare --mount --pid --net --fork sh -eu -c '
        root=$1 user=$2
        shift 2
        mount --bind "$root" "$root"
        mount -o remount,bind,ro,nosuid,nodev "$root"
        exec env --ignore-environment PATH="$PATH" setpriv --no-new-privs \
            chroot --userspec="$user" --groups= "$root" "$@"
    ' sh "$root" "$user" "$entrypoint" "$@"
}
run --version
injected=$(run inject - <"$top/examples/deployment.yaml" 2>/dev/null) ||
    die "the image cannot inject examples/deployment.yaml"
case $injected in
    *linkerd-proxy*) echo "runs as $user with a read-only root, and injects" ;;
    *) die "the image injects nothing into examples/deployment.yaml" ;;
esac
