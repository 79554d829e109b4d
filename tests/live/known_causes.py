#!/usr/bin/env python3
"""Programs whose time is lost for a reason that is known because it was put there. What may be said of each is in
crates/cli/tests/fixtures/causes/expected.json, beside recordings of them.

Usage: known_causes.py run NAME [TRACE]           runs one program, under torch.profiler where TRACE is named
       known_causes.py check KIND NAME METRICS    holds the findings of a run against that; KIND is torch or collector
       known_causes.py names
"""

import json
import sys
import time
from pathlib import Path

EXPECTED = Path(__file__).resolve().parents[2] / "crates/cli/tests/fixtures/causes/expected.json"

STEPS = 8


class SlowRows:
    """Rows of a dataset that take their time."""

    def __init__(self, seconds):
        self.seconds = seconds

    def __len__(self):
        return 4096

    def __getitem__(self, index):
        import torch

        time.sleep(self.seconds)
        return torch.full((256, 256), float(index))


def loop(step, warm=2, profiler=None):
    """Steps after a few that nobody looks at."""
    import torch

    for index in range(warm):
        step(index)
    torch.cuda.synchronize()
    if profiler:
        profiler.start()
    for index in range(STEPS):
        step(warm + index)
    torch.cuda.synchronize()
    if profiler:
        profiler.stop()


def products(size, count, kind):
    """Products of one large square matrix with itself."""
    import torch

    a = torch.randn(size, size, device="cuda", dtype=getattr(torch, kind))

    def step(_):
        for _ in range(count):
            a @ a

    return step


def launches():
    """Small kernels, each over before the next is launched."""
    import torch

    x = torch.randn(256, 256, device="cuda")

    def step(_):
        y = x
        for _ in range(300):
            y = torch.sin(torch.add(y, 1.0))

    return step


def graph():
    """The same kernels as one graph."""
    import torch

    x = torch.randn(256, 256, device="cuda")
    small = launches()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        small(0)
    torch.cuda.synchronize()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        y = x
        for _ in range(300):
            y = torch.sin(torch.add(y, 1.0))

    return lambda _: captured.replay()


def loader():
    """A loader that takes its time in front of each batch."""
    import torch

    weight = torch.randn(256, 4096, device="cuda", dtype=torch.float32)
    batches = iter(torch.utils.data.DataLoader(SlowRows(0.001), batch_size=16))

    def step(_):
        batch = next(batches).cuda()
        for _ in range(5):
            (batch.half() @ weight.half()).relu()

    return step


def host():
    """Work of the host between steps."""
    import torch

    a = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)

    def step(_):
        for _ in range(10):
            a @ a
        torch.cuda.synchronize()
        until = time.perf_counter() + 0.02
        while time.perf_counter() < until:
            sum(range(1000))

    return step


def uploads():
    """Large copies to the device, nothing beside them."""
    import torch

    data = torch.randn(64 << 20)
    weight = torch.randn(1024, 1024, device="cuda", dtype=torch.bfloat16)

    def step(_):
        moved = data.cuda()
        moved[: 1 << 20].view(1024, 1024).bfloat16() @ weight

    return step


def hidden_uploads():
    """The same copies beside GEMMs that take longer."""
    import torch

    data = torch.randn(16 << 20).pin_memory()
    target = torch.empty(16 << 20, device="cuda")
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    side = torch.cuda.Stream()

    def step(_):
        with torch.cuda.stream(side):
            target.copy_(data, non_blocking=True)
        for _ in range(12):
            a @ a

    return step


def synchronising():
    """A value fetched after each small piece of work."""
    import torch

    x = torch.randn(512, 512, device="cuda", dtype=torch.bfloat16)

    def step(_):
        for _ in range(12):
            for _ in range(10):
                x @ x
            x.sum().item()

    return step


def float32():
    """Large GEMMs in float32 without TF32."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    return products(4096, 10, "float32")


def gemms():
    """Large GEMMs in bf16: nothing is lost."""
    return products(8192, 10, "bfloat16")


def elementwise():
    """A chain of operations over a large tensor, a kernel for each."""
    import torch

    x = torch.randn(64 << 20, device="cuda", dtype=torch.bfloat16)

    def step(_):
        y = x
        for _ in range(12):
            y = torch.sigmoid(y * 1.5 + 0.5)

    return step


def written_out_attention():
    """Attention as two batched GEMMs and a softmax."""
    import torch

    q, k, v = (torch.randn(4, 16, 4096, 64, device="cuda", dtype=torch.bfloat16) for _ in range(3))

    def step(_):
        for _ in range(4):
            torch.softmax(q @ k.transpose(-1, -2) * 0.125, dim=-1) @ v

    return step


def fused_attention():
    """The same attention as one kernel."""
    import torch

    q, k, v = (torch.randn(4, 16, 4096, 64, device="cuda", dtype=torch.bfloat16) for _ in range(3))

    def step(_):
        for _ in range(8):
            torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    return step


def transposes():
    """Tensors brought into another order in memory, again and again."""
    import torch

    x = torch.randn(64, 128, 56, 56, device="cuda", dtype=torch.bfloat16)

    def step(_):
        for _ in range(20):
            x.to(memory_format=torch.channels_last).contiguous(memory_format=torch.contiguous_format)

    return step


def compiling():
    """A compiled function that meets a new shape in every step."""
    import torch

    @torch.compile(dynamic=False)
    def work(x):
        return torch.nn.functional.gelu(x * 2 + 1).sum(-1)

    torch._dynamo.config.recompile_limit = 64

    def step(index):
        work(torch.randn(1024, 512 + 32 * index, device="cuda"))

    return step


def training():
    """A training step of a perceptron: no prompt, no token."""
    import torch

    model = torch.nn.Sequential(*[torch.nn.Linear(4096, 4096) for _ in range(6)]).cuda().bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    x = torch.randn(8192, 4096, device="cuda", dtype=torch.bfloat16)

    def step(_):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    return step


def downloads():
    """Results fetched in full after each step."""
    import torch

    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)

    def step(_):
        (a @ a).float().cpu()

    return step


def allocating():
    """Memory given back to the driver and asked for again in every step."""
    import torch

    def step(_):
        for _ in range(10):
            x = torch.ones(256 << 20, device="cuda", dtype=torch.bfloat16)
            del x
            torch.cuda.empty_cache()

    return step


def streams():
    """Two streams that work side by side: nothing is lost, and nothing counts twice."""
    import torch

    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    sides = [torch.cuda.Stream(), torch.cuda.Stream()]

    def step(_):
        for side in sides:
            with torch.cuda.stream(side):
                for _ in range(5):
                    a @ a

    return step


def tf32():
    """Large GEMMs of float32 tensors on tensor cores."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = True
    return products(8192, 5, "float32")


