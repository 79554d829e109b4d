"""Tries remedies for llm-perf: runs the model with and without each, in turns, and says what came of it.

Imported by the driver, which has built the model and prepared its inputs. Every remedy is prepared, warmed up and held
against the baseline in turns of one inference each, so that a machine that gets slower or faster meanwhile favours neither.
What is known is told at once: a line for every turn, and one at the end of every remedy.
"""

import contextlib
import copy
import gc
import inspect
import signal
import statistics
import sys
import time
import types

# Logits kept of one answer, for the distance between two.
MOST_LOGITS = 32
# Rounds that make a pair of medians; more are run while there is time.
FEWEST_ROUNDS = 5
# Inferences before the first turn, the first of which compiles or captures. Graphs are recorded at the second call.
WARM_UP = 3
# Share of the time that single remedies may take; the rest is for the combination of those that won.
SINGLES = 0.75
# Share of rounds a remedy must win to be part of the combination.
MOST_ROUNDS = 0.75
# Positions of a static cache beyond prompt and answer: capturing a graph runs the step a few times first.
SPARE = 8


class Unfit(Exception):
    """A remedy that cannot be applied here; the message says why."""


class OutOfTime(BaseException):
    """The time for tries is over. No library's `except Exception` may catch it."""


class Turn:
    """One inference: its times, and its answer where that was kept."""

    def __init__(self):
        self.prefill = self.decode = None
        self.wall = 0
        self.tokens, self.logits = [], []


class Base:
    """The model as the run has it, its first input, and how long an answer is."""

    def __init__(self, torch, runner, item, given, again, device, dtype):
        self.torch, self.model, self.item, self.given, self.again = torch, runner.model, item, given, again
        self.device, self.dtype, self.clock = device, dtype, runner.clock
        self.extra, self.takes = runner.extra, runner.takes
        self.count = runner.decoding["max_new_tokens"] if runner.decoding is not None else 0
        self.cuda = device.startswith("cuda")
        # A stage that is timed inside would be part of every graph.
        self.stages = runner.hooks.stages
        runner.hooks.remove()
        self.published = type(self.model).__module__.startswith("transformers.")

    def in_batch(self, count):
        """The same input so many times, as one batch."""
        if self.given["kind"] != "made":
            return self.again({**self.given, "count" if self.given["kind"] == "pictures" else "batch": count})
        if self.item.facts.get("batch", 1) != 1:
            raise Unfit("the factory sets its own batch")
        more = copy.copy(self.item)
        times = lambda one: self.torch.cat([one] * count) if isinstance(one, self.torch.Tensor) else one
        more.args = [times(one) for one in self.item.args]
        more.kwargs = {name: times(one) for name, one in self.item.kwargs.items()}
        return more

    def attention(self):
        return getattr(getattr(self.model, "config", None), "_attn_implementation", None)


