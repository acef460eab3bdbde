#!/bin/sh
# usage: e2e/programs.sh AUDIT_LOG PROGRAM...
#
# Runs one program after the other; fails if one does. Started by run.sh, inside of kube-lab.
set -u
log=$1
shift
pid=
code=0
trap 'trap - INT TERM; [ -z "$pid" ] || { kill "$pid"; wait "$pid"; }; exit 143' INT TERM
for program; do
    python3 -B "$program" --audit-log "$log" &
    pid=$!
    wait "$pid" || code=1
    pid=
done
exit "$code"
