#!/usr/bin/env python3
"""The same network in PyTorch and in llm-perf, on the same processor with the same threads, taking turns.

Sizes of the built-in `deepseek-ocr-small`, one page as a single view, single precision, random weights on both sides. The
PyTorch side is written as one would write it by hand for speed in eager mode: `F.linear`, fused attention where the
published code asks for it, experts that get only their rows, a preallocated cache. That both sides do the same work is
checked before anything is measured: matrix FLOPs counted by PyTorch equal what `llm-perf analyze` says.

Needs torch, anywhere: python3 -m venv DIR && DIR/bin/pip install torch && DIR/bin/python benches/torch_cpu.py
Writes the section `torch-cpu` of docs/benchmarks.md; `--json` prints what was measured instead.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmark import ROOT, commit, date, processor, program, rust, spread, table, write_section

try:
    import torch
    import torch.nn.functional as F
    from torch.utils.flop_counter import FlopCounterMode
except ImportError:
    sys.exit("error: torch is not installed\nhint: python3 -m venv DIR && DIR/bin/pip install torch, then DIR/bin/python " + sys.argv[0])

MODEL = "deepseek-ocr-small"
WORKLOAD = "dsocr-base-1024"
CONFIG = json.loads((ROOT / "crates" / "network" / "presets" / f"{MODEL}.json").read_text())
SIDE = 1024
STEPS = 32


def weights(*shape: int) -> torch.Tensor:
    """Uniform, with the variance of one over the inputs."""
    inputs = 1
    for size in shape[1:]:
        inputs *= size
    reach = (3 / inputs) ** 0.5 if len(shape) > 1 else 0.02
    return torch.empty(shape).uniform_(-reach, reach)


class Linear:
    def __init__(self, inputs: int, outputs: int, bias: bool = True):
        self.weight = weights(outputs, inputs)
        self.bias = torch.zeros(outputs) if bias else None

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x, self.weight, self.bias)


class Norm:
    def __init__(self, width: int, epsilon: float):
        self.width, self.epsilon = (width,), epsilon
        self.weight, self.bias = torch.ones(width), torch.zeros(width)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(x, self.width, self.weight, self.bias, self.epsilon)

    def over_channels(self, x: torch.Tensor) -> torch.Tensor:
        return self(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class RmsNorm:
    def __init__(self, width: int, epsilon: float):
        self.width, self.epsilon, self.weight = (width,), epsilon, torch.ones(width)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return F.rms_norm(x, self.width, self.weight, self.epsilon)


class SamBlock:
    """Windowed or global attention with decomposed relative positions, then a feed-forward."""

    def __init__(self, width: int, heads: int, window: int, grid: int):
        side = window or grid
        self.heads, self.window = heads, window
        self.norm1, self.norm2 = Norm(width, 1e-6), Norm(width, 1e-6)
        self.qkv, self.projection = Linear(width, 3 * width), Linear(width, width)
        self.first, self.second = Linear(width, 4 * width), Linear(4 * width, width)
        self.rows, self.columns = weights(2 * side - 1, width // heads), weights(2 * side - 1, width // heads)
        self.pairs = torch.arange(side)[:, None] - torch.arange(side)[None, :] + side - 1

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        n, rows, columns, width = x.shape
        mixed = self.norm1(x)
        if self.window:
            side = self.window
            down, across = -rows % side, -columns % side
            mixed = F.pad(mixed, (0, 0, 0, across, 0, down))
            high, wide = (rows + down) // side, (columns + across) // side
            mixed = mixed.view(n, high, side, wide, side, width).permute(0, 1, 3, 2, 4, 5).reshape(-1, side, side, width)
            mixed = self.attend(mixed)
            mixed = mixed.view(n, high, wide, side, side, width).permute(0, 1, 3, 2, 4, 5)
            mixed = mixed.reshape(n, high * side, wide * side, width)[:, :rows, :columns]
        else:
            mixed = self.attend(mixed)
        x = x + mixed
        return x + self.second(F.gelu(self.first(self.norm2(x))))

    def attend(self, x: torch.Tensor) -> torch.Tensor:
        n, rows, columns, width = x.shape
        head = width // self.heads
        qkv = self.qkv(x).view(n, rows * columns, 3, self.heads, head).permute(2, 0, 3, 1, 4)
        query, key, value = qkv.unbind(0)
        places = query.reshape(n * self.heads, rows, columns, head)
        # In order already here, where they are small, so that the large sum is too.
        over_rows = torch.einsum("bhwc,hkc->bhwk", places, self.rows[self.pairs]).contiguous()
        over_columns = torch.einsum("bhwc,wkc->bhwk", places, self.columns[self.pairs]).contiguous()
        bias = over_rows[..., :, None] + over_columns[..., None, :]
        bias = bias.view(n, self.heads, rows * columns, rows * columns)
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=bias)
        mixed = mixed.view(n, self.heads, rows, columns, head).permute(0, 2, 3, 1, 4).reshape(n, rows, columns, width)
        return self.projection(mixed)


class Sam:
    def __init__(self, config: dict):
        width, out, (middle, last) = config["width"], config["out_chans"], config["downsample_channels"]
        grid = config["image_size"] // 16
        windows = [0 if index in config["global_attn_indexes"] else config["window_size"] for index in range(config["layers"])]
        self.patch, self.patch_bias = weights(width, 3, 16, 16), torch.zeros(width)
        self.positions = weights(1, grid, grid, width)
        self.blocks = [SamBlock(width, config["heads"], window, grid) for window in windows]
        self.project, self.mix = weights(out, width, 1, 1), weights(out, out, 3, 3)
        self.norm1, self.norm2 = Norm(out, 1e-6), Norm(out, 1e-6)
        self.net2, self.net3 = weights(middle, out, 3, 3), weights(last, middle, 3, 3)

    def __call__(self, pictures: torch.Tensor) -> torch.Tensor:
        x = F.conv2d(pictures, self.patch, self.patch_bias, stride=16).permute(0, 2, 3, 1) + self.positions
        for block in self.blocks:
            x = block(x)
        x = self.norm1.over_channels(F.conv2d(x.permute(0, 3, 1, 2), self.project))
        x = self.norm2.over_channels(F.conv2d(x, self.mix, padding=1))
        return F.conv2d(F.conv2d(x, self.net2, stride=2, padding=1), self.net3, stride=2, padding=1)


class ClipBlock:
    def __init__(self, width: int, heads: int):
        self.heads = heads
        self.norm1, self.norm2 = Norm(width, 1e-5), Norm(width, 1e-5)
        self.qkv, self.output = Linear(width, 3 * width), Linear(width, width)
        self.first, self.second = Linear(width, 4 * width), Linear(4 * width, width)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        n, length, width = x.shape
        qkv = self.qkv(self.norm1(x)).view(n, length, 3, self.heads, width // self.heads)
        query, key, value = (part.transpose(1, 2) for part in qkv.unbind(2))
        mixed = F.scaled_dot_product_attention(query, key, value)
        x = x + self.output(mixed.transpose(1, 2).reshape(n, length, width))
        inner = self.first(self.norm2(x))
        return x + self.second(inner * torch.sigmoid(1.702 * inner))


class Clip:
    def __init__(self, config: dict):
        width = config["width"]
        self.start = weights(width)
        self.positions = weights((config["image_size"] // config["patch_size"]) ** 2 + 1, width)
        self.norm = Norm(width, 1e-5)
        self.blocks = [ClipBlock(width, config["heads"]) for _ in range(config["layers"])]

    def __call__(self, features: torch.Tensor) -> torch.Tensor:
        patches = features.flatten(2).transpose(1, 2)
        x = torch.cat([self.start.expand(len(patches), 1, -1), patches], 1) + self.positions
        x = self.norm(x)
        for block in self.blocks:
            x = block(x)
        return x


class Mlp:
    def __init__(self, width: int, inner: int):
        self.gate, self.up = Linear(width, inner, False), Linear(width, inner, False)
        self.down = Linear(inner, width, False)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Mixture:
    def __init__(self, config: dict):
        width, inner = config["hidden_size"], config["moe_intermediate_size"]
        self.chosen = config["num_experts_per_tok"]
        self.gate = Linear(width, config["n_routed_experts"], False)
        self.experts = [Mlp(width, inner) for _ in range(config["n_routed_experts"])]
        self.shared = Mlp(width, inner * config["n_shared_experts"])

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        rows = x.view(-1, x.shape[-1])
        scores, indices = F.softmax(self.gate(rows), -1).topk(self.chosen, -1, sorted=False)
        order = indices.flatten().argsort()
        counts = torch.bincount(indices.flatten(), minlength=len(self.experts)).tolist()
        parts = rows[order // self.chosen].split(counts)
        outputs = [expert(part) for expert, part in zip(self.experts, parts) if len(part)]
        mixed = rows.new_empty(len(order), rows.shape[-1])
        mixed[order] = torch.cat(outputs)
        mixed = (mixed.view(len(rows), self.chosen, -1) * scores[..., None]).sum(1)
        return mixed.view_as(x) + self.shared(x)


class Layer:
    def __init__(self, config: dict, index: int, capacity: int):
        width, epsilon = config["hidden_size"], config["rms_norm_eps"]
        self.heads = config["num_attention_heads"]
        self.norm1, self.norm2 = RmsNorm(width, epsilon), RmsNorm(width, epsilon)
        self.query, self.key, self.value, self.output = (Linear(width, width, False) for _ in range(4))
        dense = index < config["first_k_dense_replace"]
        self.inner = Mlp(width, config["intermediate_size"]) if dense else Mixture(config)
        self.cache = torch.zeros(2, 1, self.heads, capacity, width // self.heads)

    def __call__(self, x: torch.Tensor, turns: tuple[torch.Tensor, torch.Tensor], offset: int) -> torch.Tensor:
        n, length, width = x.shape
        normed = self.norm1(x)
        split = (n, length, self.heads, width // self.heads)
        query, key, value = (part(normed).view(split).transpose(1, 2) for part in (self.query, self.key, self.value))
        end = offset + length
        self.cache[0, :, :, offset:end], self.cache[1, :, :, offset:end] = rotate(key, turns), value
        keys, values = self.cache[:, :, :, :end]
        # Softmax by hand, as the published eager attention has it.
        scores = rotate(query, turns) @ keys.transpose(2, 3) / split[3] ** 0.5
        if length > 1:
            scores = scores + torch.full((length, end), float("-inf")).triu(end - length + 1)
        mixed = (F.softmax(scores, -1) @ values).transpose(1, 2).reshape(n, length, width)
        x = x + self.output(mixed)
        return x + self.inner(self.norm2(x))


def rotate(x: torch.Tensor, turns: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    first, second = x.chunk(2, -1)
    return x * turns[0] + torch.cat([-second, first], -1) * turns[1]


class Model:
    def __init__(self, capacity: int):
        language, vision = CONFIG["language_config"], CONFIG["vision_config"]["width"]
        width = language["hidden_size"]
        self.head_width = width // language["num_attention_heads"]
        self.sam, self.clip = Sam(vision["sam_vit_b"]), Clip(vision["clip-l-14-224"])
        self.projector = Linear(CONFIG["projector_config"]["input_dim"], width)
        self.newline, self.separator = weights(width), weights(width)
        self.table = weights(language["vocab_size"], width)
        self.layers = [Layer(language, index, capacity) for index in range(language["num_hidden_layers"])]
        self.norm = RmsNorm(width, language["rms_norm_eps"])
        self.head = Linear(width, language["vocab_size"], False)

    def prefill(self, ids: torch.Tensor, picture: torch.Tensor, image_tokens: int) -> torch.Tensor:
        low = self.sam(picture)
        high = self.clip(low)[:, 1:]
        seen = self.projector(torch.cat([high, low.flatten(2).transpose(1, 2)], -1))
        side, width = int(seen.shape[1] ** 0.5), seen.shape[2]
        lines = torch.cat([seen.view(side, side, width), self.newline.expand(side, 1, width)], 1)
        x = F.embedding(ids, self.table)
        x[0, 1 : 1 + image_tokens] = torch.cat([lines.view(-1, width), self.separator[None]])
        return self.decode(x, 0)

    def step(self, token: torch.Tensor, offset: int) -> torch.Tensor:
        return self.decode(F.embedding(token, self.table), offset)

    def decode(self, x: torch.Tensor, offset: int) -> torch.Tensor:
        frequencies = 1 / 10000 ** (torch.arange(0, self.head_width, 2) / self.head_width)
        angles = torch.arange(offset, offset + x.shape[1])[:, None] * frequencies
        angles = torch.cat([angles, angles], -1)
        turns = (angles.cos(), angles.sin())
        for layer in self.layers:
            x = layer(x, turns, offset)
        return self.head(self.norm(x))


class Torch:
    """The PyTorch side: one page, then greedy steps."""

    def __init__(self, text_tokens: int, image_tokens: int):
        self.length, self.image_tokens = text_tokens + image_tokens, image_tokens
        self.model = Model(self.length + STEPS)
        self.ids = torch.arange(self.length)[None] % 500
        self.picture = torch.rand(1, 3, SIDE, SIDE) * 2 - 1

    def run(self, steps: int = STEPS) -> tuple[float, list[float]]:
        """Seconds of prefill and of each step."""
        began = time.perf_counter()
        logits = self.model.prefill(self.ids, self.picture, self.image_tokens)
        prefill, times = time.perf_counter() - began, []
        for step in range(steps):
            token = logits[:, -1:].argmax(-1)
            began = time.perf_counter()
            logits = self.model.step(token, self.length + step)
            times.append(time.perf_counter() - began)
        return prefill, times


def check_work(side: Torch, modelled: dict) -> None:
    """Both networks do the same matrix work, or there is nothing to compare."""
    with FlopCounterMode(display=False) as prefill:
        logits = side.model.prefill(side.ids, side.picture, side.image_tokens)
    with FlopCounterMode(display=False) as step:
        side.model.step(logits[:, -1:].argmax(-1), side.length)
    expected = {"prefill": modelled["stages"]["prefill"]["flops_matrix"], "decode step": first_step(modelled)}
    for name, found in [("prefill", prefill.get_total_flops()), ("decode step", step.get_total_flops())]:
        if found != expected[name]:
            sys.exit(f"error: PyTorch's {name} does {found} matrix FLOPs and llm-perf's {expected[name]}: the networks differ")


def first_step(modelled: dict) -> int:
    """The steps add up to the stage, each attending to one position more than the one before."""
    language = CONFIG["language_config"]
    steps = modelled["workload"]["decode_steps"]
    grows = 4 * language["hidden_size"] * language["num_hidden_layers"]
    return (modelled["stages"]["decode"]["flops_matrix"] - grows * steps * (steps - 1) // 2) // steps


def modelled(prompt_tokens: int) -> dict:
    command = [program(), "--quiet", "analyze", "--model", MODEL, "--workload", WORKLOAD, "--json"]
    command.append(f"workload.seq_len={prompt_tokens}")
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def native(threads: int, settings: list[str]) -> tuple[int, dict]:
    """Tokens of llm-perf's prompt, and its tokens a second in prefill and decode."""
    with tempfile.TemporaryDirectory() as parent:
        view = [f"infer.base_size={SIDE}", f"infer.image_size={SIDE}", "infer.crop_mode=false"]
        settings = ["dataset/sampling=sampling.smoke", "dataset.sampling.warmup_rounds=1", *view, *settings]
        command = [program(), "--quiet", "profile", "--model", MODEL, "--out", str(Path(parent) / "run"), "--json"]
        command += [*settings, f"infer.max_new_tokens={STEPS + 1}"]
        environment = {**os.environ, "RAYON_NUM_THREADS": str(threads)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode not in (0, 3):
        sys.exit(f"error: {' '.join(command)} ended with exit code {done.returncode}\n{done.stderr}")
    metrics = json.loads(done.stdout)
    seconds = {sample["stage"]: sample["wall_ns"] / 1e9 for sample in metrics["samples"] if not sample["warmup"]}
    tokens = {stage["name"]: stage["tokens"] for stage in metrics["stages"]}
    if tokens["decode"] != STEPS:
        sys.exit(f"error: llm-perf made {tokens['decode']} decode steps, not {STEPS}")
    rates = {"prefill": tokens["prefill"] / seconds["prefill"], "decode": STEPS / seconds["decode"]}
    return tokens["prefill"], rates


def measure(threads: int, rounds: int, settings: list[str]) -> dict:
    """Tokens a second of both, round after round, the two taking turns."""
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    torch.manual_seed(0)
    prompt_tokens, _ = native(threads, settings)
    model = modelled(prompt_tokens)
    side = Torch(model["workload"]["text_tokens"], model["workload"]["image_tokens"])
    check_work(side, model)
    side.run()
    rates = {name: {"prefill": [], "decode": []} for name in ("llm-perf", "torch")}
    for _ in range(rounds):
        prefill, steps = side.run()
        _, rates_native = native(threads, settings)
        turn = {"llm-perf": rates_native, "torch": {"prefill": side.length / prefill, "decode": STEPS / sum(steps)}}
        for name, stages in turn.items():
            for stage, rate in stages.items():
                rates[name][stage].append(rate)
    middle = {name: {stage: statistics.median(values) for stage, values in stages.items()} for name, stages in rates.items()}
    return {
        "machine": processor(),
        "torch": torch.__version__,
        "threads": threads,
        "prompt_tokens": side.length,
        "settings": settings,
        "tokens_per_second": rates,
        "ratio": {stage: middle["llm-perf"][stage] / middle["torch"][stage] for stage in ("prefill", "decode")},
    }


def section(measured: dict) -> str:
    rates = measured["tokens_per_second"]
    rows = [
        [stage, spread(rates["llm-perf"][stage], 1, 1), spread(rates["torch"][stage], 1, 1), f"{measured['ratio'][stage]:.2f}"]
        for stage in ("prefill", "decode")
    ]
    rounds = len(rates["torch"]["prefill"])
    text = (
        f"Commit {commit()}, {date()}. {measured['machine']}, {rust()}, PyTorch {measured['torch']}.\n"
        f"`{MODEL}`, single precision, {measured['threads']} threads, one page as a single view"
        f" ({measured['prompt_tokens']} tokens), {STEPS} steps; {rounds} rounds, taking turns. `benches/torch_cpu.py`\n"
    )
    return f"{text}\n{table(['stage', 'llm-perf, tokens/s', 'PyTorch, tokens/s', 'ratio'], rows)}"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--rounds", type=int, default=7)
    arguments.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    arguments.add_argument("--json", action="store_true", help="print what was measured and leave docs/benchmarks.md alone")
    arguments.add_argument("--from", dest="source", type=Path, help="write what --json printed on another machine")
    arguments.add_argument("settings", nargs="*", help="more settings for llm-perf profile, such as model.dtype=bf16")
    options = arguments.parse_args()
    if options.source:
        measured = json.loads(options.source.read_text())
    else:
        measured = measure(options.threads, options.rounds, options.settings)
    if options.json:
        print(json.dumps(measured, indent=2))
    else:
        write_section("torch-cpu", section(measured))


if __name__ == "__main__":
    main()
