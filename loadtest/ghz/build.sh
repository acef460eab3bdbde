#!/bin/sh
# usage: loadtest/ghz/build.sh
#
# Prints the path of ghz: $GHZ, else ${XDG_CACHE_HOME:-~/.cache}/injectd-ci/tools/bin/ghz, which Go builds
# if it is missing.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
ghz=${GHZ:-${XDG_CACHE_HOME:-$HOME/.cache}/injectd-ci/tools/bin/ghz}
if [ ! -x "$ghz" ]; then
    # shellcheck source=.ci/tools.sh
    . "$root/.ci/tools.sh"
    command -v go >/dev/null || {
        echo "ghz: $ghz is missing, and there is no Go to build it" >&2
        exit 69
    }
    # Not in this repository, whose modules it does not need.
    mkdir -p "$(dirname "$ghz")"
    (cd "$(dirname "$ghz")" && GOBIN=$PWD go install "github.com/bojand/ghz/cmd/ghz@$GHZ_VERSION") >&2
fi
echo "$ghz"
