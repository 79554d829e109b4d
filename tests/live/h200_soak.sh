#!/bin/sh
# A program recorded by the collector for minutes: memory, dropped records, growth of the file. The same program runs beside it
# without the collector, to tell whose memory grows.
# Usage, from the repository's root: tests/live/h200_soak.sh OUT PROGRAM MINUTES
#   OUT      folder for what comes back; made if need be
#   PROGRAM  the llm-perf to run
#   MINUTES  how long; the import afterwards takes some seconds for each
# Leaves OUT/summary.txt with PASS or FAIL for every claim and a row for every minute and the rows
# themselves, rows.jsonl and plain.jsonl.
set -u
if [ $# -ne 3 ]; then
    sed -n '2,9s/^# //p' "$0" >&2
    exit 2
fi
mkdir -p "$1"
out=$(realpath "$1")
program=$(realpath "$2")
minutes=$3
soak=$(realpath "$(dirname "$0")")/soak.py
work=$(mktemp -d)
export LLM_PERF_DATA_DIR="$work/data"

python3 "$soak" run "$minutes" "$out/plain.jsonl" >"$out/plain.txt" 2>&1 &
# The plain run that every measurement starts with ends at once; the recorded one has the library in its environment.
# shellcheck disable=SC2016
"$program" profile --collector inject --out "$work/run" --runs 1 --warmup 0 -- \
    sh -c 'if [ -n "${CUDA_INJECTION64_PATH:-}" ]; then exec python3 "$@"; fi' sh "$soak" run "$minutes" "$out/rows.jsonl" \
    >"$out/profile.txt" 2>&1
code=$?
wait
{
    if [ "$code" -eq 0 ]; then echo "PASS profile: exit 0"; else echo "FAIL profile: exit $code" && tail -15 "$out/profile.txt"; fi
    ls -l "$work"/run/trace
    python3 "$soak" check "$out/rows.jsonl" "$out/plain.jsonl" "$work/run/metrics.json" || echo "FAIL soak"
} >"$out/summary.txt" 2>&1
cat "$out/summary.txt"
! grep -q '^FAIL' "$out/summary.txt"
