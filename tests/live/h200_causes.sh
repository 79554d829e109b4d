#!/bin/sh
# Runs programs that lose time for a known reason, once under torch.profiler and once under our collector, and holds what
# llm-perf says of each against what is known.
# Usage, from the repository's root: tests/live/h200_causes.sh OUT PROGRAM [NAME...]
# Environment: LLM_PERF_PYTHON, the Python with PyTorch; KINDS, `torch`, `collector` or both, as without it.
# Leaves OUT/NAME.json.gz (the trace), OUT/NAME.wire.gz (what the collector recorded), OUT/NAME-torch and OUT/NAME-collector (the
# runs without what was recorded), OUT/checks.txt.
set -u

if [ $# -lt 2 ]; then
    sed -n '2,8s/^# //p' "$0" >&2
    exit 2
fi
out=$1
program=$2
shift 2
here=$(dirname "$0")
python=${LLM_PERF_PYTHON:-python3}
mkdir -p "$out"
: >"$out/checks.txt"
[ $# -gt 0 ] || set -- $("$python" "$here/known_causes.py" names)
failed=0

# checked KIND NAME: what was printed, and the verdict.
checked() {
    echo "$1: $("$python" "$here/known_causes.py" check "$1" "$2" "$out/$2-$1/metrics.json" 2>&1)" | tee -a "$out/checks.txt"
    grep -q "^$1: ok .*$2:" "$out/checks.txt" || failed=1
}

for name in "$@"; do
    if [ "${KINDS:-torch}" != collector ]; then
        "$python" "$here/known_causes.py" run "$name" "$out/$name.json" >"$out/$name.txt" 2>&1
        "$program" -q import "$out/$name.json" --out "$out/$name-torch" >>"$out/$name.txt" 2>&1
        gzip -9 -f "$out/$name.json"
        checked torch "$name"
    fi
    [ "${KINDS:-collector}" = torch ] && continue
    "$program" -q profile --out "$out/$name-collector" -- "$python" "$here/known_causes.py" run "$name" >>"$out/$name.txt" 2>&1
    # Compilers and loaders start processes of their own; the program's has most to say.
    gzip -9 -c "$(ls -S "$out/$name-collector"/trace/*.wire | head -n 1)" >"$out/$name.wire.gz"
    rm -rf "$out/$name-collector/trace"
    checked collector "$name"
done
exit $failed
