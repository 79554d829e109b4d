"""Times single operations of the user's PyTorch on a CUDA device for llm-perf.

Usage: python calibrate.py REQUEST.json
REQUEST.json: {"device": "cuda:0", "seconds": 50, "points": FILE.csv, "facts": FILE.json}. Points go to the first file as
`op,dtype,...,microseconds`, what they were measured on to the second. Operations run from CUDA graphs, so that launches do not
count, and over rotated buffers where a model would read from memory: weights and caches. Progress leaves as lines on standard output.
"""

import json
import math
import random
import statistics
import subprocess
import sys
import time

COLUMNS = [
    "op", "dtype", "m", "n", "k", "experts", "batch", "length", "kv_length", "heads", "kv_heads", "head_dim", "kv_dtype",
    "window", "rows", "width", "bytes", "microseconds",
]
# Shares of the time for each part; what one part leaves over goes to the next.
SHARES = [("gemm", 0.37), ("attention", 0.36), ("masked attention", 0.14), ("memory", 0.07), ("grouped GEMM", 0.06)]
# The same for ten seconds: enough attention for a curve, and masks from attention without one.
QUICK_SHARES = [("gemm", 0.3), ("attention", 0.52), ("memory", 0.1), ("grouped GEMM", 0.08)]
# Landmarks whose times differ by more than this (as a median) between the beginning and the end make the points incomparable.
# A device that warms up under a minute of GEMMs moves by a twentieth; its clock, kept beside them, by more from reading to reading.
DRIFT = 0.1
# Models use these widths; others lie between them.
WIDTHS = [64, 128, 256, 512, 768, 1024, 1280, 1536, 2048, 2560, 3072, 3584, 4096, 5120, 6144, 7168, 8192, 11008, 12288,
          14336, 16384, 18944, 22016, 28672, 32768, 51200, 65536, 102400, 131072]


def say(text):
    print(text, flush=True)


class Meter:
    """Microseconds of one call, from a CUDA graph that holds it many times over rotated operands."""

    def __init__(self, torch, device):
        self.torch = torch
        self.device = device
        properties = torch.cuda.get_device_properties(device)
        self.l2 = getattr(properties, "L2_cache_size", None) or 64 << 20
        self.memory = properties.total_memory
        self.stream = torch.cuda.Stream(device)
        self.pool = torch.cuda.graph_pool_handle()
        self.start = torch.cuda.Event(enable_timing=True)
        self.end = torch.cuda.Event(enable_timing=True)
        # A pool lives as long as a graph in it; this one keeps it while others come and go.
        one = torch.zeros(1, device=device)
        torch.cuda.synchronize(device)
        with torch.cuda.stream(self.stream):
            self.keeper = self.record(lambda _: one + 1, 1)

    def copies(self, bytes_of_one):
        """How many sets of operands overflow the cache, without filling the memory."""
        wanted = math.ceil(2.5 * self.l2 / max(bytes_of_one, 1)) + 1
        return max(1, min(wanted, 24, int(0.2 * self.memory / max(bytes_of_one, 1))))

    def time(self, call, sets, guess_us):
        """The least of three replays: everything that disturbs makes a time longer."""
        torch = self.torch
        # As many for one set of operands as for many: starting a graph takes a dozen microseconds, which the calls share.
        calls = max(2, min(int(1500 / max(guess_us, 1.0)), 64))
        # The operands were made on another stream.
        torch.cuda.synchronize(self.device)
        with torch.cuda.stream(self.stream):
            call(*sets[0])
            self.stream.synchronize()
            graph = self.record(lambda turn: call(*sets[turn % len(sets)]), calls)
            graph.replay()
            best = math.inf
            for _ in range(3):
                self.start.record(self.stream)
                graph.replay()
                self.end.record(self.stream)
                self.end.synchronize()
                best = min(best, self.start.elapsed_time(self.end) * 1e3 / calls)
            del graph
        return best

    def record(self, work, calls):
        """A graph of that many calls of `work`. `torch.cuda.graph` would empty the allocator's cache for every shape."""
        graph = self.torch.cuda.CUDAGraph()
        graph.capture_begin(pool=self.pool)
        try:
            for turn in range(calls):
                work(turn)
        except Exception:
            try:
                graph.capture_end()
            except Exception:
                pass
            raise
        graph.capture_end()
        return graph


