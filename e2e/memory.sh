#!/bin/sh
# usage: e2e/memory.sh [--short] [--annotations N] [--replica-sets N] [--injections N]
#
# Memory of injectd beside a real API server with very many objects, and what happens when that
# server has to be asked for each review, or does not answer (memory.py). Takes less than seven
# minutes and 4 GiB, --short less than one minute. Variables: lab.sh.
set -eu
LAB_FLAGS="-memory=3GiB" exec "$(dirname "$0")/lab.sh" memory.py "$@"
