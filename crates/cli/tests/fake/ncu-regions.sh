#!/bin/sh
# A stand-in for Nsight Compute that answers with captures from a folder, $FAKE_NCU.
#
# A capture is known by its replay mode and its include expressions: range replay of `A/` and `B/` is
# $FAKE_NCU/range/A%+B%, with signs that file names lack replaced. Without expressions and with the time as the only counter it is the survey,
# $FAKE_NCU/survey. Each folder has log.txt with what the tool says, raw.csv(.gz) where something was profiled, and
# details.csv(.gz). Every call is written to $FAKE_NCU_CALLS.
set -u
mode=kernel include='' metrics='' export='' import='' page='' program=''
printf '%s\n' "$*" >>"${FAKE_NCU_CALLS:-/dev/null}"
while [ $# -gt 0 ]; do
    case $1 in
    --version)
        printf 'NVIDIA (R) Nsight Compute Command Line Profiler\nVersion 2025.3.1.0 (build 36398880) (public-release)\n'
        exit 0
        ;;
    --replay-mode) mode=$2 && shift 2 ;;
    --nvtx-include) include="$include${include:+ }$2" && shift 2 ;;
    --metrics) metrics=$2 && shift 2 ;;
    --export) export=$2 && shift 2 ;;
    --import) import=$2 && shift 2 ;;
    --page) page=$2 && shift 2 ;;
    --config-file | --target-processes | --clock-control | --cache-control | --set | --section | --nvtx-exclude | \
        --kernel-name-base | --kernel-name | --launch-skip | --launch-count | --filter-mode | --print-details) shift 2 ;;
    --nvtx | --csv | --force-overwrite) shift ;;
    --*) printf '==ERROR== unrecognised option %s\n' "$1" && exit 1 ;;
    *) program=$1 && break ;;
    esac
done
# A report is the name of its capture.
if [ -n "$import" ]; then
    capture=$FAKE_NCU/$(cat "$import")
    if [ -f "$capture/$page.csv.gz" ]; then gzip -dc "$capture/$page.csv.gz"; else cat "$capture/$page.csv"; fi
    exit 0
fi
if [ -z "$program" ]; then
    printf '==ERROR== No application given\n'
    exit 1
fi
case "$metrics$include" in
gpu__time_duration.sum) capture=survey ;;
*) capture=$mode/$(printf '%s' "$include" | tr '/ :' '%+=') ;;
esac
if [ ! -d "$FAKE_NCU/$capture" ]; then
    printf '==PROF== Connected to process 1\n==PROF== Disconnected from process 1\n'
    case $mode in
    range | app-range) printf '==WARNING== No ranges were profiled.\n' ;;
    *) printf '==WARNING== No kernels were profiled.\n' ;;
    esac
    exit 0
fi
cat "$FAKE_NCU/$capture/log.txt"
if [ -f "$FAKE_NCU/$capture/code" ]; then code=$(cat "$FAKE_NCU/$capture/code"); else code=0; fi
if [ -f "$FAKE_NCU/$capture/raw.csv" ] || [ -f "$FAKE_NCU/$capture/raw.csv.gz" ]; then
    printf '%s' "$capture" >"$export.ncu-rep"
fi
exit "$code"