class Points:
    def __init__(self, path):
        self.file = open(path, "w")
        self.file.write(",".join(COLUMNS) + "\n")
        self.count = 0
        self.skipped = {}

    def add(self, microseconds, **cells):
        if not (math.isfinite(microseconds) and microseconds > 0):
            return self.skip(cells.get("op", "?"), "invalid time %s" % microseconds)
        cells["microseconds"] = "%.4f" % microseconds
        self.file.write(",".join(str(cells.get(column, "")) for column in COLUMNS) + "\n")
        self.count += 1

    def skip(self, what, why):
        reason = "%s: %s" % (what, (str(why).splitlines() or ["unknown"])[0][:160])
        self.skipped[reason] = self.skipped.get(reason, 0) + 1


def clock(device):
    """Clock of the multiprocessors in megahertz, driver version and whether clocks are throttled; None where nobody tells."""
    index = str(device).partition(":")[2] or "0"
    query = "clocks.sm,driver_version,clocks_throttle_reasons.active,temperature.gpu"
    try:
        text = subprocess.run(
            ["nvidia-smi", "-i", index, "--query-gpu=" + query, "--format=csv,noheader,nounits"],
            capture_output=True, text=True, timeout=10, check=True,
        ).stdout.strip().splitlines()[0]
        mhz, driver = [part.strip() for part in text.split(",")[:2]]
        return float(mhz), driver
    except Exception:
        return None, None


def landmarks(torch, meter, device):
    """Times of a few fixed operations, measured like every point: what they do between two calls, the points did too."""
    half = torch.float16
    products = [(64, 4096, 4096), (512, 4096, 4096), (2048, 2048, 2048), (4096, 4096, 4096), (8192, 1024, 8192)]
    times = []
    for m, n, k in products:
        one = 2 * (m * k + n * k + m * n)
        make = lambda: (torch.randn(m, k, device=device, dtype=half), torch.randn(n, k, device=device, dtype=half))
        sets = [make() for _ in range(meter.copies(one))]
        guess = 3 + 2 * m * n * k / 4e8 + one / 3e6
        times.append(meter.time(torch.nn.functional.linear, sets, guess))
    sets = [(torch.zeros(1 << 26, device=device, dtype=half),) for _ in range(2)]
    times.append(meter.time(lambda a: a + 1, sets, 100))
    return times


def sustained(torch, meter, device):
    """How many times as long a large GEMM takes at the end of a second of it as in a burst."""
    a, b = (torch.randn(8192, 8192, device=device, dtype=torch.bfloat16) for _ in "ab")
    torch.cuda.synchronize(device)
    time.sleep(0.3)
    burst = meter.time(torch.nn.functional.linear, [(a, b)], 1500)
    events = []
    end = time.monotonic() + 1.2
    while time.monotonic() < end:
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in "ab")
        start.record()
        for _ in range(20):
            torch.nn.functional.linear(a, b)
        stop.record()
        stop.synchronize()
        events.append(start.elapsed_time(stop) * 1e3 / 20)
    return max(1.0, statistics.median(events[-10:]) / burst)


def warm(torch, device, seconds):
    """Keeps the device multiplying until its clock has settled; the clock under load, and the driver's version."""
    a = torch.randn(4096, 4096, device=device, dtype=torch.float16)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(100):
            a @ a
        torch.cuda.synchronize(device)
    # Queued work keeps the device busy while nvidia-smi starts.
    for _ in range(4000):
        a @ a
    mhz, driver = clock(device)
    torch.cuda.synchronize(device)
    return mhz, driver