class Variant:
    """One way of running the model: with these remedies applied, or none."""

    def __init__(self, base, remedies, place=None):
        self.base, self.model, self.item, self.extra = base, base.model, base.item, dict(base.extra)
        self.cache, self.call, self.before, self.notes = None, None, [], []
        self.attention, self.place, self.own_bytes = None, place, 0
        self.batch = base.item.facts.get("batch", 1)
        # How a forward pass is launched comes last: it captures or compiles what the others have made.
        for remedy in sorted(remedies, key=lambda one: one == "cuda-graph" or one.startswith("compile")):
            name, _, number = remedy.rpartition("-")
            if name == "batch":
                self.in_batch(int(number))
            else:
                getattr(self, "with_" + remedy.replace("-", "_"))()

    # -- remedies

    def with_last_logits(self):
        keep = next((name for name in ("logits_to_keep", "num_logits_to_keep") if name in self.base.takes), None)
        if keep is None:
            raise Unfit("the forward of %s has no logits_to_keep" % type(self.model).__name__)
        if keep in self.extra:
            raise Unfit("the baseline already computes the logits of the last position only")
        if not self.base.count:
            raise Unfit("the model generates no tokens")
        self.extra[keep] = 1

    def with_attention_sdpa(self):
        self.switch_attention("sdpa")

    def with_attention_flash(self):
        from transformers.utils import is_flash_attn_2_available

        if not is_flash_attn_2_available():
            raise Unfit("the package flash_attn is not installed for this interpreter")
        self.switch_attention("flash_attention_2")

    def switch_attention(self, name):
        base = self.base
        if not base.published or not hasattr(self.model, "set_attn_implementation"):
            raise Unfit("%s does not choose its attention implementation through transformers" % type(self.model).__name__)
        if base.attention() == name:
            raise Unfit("the baseline already uses %s attention" % name)
        self.attention = name

    def with_bf16(self):
        torch = self.base.torch
        if self.base.dtype == torch.bfloat16:
            raise Unfit("the baseline already computes in bfloat16")
        self.own_bytes = sum(one.numel() * one.element_size() for one in self.base.model.parameters())
        self.model = converted(torch, self.model, torch.bfloat16)
        self.item = copy.copy(self.item)
        self.item.args = cast(torch, self.item.args, torch.bfloat16)
        self.item.kwargs = cast(torch, self.item.kwargs, torch.bfloat16)

    def in_batch(self, count):
        if count == self.batch:
            raise Unfit("the baseline already has a batch of %d" % count)
        self.item = self.base.in_batch(count)
        if self.model is not self.base.model:
            torch = self.base.torch
            self.item.args = cast(torch, self.item.args, torch.bfloat16)
            self.item.kwargs = cast(torch, self.item.kwargs, torch.bfloat16)
        self.batch = count
        ids = self.item.kwargs.get("input_ids")
        if len(self.item.kwargs) == 1 and ids is not None:
            # Other prompts than the first in the other rows, or a mixture of experts would meet the same tokens in each.
            rows = [ids[:1]] + [ids[:1].roll(row, dims=1) for row in range(1, count)]
            self.item.kwargs = {"input_ids": self.base.torch.cat(rows)}
            self.notes.append("the other sequences are rotations of the first")
        else:
            self.notes.append("all sequences are identical")

    def with_cuda_graph(self):
        if not self.base.cuda:
            raise Unfit("a CUDA graph needs a CUDA device")
        if not self.base.count:
            self.before.append(lambda: setattr(self, "call", Captured(self.base.torch, self.forward())))
            return
        self.with_static_cache()
        self.before.append(self.capture)

    def capture(self):
        """The decode step as one graph, over a cache that the prompt has filled."""
        torch = self.base.torch
        token = torch.zeros((self.batch, 1), dtype=torch.long, device=self.base.device)
        position = torch.tensor([self.prompt()], device=self.base.device)
        step = self.static_step()
        graph = Captured(torch, lambda: step(token, position))

        def call(new, at):
            token.copy_(new)
            position.fill_(at)
            return graph()

        self.call = call

    def with_compile(self):
        self.compile(None)

    def with_compile_reduce_overhead(self):
        if not self.base.cuda:
            raise Unfit("reduce-overhead captures CUDA graphs and needs a CUDA device")
        self.compile("reduce-overhead")

    def with_compile_max_autotune(self):
        self.compile("max-autotune")

    def compile(self, mode):
        torch = self.base.torch
        dynamo = torch._dynamo.config
        # Variants share the model's code, and each is one more entry of it.
        for name in ("recompile_limit", "cache_size_limit"):
            if hasattr(dynamo, name):
                setattr(dynamo, name, 64)
        if not self.base.count:
            self.call = torch.compile(own_code(self.forward()), mode=mode)
            return
        static = self.static_cache_or_none()
        # Only the decode step: prefill runs once a request, and its length changes from one to the next.
        step = self.static_step() if static else self.dynamic_step()
        compiled = torch.compile(own_code(step), mode=mode, dynamic=not static)
        mark = getattr(torch.compiler, "cudagraph_mark_step_begin", lambda: None)
        position = torch.tensor([self.prompt()], device=self.base.device)

        def call(new, at, past=None):
            mark()
            if past is not None:
                output = compiled(new, past)
                return output.logits.clone(), output.past_key_values
            position.fill_(at)
            return compiled(new, position).clone()

        self.call = call

    # What is compiled or captured are functions over plain values.

    def forward(self):
        model, args, arguments = self.model, self.item.args, {**self.item.kwargs, **self.extra}

        def forward():
            return model(*args, **arguments)

        return forward

    def static_step(self):
        model, cache, arguments, positions = self.model, self.cache, self.every_step(), self.positions

        def step(token, position):
            return model(input_ids=token, past_key_values=cache, **positions(position), **arguments).logits

        return step

    def dynamic_step(self):
        model, arguments = self.model, self.every_step()

        def step(token, past):
            return model(input_ids=token, past_key_values=past, **arguments)

        return step

    def every_step(self):
        # Where inputs are copied to the device, steps find them there.
        given = self.item.kwargs if self.place is None else self.base.item.kwargs
        return {**{name: given[name] for name in self.item.every_step}, **self.extra}

    # -- a static cache

    def prompt(self):
        return self.item.kwargs["input_ids"].shape[1]

    def with_static_cache(self):
        if "input_ids" not in self.item.kwargs or "past_key_values" not in self.base.takes:
            raise Unfit("%s has no past_key_values argument" % type(self.model).__name__)
        if not self.base.published:
            raise Unfit("%s is not a transformers model, and static caches need one" % type(self.model).__name__)
        from transformers import StaticCache

        sizes = {"config": self.model.config, "max_cache_len": self.prompt() + self.base.count + SPARE}
        known = inspect.signature(StaticCache.__init__).parameters
        # Before transformers 5 it was allocated at once.
        older = {"max_batch_size": self.batch, "device": self.base.device, "dtype": next(self.model.parameters()).dtype}
        self.cache = StaticCache(**sizes, **{name: value for name, value in older.items() if name in known})
        layers = getattr(self.cache, "layers", [])
        if any(getattr(layer, "is_sliding", False) for layer in layers):
            # Layers with a sliding window count their tokens on the host, which a graph does not replay. As long as the
            # others they need no count: the mask keeps the window.
            from transformers.cache_utils import StaticLayer

            self.cache.layers = [StaticLayer(sizes["max_cache_len"]) if getattr(layer, "is_sliding", False) else layer
                                 for layer in layers]
            self.notes.append("sliding-window layers keep the whole sequence in the static cache")

    def static_cache_or_none(self):
        try:
            self.with_static_cache()
            return True
        except Unfit as problem:
            self.notes.append("uses the model's own cache: %s" % problem)
            return False

    def positions(self, position):
        """Since transformers 5 a static cache knows itself how far it is filled."""
        return {"cache_position": position} if "cache_position" in self.base.takes else {}

    # -- running

    @contextlib.contextmanager
    def applied(self):
        """Settings of the model that others share, for the time of one inference."""
        usual = self.base.attention()
        if self.attention is not None:
            self.model.set_attn_implementation(self.attention)
        try:
            # A compiled or captured step works on tensors of its own that live on; those of inference mode may not.
            torch = self.base.torch
            with torch.no_grad() if self.cache is not None or self.call is not None else torch.inference_mode():
                yield
        finally:
            if self.attention is not None:
                self.model.set_attn_implementation(usual)

    def run(self, keep=False):
        with self.applied():
            return self.generate(keep) if self.base.count else self.pass_once(keep)

    def arguments(self):
        """Arguments on the device; where they are copied there is part of the request for some remedies."""
        if self.place is None:
            return self.item.args, self.item.kwargs
        moved = lambda value: moved_to(self.base.torch, value, self.base.device, self.place == "pinned")
        return moved(self.item.args), moved(self.item.kwargs)

    def pass_once(self, keep):
        while self.before:
            self.before.pop()()
        turn, clock = Turn(), self.base.clock
        begin = clock.now()
        args, kwargs = self.arguments()
        output = self.call() if self.call is not None else self.model(*args, **kwargs, **self.extra)
        turn.wall = turn.prefill = clock.now() - begin
        if keep:
            found = first_tensor(self.base.torch, output)
            if found is not None:
                row = found[0] if self.batch > 1 else found
                turn.logits = [row.float().flatten().cpu()]
                turn.tokens = found.argmax(-1).flatten()[:1].tolist() if found.dim() > 1 else []
        return turn

    def generate(self, keep):
        turn, clock, count = Turn(), self.base.clock, self.base.count
        begin = clock.now()
        args, kwargs = self.arguments()
        if self.cache is not None:
            self.cache.reset()
            torch = self.base.torch
            positions = self.positions(torch.arange(self.prompt(), device=self.base.device))
            kwargs = {**kwargs, "past_key_values": self.cache, **positions}
        output = self.model(*args, **kwargs, **self.extra)
        first = clock.now()
        if self.before:
            # A step is captured over a cache that a prompt has filled, before any answer is timed.
            self.before.pop()()
            return self.generate(keep)
        logits, past = output.logits, getattr(output, "past_key_values", None)
        eager = self.dynamic_step()
        while True:
            token = logits[:, -1:].argmax(-1)
            turn.tokens.append(int(token[0, 0]))
            if keep and len(turn.logits) < MOST_LOGITS:
                turn.logits.append(logits[0, -1].float().cpu())
            # Never at an end token: both sides are to do the same work.
            if len(turn.tokens) >= count or past is None:
                break
            if self.call is None:
                output = eager(token, past)
                logits, past = output.logits, output.past_key_values
            elif self.cache is None:
                logits, past = self.call(token, None, past)
            else:
                logits = self.call(token, self.prompt() + len(turn.tokens) - 1)
        end = clock.now()
        turn.prefill, turn.decode, turn.wall = first - begin, end - first, end - begin
        return turn


