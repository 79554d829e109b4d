"""vLLM's engine in one process, decoding a fixed batch when it is told to: what the collector costs a server is measured on it.

    python3 collector_engine.py --model FOLDER --turns FOLDER [--profiler]

`--cupti STEP` has CUPTI do a part of what attaching it takes, before the engine starts, and nothing more: `subscribe` with a callback for
nothing, `unsubscribed` the same and gives it back, `nodes` also for nodes of graphs, `kinds` has it record kernels and whole graphs into
buffers without a subscription, `stopped` the same until it has recorded a step, and then no more.
`--model` is a folder made by serving_model.py. Each line of the pipe `go` in `--turns` holds a number of steps and a batch; the answer
in `done` has milliseconds of each decode step, without those that start and end the batch. A line with 0 steps ends it. Where vLLM
cannot be imported, a decoder of plain matrices replayed as a CUDA graph for each batch takes its place, and the first line says so.
"""

import argparse
import json
import os
import time

BATCHES = (1, 8, 64)
PROMPT = 64
# Steps at both ends of a batch: the prompt, and the engine's queue that fills and drains.
ENDS = 4


class Cupti:
    """Steps of attaching CUPTI, without a tool."""

    KERNELS, WHOLE_GRAPHS, RESOURCE, NODE_CREATED, NODE_CLONED, SIZE = 10, 51, 3, 13, 20, 1 << 20

    def __init__(self, step):
        import ctypes
        import ctypes.util

        self.step, self.c = step, ctypes
        path = os.environ.get("LLM_PERF_INJECT_CUPTI_FALLBACK") or ctypes.util.find_library("cupti")
        self.cupti = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        subscriber = ctypes.c_void_p()
        if step in ("subscribe", "unsubscribed", "nodes"):
            kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_void_p)
            self.kept = kind(lambda *_: None)
            self.check("cuptiSubscribe", ctypes.byref(subscriber), self.kept, None)
        if step == "unsubscribed":
            self.check("cuptiUnsubscribe", subscriber)
        if step == "nodes":
            for node in (self.NODE_CREATED, self.NODE_CLONED):
                self.check("cuptiEnableCallback", 1, subscriber, self.RESOURCE, node)
        if step in ("kinds", "stopped"):
            self.buffers = [ctypes.create_string_buffer(self.SIZE + 8) for _ in range(64)]
            request = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_size_t), ctypes.POINTER(ctypes.c_size_t))
            complete = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
            self.kept = request(self.lend), complete(self.take)
            self.check("cuptiActivityRegisterCallbacks", *self.kept)
            self.switch("cuptiActivityEnable")

    def check(self, name, *arguments):
        code = getattr(self.cupti, name)(*arguments)
        print(name, "gives", code, flush=True)

    def switch(self, name):
        for kind in (self.KERNELS, self.WHOLE_GRAPHS):
            self.check(name, kind)

    def lend(self, buffer, size, most):
        free = self.buffers.pop()
        buffer[0], size[0], most[0] = self.c.addressof(free), self.SIZE, 0
        setattr(self, f"lent_{self.c.addressof(free)}", free)

    def take(self, context, stream, buffer, size, valid):
        self.buffers.append(self.__dict__.pop(f"lent_{buffer}"))

    def warmed_up(self):
        if self.step == "stopped":
            self.switch("cuptiActivityDisable")
            self.check("cuptiActivityFlushAll", 1)


class Vllm:
    name = "vLLM"

    def __init__(self, model):
        os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
        os.environ.setdefault("VLLM_USE_FLASHINFER_SAMPLER", "0")
        import vllm

        self.name = f"vLLM {vllm.__version__}"
        self.sampling = vllm.SamplingParams
        # A fixed size of the cache: several of these start side by side and would disturb each other's look at free memory.
        llm = vllm.LLM(model=model, load_format="dummy", max_model_len=4096, max_num_seqs=max(BATCHES), gpu_memory_utilization=0.08,
                       kv_cache_memory_bytes=4 << 30, disable_log_stats=True, enable_prefix_caching=False,
                       compilation_config={"cudagraph_capture_sizes": list(BATCHES)})
        self.engine, self.number = llm.llm_engine, 0

    def turn(self, steps, batch):
        for place in range(batch):
            self.number += 1
            prompt = {"prompt_token_ids": [(self.number * 7919 + token * 31 + place) % 30000 + 10 for token in range(PROMPT)]}
            self.engine.add_request(str(self.number), prompt, self.sampling(
                max_tokens=steps + 2 * ENDS, ignore_eos=True, temperature=0.0, detokenize=False))
        times = []
        while self.engine.has_unfinished_requests():
            began = time.perf_counter()
            self.engine.step()
            times.append((time.perf_counter() - began) * 1e3)
        return times[ENDS:-ENDS]


class Matrices:
    name = "matrices in CUDA graphs, because vLLM cannot be imported"

    def __init__(self, _):
        import torch

        self.torch, self.graphs = torch, {}
        width, layers = 2048, 16
        weights = [torch.randn(width, width, device="cuda", dtype=torch.bfloat16) * 0.02 for _ in range(7 * layers)]
        for batch in BATCHES:
            x = torch.randn(batch, width, device="cuda", dtype=torch.bfloat16)

            def step(x=x):
                y = x
                for number, weight in enumerate(weights):
                    y = y @ weight
                    if number % 7 == 6:
                        y = torch.nn.functional.silu(y * torch.rsqrt(y.float().pow(2).mean(-1, keepdim=True) + 1e-6).to(y.dtype))
                return y.argmax(-1)

            step()
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                token = step()
            self.graphs[batch] = graph, token

    def turn(self, steps, batch):
        graph, token = self.graphs[batch]
        times = []
        for _ in range(steps):
            began = time.perf_counter()
            graph.replay()
            token.cpu()
            times.append((time.perf_counter() - began) * 1e3)
        return times


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--turns", required=True)
    parser.add_argument("--profiler", action="store_true")
    parser.add_argument("--cupti")
    options = parser.parse_args()
    cupti = Cupti(options.cupti) if options.cupti else None
    try:
        engine = Vllm(options.model)
    except ImportError as error:
        print(f"no vLLM: {error}", flush=True)
        engine = Matrices(options.model)
    for batch in BATCHES:
        engine.turn(16, batch)
    if cupti:
        cupti.warmed_up()
    if options.profiler:
        import torch

        profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA])
        profiler.start()
    if "TURNS_CORE" in os.environ:
        os.sched_setaffinity(0, {int(os.environ["TURNS_CORE"])})
    with open(os.path.join(options.turns, "done"), "w") as done, open(os.path.join(options.turns, "go")) as go:
        done.write(json.dumps({"engine": engine.name}) + "\n")
        done.flush()
        for line in go:
            steps, batch = (int(word) for word in line.split())
            if steps == 0:
                # Records of a profiler are not made into a trace: that takes longer than the turns.
                os._exit(0) if options.profiler else exit(0)
            before = time.process_time()
            times = engine.turn(steps, batch)
            done.write(json.dumps({"step_ms": times, "cpu_ms": (time.process_time() - before) * 1e3}) + "\n")
            done.flush()


main()
