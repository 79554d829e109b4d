#!/bin/sh
# `deep` with ranges replayed as a whole, by configuration: its regions carry counters.
# Usage, from the repository's root: tests/live/h200_deep_ranges.sh OUT PROGRAM
# Leaves OUT/summary.txt with PASS or FAIL for every claim, and what each run printed.
set -u
if [ $# -ne 2 ]; then
    sed -n '2,4s/^# //p' "$0" >&2
    exit 2
fi
mkdir -p "$1"
out=$(realpath "$1")
program=$(realpath "$2")
here=$(dirname "$0")
work=$(mktemp -d)
export LLM_PERF_DATA_DIR="$work/data"
cli=pipeline.ncu.ncu_cli
# run NAME ARGUMENT...: a run whose regions must have counted metrics.
run() {
    name=$1
    shift
    "$program" deep --mode light --out "$work/$name" "$@" >"$out/$name.txt" 2>&1
    code=$?
    cp "$work/$name/metrics.json" "$out/$name.json" 2>/dev/null
    if [ "$code" -eq 0 ] && python3 - "$work/$name/metrics.json" <<'PY'; then
import json, sys
regions = json.load(open(sys.argv[1]))["regions"]
counted = [region["path"] for region in regions if region["metrics"]]
print(counted)
assert counted, regions
PY
        echo "PASS $name" | tee -a "$out/summary.txt"
    else
        echo "FAIL $name: exit $code" | tee -a "$out/summary.txt"
        tail -12 "$out/$name.txt" | tee -a "$out/summary.txt"
    fi
}
run range "$cli.replay_mode=range" "$cli.nvtx.include=[A/, B/]" -- python3 "$here/regions_abc.py"
run app-range --model decoder-tiny --weights synthetic infer.max_new_tokens=2 infer.seq_len=64 --stage prefill \
    "$cli.replay_mode=app-range"
rm -rf "$work"
! grep -q '^FAIL' "$out/summary.txt"
