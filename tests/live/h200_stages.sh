#!/usr/bin/env bash
# Measures what forecasts of stages are held against. Needs a GPU, PyTorch and transformers, and no llm-perf: the rest is done anywhere.
# Usage, from the repository's root: tests/live/h200_stages.sh points OUT
#                                    tests/live/h200_stages.sh stages OUT [SECONDS] [MODEL...]
# points: points.csv and facts.json of a calibration, held.csv of shapes it has not seen.
# stages: stages.json, prefills and decode steps of decoder models with the kernels they launch.
set -u
part=${1:-}
if [ $# -lt 2 ] || { [ "$part" != points ] && [ "$part" != stages ]; }; then
    sed -n '2,6s/^# //p' "$0" >&2
    exit 2
fi
out=$2
shift 2
here=$(realpath "$(dirname "$0")")
meter=$here/../../crates/collect/src/tool/torch/calibrate.py
python=${LLM_PERF_PYTHON:-python3}
mkdir -p "$out"
out=$(realpath "$out")
if [ "$part" = points ]; then
    printf '{"device": "cuda:0", "seconds": 45, "points": "%s/points.csv", "facts": "%s/facts.json"}' "$out" "$out" >"$out/request.json"
    timeout 180 "$python" "$meter" "$out/request.json" 2>&1 | tee "$out/points.txt"
    timeout 90 "$python" "$here/calibrate_held.py" "$meter" cuda:0 "$out/held.csv" 25 "$out/points.csv" 2>&1 | tee "$out/held.txt"
else
    timeout $((${1:-300} + 120)) "$python" "$here/forecast_stages.py" measure "$out/stages.json" "$@" 2>&1 | tee "$out/stages.txt"
fi
