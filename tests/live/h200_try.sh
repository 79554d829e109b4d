#!/bin/sh
# `profile --engine torch --try auto` on a machine with a GPU: every remedy against the baseline, for several models.
# Usage, from the repository's root: tests/live/h200_try.sh OUT PROGRAM [MODEL...]
#   OUT      folder for what comes back; made if need be
#   PROGRAM  the llm-perf to run
#   MODEL    names of built-in models, or folders with code of their own such as the published DeepSeek-OCR;
#            llama-3-8b gemma-3-1b qwen1.5-moe-a2.7b unless told
#   LAYERS   layers of built-in models; 8 unless set
#   DEVICE   where models run; cuda:0 unless set
#   LIMIT    seconds for the tries of one model; 55 unless set
#   TOTAL    seconds for one model in total; 90 unless set, so that four fit into 6 minutes
# Weights are random. Leaves OUT/summary.txt with PASS or FAIL for every claim, OUT/table.txt with every remedy of every
# model, and OUT/NAME.tar.gz of each run.
set -u
if [ $# -lt 2 ]; then
    sed -n '2,13s/^# //p' "$0" >&2
    exit 2
fi
mkdir -p "$1"
out=$(realpath "$1")
program=$(realpath "$2")
shift 2
[ $# -gt 0 ] || set -- llama-3-8b gemma-3-1b qwen1.5-moe-a2.7b
work=$(mktemp -d)
export LLM_PERF_DATA_DIR="$work/data"
summary=$out/summary.txt
: >"$summary"
: >"$out/table.txt"
say() { printf '%s\n' "$*" | tee -a "$summary"; }

# try NAME ARGUMENT...: one run in a folder of that name, and its claims.
try() {
    name=$1
    shift
    start=$(date +%s)
    timeout -k 5 "${TOTAL:-90}" "$program" profile --engine torch --weights synthetic --device "${DEVICE:-cuda:0}" --out "$work/$name" --try auto \
        --try-limit "${LIMIT:-55}" infer.max_new_tokens=16 dataset.sampling.repeats=3 dataset.sampling.warmup_rounds=1 \
        "$@" >"$out/$name.txt" 2>&1
    code=$?
    seconds=$(($(date +%s) - start))
    if [ "$code" -eq 0 ]; then say "PASS $name: exit 0, ${seconds}s"; else
        say "FAIL $name: exit $code, ${seconds}s"
        tail -15 "$out/$name.txt" | tee -a "$summary"
    fi
    [ -f "$work/$name/metrics.json" ] || return
    "$program" validate "$work/$name/metrics.json" >>"$out/$name.txt" 2>&1 || say "FAIL $name: validate"
    tar -C "$work" -czf "$out/$name.tar.gz" "$name"
    python3 - "$work/$name/metrics.json" "$name" "$out/table.txt" <<'PY' | tee -a "$summary"
import json, sys
tries, name = json.load(open(sys.argv[1]))["tries"], sys.argv[2]
by_name = {one["remedy"]: one for one in tries}


def check(claim, holds):
    print("%s %s: %s" % ("PASS" if holds else "FAIL", name, claim))


def figure(one, key):
    return one and one.get(key) or {}


tried = [one for one in tries if one["status"] == "tried"]
check("at least three remedies ran", len(tried) >= 3)
check("what did not run says why", all(one["reason"] for one in tries if one["status"] != "tried"))
check("every saving has its interval", all(one["low"] <= one["saves_share"] <= one["high"] for one in tried))
check("answers were compared", all(one["output"] for one in tried if one["remedy"] != "warm-up"))
check("memory was counted", all(one["peak_memory_bytes"] for one in tried if one["remedy"] != "warm-up"))
batch = by_name.get("batch-8")
check("a batch of 8 answers more tokens a second", (figure(batch, "throughput").get("low") or 0) > 1)
graph = by_name.get("cuda-graph")
if graph and graph["status"] == "tried":
    check("a CUDA graph saves time per token", (figure(graph, "per_token").get("low") or -1) > 0)
    distance = graph["output"]["max_logit_distance"]
    check("its logits are near the baseline's (%s)" % distance, distance is not None and distance < 0.5)
else:
    print("note %s: cuda-graph %s" % (name, graph and graph["reason"]))
combined = [one for one in tried if "+" in one["remedy"]]
singles = [one for one in tried if "+" not in one["remedy"]]
if len([one for one in singles if one["low"] > 0]) > 1:
    check("those that won were tried together", bool(combined))
with open(sys.argv[3], "a") as table:
    for one in tries:
        token, rates = figure(one, "per_token"), figure(one, "throughput")
        table.write(json.dumps({
            "model": name, "remedy": one["remedy"], "status": one["status"], "reason": one["reason"],
            "predicted": one["predicted_saves_share"], "saved": one["saves_share"], "low": one["low"], "high": one["high"],
            "token_ms": [value and value / 1e6 for value in (token.get("baseline_ns"), token.get("tried_ns"))],
            "tokens_per_second": [rates.get("baseline_per_second"), rates.get("tried_per_second")],
            "compile_s": one["compile_ns"] and one["compile_ns"] / 1e9, "memory": one["peak_memory_bytes"],
            "output": one["output"], "rounds": len(one["turns"]) // 2}) + "\n")
PY
}

for model in "$@"; do
    if [ -d "$model" ]; then
        # A page of 1024 pixels without tiles, by the model's own code.
        try "$(basename "$model")" --model "$model" --trust-remote-code --inputs assets/pages/receipt.png \
            infer.attention=eager infer.crop_mode=false infer.image_size=1024 infer.prompt='<image>Free OCR.' \
            model.dtype=bfloat16 model.name=deepseek-ocr
        continue
    fi
    mkdir -p "$work/$model"
    sed "s/\"num_hidden_layers\": *[0-9]*/\"num_hidden_layers\": ${LAYERS:-8}/" "crates/network/presets/$model.json" \
        >"$work/$model/config.json"
    mv "$work/$model" "$work/$model.model"
    try "$model" --model "$work/$model.model/config.json" model.dtype=bfloat16 infer.seq_len=512
done
rm -rf "$work"
! grep -q '^FAIL' "$summary"
