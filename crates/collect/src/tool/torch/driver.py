"""Runs a PyTorch model for llm-perf: times its stages, then records one pass with torch.profiler.

Usage: python driver.py REQUEST.json
REQUEST.json says what to run. Results leave as JSON lines on the file descriptor that LLM_PERF_CHANNEL names; standard
output and standard error belong to the model, which may print what it likes. Needs torch, and transformers only for
models of the Hugging Face kind.
"""

import contextlib
import importlib
import inspect
import json
import os
import sys
import time
import traceback
from collections import OrderedDict

PROTOCOL = 1


class Refused(Exception):
    """Something the user can put right; `kind` says what."""

    def __init__(self, kind, message):
        super().__init__(message)
        self.kind = kind


class Channel:
    """One JSON object a line, to whoever started this. Without a listener nothing is said."""

    def __init__(self):
        number = os.environ.pop("LLM_PERF_CHANNEL", None)
        self.listener = number is not None
        if not self.listener:
            self.out = open(os.devnull, "w")
            return
        os.set_inheritable(int(number), False)
        self.out = os.fdopen(int(number), "w", buffering=1, encoding="utf-8")

    def tell(self, event, **facts):
        self.out.write(json.dumps({"event": event, **facts}) + "\n")
        self.out.flush()


# ---------------------------------------------------------------------------------------------------------------- devices


class Clock:
    """Host time in nanoseconds, with the device caught up first."""

    def __init__(self, torch, device):
        kind = torch.device(device).type
        backend = getattr(torch, kind, None)
        self.wait = getattr(backend, "synchronize", None) if kind != "cpu" else None

    def now(self):
        if self.wait is not None:
            self.wait()
        return time.perf_counter_ns()


def choose_device(torch, wanted):
    cuda = torch.cuda.is_available()
    if wanted == "auto":
        local = int(os.environ.get("LOCAL_RANK", "0"))
        return "cuda:%d" % (local % torch.cuda.device_count()) if cuda else "cpu"
    if wanted.startswith("cuda"):
        if not cuda:
            reason = "torch was built without CUDA" if torch.version.cuda is None else "torch found no CUDA device"
            raise Refused("device", "%s is not available: %s" % (wanted, reason))
        number = int(wanted.partition(":")[2] or 0)
        if number >= torch.cuda.device_count():
            raise Refused("device", "%s is not available: torch found %d CUDA devices" % (wanted, torch.cuda.device_count()))
        return "cuda:%d" % number
    return wanted


def describe_device(torch, device):
    if not device.startswith("cuda"):
        return {"id": device, "name": None, "uuid": None, "memory_bytes": None}
    properties = torch.cuda.get_device_properties(device)
    uuid = getattr(properties, "uuid", None)
    return {
        "id": device,
        "name": properties.name,
        "uuid": None if uuid is None else "GPU-%s" % uuid,
        "memory_bytes": properties.total_memory,
    }


# ----------------------------------------------------------------------------------------------------------------- ranges


class Ranges:
    """Named ranges around stages and modules, for whichever tool listens."""

    def __init__(self, torch, nvtx):
        self.torch = torch
        self.recording = False
        self.push = self.pop = None
        if nvtx:
            self.push, self.pop = find_nvtx(torch)

    @contextlib.contextmanager
    def span(self, name):
        with contextlib.ExitStack() as stack:
            self.enter(stack, name)
            yield

    def heard(self):
        return self.recording or self.push is not None

    def enter(self, stack, name):
        if self.push is not None:
            self.push(name)
            stack.callback(self.pop)
        if self.recording:
            stack.enter_context(self.torch.profiler.record_function(name))


def find_nvtx(torch):
    """Push and pop, in domain LLM where the package `nvtx` is there, else in the default domain, else nothing."""
    try:
        import nvtx

        domain = nvtx.get_domain("LLM")

        def push(name):
            domain.push_range(domain.get_event_attributes(message=name))

        push("llm-perf")
        domain.pop_range()
        return push, domain.pop_range
    except Exception:
        pass
    try:
        torch.cuda.nvtx.range_push("llm-perf")
        torch.cuda.nvtx.range_pop()
        return torch.cuda.nvtx.range_push, torch.cuda.nvtx.range_pop
    except Exception:
        return None, None


