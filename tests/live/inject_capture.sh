#!/usr/bin/env bash
# Records the same programs with our collector and with Nsight Systems, and tries processes that end badly.
#
#     tests/live/inject_capture.sh LIBRARY OUT [FOLDER WITH libdw1]
#
# OUT gets wire files and SQLite exports side by side (`*.wire`, `*.sqlite`), and log.txt. Needs a GPU, nvcc, nsys and torch.
set -u
library=$(realpath "$1") out=$(realpath -m "$2") dw=${3:-}
here=$(dirname "$(realpath "$0")")
nsys=$(command -v nsys || ls /opt/nvidia/nsight-compute/*/host/target-linux-x64/nsys | tail -1)
cupti=$(ls /usr/local/cuda*/extras/CUPTI/lib64/libcupti.so.1? /usr/local/cuda*/targets/*/lib/libcupti.so.1? 2>/dev/null | head -1)
mkdir -p "$out"
log="$out/log.txt"
say() { echo "[$SECONDS s] $*" | tee -a "$log"; }

# injected NAME COMMAND...: runs a command with the collector; its files become NAME.wire, NAME-1.wire, ...
injected() {
    local name=$1 folder
    shift
    folder=$(mktemp -d)
    CUDA_INJECTION64_PATH="$library" NVTX_INJECTION64_PATH="$library" LLM_PERF_INJECT_FOLDER="$folder" \
        LLM_PERF_INJECT_CUPTI_FALLBACK="$cupti" timeout 60 "$@" >"$out/$name.txt" 2>&1
    say "$name: exit $?, $(ls "$folder" | wc -l) files, $(cat "$folder"/* 2>/dev/null | wc -c) bytes"
    local number=0 file
    for file in "$folder"/*; do
        [ -e "$file" ] || continue
        mv "$file" "$out/$name$([ $number -gt 0 ] && echo "-$number").wire"
        number=$((number + 1))
    done
}

# with_nsys NAME COMMAND...: runs a command with Nsight Systems; the export becomes NAME.sqlite.
with_nsys() {
    local name=$1
    shift
    LD_LIBRARY_PATH="$dw${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" timeout 120 "$nsys" profile -t cuda,nvtx -s none --cpuctxsw=none \
        --cuda-graph-trace=node -f true --export=sqlite -o "$out/$name" "$@" >"$out/$name-nsys.txt" 2>&1
    say "$name under nsys: exit $?"
    rm -f "$out/$name.nsys-rep"
}

nvcc -O2 -o "$out/program" "$here/inject_program.cu" >>"$log" 2>&1 && {
    injected cuda "$out/program"
    with_nsys cuda "$out/program"
}
program="python3 $here/inject_program.py"
small="--layers 2 --hidden 256 --tokens 3 --rounds 2"
for mode in eager graph; do
    injected $mode $program $small --mode $mode
    with_nsys $mode $program $small --mode $mode
done
LLM_PERF_INJECT_GRAPHS=whole injected graph-whole $program $small --mode graph
LLM_PERF_INJECT_WINDOW=decode_step:4..6 injected window $program $small --tokens 4

injected quit $program $small --ending quit --pause 1 &
injected abort $program $small --ending abort --pause 1 &
injected kill $program $small --ending kill &
injected profiler $program $small --profiler &
injected none python3 -c 'print(1 + 1)' &
injected fork python3 -c '
import os, torch
if os.fork() == 0:
    torch.ones(8, device="cuda").mul_(2).sum().item(); os._exit(0)
os.wait(); torch.ones(8, device="cuda").add_(2).sum().item()' &
injected spawn python3 -c '
import subprocess, sys
code = "import torch; [torch.ones(8, device=\"cuda\").mul_(2) for _ in range(100)]; torch.cuda.synchronize()"
[child.wait() for child in [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2)]]' &
wait
say done
