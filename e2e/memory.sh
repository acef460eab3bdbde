#!/bin/sh
# usage: e2e/memory.sh [--short] [--annotations N] [--replica-sets N] [--injections N]
#
# Measures the memory of injectd beside a real API server with thousands of objects, and reviews
# that need a lookup in that server, or wait while it hangs (memory.py). Takes less than seven
# minutes and 4 GiB, --short less than one minute. Variables: lab.sh.
set -eu
LAB_FLAGS="-memory=3GiB" exec "$(dirname "$0")/lab.sh" memory.py "$@"
