#!/bin/sh
# Regions on a real GPU: every replay mode, selections, empty cases, and ranges against the sum of their kernels.
# Needs: llm-perf (first argument, default on PATH), ncu, a Python with torch (LLM_PERF_PYTHON, default python3).
# Leaves one folder per run under $OUT, or ./regions-live, and says PASS or FAIL for every claim; exit 1 where one fails.
set -u
bin=${1:-llm-perf}
python=${LLM_PERF_PYTHON:-python3}
out=${OUT:-regions-live}
here=$(dirname "$0")
work=$(mktemp -d)
mkdir -p "$out"
failed=0
program="$python $here/regions_abc.py"

say() { printf '%s\n' "$*" | tee -a "$out/summary.txt"; }

# run NAME EXPECTED-EXIT ARGUMENTS...
run() {
    name=$1 expected=$2
    shift 2
    start=$(date +%s)
    "$bin" regions --quiet --out "$work/$name" "$@" >"$work/$name.out" 2>"$work/$name.err"
    code=$?
    seconds=$(($(date +%s) - start))
    if [ "$code" -eq "$expected" ]; then say "PASS $name: exit $code, ${seconds}s"; else
        say "FAIL $name: exit $code instead of $expected, ${seconds}s"
        tail -5 "$work/$name.err" | tee -a "$out/summary.txt"
        failed=1
    fi
    mkdir -p "$work/$name/said"
    cp "$work/$name.out" "$work/$name.err" "$work/$name/said/"
    find "$work/$name" -name '*.ncu-rep' -delete 2>/dev/null
}

cli=pipeline.ncu.ncu_cli
bytes="$cli.metrics=[dram__bytes.sum,sm__throughput.avg.pct_of_peak_sustained_elapsed]"
# Caches as the program leaves them, so that ranges and kernels see the same.
common="$cli.cache_control=none $cli.sections=[]"

run kernel 0 --replay-mode kernel $common "$bytes" -- $program
run range 0 --replay-mode range $common "$bytes" -- $program
run app-range 0 --replay-mode app-range $common "$bytes" -- $program
run application 0 --replay-mode application --nvtx-include A --nvtx-include B $common "$bytes" -- $program
run include 0 --nvtx-include A::A1 --nvtx-include B "$cli.sections=[SpeedOfLight,Occupancy]" "$cli.metrics=[]" -- $program
run exclude 0 --nvtx-include A "$cli.kernel_name=regex:elementwise" "$cli.kernel_name_base=function" \
    "$cli.kernel_exclude=[regex:Mul]" "$cli.kernel_name_base=demangled" "$cli.sections=[LaunchStats]" \
    "$cli.metrics=[dram__bytes_read.sum,dram__bytes_write.sum]" -- $program
run roofline 0 --nvtx-include B "$cli.sections=[SpeedOfLight_RooflineChart]" "$cli.metrics=[dram__bytes.sum]" -- $program
run preset 0 --nvtx-include B profiling/ncu@pipeline.ncu=ncu.roofline -- $program
run no-match 0 --nvtx-include 'decode*' $common "$bytes" -- $program
run no-region 0 $common "$bytes" -- $program --plain
run no-kernel-name 0 --nvtx-include A "$cli.kernel_name=nothing" $common "$bytes" -- $program
"$bin" regions --quiet --replay-mode range --out "$work/unsupported" $common "$bytes" -- $program --unsupported \
    >"$work/unsupported.out" 2>"$work/unsupported.err"
say "INFO unsupported call inside of a range: exit $?"
find "$work/unsupported" -name '*.ncu-rep' -delete 2>/dev/null

"$python" "$here/regions_check.py" "$work" | tee -a "$out/summary.txt" || failed=1
grep -q '^FAIL' "$out/summary.txt" && failed=1
for name in kernel range app-range application include exclude; do
    "$bin" validate "$work/$name/ncu/regions/report.json" "$work/$name/metrics.json" >>"$out/summary.txt" || failed=1
done
tar -C "$work" -czf "$out/regions.tar.gz" .
exit $failed
