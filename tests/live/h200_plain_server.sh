#!/usr/bin/env bash
# Loads on a server that annotates nothing, recorded by our collector; what it found of every step beside the server's log.
#   tests/live/h200_plain_server.sh OUT PROGRAM
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd); out=$(mkdir -p "$1" && cd "$1" && pwd); program=$(realpath "$2"); failed=0
serve() { # name, least, how steps are made up, load...
  local name=$1 least=$2 kind=$3; shift 3; local folder=$out/$name; mkdir -p "$folder"
  timeout 200 "$program" serve --out "$folder/run" --ready 100 "$@" -- \
    python3 "$here/plain_server.py" 8124 "$folder/steps.jsonl" $kind --port 8124 > "$folder/printed.txt" 2> "$folder/errors.txt"
  echo "$name: exit $?"
  python3 "$here/plain_server_check.py" "$folder" "$least" || failed=1
}
serve steady 0.95 "" --rate 60 --requests 160 --window 120 --input 200..900 --output 20..80
serve chunks 0.7 "" --rate 24 --requests 80 --window 60 --input 1000..4000 --output 20..60
serve apart 0.9 apart --rate 50 --requests 160 --window 120 --input 200..900 --output 20..80
# A server that runs already, with the collector waiting in it: found by its port.
folder=$out/url; mkdir -p "$folder"
"$program" run -- python3 "$here/plain_server.py" 8125 "$folder/steps.jsonl" > "$folder/server.txt" 2>&1 & server_id=$!
timeout 200 "$program" serve --out "$folder/run" --url http://127.0.0.1:8125 --ready 100 --rate 60 --requests 160 --window 120 \
  --input 200..900 --output 20..80 > "$folder/printed.txt" 2> "$folder/errors.txt"
echo "url: exit $?"; kill $server_id; wait $server_id 2> /dev/null
python3 "$here/plain_server_check.py" "$folder" 0.95 || failed=1
exit $failed