def workers():
    """A slow loader whose workers are ahead of the device."""
    import torch

    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    batches = iter(torch.utils.data.DataLoader(SlowRows(0.0005), batch_size=8, num_workers=4, prefetch_factor=8))

    def step(_):
        batch = next(batches).cuda()
        for _ in range(40):
            a @ a
        return batch

    return step


def matvec():
    """Products of one row with large weights: bound by memory, and as fast as it is."""
    import torch

    weights = [torch.randn(16384, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(8)]
    x = torch.randn(1, 8192, device="cuda", dtype=torch.bfloat16)

    def step(_):
        for weight in weights:
            torch.nn.functional.linear(x, weight)

    return step


def streamed_weights():
    """Weights that lie on the host and are copied for every use."""
    import torch

    weights = [torch.randn(2048, 2048, dtype=torch.bfloat16).pin_memory() for _ in range(23)]
    weights.append(torch.randn(4096, 2048, dtype=torch.bfloat16).pin_memory())
    x = torch.randn(256, 2048, device="cuda", dtype=torch.bfloat16)

    def step(_):
        for weight in weights:
            torch.nn.functional.linear(x, weight.cuda(non_blocking=True))

    return step


def widened_weights():
    """Weights of eight bits that are widened and scaled in front of every GEMM."""
    import torch

    weights = [torch.randint(-127, 127, (8192, 8192), device="cuda", dtype=torch.int8) for _ in range(8)]
    scale = torch.rand(8192, 1, device="cuda", dtype=torch.bfloat16)
    x = torch.randn(16, 8192, device="cuda", dtype=torch.bfloat16)

    def step(_):
        for weight in weights:
            torch.nn.functional.linear(x, weight.to(torch.bfloat16) * scale)

    return step


def graph_gaps():
    """A graph, and some work of the host between its launches."""
    import torch

    x = torch.randn(256, 256, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        torch.sin(x)
    torch.cuda.synchronize()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        y = x
        for _ in range(300):
            y = torch.sin(torch.add(y, 1.0))

    def step(_):
        for _ in range(5):
            captured.replay()
            torch.cuda.synchronize()
            until = time.perf_counter() + 0.0006
            while time.perf_counter() < until:
                pass

    return step


def set_up():
    """Copies of a set-up, once, and then GEMMs with nothing wrong."""
    import torch

    data = torch.randn(64 << 20)
    held = []

    def step(index):
        if index == 2:
            held.append(data.cuda()[: 64 << 20].view(8192, 8192).bfloat16())
        a = held[0] if held else None
        if a is not None:
            for _ in range(10):
                a @ a

    return step


PROGRAMS = [
    launches, graph, loader, host, uploads, hidden_uploads, synchronising, float32, gemms, elementwise, written_out_attention,
    fused_attention, transposes, compiling, training, downloads, allocating, streams, tf32, workers, matvec,
    streamed_weights, widened_weights, graph_gaps, set_up,
]
PROGRAMS = {program.__name__: program for program in PROGRAMS}


def run(name, trace):
    import torch

    step = PROGRAMS[name]()
    if not trace:
        return loop(step)
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    profiler = torch.profiler.profile(activities=activities, record_shapes=True)
    loop(step, profiler=profiler)
    profiler.export_chrome_trace(trace)


def check(kind, name, path):
    expected = json.loads(EXPECTED.read_text())[name][kind]
    with open(path) as file:
        metrics = json.load(file)
    found = [finding["rule"] for finding in metrics["findings"]]
    wrong = [rule for rule in found if rule in expected["never"]]
    stages = [stage["name"] for stage in metrics["stages"] if stage["name"] in ("prefill", "decode", "vision")]
    saved = sum(finding["saves_share"] or 0 for finding in metrics["findings"])
    leads = (found[0] if found else "") in expected["first"]
    ok = leads and not wrong and not stages and saved <= expected["most"]
    print(f"{'ok  ' if ok else 'FAIL'} {name}: found {found}; wrong {wrong}; stages {stages}; saves {saved:.1%}")
    return ok


if __name__ == "__main__":
    verb, *rest = sys.argv[1:] or ["names"]
    if verb == "run":
        run(rest[0], rest[1] if len(rest) > 1 else None)
    elif verb == "check":
        sys.exit(0 if check(*rest) else 1)
    else:
        print(" ".join(PROGRAMS))