# Modules that turn pixels into embeddings, by the last part of their path. The published DeepSeek-OCR has three of them.
DEEPSEEK_OCR = {"sam_model": "sam", "vision_model": "clip", "projector": "projector"}
TOWERS = ("vision_tower", "visual", "vision_model", "vision_encoder", "vision_backbone", "image_encoder", "vit")
PROJECTORS = ("multi_modal_projector", "mm_projector", "multimodal_projector", "projector", "connector", "aligner",
              "embed_vision", "mlp1", "modality_projection")


def vision_parts(model):
    """Modules of the vision stages by path: the outermost of each kind."""
    paths = [path for path, _ in model.named_modules() if path]
    last = {path: path.rpartition(".")[2] for path in paths}
    names = DEEPSEEK_OCR if "sam_model" in last.values() else {
        **{name: "vision" for name in TOWERS}, **{name: "projector" for name in PROJECTORS}}
    found = {}
    for path in sorted(paths, key=lambda path: path.count(".")):
        inside = any(path.startswith(outer + ".") for outer in found)
        if last[path] in names and not inside:
            found[path] = names[last[path]]
    # A projector alone is somebody else's.
    return found if any(stage != "projector" for stage in found.values()) else {}


class Hooks:
    """Stage edges inside a forward pass, by hooks on modules."""

    def __init__(self, model, clock, ranges, depth):
        self.times, self.handles = {}, []
        self.stages = vision_parts(model)
        self.active = False
        modules = dict(model.named_modules())
        for path, stage in self.stages.items():
            self.around(modules[path], stage, clock, ranges)
        if depth > 0:
            for path, module in modules.items():
                if path and path.count(".") < depth and path not in self.stages:
                    self.around(module, path, None, ranges)

    def around(self, module, name, clock, ranges):
        open_spans = []

        def before(module, *given):
            if clock is None and not ranges.heard():
                return
            stack = contextlib.ExitStack()
            begin = clock.now() if clock is not None and self.active else None
            ranges.enter(stack, name)
            open_spans.append((stack, begin))

        def after(module, *given):
            if not open_spans:
                return
            stack, begin = open_spans.pop()
            if begin is not None:
                self.times[name] = self.times.get(name, 0) + clock.now() - begin
            stack.close()

        self.handles.append(module.register_forward_pre_hook(before))
        try:
            # Also when the module raises, so that a range that was opened is closed.
            self.handles.append(module.register_forward_hook(after, always_call=True))
        except TypeError:
            # Before torch 2.1.
            self.handles.append(module.register_forward_hook(after))

    def remove(self):
        while self.handles:
            self.handles.pop().remove()

    def begin(self):
        self.times, self.active = {}, True

    def end(self):
        self.active = False
        times = dict(self.times)
        if self.stages:
            # A stage that did not run is not a stage of this input.
            times["vision"] = sum(times.values())
        return {stage: wall for stage, wall in times.items() if wall > 0}


# ----------------------------------------------------------------------------------------------------------------- models


