#!/bin/sh
# `deep` and `regions` with no engine named, on a machine with a GPU and PyTorch: end to end, and the bundle listed.
# Usage, from the repository's root: tests/live/h200_defaults.sh OUT PROGRAM
#   OUT      folder for what comes back; made if need be
#   PROGRAM  the llm-perf to run
# Leaves OUT/summary.txt with PASS or FAIL for every claim, and OUT/NAME.tar.gz of each run without the tools' own reports.
set -u
if [ $# -ne 2 ]; then
    sed -n '2,6s/^# //p' "$0" >&2
    exit 2
fi
mkdir -p "$1"
out=$(realpath "$1")
program=$(realpath "$2")
work=$(mktemp -d)
export LLM_PERF_DATA_DIR="$work/data"
summary=$out/summary.txt
: >"$summary"
say() { printf '%s\n' "$*" | tee -a "$summary"; }
# check NAME COMMAND...: a claim.
check() {
    name=$1
    shift
    if "$@" >/dev/null 2>&1; then say "PASS $name"; else say "FAIL $name"; fi
}
# run NAME EXPECTED-EXIT ARGUMENT...: one run in a folder of that name.
run() {
    name=$1 expected=$2
    shift 2
    start=$(date +%s)
    "$program" "$@" --out "$work/$name" >"$out/$name.txt" 2>&1
    code=$?
    seconds=$(($(date +%s) - start))
    if [ "$code" -eq "$expected" ]; then say "PASS $name: exit $code, ${seconds}s"; else
        say "FAIL $name: exit $code instead of $expected, ${seconds}s"
        tail -15 "$out/$name.txt" | tee -a "$summary"
    fi
    if [ -d "$work/$name" ]; then
        (cd "$work/$name" && find . -type f | sort | head -80) >"$out/$name.files"
        "$program" validate "$work/$name"/*.json >>"$out/$name.txt" 2>&1 || say "FAIL $name: validate"
        tar -C "$work" -czf "$out/$name.tar.gz" --exclude='*.ncu-rep' --exclude='*.nsys-rep' --exclude='*.sqlite' "$name"
    fi
}
has() { test -s "$work/$1/$2"; }

run deep 0 deep --model llama-3-8b --weights synthetic infer.seq_len=512 infer.max_new_tokens=8 --top-kernels 3
check "deep chose PyTorch and said why" grep -q "^engine: torch (found a GPU" "$out/deep.txt"
for file in metrics.json kernels.json env.json inputs.yaml config.yaml assumptions.md report.md operators.md kernels.md \
    stakeholder_summary.md trace/operators.json.gz static_analysis/analytic_model/report.json; do
    check "deep has $file" has deep "$file"
done
check "every operator is a framework operator with a stage" python3 - "$work/deep/metrics.json" <<'PY'
import json, sys
rows = json.load(open(sys.argv[1]))["operators"]
assert rows and any(row["name"].startswith("aten::") for row in rows), len(rows)
staged = sum(row["device_ns"] or 0 for row in rows if row["stage"])
assert staged > 0.9 * sum(row["device_ns"] or 0 for row in rows), staged
PY
check "predicted stands beside measured" python3 - "$work/deep/static_analysis/analytic_model/report.json" <<'PY'
import json, sys
report = json.load(open(sys.argv[1]))
assert report["profile_run_id"] and 0 < report["predicted_vs_measured_ratio"] <= 1, report["predicted_vs_measured_ratio"]
PY
run both 0 deep --collector both --mode light --model decoder-tiny --weights synthetic --top-kernels 1
check "both has a timeline of nsys with tables" has both nsys/timeline.sqlite
check "both has a table of kernels" sh -c "ls $work/both/nsys/*.csv"
check "both has our own timeline" sh -c "ls $work/both/trace/*.wire"
run regions 0 regions model/dummy_shallow_resnet/arch@model=dummy_shallow_resnet.default
check "regions has its report" has regions ncu/regions/report.json
run native 2 deep --engine native
check "native is refused before anything starts" test ! -e "$work/native"
run batch 0 profile --model decoder-tiny --weights synthetic infer.batch=4 infer.logits=last infer.seq_len=128
check "a batch of four" python3 - "$work/batch/metrics.json" <<'PY'
import json, sys
metrics = json.load(open(sys.argv[1]))
assert metrics["inputs"][0]["batch"] == 4, metrics["inputs"]
PY
rm -rf "$work"
! grep -q '^FAIL' "$summary"