class Captured:
    """A call as a CUDA graph: its launches in one."""

    def __init__(self, torch, call):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                call()
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.output = call()

    def __call__(self):
        self.graph.replay()
        return self.output


# ------------------------------------------------------------------------------------------------------------------ helpers


def own_code(function):
    """The same function with code of its own: what is compiled is kept by code, and variants must not share it."""
    parts = (function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    return types.FunctionType(function.__code__.replace(), *parts)


def converted(torch, model, dtype):
    """A copy of the model with its parameters in `dtype`, and without a second copy in its own."""
    memo = {}
    for one in model.parameters():
        data = one.data.to(dtype) if one.is_floating_point() else one.data
        memo[id(one)] = torch.nn.Parameter(data, requires_grad=False)
    stored = set(model.state_dict().keys())
    for name, one in model.named_buffers():
        # Tables that a checkpoint does not have are left as they are: frequencies lose too much.
        memo[id(one)] = one.to(dtype) if name in stored and one.is_floating_point() else one
    made = copy.deepcopy(model, memo)
    if getattr(made, "config", None) is not None:
        with contextlib.suppress(Exception):
            made.config.dtype = dtype
    return made


def cast(torch, value, dtype):
    if isinstance(value, torch.Tensor):
        return value.to(dtype) if value.is_floating_point() else value
    if isinstance(value, dict):
        return {key: cast(torch, one, dtype) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(cast(torch, one, dtype) for one in value)
    return value


def moved_to(torch, value, device, pinned):
    if isinstance(value, torch.Tensor):
        return value.to(device, non_blocking=pinned)
    if isinstance(value, dict):
        return {key: moved_to(torch, one, device, pinned) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(moved_to(torch, one, device, pinned) for one in value)
    return value


def in_host_memory(torch, value, pinned):
    if isinstance(value, torch.Tensor):
        host = value.cpu()
        return host.pin_memory() if pinned else host
    if isinstance(value, dict):
        return {key: in_host_memory(torch, one, pinned) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(in_host_memory(torch, one, pinned) for one in value)
    return value


def first_tensor(torch, output):
    if isinstance(output, torch.Tensor):
        return output
    found = getattr(output, "logits", None)
    if found is None and isinstance(output, (list, tuple, dict)):
        values = output.values() if isinstance(output, dict) else output
        found = next((one for one in values if isinstance(one, torch.Tensor)), None)
    return found


def compared(reference, answer):
    """Answers side by side: tokens that differ, and how far logits are apart as long as both saw the same tokens."""
    pairs = list(zip(reference.tokens, answer.tokens))
    differing = [number for number, (one, other) in enumerate(pairs) if one != other]
    same = differing[0] + 1 if differing else len(reference.logits)
    distances = [float((one - other).abs().max()) for one, other in zip(reference.logits[:same], answer.logits[:same])
                 if one.shape == other.shape and one.numel()]
    distance = max(distances) if distances else None
    return {
        "tokens": len(pairs),
        "differing_tokens": len(differing),
        # Not a number is no distance.
        "max_logit_distance": distance if distance is None or distance == distance and distance < float("inf") else None,
    }


def reason_of(error):
    text = " ".join(str(error).split())
    return "%s: %s" % (type(error).__name__, text[:400]) if text else type(error).__name__


# ------------------------------------------------------------------------------------------------------------------- trying


class Trial:
    """All remedies of a request, one after the other."""

    def __init__(self, base, wanted, channel, earlier):
        self.base, self.wanted, self.channel, self.earlier = base, wanted, channel, earlier
        self.plain = Variant(base, [])
        self.start = time.monotonic()
        self.won = {}
        self.names = list(wanted["remedies"])

    def left(self, share):
        return self.start + self.wanted["limit_s"] * share - time.monotonic()

    def all(self):
        for _ in range(2):
            self.plain.run()
        self.reference = self.plain.run(keep=True)
        for done, remedies in enumerate(self.names):
            share = SINGLES if self.wanted["combine"] and len(self.names) > 1 else 1.0
            self.one(remedies, done, share, len(self.names) - done)
        if self.wanted["combine"]:
            for remedies in self.combinations():
                self.one(remedies, len(self.names) - 1, 1.0, 1)

    def combinations(self):
        """The best of each kind among those that won, together; and the same in the best batch."""
        best, kinds = {}, self.wanted["kinds"]
        for name, gain in self.won.items():
            # What has no kind is never combined.
            kind = kinds.get(name)
            if kind is not None and gain > best.get(kind, (None, 0.0))[1]:
                best[kind] = (name, gain)
        latency = [name for kind, (name, _) in best.items() if kind != "batch"]
        batch = [best["batch"][0]] if "batch" in best else []
        for found in (latency, latency + batch):
            if len(found) > 1 and sorted(found) not in [sorted(one) for one in self.names]:
                self.names.append(found)
                yield found

    def one(self, remedies, done, share, of):
        """One remedy or combination, from its preparation to its end. It fails alone."""
        name = "+".join(remedies)
        self.channel.tell("trying", remedy=name, done=done, total=len(self.names))
        left = self.left(share)
        if left <= 0:
            self.end(name, "not_reached", reason="the %g s time budget ran out" % self.wanted["limit_s"])
            return
        facts = {}
        try:
            with deadline(left):
                facts = self.measured(name, remedies, share, of)
            self.end(name, "tried", **facts)
        except Unfit as problem:
            self.end(name, "not_applicable", reason=str(problem))
        except OutOfTime:
            self.end(name, "not_reached", reason="not finished when the %g s time budget ran out" % self.wanted["limit_s"])
        except Exception as error:
            self.end(name, "failed", reason=reason_of(error))
        finally:
            self.release()

    def end(self, name, status, reason=None, **facts):
        self.channel.tell("tried", remedy=name, status=status, reason=reason, **facts)

    def release(self):
        torch = self.base.torch
        signal.setitimer(signal.ITIMER_REAL, 0)
        if "torch._dynamo" in sys.modules:
            with contextlib.suppress(Exception):
                torch._dynamo.reset()
        gc.collect()
        if self.base.cuda:
            torch.cuda.empty_cache()

    def measured(self, name, remedies, share, of):
        if remedies == ["warm-up"]:
            return self.warm_up(name)
        if "pinned-inputs" in remedies:
            plain, variant = self.with_copies(remedies)
        else:
            begin = time.perf_counter_ns()
            plain, variant = self.plain, Variant(self.base, remedies)
            variant.run()
            first = time.perf_counter_ns() - begin
        for _ in range(WARM_UP - 1):
            variant.run()
        answer = variant.run(keep=True)
        plain.run()
        gains, memory = self.turns(name, plain, variant, share, of)
        facts = {"output": compared(self.reference, answer), "notes": variant.notes, **memory}
        if any(one == "cuda-graph" or one.startswith("compile") for one in remedies):
            # What the first inference took over an ordinary one.
            facts["compile_ns"] = max(0, int(first - statistics.median(turn.wall for _, turn in gains)))
        self.judge(remedies, plain, variant, gains)
        return facts

    def turns(self, name, plain, variant, share, of):
        """Rounds of one inference each, who goes first taking turns too."""
        torch, cuda = self.base.torch, self.base.cuda
        gains, peaks = [], {True: 0, False: 0}
        until = time.monotonic() + max(self.left(share), 0) / (2 * of)
        for number in range(self.wanted["rounds"]):
            if number >= FEWEST_ROUNDS and time.monotonic() > until:
                break
            pair = {}
            for one in (plain, variant) if number % 2 == 0 else (variant, plain):
                if cuda:
                    torch.cuda.reset_peak_memory_stats(self.base.device)
                turn = one.run()
                is_baseline = one is plain
                if cuda:
                    unused = variant.own_bytes if not is_baseline else 0
                    peaks[is_baseline] = max(peaks[is_baseline], torch.cuda.max_memory_allocated(self.base.device) - unused)
                pair[is_baseline] = turn
                self.tell(name, is_baseline, number, one, turn)
            gains.append((pair[True], pair[False]))
        memory = {"baseline_peak_memory_bytes": peaks[True], "peak_memory_bytes": peaks[False]} if cuda else {}
        return gains, memory

    def tell(self, name, is_baseline, number, variant, turn):
        self.channel.tell("turn", remedy=name, baseline=is_baseline, round=number, prefill_ns=turn.prefill,
                          decode_ns=turn.decode, wall_ns=turn.wall, tokens=len(turn.tokens) if self.base.count else 0,
                          sequences=variant.batch)

    def judge(self, remedies, plain, variant, gains):
        """Whether a single remedy takes part in the combination, and by how much it won."""
        if len(remedies) != 1:
            return
        ahead = [(base.wall / plain.batch) / (tried.wall / variant.batch) for base, tried in gains]
        if sum(one > 1 for one in ahead) >= MOST_ROUNDS * len(ahead):
            self.won[remedies[0]] = statistics.median(ahead) - 1

    def with_copies(self, remedies):
        """Inputs in host memory, pinned and not: what the copy takes is part of both sides."""
        if not self.base.cuda:
            raise Unfit("no inputs are copied on a CPU")
        if remedies != ["pinned-inputs"]:
            raise Unfit("pinned-inputs has its own baseline and cannot be combined")
        pair = []
        for pinned in (False, True):
            variant = Variant(self.base, [], "pinned" if pinned else "pageable")
            variant.item = copy.copy(variant.item)
            variant.item.args = in_host_memory(self.base.torch, variant.item.args, pinned)
            variant.item.kwargs = in_host_memory(self.base.torch, variant.item.kwargs, pinned)
            variant.notes = ["both sides start with the copy of the inputs to the device"]
            pair.append(variant)
        return pair

    def warm_up(self, name):
        """The measured passes of the run against the same after more inferences."""
        if not self.earlier:
            raise Unfit("the measured passes generated fewer tokens, or timed stages inside the forward pass")
        later = [self.plain.run() for _ in range(max(FEWEST_ROUNDS, len(self.earlier)))]
        for number, wall in enumerate(self.earlier):
            turn = Turn()
            turn.prefill, turn.decode, turn.wall = wall["prefill"], wall.get("decode"), wall["wall"]
            turn.tokens = [0] * self.base.count
            self.tell(name, True, number, self.plain, turn)
        for number, turn in enumerate(later):
            self.tell(name, False, number, self.plain, turn)
        return {"notes": ["the baseline is the measured passes of this run, which ran first, so the two sides do not alternate"]}


@contextlib.contextmanager
def deadline(seconds):
    """Raises OutOfTime in the main thread when the time is over, and again should a library have caught it."""

    def ring(number, frame):
        raise OutOfTime()

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.001), 5.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def attempt(base, wanted, channel, measured):
    """Everything that is asked for; `measured` are times of the run's own passes over the same input."""
    earlier = [wall for wall in measured if wall["tokens"] == base.count and not base.stages]
    Trial(base, wanted, channel, earlier).all()
