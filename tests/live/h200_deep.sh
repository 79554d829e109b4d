#!/bin/sh
# Runs `llm-perf deep` on a machine with a GPU and holds its outcome against what is known.
# Usage, from the repository's root: tests/live/h200_deep.sh OUT PROGRAM PART...
#   OUT      folder for what comes back; made if need be
#   PROGRAM  the llm-perf to run
#   PART     known (counters of work that is known), the name of a built-in model (by its configuration, in PyTorch),
#            again:NAME (that one a second time, compared with the first), dsocr (needs its code: see DSOCR below),
#            light (fewer counters, one stage)
# Environment: DSOCR, a command that runs the published DeepSeek-OCR with ranges; AGAIN_OPTIONS, such as `--top-kernels 1`,
# where only the totals of a second run matter; LD_LIBRARY_PATH with libdw for an nsys that lacks it.
# Leaves OUT/PART.txt (what was printed, exit code, seconds), OUT/PART.tar.gz (the run without the tools' own reports).
set -u

if [ $# -lt 3 ]; then
    sed -n '2,11s/^# //p' "$0" >&2
    exit 2
fi
out=$1
program=$2
shift 2
mkdir -p "$out"
here=$(dirname "$0")
work=$(mktemp -d)
export LLM_PERF_DATA_DIR="$work/data"
failed=0

# deep PART ARGUMENT...: one run, its time, its documents.
deep() {
    part=$1
    shift
    begin=$(date +%s)
    code=0
    "$program" deep --out "$work/$part" "$@" >"$out/$part.txt" 2>&1 || code=$?
    echo "exit $code after $(($(date +%s) - begin)) s" >>"$out/$part.txt"
    [ "$code" -eq 0 ] || failed=1
    if [ -d "$work/$part" ]; then
        "$program" validate "$work/$part"/*.json >>"$out/$part.txt" 2>&1 || failed=1
        (cd "$work" && tar czf "$out/$part.tar.gz" --exclude='*.ncu-rep' --exclude='*.nsys-rep' "$part") || failed=1
    fi
    echo "== $part"
    cat "$out/$part.txt"
}

# built_in PART MODEL ARGUMENT...: a model of the catalogue with made-up weights.
built_in() {
    part=$1
    model=$2
    shift 2
    deep "$part" --engine torch --model "$model" --weights synthetic --device cuda:0 "$@" \
        infer.seq_len=512 infer.max_new_tokens=8
}

for part in "$@"; do
    case $part in
    known)
        deep known --top-kernels 2 ${KNOWN_OPTIONS:-} -- python3 "$here/deep_known.py"
        python3 "$here/deep_known.py" "$work/known/kernels.json" | tee "$out/known-check.txt" || failed=1
        grep -q FAIL "$out/known-check.txt" && failed=1
        ;;
    light) built_in light llama-3-8b --mode light --stage decode --top-kernels 3 ;;
    again:*)
        name=${part#again:}
        # shellcheck disable=SC2086
        built_in "$name-again" "$name" ${AGAIN_OPTIONS:-}
        "$program" compare "$work/$name" "$work/$name-again" 2>&1 | tee "$out/$name-compare.txt"
        ;;
    dsocr)
        # shellcheck disable=SC2086
        deep dsocr --model deepseek-ocr workload.seq_len=283 workload.base_size=1024 workload.decode_steps=7 \
            -- ${DSOCR:?a command that runs DeepSeek-OCR}
        ;;
    *) built_in "$part" "$part" ;;
    esac
done
rm -rf "$work"
exit "$failed"
