#!/bin/bash
# Launches of CUDA graphs timed by events, without CUPTI, on one GPU: what it costs vLLM beside the collector's other modes, in turns, and
# whether its times are those of CUPTI. At most 5 minutes.
# Usage, from the repository's root: tests/live/h200_events.sh OUT PROGRAM LIBRARY VLLM [PART...]
#   OUT      folder for what comes back; made if need be
#   PROGRAM  the llm-perf to run
#   LIBRARY  its collector, libllm_perf_inject.so
#   VLLM     folder with vLLM for this Python
#   PART     of agree attach costs steps; agree, attach and costs unless told. steps, some 4 minutes by itself, tells which step of
#            attaching CUPTI costs what
# Leaves OUT/summary.txt with PASS or FAIL for every claim and the figures behind them.
set -u
if [ $# -lt 4 ]; then
    sed -n '2,11s/^# //p' "$0" >&2
    exit 2
fi
mkdir -p "$1"
out=$(realpath "$1") program=$(realpath "$2") library=$(realpath "$3") vllm=$(realpath "$4")
shift 4
[ $# -gt 0 ] || set -- agree attach costs
here=$(realpath "$(dirname "$0")")
work=$(mktemp -d)
export LLM_PERF_DATA_DIR="$work/data" LLM_PERF_INJECT_LIBRARY="$library"
export VLLM_USE_FLASHINFER_SAMPLER=0 VLLM_NO_USAGE_STATS=1 HF_HUB_OFFLINE=1 VLLM_LOGGING_LEVEL=WARNING VLLM_CACHE_ROOT="$work/cache"
cupti=$(ls /usr/local/cuda*/extras/CUPTI/lib64/libcupti.so.1? /usr/local/cuda*/targets/*/lib/libcupti.so.1? 2>/dev/null | head -1)
export LLM_PERF_INJECT_CUPTI_FALLBACK=$cupti
summary=$out/summary.txt
say() { printf '[%s s] %s\n' "$SECONDS" "$*" | tee -a "$summary"; }
table() { # modes, seconds, file
    [ -d "$work/dense" ] || python3 "$here/serving_model.py" "$work/dense" dense >"$out/model.txt" 2>&1
    PYTHONPATH="$vllm${PYTHONPATH:+:$PYTHONPATH}" timeout "$2" python3 "$here/collector_table.py" --library "$library" --model "$work/dense" \
        --out "$out/$3.json" --modes "$1" --rounds 6 --steps 100 >"$out/$3.txt" 2>&1
    say "$3: exit $?"
    tee -a "$summary" <"$out/$3.txt"
    gzip -f "$out/$3.json" 2>/dev/null
}
for part in "$@"; do
    case $part in
    agree)
        CUDA_INJECTION64_PATH=$library NVTX_INJECTION64_PATH=$library timeout 60 python3 "$here/collector_graphs.py" --json "$out/agree.json" \
            >"$out/agree.txt" 2>&1
        say "agree: exit $?"
        tee -a "$summary" <"$out/agree.txt"
        ;;
    attach)
        # The road that a user takes: no kernels, every launch of a graph, nothing called idle.
        "$program" run -- python3 "$here/collector_program.py" --steps 1000000 --seconds 20 --pace 1 >"$out/program.txt" 2>&1 &
        process=$!
        sleep 14
        timeout 60 "$program" attach $process --for 1s --graphs-only --out "$work/attach" >"$out/attach.txt" 2>&1
        say "attach --graphs-only: exit $?"
        wait $process
        say "the program: exit $?"
        cp "$work/attach/metrics.json" "$out/attach-metrics.json" && cp "$work/attach/report.md" "$out/attach-report.md"
        python3 - "$out/attach-metrics.json" <<'PY' | tee -a "$summary"
import json, sys
metrics = json.load(open(sys.argv[1]))
graphs = len((metrics.get("steps") or {}).get("list") or [])
print("     steps with graphs", graphs, {one["counter"]: one["value"] for one in metrics["quality"]})
print("PASS" if graphs > 200 else "FAIL", "hundreds of steps in a second")
print("PASS" if not metrics["device_time"] and not metrics["findings"] else "FAIL", "nothing is called idle")
PY
        ;;
    costs) table plain,again,idle,afterwards,graphs,standby,inject-whole,inject-sampled,attached "${LIMIT:-215}" costs ;;
    steps) table plain,again,cupti-subscribe,cupti-unsubscribed,cupti-nodes,cupti-kinds,cupti-stopped,standby "${LIMIT:-240}" steps ;;
    esac
done
rm -rf "$work"
! grep -q '^FAIL\|did not start' "$summary"
