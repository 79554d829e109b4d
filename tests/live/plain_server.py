"""A server that annotates nothing and has no profiler of its own, with a log of what every step processed.

    python plain_server.py PORT LOG [apart]

Answers `/health`, `/v1/models` and streamed `/v1/completions` with batches that change from step to step, on a stack of
random matrices instead of a model. Each line of LOG is a step: its end on the Unix clock, and how many tokens of each
request (by the `x-request-id` it came with) it processed. With `apart` a step processes either prompts or what decodes.
"""

import json
import queue
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import torch

PORT, LOG, APART = int(sys.argv[1]), sys.argv[2], sys.argv[3:4] == ["apart"]
WIDTH, LAYERS, WORDS, BUDGET = 4096, 24, 32_000, 1024

waiting: "queue.Queue" = queue.Queue()


class Request:
    def __init__(self, name, prompt, most):
        self.name, self.left, self.most = name, prompt, most
        self.output = queue.Queue()


@torch.inference_mode()
def engine():
    layers = [torch.randn(WIDTH, WIDTH, device="cuda", dtype=torch.bfloat16) / WIDTH**0.5 for _ in range(LAYERS)]
    head = torch.randn(WIDTH, WORDS, device="cuda", dtype=torch.bfloat16)
    table = torch.randn(WORDS, WIDTH, device="cuda", dtype=torch.bfloat16)
    running, log = [], open(LOG, "w", buffering=1)
    tokens = torch.zeros(BUDGET, dtype=torch.long, device="cuda")
    while True:
        if not running:
            running.append(waiting.get())
        while not waiting.empty() and len(running) < 64:
            running.append(waiting.get())
        budget, chosen = BUDGET, []
        prompts = [request for request in running if request.left] if APART else []
        for request in prompts or running:
            take = min(request.left or 1, budget)
            budget -= take
            if take:
                chosen.append((request, take))
        count = sum(take for _, take in chosen)
        hidden = table[tokens[:count]]
        for layer in layers:
            hidden = torch.nn.functional.silu(hidden @ layer)
        last = torch.tensor([sum(take for _, take in chosen[: place + 1]) - 1 for place in range(len(chosen))])
        choice = (hidden[last.cuda()] @ head).argmax(dim=-1).tolist()
        log.write(json.dumps([time.time_ns(), [[one.name, take] for one, take in chosen]]) + "\n")
        for (request, take), token in zip(chosen, choice):
            request.left = max(request.left - take, 0)
            if request.left == 0:
                request.most -= 1
                request.output.put(token)
        running = [request for request in running if request.most > 0]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def whole(self, body):
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == "/v1/models":
            self.whole(json.dumps({"data": [{"id": "matrices"}]}).encode())
        elif self.path == "/health":
            self.whole(b"")
        else:
            self.send_error(404)

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path != "/v1/completions":
            return self.send_error(404)
        prompt, most = body["prompt"], body["max_tokens"]
        length = len(prompt) if isinstance(prompt, list) else len(prompt.split())
        request = Request(self.headers["x-request-id"], length, most)
        waiting.put(request)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for _ in range(most):
            request.output.get()
            self.wfile.write(b'data: {"choices":[{"text":"a"}]}\n\n')
        usage = {"choices": [], "usage": {"prompt_tokens": length, "completion_tokens": most}}
        self.wfile.write(f"data: {json.dumps(usage)}\n\ndata: [DONE]\n\n".encode())
        self.close_connection = True


threading.Thread(target=engine, daemon=True).start()
ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
