"""Three NVTX regions with known work, for `llm-perf regions`: A with A1 nested in it, and B.

Every region adds or multiplies vectors of 256 MiB, well above the L2 cache of any device, so that the bytes it moves to and
from device memory are the bytes of its tensors. Kernels of one entry: A itself 3, A1 2, B 4. Between regions there
are kernels that belong to none. Every region synchronises before it closes, as replay of ranges needs.
"""

import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--mebibytes", type=int, default=256, help="size of one tensor")
parser.add_argument("--rounds", type=int, default=2, help="entries of each region")
parser.add_argument("--plain", action="store_true", help="push no range")
parser.add_argument("--unsupported", action="store_true", help="allocate inside of a range, which range replay refuses")
arguments = parser.parse_args()

count = arguments.mebibytes * (1 << 20) // 4
device = torch.device("cuda:0")
x = torch.ones(count, device=device)
y = torch.full((count,), 2.0, device=device)
z = torch.empty(count, device=device)


def push(name):
    if not arguments.plain:
        torch.cuda.nvtx.range_push(name)


def pop():
    torch.cuda.synchronize()
    if not arguments.plain:
        torch.cuda.nvtx.range_pop()


def region_a1():
    torch.mul(x, y, out=z)
    torch.mul(z, y, out=z)


def region_a():
    torch.add(x, y, out=z)
    push("A1")
    region_a1()
    pop()
    torch.add(z, y, out=z)
    torch.add(z, x, out=z)
    if arguments.unsupported:
        torch.empty(count, device=device).fill_(1.0)
        torch.cuda.empty_cache()


def region_b():
    for _ in range(4):
        torch.sub(x, y, out=z)


# Warm up outside of every region: the first launch loads modules.
region_a1()
torch.add(x, y, out=z)
torch.sub(x, y, out=z)
torch.cuda.synchronize()
for _ in range(arguments.rounds):
    torch.cuda.synchronize()
    push("A")
    region_a()
    pop()
    torch.div(x, y, out=z)
    torch.cuda.synchronize()
    push("B")
    region_b()
    pop()
print("sum", float(z[0]))
