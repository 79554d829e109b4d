#!/usr/bin/env bash
# Loads on vLLM with random weights, on one GPU: figures beside `vllm bench serve`, and planted causes with the truth of every step.
#   tests/live/h200_serve.sh OUT PROGRAM VLLM CASE...     VLLM: a folder with vLLM for the machine's Python
# OUT/CASE has the run folder, the scheduler's log and what was printed.
# Cases: beside attach speculation unmarked-speculation dense deeper experts pages images preemption chunk eager padded slow-scheduler slow-client
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd); out=$(mkdir -p "$1" && cd "$1" && pwd); program=$(realpath "$2"); vllm=$(realpath "$3"); shift 3
export PYTHONPATH=$vllm VLLM_USE_FLASHINFER_SAMPLER=0 VLLM_LOGGING_LEVEL=INFO VLLM_NO_USAGE_STATS=1 HF_HUB_OFFLINE=1 VLLM_CACHE_ROOT=/tmp/vllm-cache
python3 "$here/serving_scheduler.py" "$vllm"
for kind in dense deeper experts pages images; do python3 "$here/serving_model.py" "/tmp/serving/$kind" $kind; done
server=(python3 -m vllm.entrypoints.cli.main serve)
dense=("${server[@]}" /tmp/serving/dense --load-format dummy --max-model-len 8192 --port 8123)

