#!/bin/sh
# usage: e2e/storm.sh [--short] [--policy Fail | Ignore]
#
# Two replicas behind a Service in a real cluster: pods are created all the time, and one fault
# follows another (storm.py); once with failurePolicy Fail, once with Ignore. Takes less than four
# minutes, --short less than 90 seconds. Variables: lab.sh.
set -eu
exec "$(dirname "$0")/lab.sh" storm.py "$@"
