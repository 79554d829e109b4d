"""Work whose traffic and operations are known: what hardware counters are held against.

usage: deep_known.py            runs it, with ranges: negating 2 GiB in `prefill`, a product of square matrices in `decode`
       deep_known.py kernels.json   holds the counters of such a run against what is known; exit code 1 where they differ
"""

import json
import sys

# Kernels work on whole tiles, and counters count what they work on: a multiple of tiles of 128, 192, 256 and 320.
SIDE = 7680
ELEMENTS = 1 << 30


def run():
    import torch

    source = torch.ones(ELEMENTS, device="cuda", dtype=torch.bfloat16)
    target = torch.empty_like(source)
    left = torch.randn(SIDE, SIDE, device="cuda", dtype=torch.bfloat16)
    right = torch.randn(SIDE, SIDE, device="cuda", dtype=torch.bfloat16)
    product = left @ right
    torch.cuda.synchronize()
    torch.cuda.nvtx.range_push("prefill")
    for _ in range(4):
        torch.neg(source, out=target)
    torch.cuda.synchronize()
    torch.cuda.nvtx.range_pop()
    torch.cuda.nvtx.range_push("decode")
    for _ in range(4):
        torch.cuda.nvtx.range_push("decode_step")
        torch.matmul(left, right, out=product)
        torch.cuda.synchronize()
        torch.cuda.nvtx.range_pop()
    torch.cuda.nvtx.range_pop()


def check(path):
    rows = json.load(open(path))["sampled"]
    failed = False

    def hold(what, counted, known, least, most):
        nonlocal failed
        ratio = counted / known
        good = least <= ratio <= most
        failed |= not good
        print(f"{'ok  ' if good else 'FAIL'} {what}: counted {counted:.6g}, known {known:.6g}, ratio {ratio:.4f}")

    copies = [row for row in rows if row["stage"] == "prefill"]
    if copies:
        copy = max(copies, key=lambda row: row["total_ns"])["counted"]
        hold("bytes of a copy far larger than L2", copy["dram_bytes"]["mean"], 2 * 2 * ELEMENTS, 0.95, 1.05)
    gemm = max((row for row in rows if row["stage"] == "decode"), key=lambda row: row["total_ns"])["counted"]
    hold("bytes of a matrix product", gemm["dram_bytes"]["mean"], 3 * 2 * SIDE * SIDE, 1.0, 100.0)
    hold("tensor operations of a matrix product", gemm["flops_tensor"], 2 * SIDE**3, 0.99, 1.01)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(check(sys.argv[1]) if len(sys.argv) > 1 else run())