serve() { # case, load..., --, server...
  local name=$1; shift; local folder=$out/$name; mkdir -p "$folder"
  STEPS=$folder/steps.jsonl timeout 400 "$program" serve --out "$folder/run" "$@" > "$folder/printed.txt" 2> "$folder/errors.txt"
  echo "$name: exit $?"; tail -3 "$folder/errors.txt" | cut -c1-300
  mv "$folder"/run/trace/*.json.gz "$folder/trace.json.gz" 2> /dev/null
}

for name in "$@"; do
  start=$SECONDS
  case $name in
    beside) # the same server for both clients
      mkdir -p "$out/beside"
      "${dense[@]}" > "$out/beside/server.txt" 2>&1 & server_id=$!
      for _ in $(seq 300); do curl -sf localhost:8123/health > /dev/null && break; sleep 1; done
      for round in 1 2 3; do
        python3 -m vllm.entrypoints.cli.main bench serve --model /tmp/serving/dense --port 8123 --dataset-name random --random-input-len 512 \
          --random-output-len 64 --random-range-ratio 0 --num-prompts 40 --max-concurrency 1 --ignore-eos --seed $round --save-result --save-detailed \
          --result-dir "$out/beside" --result-filename bench$round.json > "$out/beside/bench$round.txt" 2>&1
        "$program" serve --url http://localhost:8123 --concurrency 1 --requests 40 --input 512 --output 64 --warmup 0 --window 0 --seed $round \
          --out "$out/beside/run$round" > "$out/beside/run$round.txt" 2>&1
      done
      kill $server_id; wait $server_id 2> /dev/null;;
    attach) # a server that waits for it, under load, recorded three times by the number of its first process, then with its own ranges
      mkdir -p "$out/attach"
      "$program" run -- "${dense[@]}" --profiler-config '{"profiler":"cuda"}' > "$out/attach/server.txt" 2>&1 & server_id=$!
      for _ in $(seq 300); do curl -sf localhost:8123/health > /dev/null && break; sleep 1; done
      load() { "$program" serve --url http://localhost:8123 --concurrency 16 --requests 160 --input 256 --output 128 --window 0 --out "$out/attach/$1" \
        > "$out/attach/$1.txt" 2>&1; }
      load before
      load during & load_id=$!
      for round in 1 2 3; do
        sleep 0.5; timeout 60 "$program" attach "$server_id" --for 500ms --out "$out/attach/run$round" > "$out/attach/run$round.txt" 2>&1
        echo "attach $round: exit $?"
      done
      wait $load_id; load after
      load annotated & load_id=$!
      curl -sf -X POST localhost:8123/start_profile; sleep 0.5
      timeout 60 "$program" attach "$server_id" --for 1s --out "$out/attach/run4" > "$out/attach/run4.txt" 2>&1
      echo "attach with ranges of steps: exit $?, $(grep -c '^steps' "$out/attach/run4.txt") kinds of steps"
      curl -sf -X POST localhost:8123/stop_profile; wait $load_id
      kill $server_id; wait $server_id 2> /dev/null;;
    speculation) # drafts from the prompt itself, as vLLM annotates it
      serve speculation --rate 12 --requests 80 --window 60 --input 128..512 --output 64..200 -- "${dense[@]}" \
        --speculative-config '{"method":"ngram","num_speculative_tokens":3,"prompt_lookup_max":4,"prompt_lookup_min":1}';;
    unmarked-speculation) # the same, recorded by the collector that waits in it, without annotations
      mkdir -p "$out/unmarked-speculation"
      STEPS=$out/unmarked-speculation/steps.jsonl "$program" run -- "${dense[@]}" --speculative-config \
        '{"method":"ngram","num_speculative_tokens":3,"prompt_lookup_max":4,"prompt_lookup_min":1}' > "$out/unmarked-speculation/server.txt" 2>&1 & server_id=$!
      "$program" serve --out "$out/unmarked-speculation/run" --url http://127.0.0.1:8123 --ready 300 --rate 12 --requests 80 --window 60 \
        --input 128..512 --output 64..200 > "$out/unmarked-speculation/printed.txt" 2> "$out/unmarked-speculation/errors.txt"
      echo "unmarked-speculation: exit $?"; tail -3 "$out/unmarked-speculation/errors.txt" | cut -c1-300
      kill $server_id; wait $server_id 2> /dev/null;;
    dense) serve dense --rate 24 --requests 120 --window 60 --input 256..900 --output 16..80 -- "${dense[@]}";;
    experts) serve experts --rate 16 --requests 80 --window 40 --input 256..900 --output 16..80 -- "${server[@]}" /tmp/serving/experts --load-format dummy --max-model-len 8192 --port 8123;;
    deeper) serve deeper --rate 12 --requests 150 --window 60 --input 200..1200 --output 50..200 -- "${server[@]}" /tmp/serving/deeper --load-format dummy --max-model-len 8192 --port 8123;;
    pages) serve pages --pages --rate 2 --requests 24 --window 12 --output 64 -- "${server[@]}" /tmp/serving/pages --load-format dummy --max-model-len 8192 --port 8123;;
    images) serve images --pages --rate 4 --requests 32 --window 16 --output 64 -- "${server[@]}" /tmp/serving/images --load-format dummy --max-model-len 8192 --limit-mm-per-prompt '{"video":0}' --port 8123;;
    preemption) serve preemption --rate 100 --requests 48 --window 48 --input 300..600 --output 200..300 -- "${dense[@]}" --num-gpu-blocks-override 512;;
    chunk) serve chunk --rate 6 --requests 40 --window 40 --input 4000..7000 --output 60..120 -- "${dense[@]}" --max-num-batched-tokens 32768;;
    eager) serve eager --rate 8 --requests 40 --window 24 --input 256 --output 64 -- "${dense[@]}" --enforce-eager;;
    padded) serve padded --concurrency 33 --requests 132 --window 66 --input 128 --output 128 -- "${dense[@]}" --compilation-config '{"cudagraph_capture_sizes":[1,2,4,8,16,32,256]}' --max-num-seqs 256;;
    slow-scheduler) SLOW_MS=2 serve slow-scheduler --rate 12 --requests 60 --window 40 --input 256 --output 64 -- "${dense[@]}";;
    slow-client) # the client shares one processor with three busy loops
      for _ in 1 2 3; do taskset -c 0 sh -c 'while :; do :; done' & done
      "${dense[@]}" > /tmp/slow-client.txt 2>&1 & server_id=$!
      for _ in $(seq 300); do curl -sf localhost:8123/health > /dev/null && break; sleep 1; done
      mkdir -p "$out/slow-client"
      taskset -c 0 "$program" serve --url http://localhost:8123 --rate 16 --requests 60 --window 0 --input 256 --output 64 --out "$out/slow-client/run" \
        > "$out/slow-client/printed.txt" 2> "$out/slow-client/errors.txt"; echo "slow-client: exit $?"
      kill $server_id $(jobs -p) 2> /dev/null; wait 2> /dev/null;;
  esac
  echo "$name took $((SECONDS - start)) s"
done
