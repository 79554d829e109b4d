#!/bin/sh
# Captures what the program says about a machine with a GPU, to be kept as fixtures.
# Usage, from the repository's root: tests/live/h200_doctor.sh OUT [PROGRAM]
#   OUT      folder for the files; made if need be
#   PROGRAM  the llm-perf to run; target/release/llm-perf unless told
# Leaves doctor.{txt,json}, env.json, hardware.json, cpu.json, calibrate.txt, calibration.json and log.txt.
# Fails when a command fails, a document is invalid, or the default command cannot run.
set -eu

if [ $# -lt 1 ] || [ $# -gt 2 ]; then
    sed -n '2,7s/^# //p' "$0" >&2
    exit 2
fi
out=$1
program=${2:-target/release/llm-perf}
mkdir -p "$out"
: >"$out/log.txt"
failed=0

# Rates are kept for this capture alone, not in the home of whoever runs it.
LLM_PERF_DATA_DIR=$(mktemp -d)
export LLM_PERF_DATA_DIR
trap 'rm -rf "$LLM_PERF_DATA_DIR"' EXIT

# step FILE ARGUMENT...: standard output into FILE, everything else into the log.
step() {
    file=$1
    shift
    echo "\$ llm-perf $*" >>"$out/log.txt"
    code=0
    "$program" "$@" >>"$out/$file" 2>>"$out/log.txt" || code=$?
    if [ "$code" -ne 0 ]; then
        echo "exit $code" >>"$out/log.txt"
        failed=1
    fi
}

rm -f "$out"/doctor.txt "$out"/calibrate.txt "$out"/*.json
step doctor.txt doctor
step doctor.json doctor --json
step env.json env
step log.txt hardware
step hardware.json hardware --json
step calibrate.txt doctor --calibrate
step log.txt hardware cpu
step cpu.json hardware cpu --json
cp "$LLM_PERF_DATA_DIR"/calibration/*.json "$out/calibration.json" || failed=1
step log.txt validate "$out"/doctor.json "$out"/env.json "$out"/hardware.json "$out"/cpu.json "$out"/calibration.json

cat "$out/log.txt" "$out/calibrate.txt"
echo "Fields of env.json that are unknown:"
grep ': null' "$out/env.json" || echo "  none"
exit "$failed"
