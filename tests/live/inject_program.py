"""A small decoder in plain PyTorch, to be recorded: over a thousand launches per token, with stages as NVTX ranges.

    python3 inject_program.py --layers 24 --tokens 32 --rounds 5 [--mode graph] [--profiler] [--json FILE]

It prints one JSON line: milliseconds of every decode step of every round, and versions. Endings for tests of a collector: --ending exit|quit|abort|kill.
"""

import argparse
import json
import os
import signal
import time

import torch
import turns
from torch.cuda import nvtx


class Decoder:
    """Eager on purpose: every line is one or more kernels, as in published modelling code."""

    def __init__(self, layers, hidden, heads, positions):
        made = torch.Generator(device="cuda").manual_seed(1)

        def weight(*shape):
            return torch.randn(*shape, device="cuda", dtype=torch.bfloat16, generator=made) * 0.02

        self.hidden, self.heads, self.size = hidden, heads, hidden // heads
        self.embedding = weight(1000, hidden)
        self.layers = [
            {
                "norm1": weight(hidden), "norm2": weight(hidden),
                "q": weight(hidden, hidden), "k": weight(hidden, hidden), "v": weight(hidden, hidden),
                "o": weight(hidden, hidden), "gate": weight(hidden, 4 * hidden), "up": weight(hidden, 4 * hidden),
                "down": weight(4 * hidden, hidden),
                "keys": torch.zeros(heads, positions, self.size, device="cuda", dtype=torch.bfloat16),
                "values": torch.zeros(heads, positions, self.size, device="cuda", dtype=torch.bfloat16),
            }
            for _ in range(layers)
        ]
        angles = torch.outer(torch.arange(positions, device="cuda"), 1e4 ** -torch.linspace(0, 1, self.size // 2, device="cuda"))
        self.cos, self.sin = angles.cos().to(torch.bfloat16), angles.sin().to(torch.bfloat16)

    def norm(self, x, weight):
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * weight

    def rotate(self, x, at):
        half = self.size // 2
        cos, sin = self.cos.index_select(0, at), self.sin.index_select(0, at)
        a, b = x[..., :half], x[..., half:]
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

    def forward(self, tokens, at, mask):
        x = self.embedding.index_select(0, tokens)
        for number, layer in enumerate(self.layers):
            nvtx.range_push(f"layer_{number}")
            y = self.norm(x, layer["norm1"])
            q, k, v = ((y @ layer[name]).view(-1, self.heads, self.size).transpose(0, 1) for name in "qkv")
            q, k = self.rotate(q, at), self.rotate(k, at)
            layer["keys"].index_copy_(1, at, k)
            layer["values"].index_copy_(1, at, v.contiguous())
            scores = (q @ layer["keys"].transpose(1, 2)).float() * self.size**-0.5 + mask
            y = (scores.softmax(-1).to(x.dtype) @ layer["values"]).transpose(0, 1).reshape(-1, self.hidden)
            x = x + y @ layer["o"]
            y = self.norm(x, layer["norm2"])
            x = x + (torch.nn.functional.silu(y @ layer["gate"]) * (y @ layer["up"])) @ layer["down"]
            nvtx.range_pop()
        return (x @ self.embedding.t()).argmax(-1)[-1:]


def activities():
    return [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--prompt", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--warmup", type=int, default=1)
    parser.add_argument("--mode", choices=["eager", "graph"], default="eager")
    parser.add_argument("--profiler", action="store_true")
    parser.add_argument("--ending", choices=["exit", "quit", "abort", "kill"], default="exit")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds of sleep before the ending")
    parser.add_argument("--json")
    parser.add_argument("--turns", help="folder of pipes: take turns with other programs, see turns.py")
    options = parser.parse_args()

    positions = options.prompt + options.tokens + 1
    model = Decoder(options.layers, options.hidden, 8, positions)
    every = torch.arange(positions, device="cuda")
    token, at = torch.zeros(1, dtype=torch.long, device="cuda"), torch.zeros(1, dtype=torch.long, device="cuda")

    def step():
        token.copy_(model.forward(token, at, torch.where(every > at, float("-inf"), 0.0)))
        at.add_(1)

    def prefill():
        prompt = torch.arange(options.prompt, device="cuda")
        mask = torch.where(every[None, :] > every[: options.prompt, None], float("-inf"), 0.0)
        token.copy_(model.forward(prompt, prompt, mask))
        at.fill_(options.prompt)

    graph = None
    if options.mode == "graph":
        prefill()
        step()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        nvtx.range_push("capture")
        with torch.cuda.graph(graph):
            step()
        nvtx.range_pop()

    def round_(tokens, window=False):
        times = []
        nvtx.range_push("prefill")
        prefill()
        token.item()
        nvtx.range_pop()
        nvtx.range_push("decode")
        for number in range(tokens):
            began = time.perf_counter()
            if window and number == 4:
                nvtx.range_push("light_window")
            nvtx.range_push("decode_step")
            if graph is None:
                step()
            else:
                graph.replay()
            token.item()
            nvtx.range_pop()
            if window and number == 11:
                nvtx.range_pop()
            times.append((time.perf_counter() - began) * 1e3)
        nvtx.range_pop()
        return times

    for _ in range(options.warmup):
        nvtx.range_push("warmup")
        round_(2)
        nvtx.range_pop()
    if options.turns:
        if options.profiler:
            profiler = torch.profiler.profile(activities=activities())
            profiler.start()
        turns.serve(options.turns, round_)
        # Records of a profiler are not made into a trace: that takes longer than the turns.
        os._exit(0) if options.profiler else exit(0)
    result = {"torch": torch.__version__, "device": torch.cuda.get_device_name(), "mode": options.mode}
    if options.profiler:
        with torch.profiler.profile(activities=activities()):
            result["step_ms"] = [round_(options.tokens) for _ in range(options.rounds)]
    else:
        result["step_ms"] = [round_(options.tokens) for _ in range(options.rounds)]
    text = json.dumps(result)
    print(text, flush=True)
    if options.json:
        with open(options.json, "w") as file:
            file.write(text)
    time.sleep(options.pause)
    if options.ending == "quit":
        os._exit(0)
    if options.ending == "abort":
        os.abort()
    if options.ending == "kill":
        os.kill(os.getpid(), signal.SIGKILL)


main()
