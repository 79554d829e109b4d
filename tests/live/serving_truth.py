"""Steps, requests and the scheduler's log of a load, without kernels: what the join of requests and steps is checked against.

    python3 serving_truth.py RUN STEPS OUT      RUN: a folder with metrics.json and recorded_requests.jsonl
"""
import gzip, json, re, sys
run, steps, out = sys.argv[1:4]
metrics = json.load(open(f"{run}/metrics.json"))
head, *requests = [json.loads(line) for line in open(f"{run}/recorded_requests.jsonl")]
name = re.compile(r"llm-perf-[0-9a-f]+-\d+")
places = {name.search(request["id"])[0]: place for place, request in enumerate(requests)}
log = [json.loads(line) for line in gzip.open(steps, "rt")]
log = [step for step in log if any(name.search(i)[0] in places for i in step["tokens"])]
worked = []
for step in metrics["steps"]["list"]:
    batch = step["batch"]
    if batch and batch["context"]["sequences"] + batch["generation"]["sequences"]:
        groups = [[batch[g]["sequences"], batch[g]["query_tokens"]] for g in ("context", "generation")]
        worked.append([step["start_ns"], step["host_ns"], step["device_start_ns"], step["device_end_ns"], *groups])
assert len(worked) == len(log), (len(worked), len(log))
first = worked[0][0]
zero = metrics["serving"]["join"]["offset_ns"]
offset = 0 if head["clock"] == "epoch" else log[0]["wall_ns"] - log[0]["mono_ns"]
for row in worked:
    for place in (0, 2, 3):
        row[place] -= first
document = {
    # Steps count from the start of the first; requests from the same moment, on the clock of the steps.
    "steps": worked,
    "requests": [[r["due_ns"] + offset + zero - first if metrics["serving"]["clock"] == "epoch" else None, r["chunks_ns"], r["input_tokens"], r["output_tokens"]] for r in requests],
    "truth": [[[places[name.search(i)[0]], n] for i, n in step["tokens"].items()] for step in log],
    "preempted": sum(len(step["preempted"]) for step in log),
}
with gzip.GzipFile(out, "wb", mtime=0) as file:
    file.write(json.dumps(document, separators=(",", ":")).encode())
print(out, len(worked), len(requests), document["preempted"])
