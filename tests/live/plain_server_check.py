"""What a run found of the steps of `plain_server.py`, beside the server's log: `python plain_server_check.py FOLDER LEAST`, the
share of tokens that must be in the right step."""

import json
import sys
from pathlib import Path

folder, least = Path(sys.argv[1]), float(sys.argv[2])
metrics = json.loads((folder / "run/metrics.json").read_text())
log = [json.loads(line) for line in (folder / "steps.jsonl").read_text().splitlines()]
join = metrics["serving"]["join"]
if join is None:
    sys.exit("not joined: " + "; ".join(metrics.get("missing", [])) + (folder / "errors.txt").read_text()[-800:])
assert join["steps_agreeing"] is None, join
requests = metrics["requests"]
ids = {request["id"]: place for place, request in enumerate(requests)}
found = {}
for place, request in enumerate(requests):
    for step in request["steps"]:
        found.setdefault(step["step"], {})[place] = step["tokens"]
truth = [{ids[one]: take for one, take in step if one in ids} for _, step in log]
begin = next(place for place, step in enumerate(truth) if step)
truth = truth[begin:]


def right(shift):
    pairs = ((step, found.get(place + shift, {})) for place, step in enumerate(truth))
    return sum(min(take, seen.get(one, 0)) for step, seen in pairs for one, take in step.items())


def present(shift):
    pairs = ((step, found.get(place + shift, {})) for place, step in enumerate(truth))
    return sum(one in seen for step, seen in pairs for one in step)


shift = max(range(-5, 200), key=right)
tokens = sum(take for step in truth for take in step.values())
parts = sum(len(step) for step in truth)
ends = [end for end, _ in log[begin:]]
print(f"{join['requests']} of {join['requests_in_trace']} requests, {join['steps']} steps ({len(truth)} in the log)")
print(f"tokens in the right step: {right(shift) / tokens:.1%}; requests in the right steps: {present(shift) / parts:.1%}")
named = {}
for request in requests:
    for name, time in (request["parts"] or {}).items():
        named[name] = named.get(name, 0) + time
print({name: f"{time / sum(named.values()):.1%}" for name, time in named.items()})
if right(shift) < least * tokens:
    sys.exit(f"fewer than {least:.0%} of tokens are in the right step")
