#!/usr/bin/env bash
# Loads on a server that annotates nothing, recorded by our collector; what it found of every step beside the server's log.
#   tests/live/h200_plain_server.sh OUT PROGRAM
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd); out=$(mkdir -p "$1" && cd "$1" && pwd); program=$(realpath "$2"); failed=0
serve() { # name, least, load...
  local name=$1 least=$2; shift 2; local folder=$out/$name; mkdir -p "$folder"
  timeout 200 "$program" serve --out "$folder/run" --ready 100 "$@" -- \
    python3 "$here/plain_server.py" 8124 "$folder/steps.jsonl" --port 8124 > "$folder/printed.txt" 2> "$folder/errors.txt"
  echo "$name: exit $?"
  python3 "$here/plain_server_check.py" "$folder" "$least" || failed=1
}
serve steady 0.95 --rate 12 --requests 60 --window 40 --input 200..900 --output 20..80
serve chunks 0.8 --rate 8 --requests 40 --window 30 --input 1000..4000 --output 20..60
exit $failed
