#!/usr/bin/env bash
# Profiles models in PyTorch on a machine with a GPU, holds the stage times against loops timed by hand and the modelled
# FLOPs against torch's counter.
# Usage, from the repository's root: tests/live/h200_torch.sh OUT [PROGRAM]
#   OUT      folder for the files; made if need be
#   PROGRAM  the llm-perf to run; target/release/llm-perf unless told
#   DSOCR    folder with the published DeepSeek-OCR (code/, dsocr.py, setup.sh); left out where it is not set
#   DEVICE   where models run; cuda:0 unless set
#   LAYERS   layers of the models that are made from their config; as published unless set
#   PARTS    which parts to run; all unless set: "resnet llama llama-hand moe moe-hand dsocr command"
# Leaves NAME.tar.gz with the run folder of each, and check.txt with the figures. Fails when one is out of bounds.
set -u
if [ $# -lt 1 ] || [ $# -gt 2 ]; then
    sed -n '2,12s/^# //p' "$0" >&2
    exit 2
fi
out=$1
program=$(realpath "${2:-target/release/llm-perf}")
here=$(realpath "$(dirname "$0")")
parts=${PARTS:-resnet llama llama-hand moe moe-hand dsocr command}
device=${DEVICE:-cuda:0}
mkdir -p "$out"
out=$(realpath "$out")
runs=$(mktemp -d)
LLM_PERF_DATA_DIR=$(mktemp -d)
export LLM_PERF_DATA_DIR
check=$out/check.txt
: >"$check"
failed=0
sampling="dataset.sampling.warmup_rounds=1 dataset.sampling.repeats=${REPEATS:-10}"

wanted() {
    case " $parts " in *" $1 "*) return 0 ;; esac
    return 1
}

# profile NAME ARGUMENT...: one run in a folder of that name.
profile() {
    name=$1
    shift
    begin=$(date +%s)
    code=0
    timeout 150 "$program" profile --out "$runs/$name" "$@" >"$out/$name.txt" 2>&1 || code=$?
    echo "$name: exit $code, $(($(date +%s) - begin)) s" >>"$check"
    if [ "$code" -ne 0 ]; then
        tail -40 "$out/$name.txt" >>"$check"
        failed=1
        return 1
    fi
    tar -C "$runs" -czf "$out/$name.tar.gz" "$name"
    "$program" validate "$runs/$name/metrics.json" "$runs/$name/manifest.json" "$runs/$name/env.json" >>"$check" || failed=1
}

# compare NAME HAND.json: the driver against the loop by hand in the same process, within 3%; FLOPs within 1e-3.
compare() {
    python3 - "$runs/$1/metrics.json" "$2" "$1" >>"$check" <<'PY' || failed=1
import json, sys
metrics, name = json.load(open(sys.argv[1])), sys.argv[3]
bad = False
try:
    hand = json.loads(open(sys.argv[2]).read().strip().splitlines()[-1])
except (OSError, IndexError, ValueError):
    hand = {}
for stage in ("prefill", "decode"):
    found = metrics["aggregates"]["stage_ms"].get(stage)
    by_hand, in_turn = hand.get(f"hand_{stage}_ms"), hand.get(f"driver_{stage}_ms")
    if by_hand and in_turn:
        share = in_turn / by_hand - 1
        bad |= abs(share) > 0.03
        print(f"{name} {stage}: driver {in_turn:.3f} ms, by hand {by_hand:.3f} ms in turn, {share:+.2%}")
    if found and by_hand:
        print(f"{name} {stage}: {found['median']:.3f} ms in the run, by hand {by_hand:.3f} ms in another process")
for check in metrics["flop_checks"]:
    difference = check["difference"]
    bad |= difference is None or abs(difference) > 1e-3
    print(f"{name} {check['stage']} FLOPs: modelled {check['flops_modelled']}, counted {check['flops_counted']}, {difference}")
for stage in metrics["stages"]:
    print(f"{name} {stage['name']}: MFU {stage['mfu']}, MBU {stage['mbu']}, kernels {stage['kernel_count']}")
print(f"{name}: overhead of the recorded pass {metrics['overhead']['share']}, memory {metrics['memory']}")
sys.exit(bad)
PY
}

if wanted resnet; then
    profile resnet --engine torch --model dummy-shallow-resnet --device $device --check-flops infer.batch=16 \
        model.dtype=bfloat16 dataset.sampling.repeats=5 && compare resnet /dev/null
fi

if wanted dsocr && [ -n "${DSOCR:-}" ]; then
    (
        . "$DSOCR/setup.sh"
        timeout 100 python3 "$DSOCR/dsocr.py" --tokens 16 --rounds 10 >"$runs/dsocr.rounds" 2>"$out/dsocr.hand.log"
        python3 - "$runs/dsocr.rounds" >"$runs/dsocr.hand" <<'PY'
import json, statistics, sys
rounds = [json.loads(line) for line in open(sys.argv[1]) if line.startswith("{")]
found = {key: [one[key] for one in rounds] for key in ("prefill_ms", "decode_ms")}
print(json.dumps({"hand_" + key: statistics.median(all) for key, all in found.items()}))
PY
        # One page of 1024 pixels without tiles, as the loop by hand has it.
        # shellcheck disable=SC2086
        profile dsocr --engine torch --model "$DSOCR/code" --weights synthetic --trust-remote-code --device $device \
            --check-flops --inputs assets/pages/receipt.png infer.attention=eager infer.crop_mode=false \
            infer.image_size=1024 infer.prompt='<image>Free OCR.' infer.max_new_tokens=16 model.dtype=bfloat16 model.name=deepseek-ocr $sampling && compare dsocr "$runs/dsocr.hand"
        exit $failed
    ) || failed=1
fi

# Models by their config alone: the same prompt length and number of tokens by hand.
for pair in llama:${LLAMA:-llama-3-8b} moe:${MOE:-qwen1.5-moe-a2.7b}; do
    name=${pair%%:*}
    model=${pair#*:}
    wanted "$name" || continue
    config=crates/network/presets/$model.json
    if [ -n "${LAYERS:-}" ]; then
        mkdir -p "$runs/$model"
        sed "s/\"num_hidden_layers\": *[0-9]*/\"num_hidden_layers\": $LAYERS/" "$config" >"$runs/$model/config.json"
        config=$runs/$model/config.json
    fi
    if wanted "$name-hand"; then
        timeout 100 python3 "$here/hand_timed.py" "$config" 512 16 10 "$device" >"$runs/$name.hand" 2>>"$out/$name.hand.log"
    fi
    # shellcheck disable=SC2086
    profile "$name" --engine torch --model "$config" --weights synthetic --device $device --check-flops infer.seq_len=512 \
        infer.max_new_tokens=16 $sampling && compare "$name" "$runs/$name.hand"
done

if wanted command; then
    profile command -- python3 -c '
import torch
x = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
for _ in range(1500): x = (x @ x).clamp(-1, 1)
torch.cuda.synchronize()' && cat "$out/command.txt" >>"$check"
fi

cat "$check"
exit $failed
