"""vLLM's engine in one process, decoding a fixed batch when it is told to: what the collector costs a server is measured on it.

    python3 collector_engine.py --model FOLDER --turns FOLDER [--profiler]

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
    options = parser.parse_args()
    try:
        engine = Vllm(options.model)
    except ImportError as error:
        print(f"no vLLM: {error}", flush=True)
        engine = Matrices(options.model)
    for batch in BATCHES:
        engine.turn(16, batch)
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
