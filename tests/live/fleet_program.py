"""A few training steps on two ranks that share a GPU, each recorded by the torch profiler: run it under torchrun.

FLEET_OUT is the folder for the traces. FLEET_BACKEND is nccl; or symmetric, which reduces by PyTorch's own kernels on memory that both
ranks map (the ranks must run at the same time, so start MPS first); or gloo, which reduces on the host. Rank 1 has a quarter more to
do. Exits with 7 where the backend refuses two ranks on one GPU.
"""
import os
import sys

import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile, record_function

backend = os.environ.get("FLEET_BACKEND", "nccl")
out = os.environ["FLEET_OUT"]
torch.cuda.set_device(0)
rank = int(os.environ["RANK"])
elements = 16 * 1024 * 1024
dist.init_process_group("nccl" if backend == "nccl" else "gloo")
gradient = torch.randn(elements, device="cuda", dtype=torch.bfloat16)
reduce = lambda: dist.all_reduce(gradient)
try:
    if backend == "symmetric":
        import torch.distributed._symmetric_memory as symmetric

        group = dist.group.WORLD.group_name
        symmetric.enable_symm_mem_for_group(group)
        shared = symmetric.empty(elements, device="cuda", dtype=torch.bfloat16)
        shared.copy_(gradient)
        symmetric.rendezvous(shared, group)
        reduce = lambda: torch.ops.symm_mem.two_shot_all_reduce_(shared, "sum", group)
    reduce()
    torch.cuda.synchronize()
except Exception as error:
    print("refused:", str(error).splitlines()[0], file=sys.stderr)
    sys.exit(7)

size = 4096
weight = torch.randn(size, size, device="cuda", dtype=torch.bfloat16)
layers = 10 if rank == 1 else 8


def step():
    x = torch.randn(size, size, device="cuda", dtype=torch.bfloat16)
    for _ in range(layers):
        x = torch.nn.functional.gelu(x @ weight) * 0.01
    reduce()
    torch.cuda.synchronize()


for _ in range(3):
    step()
dist.barrier()
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True) as recorder:
    for number in range(20):
        with record_function("ProfilerStep#%d" % number):
            step()
recorder.export_chrome_trace(os.path.join(out, "rank%d.json" % rank))
dist.destroy_process_group()
