#!/bin/sh
# usage: deploy/same-answers.sh PLAIN OPTIMIZED
#
# Fails unless both binaries answer all recorded reviews of Linkerd ($INJECTD_CORPUS) alike.
set -eu
plain=${1:?the first argument is a binary}
optimized=${2:?the second argument is a binary}
corpus=${INJECTD_CORPUS:?is the folder with the recorded reviews}

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
zcat "$corpus"/linkerd/*/cases.jsonl.gz |
    python3 -c 'import json, sys
for line in sys.stdin:
    print(json.loads(line).get("request") or "")' >"$folder/reviews"
# answers BINARY NAME. Exit code 1: some recordings are not reviews.
answers() {
    "$1" review "$folder/reviews" >"$folder/$2" 2>"$folder/$2.err" || [ $? = 1 ]
}
answers "$plain" plain
answers "$optimized" optimized
[ -s "$folder/plain" ]
cmp "$folder/plain" "$folder/optimized"
cmp "$folder/plain.err" "$folder/optimized.err"
echo "$(wc -l <"$folder/optimized") answers, the same as without a profile"
