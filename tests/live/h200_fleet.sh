#!/bin/sh
# Two ranks under torchrun on one GPU, recorded by the torch profiler, through tables into a fleet.
# Usage, from the repository's root: tests/live/h200_fleet.sh OUT PROGRAM
# NCCL refuses two ranks on one GPU. PyTorch's own kernels do not, and under MPS both ranks run at once; where that does not work
# either, gloo reduces on the host, and clocks stay as they are.
# Leaves OUT/summary.txt with PASS or FAIL for every claim, the traces, and the run of the fleet.
set -u
if [ $# -ne 2 ]; then
    sed -n '2,6s/^# //p' "$0" >&2
    exit 2
fi
mkdir -p "$1/traces"
out=$(realpath "$1")
program=$(realpath "$2")
here=$(realpath "$(dirname "$0")")
summary=$out/summary.txt
: >"$summary"
say() { printf '%s\n' "$*" | tee -a "$summary"; }
record() {
    FLEET_BACKEND=$1 FLEET_OUT=$out/traces TORCH_SYMM_MEM_ALLOW_OVERLAPPING_DEVICES=1 timeout 90 \
        torchrun --standalone --nproc-per-node 2 "$here/fleet_program.py" >"$out/$1.log" 2>&1
}
CUDA_MPS_PIPE_DIRECTORY=$(mktemp -d) && export CUDA_MPS_PIPE_DIRECTORY
CUDA_MPS_LOG_DIRECTORY=$CUDA_MPS_PIPE_DIRECTORY && export CUDA_MPS_LOG_DIRECTORY
nvidia-cuda-mps-control -d && say "note: MPS runs"
for backend in nccl symmetric gloo; do
    record $backend && break
    say "note: $backend does not run two ranks here: $(grep -m1 -o 'refused:.*' "$out/$backend.log")"
done
echo quit | nvidia-cuda-mps-control
[ -f "$out/traces/rank1.json" ] || { say "FAIL no backend ran"; tail -5 "$out/gloo.log"; exit 1; }
for rank in 0 1; do
    "$program" import "$out/traces/rank$rank.json" --tables "$out/tables" --job two --out "$out/run$rank" \
        >"$out/import$rank.txt" 2>&1 || say "FAIL import of rank $rank"
done
"$program" fleet "$out/tables" --out "$out/fleet" >"$out/fleet.txt" 2>&1 || say "FAIL fleet"
"$program" validate "$out/fleet/fleet.json" >>"$out/fleet.txt" 2>&1 || say "FAIL validate"
cat "$out/fleet.txt"
python3 - "$out/fleet/fleet.json" $backend <<'PY' | tee -a "$summary"
import json, sys
job, backend = json.load(open(sys.argv[1]))["jobs"][0], sys.argv[2]


def check(claim, holds):
    print("%s %s" % ("PASS" if holds else "FAIL", claim))


check("both ranks are here, none is missing", len(job["ranks"]) == 2 and not job["missing_ranks"])
check("parts add up on both", all(r["span_ns"] > 0 and r["compute_ns"] + r["communication_exposed_ns"] + r["copies_exposed_ns"]
                                  + sum(i["ns"] for i in r["idle"]) == r["span_ns"] for r in job["ranks"]))
if backend != "gloo":
    check("clocks agree to better than 50 us: %s" % job["clock"], job["clock"]["uncertainty_ns"] < 50_000)
    check("rank 1 comes last more often", job["ranks"][1]["arrived_last"] > job["ranks"][0]["arrived_last"])
else:
    check("without collectives on the device, clocks are the hosts'", job["clock"]["basis"] == "wall_clock")
PY
! grep -q '^FAIL' "$summary"
