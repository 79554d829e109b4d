#!/usr/bin/env bash
# Calibrates a GPU with PyTorch, then predicts operations that were left out and holds the estimates against their times.
# Usage, from the repository's root: tests/live/h200_calibrate.sh OUT [PROGRAM]
#   OUT      folder for the files; made if need be
#   PROGRAM  the llm-perf to run; target/release/llm-perf unless told
#   DEVICE   what to calibrate; cuda:0 unless set
#   NAME     its catalogue name; h200 unless set
#   QUICK    set: measure for ten seconds
# Leaves calibration.json, held.csv (measured here, another seed), predicted.csv, analyze.json, check.txt. Fails when the
# median error of GEMMs is above 10%, of attention above 15%, or an interval holds less than 75% or more than 99% of a family.
set -u
if [ $# -lt 1 ] || [ $# -gt 2 ]; then
    sed -n '2,11s/^# //p' "$0" >&2
    exit 2
fi
out=$1
program=$(realpath "${2:-target/release/llm-perf}")
device=${DEVICE:-cuda:0}
name=${NAME:-h200}
here=$(realpath "$(dirname "$0")")
root=$(realpath "$here/../..")
python=${LLM_PERF_PYTHON:-python3}
mkdir -p "$out"
out=$(realpath "$out")
export LLM_PERF_DATA_DIR=$out/data
check=$out/check.txt
: >"$check"
failed=0

begin=$(date +%s)
# shellcheck disable=SC2086
timeout 150 "$program" doctor --calibrate --device "$device" ${QUICK:+--quick} --python "$(command -v "$python")" \
    >"$out/calibrate.txt" 2>"$out/calibrate.log" || failed=1
echo "calibrate: $(($(date +%s) - begin)) s, exit $failed" | tee -a "$check"
cat "$out/calibrate.log" "$out/calibrate.txt" >>"$check"
cp "$LLM_PERF_DATA_DIR"/calibration/device-*.json "$out/calibration.json" || { cat "$check"; exit 1; }
"$program" validate "$out/calibration.json" >>"$check" || failed=1

# Other shapes, another seed, the same meter: 25 seconds.
begin=$(date +%s)
timeout 60 "$python" "$here/calibrate_held.py" "$root/crates/collect/src/tool/torch/calibrate.py" "$device" "$out/held.csv" \
    25 "$out/calibration.json" >>"$check" 2>&1 || failed=1
echo "held-out points: $(($(date +%s) - begin)) s" >>"$check"
"$program" hardware "$name" --predict "$out/held.csv" >"$out/predicted.csv" 2>>"$check" || failed=1
"$python" "$here/calibrate_check.py" "$out/held.csv" "$out/predicted.csv" >>"$check" || failed=1
"$program" analyze --hardware "$name" --json >"$out/analyze.json" 2>>"$check" || failed=1
cat "$check"
exit "$failed"
