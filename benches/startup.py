#!/usr/bin/env python3
"""Start-up time of the program: how long a user waits for help and for the resolved configuration."""

from benchmark import program, provenance, run, spread, table, write_section

ROUNDS = 200
WARM_UP = 5


def main() -> None:
    llm_perf = program()
    # `true` is what starting any process costs here. The commands take turns, so that a busy moment hits all of them.
    commands = {
        "`true`": (["true"], None),
        "`llm-perf --help`": ([llm_perf, "--help"], 15),
        "`llm-perf config`": ([llm_perf, "config"], 25),
    }
    samples = {name: [] for name in commands}
    for round_number in range(WARM_UP + ROUNDS):
        for name, (command, _) in commands.items():
            sample = run(command)
            if round_number >= WARM_UP:
                samples[name].append(sample)

    rows = [
        [
            name,
            spread([sample.wall_seconds for sample in samples[name]], 1e3, 2),
            spread([sample.cpu_seconds for sample in samples[name]], 1e3, 2),
            "" if target is None else f"< {target}",
        ]
        for name, (_, target) in commands.items()
    ]
    header = ["command", "wall time, ms", "CPU time, ms", "target wall, ms"]
    text = f"{provenance()}\n{ROUNDS} runs each, taking turns, after {WARM_UP} that are not counted. `benches/startup.py`\n"
    write_section("startup", f"{text}\n{table(header, rows)}")


if __name__ == "__main__":
    main()
