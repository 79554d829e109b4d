#!/bin/bash
# Windows of the collector, graphs recorded as a whole and by sampling, and what CUPTI keeps for kernels of graphs, on one GPU.
# Usage, from the repository's root: tests/live/h200_windows.sh OUT PROGRAM LIBRARY [PART...]
#   OUT      folder for what comes back; made if need be
#   PROGRAM  the llm-perf to run
#   LIBRARY  its collector, libllm_perf_inject.so
#   PART     of costs cycles attach windows graphs memory; all unless told (some 7 minutes)
# Leaves OUT/summary.txt with PASS or FAIL for every claim and the figures behind them, and all files in OUT/all.tar.gz.
set -u
if [ $# -lt 3 ]; then
    sed -n '2,8s/^# //p' "$0" >&2
    exit 2
fi
mkdir -p "$1"
out=$(realpath "$1") program=$(realpath "$2") library=$(realpath "$3")
shift 3
[ $# -gt 0 ] || set -- costs cycles attach windows graphs memory
here=$(realpath "$(dirname "$0")")
work=$(mktemp -d)
export LLM_PERF_DATA_DIR="$work/data"
cupti=$(ls /usr/local/cuda*/extras/CUPTI/lib64/libcupti.so.1? /usr/local/cuda*/targets/*/lib/libcupti.so.1? 2>/dev/null | head -1)
export LLM_PERF_INJECT_CUPTI_FALLBACK=$cupti
summary=$out/summary.txt
say() { printf '[%s s] %s\n' "$SECONDS" "$*" | tee -a "$summary"; }
claim() { # name, shell test
    if eval "$2"; then say "PASS $1"; else say "FAIL $1 ($2)"; fi
}

# injected NAME VARIABLE=VALUE... -- ARGUMENT...: the program with the collector by itself; OUT/NAME.json is what it printed and
# OUT/NAME.counts what its file holds.
injected() {
    local name=$1 variables=()
    shift
    while [ "$1" != -- ]; do variables+=("$1"); shift; done
    shift
    mkdir -p "$work/$name"
    env "${variables[@]}" CUDA_INJECTION64_PATH="$library" NVTX_INJECTION64_PATH="$library" LLM_PERF_INJECT_FOLDER="$work/$name" \
        timeout 200 python3 "$here/collector_program.py" "$@" --json "$out/$name.json" >"$out/$name.txt" 2>&1
    say "$name: exit $?, $(cut -c1-160 "$out/$name.json" 2>/dev/null)"
    python3 "$here/wire_counts.py" "$work/$name"/*.wire >"$out/$name.counts" 2>&1
    say "$name: $(cut -c1-600 "$out/$name.counts")"
    rm -rf "${work:?}/$name"
}
value() { # file, key...: a number of a JSON file
    python3 -c 'import json, sys
value = json.loads(open(sys.argv[1]).readline())
for key in sys.argv[2:]:
    value = value.get(key, 0)
print(value)' "$@" 2>/dev/null || echo -1
}

for part in "$@"; do
    say "== $part"
    case $part in
    windows)
        # What each shows is checked against what the program says that it launched.
        timeout 150 "$program" profile --collector inject --runs 1 --warmup 0 --window cudaProfilerApi --out "$work/profiler" -- \
            python3 "$here/collector_program.py" --steps 600 --profile 100..200,300..400 >"$out/profiler.txt" 2>&1
        code=$?
        claim "profile --window cudaProfilerApi ends well (exit $code)" "[ $code -eq 0 ] && [ -s '$work/profiler/metrics.json' ]"
        cp "$work/profiler/metrics.json" "$out/profiler-metrics.json"
        python3 "$here/wire_counts.py" "$work"/profiler/trace/*.wire >"$out/profiler.counts" 2>&1
        python3 - "$out/profiler-metrics.json" <<'PY' | tee -a "$summary"
import json, sys
metrics = json.load(open(sys.argv[1]))
quality = {one["counter"]: one["value"] for one in metrics["quality"]}
print("     quality:", quality)
found = metrics["totals"]["kernel_count"]
for what, holds in [
    (f"two windows of 100 steps of 200 kernels: {found} kernels and at most 3 of PyTorch a step", 40000 <= found <= 40650),
    ("two windows were recorded", quality.get("collection_windows") == 2),
    ("no time was invalid", not quality.get("device_times_invalid") and not quality.get("device_times_outside")),
    ("no launch lacks its kernels", not quality.get("launches_without_work")),
    ("layers are known that were captured outside the windows", "layer_3" in json.dumps(metrics))]:
    print("PASS" if holds else "FAIL", what)
PY
        injected time LLM_PERF_INJECT_WINDOW=3s..5s -- --steps 3000 --pace 3
        claim "a program with a window of time ends well" '[ -s "$out/time.json" ]'
        claim "a window of time has kernels and one window" '[ "$(value "$out/time.counts" kernels)" -gt 1000 ] && [ "$(value "$out/time.counts" windows)" = 1 ]'
        ;;
    cycles)
        # Recorded again and again with work queued all the time: nothing may end the program. On request, with and without graphs; by
        # the profiler; by ranges.
        cycles() { # name, argument...
            local name=$1
            shift
            timeout 70 python3 "$here/collector_cycles.py" --library "$library" "$@" >"$out/cycles-$name.json" 2>"$out/cycles-$name.txt"
        }
        ten=1000..1500,2000..2500,3000..3500,4000..4500,5000..5500,6000..6500,7000..7500,8000..8500,9000..9500,10000..10500
        cycles nodes -- --steps 1000000 --seconds 26 &
        cycles eager -- --steps 1000000 --seconds 26 --eager &
        cycles profiler --profile -- --steps 12000 --kernels 400 --profile "$ten" &
        cycles ranges --windows "decode_step:500..600,decode_step:2000..2100,decode_step:4000..4100" -- --steps 6000 &
        cycles eager-ranges --windows "decode_step:500..600,decode_step:2000..2100,decode_step:4000..4100" -- --steps 6000 --eager &
        wait
        for name in nodes eager profiler ranges eager-ranges; do
            say "cycles, $name: $(cut -c1-700 "$out/cycles-$name.json")"
            claim "cycles, $name: the program ends well" '[ "$(value "$out/cycles-$name.json" exit)" = 0 ]'
        done
        for name in nodes eager; do
            claim "cycles, $name: ten requests, ten recordings" '[ "$(value "$out/cycles-$name.json" files)" = 10 ] && [ "$(value "$out/cycles-$name.json" unfinished_files)" = 0 ]'
        done
        python3 - "$out" <<'PY' | tee -a "$summary"
import json, sys
def read(name):
    try:
        return json.load(open(f"{sys.argv[1]}/cycles-{name}.json"))
    except (OSError, ValueError):
        return {}
for name, least in (("nodes", 10_000), ("eager", 1_000)):
    for what in ("kernels", "calls"):
        counts = read(name).get(what, [0])
        enough = least if what == "kernels" else least / 50
        print("PASS" if min(counts, default=0) > enough else "FAIL", f"cycles, {name}: every recording has {what}: {counts}")
for name, windows, launches in (("profiler", 10, 5000), ("ranges", 3, 300), ("eager-ranges", 3, 60_000)):
    found = read(name)
    counted = sum(one.get("launches", 0) for one in found.get("counters", []))
    holds = found.get("windows") == [windows] and launches * 0.98 <= counted <= launches * 1.02
    print("PASS" if holds else "FAIL", f"cycles, {name}: {windows} windows with {launches} launches: {found.get('windows')}, {counted}")
PY
        ;;
    attach)
        # Two processes under load: one recorded three times by number, both together by name. A third starts torch.profiler before
        # it is recorded: it keeps CUPTI to itself.
        "$program" run -- python3 "$here/collector_program.py" --steps 1000000 --seconds 46 --pace 1 \
            --json "$out/attached-1.json" >"$out/attached-1.txt" 2>&1 &
        process_1=$!
        "$program" run -- python3 "$here/collector_program.py" --steps 1000000 --seconds 46 --pace 1 \
            --json "$out/attached-2.json" >"$out/attached-2.txt" 2>&1 &
        process_2=$!
        cp "$here/collector_program.py" "$work/with_torch.py"
        "$program" run -- python3 "$work/with_torch.py" --steps 1000000 --seconds 46 --torch 2000..2050 --pace 1 \
            --json "$out/attached-3.json" >"$out/attached-3.txt" 2>&1 &
        process_3=$!
        sleep 18
        say "threads of one that waits: $(ls /proc/"$process_1"/task | wc -l), of ours $(grep -l '^llm-perf' /proc/"$process_1"/task/*/comm 2>/dev/null | wc -l)"
        for number in 1 2 3; do
            start=$SECONDS
            timeout 60 "$program" attach "$process_1" --for 500ms --out "$work/attach-$number" >"$out/attach-$number.txt" 2>&1
            code=$?
            say "attach $number: exit $code after $((SECONDS - start)) s"
            cp "$work/attach-$number/metrics.json" "$out/attach-$number-metrics.json" 2>/dev/null
            claim "attach $number recorded kernels" "[ $code -eq 0 ] && grep -q kernel_count '$out/attach-$number-metrics.json'"
            python3 - "$out/attach-$number-metrics.json" <<'PY' | tee -a "$summary"
import json, sys
metrics = json.load(open(sys.argv[1]))
print("     kernels", metrics["totals"]["kernel_count"], {one["counter"]: one["value"] for one in metrics["quality"]})
print("PASS" if metrics["totals"]["kernel_count"] > 10000 else "FAIL", "thousands of kernels in half a second")
PY
        done
        timeout 60 "$program" attach "$process_3" --for 1s --out "$work/torch" >"$out/attach-torch.txt" 2>&1
        say "attach beside torch.profiler: exit $?"
        timeout 60 "$program" attach collector_program.py --for 500ms --out "$work/both" >"$out/attach-both.txt" 2>&1
        say "attach by name: exit $?, files $(ls "$work/both/trace" 2>/dev/null | tr '\n' ' ')"
        claim "two processes were recorded together" '[ "$(ls "$work/both/trace" | wc -l)" = 2 ]'
        cp "$program" /tmp/llm-perf-other && chmod 755 /tmp/llm-perf-other
        (cd /tmp && setpriv --reuid 65534 --clear-groups /tmp/llm-perf-other attach "$process_1" --for 1s) >"$out/attach-other.txt" 2>&1
        claim "another user is refused: $(head -1 "$out/attach-other.txt")" 'grep -q "another user" "$out/attach-other.txt"'
        python3 "$here/wire_counts.py" "$work"/both/trace/*.wire | tee -a "$summary"
        wait "$process_1" && wait "$process_2" && wait "$process_3"
        claim "all programs end well" "[ $? -eq 0 ]"
        claim "torch.profiler works beside a library that waits" '[ "$(value "$out/attached-3.json" torch_kernels)" -gt 5000 ]'
        ;;
    graphs)
        injected whole LLM_PERF_INJECT_GRAPHS=whole -- --steps 640
        claim "whole graphs: a row for each launch" '[ "$(value "$out/whole.counts" graphs)" = 640 ]'
        injected sampled LLM_PERF_INJECT_GRAPHS=1/16 -- --steps 640
        claim "sampled: 40 launches, 8 in a row, by their 200 nodes" '[ "$(value "$out/sampled.counts" kernels)" -ge 8000 ] && [ "$(value "$out/sampled.counts" kernels)" -le 9900 ]'
        claim "sampled: 600 launches as a whole" '[ "$(value "$out/sampled.counts" graphs)" = 600 ]'
        ;;
    memory)
        # 30 million kernels of a graph, and beside it the same program alone.
        injected recorded -- --steps 60000 --kernels 500 &
        timeout 200 python3 "$here/collector_program.py" --steps 60000 --kernels 500 --json "$out/alone.json" >"$out/alone.txt" 2>&1 &
        wait
        python3 - "$out" <<'PY' | tee -a "$summary"
import json, sys
for name in ("alone", "recorded"):
    try:
        rows = json.load(open(f"{sys.argv[1]}/{name}.json"))["rows"]
    except OSError:
        print("FAIL", name, "left nothing")
        continue
    print("     " + name + ", kernels in millions, resident and device MiB: " +
          " ".join(f"{kernels / 1e6:.1f}:{resident >> 20}:{device >> 20}" for kernels, resident, device in rows[::3] + rows[-1:]))
    if name == "recorded":
        first, most = rows[len(rows) // 4][1], max(row[1] for row in rows[len(rows) // 4:])
        print("PASS" if most - first < 64 << 20 else "FAIL", f"recorded, the process grew by {(most - first) >> 20} MiB")
PY
        claim "no invalid time" '[ "$(value "$out/recorded.counts" counters invalid)" = 0 ] && [ "$(value "$out/recorded.counts" counters outside)" = 0 ] && [ "$(value "$out/recorded.counts" counters unfinished)" = 0 ]'
        claim "all of 29.76 million kernels" '[ "$(value "$out/recorded.counts" kernels)" -ge 29760000 ]'
        ;;
    costs)
        python3 "$here/inject_overhead.py" --library "$library" --out "$out/graph-costs.json" --repeats 5 --rounds 4 --steps 40 \
            --modes "${MODES:-plain,again,idle,standby,inject,inject-whole,inject-sampled}" \
            --program "python3 $here/inject_program.py --layers 24 --tokens 48 --mode graph --turns FOLDER" >"$out/graph-costs.txt" 2>&1
        code=$?
        claim "costs of a graph loop (exit $code)" "[ $code -eq 0 ]"; tee -a "$summary" <"$out/graph-costs.txt"
        python3 "$here/inject_overhead.py" --library "$library" --out "$out/eager-costs.json" --repeats 4 --rounds 3 \
            --modes "${EAGER_MODES:-plain,again,idle,standby,inject}" >"$out/eager-costs.txt" 2>&1
        code=$?
        claim "costs of an eager loop (exit $code)" "[ $code -eq 0 ]"; tee -a "$summary" <"$out/eager-costs.txt"
        ;;
    esac
done
rm -rf "$work"
say "done"
tar -C "$out" -czf "/tmp/all.$$.tar.gz" . && mv "/tmp/all.$$.tar.gz" "$out/all.tar.gz"
! grep -q ' FAIL\|^FAIL' "$summary"
