#!/bin/bash
# What the collector costs vLLM on one GPU: decode at batch 1, 8 and 64, all modes in turns. At most 6 minutes.
# Usage, from the repository's root: tests/live/h200_collector.sh OUT LIBRARY [VLLM [LIBDW]]
#   OUT      folder for what comes back; made if need be
#   LIBRARY  the collector, libllm_perf_inject.so
#   VLLM     folder with vLLM for this Python; without one, or where it cannot be imported, a CUDA-graph loop takes its place
#   LIBDW    folder with libdw1, for Nsight Systems as two more modes
# Leaves OUT/summary.txt with a table, PASS or FAIL for every goal, and OUT/table.json with every step.
set -u
if [ $# -lt 2 ]; then
    sed -n '2,8s/^# //p' "$0" >&2
    exit 2
fi
mkdir -p "$1"
out=$(realpath "$1") library=$(realpath "$2") vllm=${3:-} libdw=${4:-}
here=$(realpath "$(dirname "$0")")
work=$(mktemp -d)
[ -z "$vllm" ] || export PYTHONPATH="$(realpath "$vllm")${PYTHONPATH:+:$PYTHONPATH}"
export VLLM_USE_FLASHINFER_SAMPLER=0 VLLM_NO_USAGE_STATS=1 HF_HUB_OFFLINE=1 VLLM_LOGGING_LEVEL=WARNING VLLM_CACHE_ROOT="$work/cache"
cupti=$(ls /usr/local/cuda*/extras/CUPTI/lib64/libcupti.so.1? /usr/local/cuda*/targets/*/lib/libcupti.so.1? 2>/dev/null | head -1)
export LLM_PERF_INJECT_CUPTI_FALLBACK=$cupti
modes=${MODES:-plain,again,idle,standby,attached,inject-whole,inject-sampled,profiler}
[ -z "$libdw" ] || modes=$modes,nsys,nsys-nodes
python3 "$here/serving_model.py" "$work/dense" dense >"$out/model.txt" 2>&1 || mkdir -p "$work/dense"
timeout "${LIMIT:-350}" python3 "$here/collector_table.py" --library "$library" --model "$work/dense" --out "$out/table.json" --modes "$modes" \
    ${libdw:+--libdw "$(realpath "$libdw")"} >"$out/table.txt" 2>&1
code=$?
echo "exit $code, $SECONDS s" >>"$out/table.txt"
[ $code -eq 0 ] || echo "FAIL the table is not whole or misses a goal (exit $code)" >>"$out/table.txt"
cp "$out/table.txt" "$out/summary.txt"
cat "$out/summary.txt"
gzip -f "$out/table.json" 2>/dev/null
rm -rf "$work"
! grep -q '^FAIL\|did not start' "$out/summary.txt"