def scattered(rng, choices, count, seen):
    """Distinct draws; `choices` makes one."""
    tries = 0
    while count > 0 and tries < 50 * count + 1000:
        tries += 1
        one = choices(rng)
        if one is not None and one not in seen:
            seen.add(one)
            count -= 1
            yield one


def gemm_call(torch, dtype, device):
    """A function that makes operands of m, n, k, and one that multiplies them; None where torch cannot."""
    if dtype in ("bf16", "fp16", "tf32"):
        kind = {"bf16": torch.bfloat16, "fp16": torch.float16, "tf32": torch.float32}[dtype]

        def make(m, n, k):
            return (torch.randn(m, k, device=device, dtype=kind), torch.randn(n, k, device=device, dtype=kind))

        return make, lambda a, b: torch.nn.functional.linear(a, b)
    if dtype == "fp8":
        kind = getattr(torch, "float8_e4m3fn", None)
        if kind is None or not hasattr(torch, "_scaled_mm") or torch.cuda.get_device_capability(device) < (8, 9):
            return None
        one = torch.ones((), device=device)

        def make(m, n, k):
            a = torch.randn(m, k, device=device, dtype=torch.bfloat16).to(kind)
            b = torch.randn(n, k, device=device, dtype=torch.bfloat16).to(kind)
            return a, b

        return make, lambda a, b: torch._scaled_mm(a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
    if dtype == "int8":
        if not hasattr(torch, "_int_mm"):
            return None

        def make(m, n, k):
            return tuple(torch.randint(-8, 8, (rows, k), device=device, dtype=torch.int8) for rows in (m, n))

        return make, lambda a, b: torch._int_mm(a, b.t())
    return None


def gemms(torch, meter, points, device, deadline, count):
    dtypes = ["bf16", "fp16", "fp8", "tf32", "int8"]
    torch.backends.cuda.matmul.allow_tf32 = True
    rng = random.Random(1)

    def draw(rng):
        # Half of the rows are few, as in decode; sizes one past a block show what an extra block costs.
        m = int(2 ** rng.uniform(0, 15))
        if rng.random() < 0.5:
            m = 2 ** round(math.log2(m))
        elif rng.random() < 0.3:
            m = max(1, (m // 64) * 64 + 1)
        n, k = rng.choice(WIDTHS), rng.choice(WIDTHS)
        # Most weights of models are a few times as long as wide; the rest are vocabularies and projections.
        if rng.random() < 0.6 and not n / 8 <= k <= 8 * n:
            return None
        return (m, n, k) if m * n * k <= 2 ** 41 and n * k <= 2 ** 31 and m * n <= 2 ** 31 and m * k <= 2 ** 30 else None

    shapes = list(scattered(rng, draw, count, set()))
    begun = time.monotonic()
    for place, dtype in enumerate(dtypes):
        made = gemm_call(torch, dtype, device)
        if made is None:
            points.skip("gemm %s" % dtype, "not supported by torch on this device")
            continue
        make, call = made
        # Every element type gets its part of the time, the first twice as much: most models run in it.
        weights = [3, 1, 2, 1, 1]
        until = begun + (deadline - begun) * sum(weights[: place + 1]) / sum(weights)
        size = {"bf16": 2, "fp16": 2, "tf32": 4}.get(dtype, 1)
        done = 0
        # Twice as many of the first.
        for m, n, k in shapes if place == 0 else shapes[: count // 2]:
            if time.monotonic() > until:
                break
            if dtype == "int8" and m <= 16:
                continue
            if dtype in ("fp8", "int8") and (n % 16 or k % 16):
                continue
            try:
                one = size * (m * k + n * k) + 2 * m * n
                sets = [make(m, n, k) for _ in range(meter.copies(one))]
                guess = 3 + 2 * m * n * k / 4e8 + one / 3e6
                points.add(meter.time(call, sets, guess), op="gemm", dtype=dtype, m=m, n=n, k=k)
                done += 1
            except Exception as error:
                points.skip("gemm %s" % dtype, error)
        say("gemm %s: %d shapes" % (dtype, done))


def attention(torch, meter, points, device, deadline, count):
    rng = random.Random(2)
    layouts = [(32, 8, 128), (32, 32, 128), (40, 8, 128), (64, 8, 128), (16, 16, 64), (12, 12, 64), (28, 4, 128), (8, 1, 256),
               (16, 2, 128), (10, 10, 128), (96, 8, 128), (8, 8, 64), (4, 1, 128), (16, 16, 80), (24, 8, 128), (2, 1, 128)]

    # Large ones take a hundred times as long as small ones and lie on a straight line: a tenth of them shows where.
    def most(rng, usual):
        return 8 * usual if rng.random() < 0.1 else usual

    def context(rng):
        batch, length = 2 ** rng.randint(0, 6), int(2 ** rng.uniform(4, 14))
        if rng.random() < 0.6:
            length = 2 ** round(math.log2(length))
        heads = rng.choice(layouts)
        fits = batch * length <= 65536 and batch * heads[0] * length ** 2 <= most(rng, 2 ** 33)
        return ("c", batch, length, *heads) if fits else None

    def generation(rng):
        batch, length = 2 ** rng.randint(0, 8), int(2 ** rng.uniform(3, 17))
        heads = rng.choice(layouts)
        return ("g", batch, length, *heads) if batch * length * heads[1] * heads[2] <= most(rng, 2 ** 28) else None

    sdpa = torch.nn.functional.scaled_dot_product_attention
    grouped = "enable_gqa" in (sdpa.__doc__ or "")
    shapes, seen = [], set()
    for draw in (context, generation):
        shapes.append(list(scattered(rng, draw, count // 2, seen)))
    order = [one for pair in zip(*shapes) for one in pair]
    done = 0
    for kind, batch, length, heads, kv_heads, width in order:
        if time.monotonic() > deadline:
            break
        queries = length if kind == "c" else 1
        try:
            q_bytes, kv_bytes = 2 * batch * heads * queries * width, 4 * batch * kv_heads * length * width
            if kv_heads != heads and not grouped:
                continue
            kw = {"enable_gqa": True} if kv_heads != heads else {}

            def make():
                q = torch.randn(batch, heads, queries, width, device=device, dtype=torch.bfloat16)
                return q, *(torch.randn(batch, kv_heads, length, width, device=device, dtype=torch.bfloat16) for _ in "kv")

            sets = [make() for _ in range(min(meter.copies(q_bytes * 2 + kv_bytes), 8))]
            flops = 4 * batch * heads * queries * length * width / (2 if kind == "c" else 1)
            guess = 8 + flops / 3e8 + (q_bytes + kv_bytes) / 2e6
            took = meter.time(lambda q, k, v: sdpa(q, k, v, is_causal=kind == "c", **kw), sets, guess)
            cells = dict(dtype="bf16", batch=batch, heads=heads, kv_heads=kv_heads, head_dim=width, kv_dtype="bf16", window=0)
            if kind == "c":
                points.add(took, op="context_attention", length=length, **cells)
            else:
                points.add(took, op="generation_attention", kv_length=length, **cells)
            done += 1
        except Exception as error:
            points.skip("attention", error)
    say("attention: %d shapes" % done)


def ramps(torch, meter, points, device, deadline, quick):
    step = 2 if quick else 1
    for exponent in range(10, 31, step):
        elements = 2 ** exponent
        if time.monotonic() > deadline:
            break
        try:
            sets = []
            for _ in range(min(meter.copies(6 * elements), 24)):
                sets.append(tuple(torch.ones(elements, device=device, dtype=torch.bfloat16) for _ in range(3)))
            # What elementwise kernels read in a model, the kernel before has just written: it may lie in the cache.
            took = meter.time(lambda a, b, c: torch.add(a, b, out=c), sets[:1], 3 + 6 * elements / 3e6)
            points.add(took, op="elementwise", dtype="bf16", bytes=6 * elements)
            took = meter.time(lambda a, b, c: c.copy_(a), sets, 3 + 4 * elements / 3e6)
            points.add(took, op="copy", dtype="bf16", bytes=4 * elements)
        except Exception as error:
            points.skip("elementwise", error)
    for exponent in range(10, 29, 2 * step):
        try:
            host = torch.empty(2 ** exponent, dtype=torch.uint8, pin_memory=True)
            there = torch.empty(2 ** exponent, dtype=torch.uint8, device=device)
            best = math.inf
            for _ in range(4):
                meter.start.record()
                there.copy_(host, non_blocking=True)
                meter.end.record()
                meter.end.synchronize()
                best = min(best, meter.start.elapsed_time(meter.end) * 1e3)
            points.add(best, op="h2d", dtype="uint8", bytes=2 ** exponent)
        except Exception as error:
            points.skip("h2d", error)
    say("elementwise and copies done")


def masked_attention(torch, meter, points, device, deadline, count):
    """Attention under a mask, as models with a window ask for it: other kernels than without one. A plan for a mask takes cuDNN
    half a second to make, so the few shapes are spread by hand: the corners of batch and length first."""
    rng = random.Random(4)
    layouts = [(4, 1, 256), (32, 32, 128), (16, 16, 64), (8, 8, 256), (8, 1, 256), (40, 40, 128), (12, 12, 64), (16, 16, 128)]
    corners = [(1, 1, 512), (8, 1, 4096), (2, 2048, 2048), (64, 1, 512), (1, 512, 512), (64, 1, 2048), (1, 4096, 4096), (8, 512, 512),
               (1, 1, 4096), (16, 1, 1024), (4, 1024, 1024), (32, 1, 128), (1, 8192, 8192), (8, 1, 512), (16, 256, 256), (2, 1, 8192)]
    shapes = []
    for turn in range(count):
        batch, length, kv_length = corners[turn % len(corners)]
        # The second time around, between the blocks of the first.
        kv_length = kv_length if turn < len(corners) else int(kv_length * rng.uniform(0.6, 1.4)) | 1
        shapes.append((batch, length if length == 1 else kv_length, kv_length, *layouts[(turn + rng.randrange(2)) % len(layouts)]))
    sdpa = torch.nn.functional.scaled_dot_product_attention
    done = 0
    for batch, length, kv_length, heads, kv_heads, width in shapes:
        if time.monotonic() > deadline:
            break
        try:
            mask = torch.ones(batch, 1, length, kv_length, device=device, dtype=torch.bool).tril(kv_length - length)

            def make():
                q = torch.randn(batch, heads, length, width, device=device, dtype=torch.bfloat16)
                keys = [torch.randn(batch, kv_heads, kv_length, width, device=device, dtype=torch.bfloat16) for _ in "kv"]
                return q, *(one.expand(-1, heads, -1, -1) for one in keys)

            one = 4 * batch * width * (heads * length + kv_heads * kv_length)
            sets = [make() for _ in range(min(meter.copies(one), 8))]
            guess = 10 + 4 * batch * heads * length * kv_length * width / 2e8 + one / 1e6
            took = meter.time(lambda q, k, v: sdpa(q, k, v, attn_mask=mask), sets, guess)
            points.add(took, op="masked_attention", dtype="bf16", batch=batch, length=length, kv_length=kv_length, heads=heads,
                       kv_heads=kv_heads, head_dim=width)
            done += 1
        except Exception as error:
            points.skip("masked_attention", error)
    say("masked attention: %d shapes" % done)


def kinds(torch, meter, points, device, deadline, quick):
    """Kernels that move memory in other ways than from end to end: eager code is full of them, and they are slower."""
    half = torch.bfloat16

    def heads_of(elements):
        heads = max(1, min(32, elements // 128))
        return heads, max(1, elements // (heads * 128))

    def strided(elements):
        heads, length = heads_of(elements)
        x = torch.ones(1, length, heads, 128, device=device, dtype=half).transpose(1, 2)
        return x, torch.ones(1, 1, length, 128, device=device, dtype=half)

    def halves(elements):
        x, _ = strided(elements)
        return x[..., 64:], x[..., :64]

    def cache(elements):
        length = max(1, elements // 1024)
        return [torch.ones(1, 8, rows, 128, device=device, dtype=half) for rows in (length, 1)],

    # Name, bytes of an element read and written, operands, call.
    ramps = [
        ("cast", 6, lambda elements: (torch.ones(elements, device=device, dtype=half),), lambda x: x.float()),
        ("strided", 4, strided, lambda x, y: x * y),
        ("concatenate", 4, cache, lambda parts: torch.cat(parts, dim=-2)),
        ("concatenate_strided", 4, halves, lambda a, b: torch.cat((a, b), dim=-1)),
    ]
    for exponent in range(10, 29, 2 if quick else 1):
        elements = 2 ** exponent
        for name, size, make, call in ramps:
            if time.monotonic() > deadline:
                return
            try:
                # Only caches come from far; the rest was just written.
                sets = [make(elements) for _ in range(meter.copies(size * elements) if name == "concatenate" else 1)]
                took = meter.time(call, sets, 3 + size * elements / 2e6)
                real = elements if name != "concatenate" else 1024 * (max(1, elements // 1024) + 1)
                points.add(took, op=name, dtype="bf16", bytes=size * real)
            except Exception as error:
                points.skip(name, error)
    rng = random.Random(5)
    rows = [2 ** exponent for exponent in range(0, 17, 2)]
    grid = [("reduce", count, width) for width in (64, 128, 256, 1024, 2048, 4096, 8192) for count in rows]
    grid += [("select", count, width) for width in (8, 32, 64, 128, 256) for count in rows]
    rng.shuffle(grid)
    for name, count, width in grid[: len(grid) // 2] if quick else grid:
        if time.monotonic() > deadline:
            return
        try:
            if count * width > 2 ** 28:
                continue
            sets = [(torch.rand(count, width, device=device),)]
            call = (lambda x: x.mean(-1, keepdim=True)) if name == "reduce" else (lambda x: torch.topk(x, 4, dim=-1))
            points.add(meter.time(call, sets, 4 + 4 * count * width / 1e6), op=name, dtype="fp32", rows=count, width=width)
        except Exception as error:
            points.skip(name, error)
    say("other kernels done")


def memory(torch, meter, points, device, deadline, quick):
    now = time.monotonic()
    ramps(torch, meter, points, device, now + (deadline - now) / 2, quick)
    kinds(torch, meter, points, device, deadline, quick)


def grouped_gemms(torch, meter, points, device, deadline, count):
    """Rows spread over experts: torch's grouped GEMM where it has one."""
    call = getattr(torch, "_grouped_mm", None)
    if call is None:
        points.skip("grouped_gemm", "torch has no grouped GEMM")
        return
    rng = random.Random(3)

    def draw(rng):
        experts = rng.choice([4, 8, 16, 32, 64, 128])
        m = int(2 ** rng.uniform(3, 14)) // 8 * 8
        n, k = rng.choice([512, 768, 896, 1024, 1280, 1408, 1792, 2048, 4096, 7168]), rng.choice([512, 768, 1280, 2048, 4096, 7168])
        return (m, n, k, experts) if experts * n * k <= 2 ** 31 and m >= experts else None

    done = 0
    for m, n, k, experts in scattered(rng, draw, count, set()):
        if time.monotonic() > deadline:
            break
        try:
            ends = torch.tensor([m * (index + 1) // experts for index in range(experts)], device=device, dtype=torch.int32)

            def make():
                a = torch.randn(m, k, device=device, dtype=torch.bfloat16)
                return a, torch.randn(experts, n, k, device=device, dtype=torch.bfloat16).transpose(1, 2)

            one = 2 * (m * k + experts * n * k + m * n)
            sets = [make() for _ in range(min(meter.copies(one), 4))]
            took = meter.time(lambda a, b: call(a, b, offs=ends), sets, 8 + 2 * m * n * k / 3e8 + one / 3e6)
            points.add(took, op="grouped_gemm", dtype="bf16", m=m, n=n, k=k, experts=experts)
            done += 1
        except Exception as error:
            points.skip("grouped_gemm", error)
            if points.count and done == 0 and sum(points.skipped.values()) > 30:
                break
    say("grouped GEMM: %d shapes" % done)


def decoder_launch(torch, device):
    """Host microseconds for a kernel of a small decoder in eager transformers, per layer so that what surrounds the layers
    does not count; None without transformers. The fastest of several steps: a shared host is slower for seconds at a time."""
    try:
        from transformers import LlamaConfig, LlamaForCausalLM
    except ImportError:
        return None
    steps = {}
    for layers in (2, 12):
        config = LlamaConfig(hidden_size=256, intermediate_size=512, num_hidden_layers=layers, num_attention_heads=4,
                             num_key_value_heads=2, vocab_size=512)
        model = LlamaForCausalLM(config).to(device, torch.bfloat16).eval()
        cache = model(input_ids=torch.zeros(1, 16, dtype=torch.long, device=device), use_cache=True).past_key_values
        token = torch.zeros(1, 1, dtype=torch.long, device=device)

        def step(model=model, cache=cache):
            # Always at the same length, for plan_cost().
            cache.crop(-1)
            model(input_ids=token, past_key_values=cache, use_cache=True)

        steps[layers] = step
    times = {layers: [] for layers in steps}
    for _ in range(25):
        for layers, step in steps.items():
            torch.cuda.synchronize(device)
            begun = time.perf_counter()
            step()
            times[layers].append((time.perf_counter() - begun) * 1e6)
    found = []
    for layers, step in steps.items():
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as recorded:
            step()
            torch.cuda.synchronize(device)
        kernels = sum(1 for event in recorded.events() if event.device_type.name == "CUDA")
        found.append((min(times[layers]), kernels))
    (short, few), (long, many) = found
    return (long - short) / (many - few) if many > few and long > short else None


def plan_cost(torch, device):
    """Host microseconds to plan attention over a cache of a length that was not seen before, as cuDNN does; None where nothing
    is planned."""
    attention = torch.nn.functional.scaled_dot_product_attention
    query = torch.ones(1, 8, 1, 128, device=device, dtype=torch.bfloat16)
    found = math.inf
    for length in (131, 137, 139):
        cache = torch.ones(1, 8, length, 128, device=device, dtype=torch.bfloat16)
        times = []
        for _ in range(4):
            torch.cuda.synchronize(device)
            begun = time.perf_counter()
            attention(query, cache, cache)
            times.append((time.perf_counter() - begun) * 1e6)
        found = min(found, times[0] - min(times))
    return found if found > 1000 else None


def launches(torch, meter, device):
    """Host time of an eager operator call, gap between kernels of a graph, the time to notice an end, and to plan attention."""
    x = torch.ones(64, device=device)
    # Modules as models call them: four kernels, with what Python does around each.
    linear = torch.nn.Linear(64, 64, bias=False, device=device, dtype=torch.bfloat16)
    norm = torch.nn.LayerNorm(64, device=device, dtype=torch.bfloat16)
    y = torch.ones(1, 64, device=device, dtype=torch.bfloat16)

    def layer(y):
        h = linear(y)
        return norm(torch.nn.functional.silu(h) * h)

    eager = decoder_launch(torch, device)
    if eager is None:
        times = []
        for _ in range(9):
            torch.cuda.synchronize(device)
            begun = time.perf_counter()
            for _ in range(100):
                layer(y)
            times.append((time.perf_counter() - begun) / 400 * 1e6)
        eager = statistics.median(times)
    torch.cuda.synchronize(device)
    # One operator and the wait for it, less the operator's own call.
    call, waited = math.inf, math.inf
    for _ in range(50):
        begun = time.perf_counter()
        x.add_(1)
        call = min(call, (time.perf_counter() - begun) * 1e6)
        torch.cuda.synchronize(device)
        waited = min(waited, (time.perf_counter() - begun) * 1e6)
    with torch.cuda.stream(meter.stream):
        graph = meter.record(lambda _: x.add_(1), 400)
        graph.replay()
        best = math.inf
        for _ in range(5):
            meter.start.record(meter.stream)
            graph.replay()
            meter.end.record(meter.stream)
            meter.end.synchronize()
            best = min(best, meter.start.elapsed_time(meter.end) * 1e3 / 400)
    return {"eager_us": eager, "graph_us": best, "synchronise_us": waited - call, "plan_us": plan_cost(torch, device)}


def main():
    request = json.load(open(sys.argv[1]))
    import torch

    device = request["device"]
    if not torch.cuda.is_available():
        reason = "torch was built without CUDA" if torch.version.cuda is None else "torch found no CUDA device"
        sys.exit("%s cannot be calibrated: %s" % (device, reason))
    number = int(device.partition(":")[2] or 0)
    if number >= torch.cuda.device_count():
        sys.exit("%s is not available: torch found %d CUDA devices" % (device, torch.cuda.device_count()))
    torch.cuda.set_device(number)
    torch.set_grad_enabled(False)
    quick = request["seconds"] <= 15
    begun = time.monotonic()
    meter = Meter(torch, device)
    points = Points(request["points"])
    before, driver = warm(torch, device, 1.0 if quick else 3.0)
    first = landmarks(torch, meter, device)
    launch = launches(torch, meter, device)
    slowdown = sustained(torch, meter, device)
    # What came before takes as long as this machine needs to load its libraries.
    end = time.monotonic() + request["seconds"]
    remaining = 1.0
    parts = {
        "gemm": lambda until: gemms(torch, meter, points, device, until, 240 if quick else 640),
        "attention": lambda until: attention(torch, meter, points, device, until, 200 if quick else 1000),
        "masked attention": lambda until: masked_attention(torch, meter, points, device, until, 32),
        "memory": lambda until: memory(torch, meter, points, device, until, quick),
        "grouped GEMM": lambda until: grouped_gemms(torch, meter, points, device, until, 60 if quick else 160),
    }
    for name, share in QUICK_SHARES if quick else SHARES:
        now = time.monotonic()
        say("measuring: %s" % name)
        parts[name](now + (end - now) * share / remaining)
        remaining -= share
        torch.cuda.empty_cache()
    after, _ = warm(torch, device, 0.2)
    last = landmarks(torch, meter, device)
    points.file.close()
    drift = statistics.median(end / begin for begin, end in zip(first, last)) - 1
    moved = abs(drift) > DRIFT
    libraries = {"torch": torch.__version__, "cuda": torch.version.cuda or "", "cudnn": str(torch.backends.cudnn.version())}
    facts = {
        "device_name": torch.cuda.get_device_name(number),
        "driver": driver,
        "clocks_mhz": None if None in (before, after) else [before, after],
        "moved": moved,
        "drift": drift,
        "libraries": libraries,
        "launch": launch,
        "sustained": slowdown,
        "points": points.count,
        "seconds": time.monotonic() - begun,
        "skipped": points.skipped,
    }
    with open(request["facts"], "w") as file:
        json.dump(facts, file)
    say("%d points in %.1f s" % (points.count, facts["seconds"]))


if __name__ == "__main__":
    main()