def build_resnet(torch, sizes):
    """The dummy ResNet, module for module as llm-perf's own."""
    nn = torch.nn

    class BasicBlock(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.conv1 = nn.Conv2d(width, width, 3, padding=1, bias=False)
            self.bn1 = nn.BatchNorm2d(width)
            self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
            self.bn2 = nn.BatchNorm2d(width)
            self.relu = nn.ReLU()

        def forward(self, x):
            y = self.relu(self.bn1(self.conv1(x)))
            return self.relu(self.bn2(self.conv2(y)) + x)

    class Head(nn.Module):
        def __init__(self, width, classes):
            super().__init__()
            self.fc = nn.Linear(width, classes)

        def forward(self, x):
            return self.fc(x.mean(dim=(2, 3)))

    class ShallowResNet(nn.Module):
        def __init__(self):
            super().__init__()
            width = sizes["channels"]
            conv = nn.Conv2d(sizes["in_channels"], width, 3, padding=1, bias=False)
            self.stem = nn.Sequential(OrderedDict(conv=conv, bn=nn.BatchNorm2d(width), relu=nn.ReLU()))
            self.residual = nn.Sequential(*(BasicBlock(width) for _ in range(sizes["blocks"])))
            self.head = Head(width, sizes["classes"])

        def forward(self, x):
            return self.head(self.residual(self.stem(x)))

    return ShallowResNet()


def read_config(path):
    file = os.path.join(path, "config.json") if os.path.isdir(path) else path
    if not os.path.isfile(file):
        raise Refused("config", "%s has no config.json" % path)
    with open(file, encoding="utf-8") as text:
        return json.load(text)


def auto_classes(transformers, raw):
    """Auto classes to try, the likeliest first."""
    of_map = [name for name in raw.get("auto_map", {}) if name.startswith("AutoModel")]
    pictures = "vision_config" in raw or any("ConditionalGeneration" in name for name in raw.get("architectures") or [])
    general = ["AutoModelForImageTextToText", "AutoModelForVision2Seq"] if pictures else []
    wanted = sorted(of_map, key=lambda name: "CausalLM" not in name) + general + ["AutoModelForCausalLM", "AutoModel"]
    names = list(dict.fromkeys(wanted))
    return [(name, getattr(transformers, name)) for name in names if hasattr(transformers, name)]


def build_transformer(torch, wanted, device, channel):
    """A model of the Hugging Face kind: from its folder, or of its config alone."""
    try:
        import transformers
    except ImportError as error:
        raise Refused("transformers", "this model requires transformers: %s" % error) from error
    path, trust = wanted["path"], wanted["trust_remote_code"]
    raw = read_config(path)
    folder = path if os.path.isdir(path) else os.path.dirname(path) or "."
    if raw.get("auto_map") and not trust and not known_type(transformers, raw):
        raise Refused("remote_code", "%s contains its own Python code" % folder)
    config = transformers.AutoConfig.from_pretrained(path, local_files_only=True, trust_remote_code=trust)
    if wanted["attention"]:
        config._attn_implementation = wanted["attention"]
    dtype = choose_dtype(torch, wanted["dtype"], config, device)
    synthetic = wanted["weights"] == "synthetic"
    newer = int(transformers.__version__.split(".")[0]) >= 5
    extra = {"trust_remote_code": trust, ("dtype" if newer else "torch_dtype"): dtype}
    if wanted["attention"]:
        extra["attn_implementation"] = wanted["attention"]
    problem = None
    for name, auto in auto_classes(transformers, raw):
        try:
            if synthetic:
                torch.manual_seed(wanted["seed"])
                with default_dtype(torch, dtype), torch.device(device):
                    # Made where it runs, so that no second copy passes through the host's memory.
                    model = auto.from_config(config, **extra)
            else:
                model = auto.from_pretrained(wanted["weights"], config=config, local_files_only=True, **extra)
            break
        except ValueError as error:
            # The wrong auto class for this config; the next one may know it.
            if "nrecognized configuration class" not in str(error):
                raise
            problem = error
    else:
        raise Refused("config", "no auto class of transformers %s supports %s: %s" % (
            transformers.__version__, raw.get("model_type"), problem))
    # Its element types stay as it was made: some keep a few tensors in higher precision.
    model = model.to(device)
    if synthetic:
        settle(torch, model)
    channel.tell("note", text="built by transformers.%s" % name)
    return model


def known_type(transformers, raw):
    try:
        return raw.get("model_type") in transformers.models.auto.configuration_auto.CONFIG_MAPPING
    except AttributeError:
        return False


def settle(torch, model):
    """Parameters that were left as memory had them get small random numbers."""
    for parameter in model.parameters():
        if parameter.is_floating_point() and not torch.isfinite(parameter).all():
            torch.nn.init.normal_(parameter, std=0.02)


@contextlib.contextmanager
def default_dtype(torch, dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def choose_dtype(torch, wanted, config, device):
    """As asked for; else single precision on a processor and what the config says elsewhere."""
    if wanted is None and device == "cpu":
        return torch.float32
    name = wanted or getattr(config, "dtype", None) or getattr(config, "torch_dtype", None)
    if name is None:
        text = getattr(config, "text_config", None) or getattr(config, "language_config", None)
        name = getattr(text, "dtype", None) or getattr(text, "torch_dtype", None) or torch.float32
    return getattr(torch, name.replace("torch.", "")) if isinstance(name, str) else name


def build_factory(wanted):
    """`module:factory` of the user's: a model, or a model and what it is fed."""
    name, _, attribute = wanted["factory"].partition(":")
    sys.path[:0] = wanted["search"]
    module = importlib.import_module(name)
    factory = module
    for part in attribute.split("."):
        if not hasattr(factory, part):
            raise Refused("factory", "%s has no `%s`" % (name, part))
        factory = getattr(factory, part)
    made = factory()
    model, inputs = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
    return model, inputs


def build(torch, wanted, device, channel):
    """The model, and the inputs that came with it."""
    kind = wanted["kind"]
    if kind == "resnet":
        torch.manual_seed(wanted["seed"])
        dtype = choose_dtype(torch, wanted["dtype"] or "float32", None, device)
        return build_resnet(torch, wanted["sizes"]).to(device=device, dtype=dtype), None
    if kind == "factory":
        model, inputs = build_factory(wanted)
        if not isinstance(model, torch.nn.Module):
            raise Refused("factory", "%s returned a %s, not a torch.nn.Module" % (wanted["factory"], type(model).__name__))
        dtype = getattr(torch, wanted["dtype"]) if wanted["dtype"] else None
        return model.to(device=device, dtype=dtype), inputs
    return build_transformer(torch, wanted, device, channel), None


# ----------------------------------------------------------------------------------------------------------------- inputs


def read_floats(torch, file, shape):
    data = bytearray(open(file, "rb").read())
    return torch.frombuffer(data, dtype=torch.float32).reshape(shape)


def to_device(torch, value, device, dtype=None):
    if isinstance(value, torch.Tensor):
        return value.to(device, dtype if value.is_floating_point() else None)
    if isinstance(value, dict):
        return {key: to_device(torch, one, device, dtype) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(to_device(torch, one, device, dtype) for one in value)
    return value


class Input:
    """What one forward pass is given: arguments by place and by name, and what of them a decode step repeats."""

    def __init__(self, name, args=(), kwargs=None, every_step=()):
        self.name, self.args, self.kwargs, self.every_step = name, args, kwargs or {}, every_step
        self.facts = {}


def prepare(torch, model, given, device, dtype, made):
    """Turns one input of the request into tensors on the device."""
    item = Input(given["name"])
    if given["kind"] == "made":
        if made is None:
            made = random_tokens(torch, model, given)
        made = made() if callable(made) else made
        made = to_device(torch, made, device)
        if isinstance(made, dict):
            item.kwargs = made
        else:
            item.args = made if isinstance(made, (list, tuple)) else (made,)
        first = next((value for value in [*item.args, *item.kwargs.values()] if isinstance(value, torch.Tensor)), None)
        is_tokens = first is not None and first.dim() == 2 and not first.is_floating_point()
        item.facts = {"prompt_tokens": first.shape[1] if is_tokens else 0, "batch": first.shape[0] if first is not None else 1}
    elif given["kind"] == "pictures":
        generator = torch.Generator().manual_seed(given["seed"])
        shape = (given["count"], given["channels"], given["side"], given["side"])
        pictures = torch.rand(shape, generator=generator) * 2 - 1
        item.args = (pictures.to(device, dtype),)
        item.facts = {"prompt_tokens": 0, "batch": given["count"], "width": given["side"], "height": given["side"]}
    elif given.get("page"):
        with_page(torch, model, given, device, dtype, item)
        item.kwargs = {name: repeated(torch, value, given["batch"]) for name, value in item.kwargs.items()}
    else:
        item.kwargs = {"input_ids": torch.tensor([given["ids"]] * given["batch"], device=device)}
        item.facts = {"prompt_tokens": len(given["ids"]), "batch": given["batch"]}
    return item


def repeated(torch, value, times):
    """The same prompt and images several times, as one batch."""
    return torch.cat([value] * times) if isinstance(value, torch.Tensor) else value * times


def random_tokens(torch, model, given):
    """Random tokens for a model that came without inputs and has a vocabulary."""
    vocabulary = getattr(getattr(model, "config", None), "vocab_size", None)
    if vocabulary is None:
        raise Refused("factory", "the factory returned no inputs, and the model has no vocabulary to draw random tokens from")
    generator = torch.Generator().manual_seed(given["seed"])
    return {"input_ids": torch.randint(0, vocabulary, (given["batch"], given["tokens"]), generator=generator)}


def with_page(torch, model, given, device, dtype, item):
    """A prompt with a page in it, in the form this model takes images."""
    page = given["page"]
    view = page["global"]
    whole = read_floats(torch, view["file"], (1, 3, view["side"], view["side"])).to(device, dtype)
    names = inspect.signature(model.forward).parameters
    if "images_seq_mask" in names:
        # The published DeepSeek-OCR: tiles and whole page as a pair, and a mask of the tokens they fill.
        tiles = page["tiles"]
        crops = torch.zeros_like(whole) if tiles is None else read_floats(
            torch, tiles["file"], (tiles["count"], 3, tiles["side"], tiles["side"])).to(device, dtype)
        mask = torch.tensor([given["image_mask"]], dtype=torch.bool, device=device)
        item.kwargs = {
            "input_ids": torch.tensor([given["ids"]], device=device),
            "images": [(crops, whole)],
            "images_seq_mask": mask,
            "images_spatial_crop": torch.tensor([page["crop_grid"]], dtype=torch.long),
        }
        item.every_step = ("images", "images_seq_mask", "images_spatial_crop")
        if device == "cpu":
            # The published code moves its mask to CUDA without asking.
            torch.Tensor.cuda = lambda self, *args, **kwargs: self
        image_tokens, prompt = sum(given["image_mask"]), len(given["ids"])
        item.facts = {"crop_grid": page["crop_grid"]}
    else:
        text = [token for token, masked in zip(given["ids"], given["image_mask"]) if not masked]
        item.kwargs, image_tokens, side = picture_arguments(torch, model, whole, text, device, dtype)
        item.facts, prompt = {"pixels": [side, side]}, item.kwargs["input_ids"].shape[1]
    item.facts.update(prompt_tokens=prompt, image_tokens=image_tokens, batch=given["batch"], width=page["width"], height=page["height"])


def picture_arguments(torch, model, whole, text, device, dtype):
    """Arguments of the vision-language models in transformers: pixels, and a placeholder token for each embedding."""
    config = model.config
    vision = getattr(config, "vision_config", None)
    token = next((value for name in ("image_token_id", "image_token_index", "media_placeholder_token_id")
                  if (value := getattr(config, name, None)) is not None), None)
    if vision is None or token is None:
        raise Refused("pictures", "cannot prepare images for %s: its image inputs are unknown" % type(model).__name__)
    side = getattr(vision, "image_size", None) or whole.shape[-1]
    side = side if isinstance(side, int) else side[0]
    merge = getattr(vision, "spatial_merge_size", None)
    patch = getattr(vision, "patch_size", 14)
    patch = patch if isinstance(patch, int) else patch[0]
    pixels = torch.nn.functional.interpolate(whole.float(), size=(side, side), mode="bilinear").to(dtype)
    extra = {}
    if merge is not None and hasattr(vision, "temporal_patch_size"):
        # The Qwen family: patches in a row, with the grid they come from.
        across = max(side // patch // merge, 1) * merge
        side = patch * across
        pixels = torch.nn.functional.interpolate(whole.float(), size=(side, side), mode="bilinear").to(dtype)
        depth = vision.temporal_patch_size
        channels = getattr(vision, "in_channels", None) or getattr(vision, "in_chans", 3)
        flat = pixels.repeat(depth, 1, 1, 1).reshape(
            1, depth, channels, across // merge, merge, patch, across // merge, merge, patch)
        pixels = flat.permute(0, 3, 6, 4, 7, 2, 1, 5, 8).reshape(across * across, channels * depth * patch * patch)
        extra = {"image_grid_thw": torch.tensor([[1, across, across]], device=device)}
        count = across * across // (merge * merge)
    else:
        count = count_features(torch, model, pixels)
    ids = torch.tensor([text[:1] + [token] * count + text[1:]], device=device)
    arguments = {"input_ids": ids, "pixel_values": pixels, **extra}
    names = inspect.signature(model.forward).parameters
    if "mm_token_type_ids" in names:
        arguments["mm_token_type_ids"] = (ids == token).int()
    if "token_type_ids" in names:
        arguments["token_type_ids"] = (ids == token).int()
    if "attention_mask" in names:
        arguments["attention_mask"] = torch.ones_like(ids)
    return arguments, count, side


def count_features(torch, model, pixels):
    """Embeddings an image becomes, asked of the model itself."""
    inner = model if hasattr(model, "get_image_features") else model.model
    with torch.inference_mode():
        found = inner.get_image_features(pixel_values=pixels)
    found = getattr(found, "pooler_output", found)
    while isinstance(found, (list, tuple)):
        found = found[0]
    return found.shape[-2] if found.dim() > 2 else found.shape[0]


# --------------------------------------------------------------------------------------------------------------- inference


class Runner:
    """Inferences of one model, with their stages timed."""

    def __init__(self, torch, model, device, request, channel, ranges):
        self.torch, self.model, self.channel, self.ranges = torch, model, channel, ranges
        self.clock = Clock(torch, device)
        self.hooks = Hooks(model, self.clock, self.ranges, request["module_ranges"])
        self.decoding = request["decoding"]
        names = inspect.signature(model.forward).parameters
        self.takes = set(names)
        self.extra = {}
        if self.decoding is not None and "use_cache" in self.takes:
            self.extra["use_cache"] = True
        keep = next((name for name in ("logits_to_keep", "num_logits_to_keep") if name in names), None)
        if request["last_logits_only"]:
            if keep is None:
                raise Refused("settings", "%s always computes the logits of all positions: its forward has no "
                              "logits_to_keep, so infer.logits=last is not available" % type(model).__name__)
            self.extra[keep] = 1

    def infer(self, item):
        """Times of the stages in nanoseconds, time of the whole, and the tokens."""
        with self.torch.inference_mode():
            self.hooks.begin()
            begin = self.clock.now()
            with self.ranges.span("prefill"):
                output = self.model(*item.args, **item.kwargs, **self.extra)
                first = self.clock.now()
            stages = {"prefill": first - begin, **self.hooks.end()}
            logits = getattr(output, "logits", None)
            past = getattr(output, "past_key_values", None)
            if self.decoding is None or logits is None:
                return stages, self.clock.now() - begin, []
            start = self.clock.now()
            with self.ranges.span("decode_all"):
                tokens = self.decode(item, logits, past)
                end = self.clock.now()
            stages["decode"] = end - start
            return stages, self.clock.now() - begin, tokens

    def decode(self, item, logits, past):
        most, ends = self.decoding["max_new_tokens"], self.decoding["end_tokens"]
        tokens = []
        while True:
            token = logits[:, -1:].argmax(-1)
            # A real loop looks at every token, to know whether it was the last.
            tokens.append(int(token[0, 0]))
            if len(tokens) >= most or tokens[-1] in ends or past is None:
                return tokens
            with self.ranges.span("decode_step"):
                output = self.step(item, token, past)
            logits, past = output.logits, output.past_key_values

    def step(self, item, token, past):
        every = {name: item.kwargs[name] for name in item.every_step}
        return self.model(input_ids=token, past_key_values=past, **every, **self.extra)


# ------------------------------------------------------------------------------------------------------------------ passes


def counters():
    """What the system has counted so far, as it writes it: read before and after an inference, never in between."""

    def text(path):
        try:
            with open(path) as file:
                return file.read()
        except OSError:
            return None

    try:
        threads = os.listdir("/proc/self/task")
    except OSError:
        threads = []
    try:
        import resource
        switches = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
    except ImportError:
        switches = None
    limits = (text(path) for path in ("/sys/fs/cgroup/cpu.stat", "/sys/fs/cgroup/cpu/cpu.stat"))
    return {
        "at_ns": time.monotonic_ns(),
        "threads": [times for times in (text("/proc/self/task/%s/schedstat" % thread) for thread in threads) if times],
        "switches": switches,
        "processors": (text("/proc/stat") or "").split("\n")[0],
        "pressure": text("/proc/pressure/cpu"),
        "limit": next((text for text in limits if text is not None), None),
    }


def measure(runner, items, request, channel):
    """Warm-up and repeats, without a profiler."""
    total = sum(len(chosen) for chosen in request["epochs"]) * request["repeats"] + request["warmup_rounds"] * len(items)
    total += 0 if request["profiler"] is None else request["profiler"]["warmup_rounds"] + request["profiler"]["active_rounds"]
    done, warm, plain = 0, set(), []

    def run(index, epoch, repeat, warmup):
        nonlocal done
        item = items[index]
        channel.tell("inference", done=done, total=total, input=item.name, **{"pass": "warmup" if warmup else "measure"})
        # What runs inside is set aside by whoever records.
        before = counters()
        with runner.ranges.span("warmup") if warmup else contextlib.nullcontext():
            stages, wall, tokens = runner.infer(item)
        machine = [before, counters()]
        done += 1
        channel.tell("sample", input=item.name, epoch=epoch, repeat=repeat, wall_ns=wall, stages=stages, machine=machine,
                     generated=len(tokens), **{"pass": "warmup" if warmup else "measure"})
        if not warmup:
            plain.append((index, {"wall": wall, "tokens": len(tokens), **stages}))
        return tokens

    for epoch, chosen in enumerate(request["epochs"]):
        for index in chosen:
            if index not in warm:
                warm.add(index)
                for repeat in range(request["warmup_rounds"]):
                    run(index, epoch, repeat, True)
            tokens = []
            for repeat in range(request["repeats"]):
                tokens = run(index, epoch, repeat, False)
            if epoch == 0:
                channel.tell("generated", input=items[index].name, tokens=tokens)
    return done, total, plain


def record(torch, runner, item, request, channel, done, total):
    """One input once more under torch.profiler."""
    wanted = request["profiler"]
    kinds = {"cpu": torch.profiler.ProfilerActivity.CPU, "cuda": torch.profiler.ProfilerActivity.CUDA}
    cuda = torch.cuda.is_available()
    activities = [kinds[name] for name in wanted["activities"] if name in kinds and (cuda or name != "cuda")]
    # Newer profilers let go of their events after each cycle unless told otherwise, and older ones know no such option.
    keep = {"acc_events": True} if "acc_events" in inspect.signature(torch.profiler.profile).parameters else {}
    profiler = torch.profiler.profile(
        activities=activities,
        record_shapes=wanted["record_shapes"],
        profile_memory=wanted["profile_memory"],
        with_stack=wanted["with_stack"],
        with_modules=wanted["with_modules"],
        with_flops=wanted["with_flops"],
        **keep,
    )
    for number in range(wanted["warmup_rounds"]):
        channel.tell("inference", done=done + number, total=total, input=item.name, **{"pass": "warmup"})
        runner.infer(item)
    done += wanted["warmup_rounds"]
    runner.ranges.recording = True
    try:
        with profiler:
            for repeat in range(wanted["active_rounds"]):
                channel.tell("inference", done=done + repeat, total=total, input=item.name, **{"pass": "profile"})
                stages, wall, tokens = runner.infer(item)
                channel.tell("sample", input=item.name, epoch=0, repeat=repeat, wall_ns=wall, stages=stages,
                             generated=len(tokens), **{"pass": "profile"})
    finally:
        runner.ranges.recording = False
    channel.tell("doing", what="writing the trace")
    profiler.export_chrome_trace(wanted["trace"])
    channel.tell("trace", file=wanted["trace"], input=item.name, rounds=wanted["active_rounds"])


def count_flops(torch, runner, item, channel):
    """FLOPs of the first forward pass and of the first decode step, as torch counts them."""
    try:
        from torch.utils.flop_counter import FlopCounterMode
    except ImportError:
        channel.tell("note", text="this version of torch has no FLOP counter; it requires torch 2.1")
        return
    model, notes = runner.model, []

    def switch(name, kind, note):
        try:
            getattr(model, name)(kind)
            notes.append(note)
        except Exception:
            pass

    # Grouped products have no formula in torch's counter, nor has fused attention with shared heads in every version; a
    # loop over the experts and attention written out do the same work in plain products.
    if any(path.endswith("experts") for path, _ in model.named_modules()):
        switch("set_experts_implementation", "eager", "experts run one by one")
    before = getattr(getattr(model, "config", None), "_attn_implementation", None)
    if before not in (None, "eager"):
        switch("set_attn_implementation", "eager", "eager attention")

    def counted(forward):
        with torch.inference_mode(), FlopCounterMode(display=False) as counter:
            output = forward()
        return output, counter.get_total_flops()

    try:
        output, total = counted(lambda: model(*item.args, **item.kwargs, **runner.extra))
        channel.tell("flops", input=item.name, stage="prefill", flops=total, notes=notes)
        past = getattr(output, "past_key_values", None)
        if runner.decoding is not None and past is not None:
            token = output.logits[:, -1:].argmax(-1)
            _, total = counted(lambda: runner.step(item, token, past))
            channel.tell("flops", input=item.name, stage="decode", flops=total, notes=notes)
    except Exception as error:
        channel.tell("note", text="torch's FLOP counter failed: %s: %s" % (type(error).__name__, error))
    finally:
        if before not in (None, "eager"):
            switch("set_attn_implementation", before, "")


def attend(request, channel):
    try:
        import torch
    except ImportError as error:
        raise Refused("torch", "%s cannot import torch: %s" % (sys.executable, error)) from error
    channel.tell("hello", protocol=PROTOCOL, python=sys.version.split()[0], torch=torch.__version__,
                 cuda=torch.version.cuda, pid=os.getpid())
    device = choose_device(torch, request["device"])
    if device.startswith("cuda"):
        torch.cuda.set_device(device)
    channel.tell("device", **describe_device(torch, device))
    channel.tell("doing", what="loading the model")
    if request["model"]["kind"] == "transformers":
        # Importing it takes seconds and is no part of loading a model.
        with contextlib.suppress(ImportError):
            importlib.import_module("transformers")
    ranges = Ranges(torch, request["nvtx"])
    begin = time.perf_counter_ns()
    with ranges.span("load"):
        model, made = build(torch, request["model"], device, channel)
        model.eval()
        clock = Clock(torch, device)
        loaded = clock.now() - begin
    parameters = list(model.parameters())
    dtype = next((one.dtype for one in parameters if one.is_floating_point()), torch.float32)
    runner = Runner(torch, model, device, request, channel, ranges)
    transformers = sys.modules.get("transformers")
    channel.tell(
        "loaded",
        load_ns=loaded,
        model_class=type(model).__name__,
        parameters=sum(one.numel() for one in parameters),
        parameter_bytes=sum(one.numel() * one.element_size() for one in parameters),
        dtype=str(dtype).replace("torch.", ""),
        attention=getattr(getattr(model, "config", None), "_attn_implementation", None),
        transformers=getattr(transformers, "__version__", None),
        stages=runner.hooks.stages,
    )
    items = []
    for given in request["inputs"]:
        with ranges.span("load"):
            item = prepare(torch, model, given, device, dtype, made)
        channel.tell("input", name=item.name, **item.facts)
        items.append(item)
    if device.startswith("cuda"):
        torch.cuda.reset_peak_memory_stats(device)
    done, total, plain = measure(runner, items, request, channel)
    if device.startswith("cuda"):
        channel.tell("memory", allocated_bytes=torch.cuda.max_memory_allocated(device),
                     reserved_bytes=torch.cuda.max_memory_reserved(device))
    index = request["epochs"][0][0]
    first = items[index]
    if request["profiler"] is not None:
        record(torch, runner, first, request, channel, done, total)
    if request.get("tries") is not None:
        # In the file beside this one, whose folder is no place for compiled code.
        sys.dont_write_bytecode = True
        sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
        import torch_tries

        again = lambda given: prepare(torch, model, given, device, dtype, made)
        base = torch_tries.Base(torch, runner, first, request["inputs"][index], again, device, dtype)
        torch_tries.attempt(base, request["tries"], channel, [wall for number, wall in plain if number == index])
    # Last, because it changes how the model computes.
    if request["check_flops"]:
        channel.tell("doing", what="counting FLOPs")
        count_flops(torch, runner, first, channel)
    channel.tell("done")


def main():
    channel = Channel()
    try:
        with open(sys.argv[1], encoding="utf-8") as text:
            request = json.load(text)
        attend(request, channel)
        return 0
    except Refused as error:
        channel.tell("failed", kind=error.kind, message=str(error), traceback=None)
        if not channel.listener:
            print(error, file=sys.stderr)
    except BaseException as error:
        kind = "memory" if "OutOfMemory" in type(error).__name__ or isinstance(error, MemoryError) else "model"
        if isinstance(error, RuntimeError) and "out of memory" in str(error).lower():
            kind = "memory"
        if isinstance(error, ImportError):
            kind = "import"
        if isinstance(error, KeyboardInterrupt):
            kind = "stopped"
        message = "%s: %s" % (type(error).__name__, error)
        channel.tell("failed", kind=kind, message=message, traceback=traceback.format_exc())
        traceback.print_exc()
    return 1


if __name__ == "__main__":
    sys.exit(main())
