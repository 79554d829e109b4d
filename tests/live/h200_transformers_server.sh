#!/usr/bin/env bash
# Loads on `transformers serve`, which annotates nothing, with and without continuous batching, recorded by our collector.
#   tests/live/h200_transformers_server.sh OUT PROGRAM PACKAGES     PACKAGES: transformers[serving] for the machine's Python
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd); out=$(mkdir -p "$1" && cd "$1" && pwd); program=$(realpath "$2"); failed=0
export PYTHONPATH=$(realpath "$3") HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false
model=/tmp/serving/dense
python3 "$here/serving_model.py" "$model" dense
python3 - "$model" "$out/prompts.txt" <<'PYTHON'
import random, sys, torch, transformers
config = transformers.AutoConfig.from_pretrained(sys.argv[1])
transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).save_pretrained(sys.argv[1])
dice = random.Random(5)
with open(sys.argv[2], "w") as prompts:
    for _ in range(64):
        print(" ".join(str(dice.randrange(3, 30000)) for _ in range(dice.randrange(100, 900))), file=prompts)
PYTHON
serve() { # name, a finding that must be one of the first two, flags...
  local name=$1 finding=$2; shift 2; mkdir -p "$out/$name"
  timeout 200 "$program" serve --out "$out/$name/run" --ready 100 --served-model "$model" --prompts "$out/prompts.txt" --stop-early --rate 3 \
    --requests 24 --window 16 --output 20..60 --warmup 4 -- \
    python3 -m transformers.cli.transformers serve "$model" "$@" --port 8125 > "$out/$name/printed.txt" 2> "$out/$name/errors.txt"
  echo "$name: exit $?"; sed -n '/^problem/p;/^Of the mean/p' "$out/$name/printed.txt"
  python3 - "$out/$name/run/metrics.json" "$finding" <<'PYTHON' || failed=1
import json, sys
metrics = json.load(open(sys.argv[1]))
join, first = metrics["serving"]["join"], [finding["rule"] for finding in metrics["findings"][:2]]
print(join["requests"], "of", join["requests_in_trace"], "requests joined,", join["tokens"], "outputs,", join["steps"], "steps; first:", *first)
sys.exit(join["requests"] < join["requests_in_trace"] or sys.argv[2] not in first)
PYTHON
}
serve batched host-work --continuous-batching
serve single queueing
exit $failed
