"""What llm-perf makes of every configuration class of transformers that has a head for text, and of our own fixtures.

    python tools/configurations.py [--count] [--fuzz] [NAME ...]

Prints one line a class: accepted whole, accepted with a part left out that is said, or refused and why; then the sums.
`--count` builds every class on the meta device and compares parameters, which needs torch and takes minutes; `--fuzz` takes
one field after another out of every accepted configuration and names those whose absence changes parameters or cache
without an error and without being said. Exits 1 where a count differs or such a field exists. Needs transformers.
"""

import json
import pathlib
import subprocess
import sys
import warnings

import transformers
from transformers import CONFIG_MAPPING
from transformers.models.auto import modeling_auto

warnings.filterwarnings("ignore")
transformers.logging.set_verbosity_error()
ROOT = pathlib.Path(__file__).parent.parent
# Parameters that a class has and its published weights do not: first projections of experts that compute nothing.
UNPUBLISHED = {"longcat_flash": 28 * 256 * 2 * 2048 * 6144}
TASKS = ["MASKED_LM", "SPEECH_SEQ_2_SEQ", "SEQ_TO_SEQ_CAUSAL_LM", "IMAGE_TEXT_TO_TEXT", "MULTIMODAL_LM", "CAUSAL_LM"]


def classes() -> dict[str, str]:
    """Every `model_type` with a head for text, and the class of its first head."""
    found = {}
    for task in TASKS:
        for kind, name in getattr(modeling_auto, f"MODEL_FOR_{task}_MAPPING_NAMES").items():
            found.setdefault(kind, name if isinstance(name, str) else name[0])
    return {kind: name for kind, name in sorted(found.items()) if kind in CONFIG_MAPPING}


def of_class(kind: str, name: str) -> dict | None:
    try:
        config = json.loads(CONFIG_MAPPING[kind]().to_json_string(use_diff=False))
    except Exception:
        return None
    return {**config, "model_type": kind, "architectures": [name], "dtype": "bfloat16"}


def of_fixtures() -> dict[str, dict]:
    cases = {}
    for file in ["meter/tests/fixtures/transformers.json", "meter/tests/fixtures/family-flops.json"]:
        listed = json.loads((ROOT / "crates" / file).read_text())["cases"]
        cases |= {f"{file.split('/')[-1]}:{name}": case["config"] for name, case in listed.items()}
    for file in (ROOT / "crates/network/presets").glob("*.json"):
        cases[f"presets:{file.stem}"] = json.loads(file.read_text())
    return cases


def outcomes(cases: dict[str, dict]) -> dict[str, dict]:
    program = ["cargo", "run", "-q", "-p", "llm-perf-network", "--example", "configurations"]
    lines = "".join(json.dumps({"name": name, "config": config}) + "\n" for name, config in cases.items())
    told = subprocess.run(program, cwd=ROOT, check=True, input=lines, capture_output=True, text=True).stdout
    return {outcome["name"]: outcome for outcome in map(json.loads, told.splitlines())}


def counted(kind: str, name: str) -> int:
    """Parameters of the class as transformers builds it."""
    import torch

    with torch.device("meta"):
        model = getattr(transformers, name)(CONFIG_MAPPING[kind]())
    return sum(parameter.numel() for parameter in model.parameters()) - UNPUBLISHED.get(kind, 0)


def fuzzed(cases: dict[str, dict], known: dict[str, dict]) -> list[str]:
    """Fields whose absence changes something in silence."""
    without = {}
    for name, config in cases.items():
        if "error" not in known[name]:
            for field in config.keys() - {"architectures"}:
                without[f"{name} without {field}"] = (name, {key: value for key, value in config.items() if key != field})
    found = outcomes({name: config for name, (_, config) in without.items()})
    wrong = []
    for name, (whole, _) in without.items():
        before, after = known[whole], found[name]
        if "error" in after:
            continue
        sizes = [before[size] == after[size] for size in ("parameters", "cache", "part_of")]
        if not all(sizes) and before["assumed"] == after["assumed"]:
            wrong.append(f"{name}: {before['parameters']} parameters and {before['cache']} of cache become "
                         f"{after['parameters']} and {after['cache']}")
    return wrong


def main() -> int:
    options = [argument for argument in sys.argv[1:] if argument.startswith("--")]
    wanted = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    heads = {kind: name for kind, name in classes().items() if not wanted or kind in wanted}
    cases = {kind: of_class(kind, name) for kind, name in heads.items()}
    unbuilt = [kind for kind, config in cases.items() if config is None]
    cases = {kind: config for kind, config in cases.items() if config is not None}
    published = {} if wanted else of_fixtures()
    found = outcomes(cases | published)
    sums, wrong = {}, []
    for name, outcome in found.items():
        verdict = "refused" if "error" in outcome else "part" if outcome["part_of"] else "whole"
        group = "fixtures" if name in published else "classes"
        sums[group, verdict] = sums.get((group, verdict), 0) + 1
        note = outcome.get("error") or f"{outcome['class']} {outcome['parameters']:,}"
        if "--count" in options and verdict == "whole" and name in cases:
            try:
                parameters = counted(name, heads[name])
            except Exception as error:
                note += f" (transformers cannot build it: {str(error)[:60]})"
            else:
                if parameters != outcome["parameters"]:
                    wrong.append(name)
                    note += f" but {parameters:,} in transformers"
        print(f"{verdict:8} {name:40} {note}")
    for (group, verdict), count in sorted(sums.items()):
        print(f"{count} {group} {verdict}")
    if unbuilt:
        print(f"{len(unbuilt)} classes have no default configuration: {', '.join(unbuilt)}")
    silent = fuzzed(cases | published, found) if "--fuzz" in options else []
    print(*silent, sep="\n")
    return 1 if wrong or silent else 0


if __name__ == "__main__":
    sys.exit(main())
