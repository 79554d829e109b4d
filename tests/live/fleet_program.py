"""A few training steps on two ranks that share a GPU, each recorded by the torch profiler: run it under torchrun.

FLEET_BACKEND is nccl or gloo, FLEET_OUT the folder for the traces. Rank 1 has a quarter more to do. Exits with 7 where the backend
refuses two ranks on one GPU.
"""
import os
import sys

import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile, schedule

backend = os.environ.get("FLEET_BACKEND", "nccl")
out = os.environ["FLEET_OUT"]
torch.cuda.set_device(0)
rank = int(os.environ["RANK"])
dist.init_process_group(backend)
try:
    dist.all_reduce(torch.ones(1, device="cuda"))
    torch.cuda.synchronize()
except Exception as error:
    print("refused:", str(error).splitlines()[0], file=sys.stderr)
    sys.exit(7)

size = 4096
weight = torch.randn(size, size, device="cuda", dtype=torch.bfloat16)
gradient = torch.randn(16 * 1024 * 1024, device="cuda")
layers = 10 if rank == 1 else 8


def step():
    x = torch.randn(size, size, device="cuda", dtype=torch.bfloat16)
    for _ in range(layers):
        x = torch.nn.functional.gelu(x @ weight) * 0.01
    dist.all_reduce(gradient)
    torch.cuda.synchronize()


for _ in range(3):
    step()
dist.barrier()
plan = schedule(wait=0, warmup=1, active=20)
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], schedule=plan, record_shapes=True) as recorder:
    for _ in range(21):
        step()
        recorder.step()
recorder.export_chrome_trace(os.path.join(out, "rank%d.json" % rank))
dist.destroy_process_group()
