"""Makes the Parquet tables of a training job that never ran, with properties the script knows.

Usage: python make_tables.py DIR [--job NAME] [--ranks N] [--steps N] [--kernels N] [--straggler RANK] [--missing RANK]

Each step of each rank computes, reduces gradients on a second stream that overlaps the first in part, and copies a batch.
The straggler computes a third slower, so every other rank's collectives last until its own begin. DIR/facts.json has what a
query must answer, found here by walking over sorted intervals, not by SQL. Needs pyarrow, or duckdb alone.
"""

import argparse
import bisect
import json
import os
import random
import statistics

INT, LONG, TEXT, BOOL = "INTEGER", "BIGINT", "VARCHAR", "BOOLEAN"
# As `llm-perf/tables/1` has them.
SCHEMA = {
    "kernels": [("rank", INT), ("device", INT), ("stream", INT), ("start_ns", LONG), ("duration_ns", LONG), ("name", TEXT),
                ("short_name", TEXT), ("family", TEXT), ("stage", TEXT), ("step", INT), ("operator", TEXT),
                ("correlation", LONG), ("set_aside", BOOL)],
    "copies": [("rank", INT), ("device", INT), ("stream", INT), ("start_ns", LONG), ("duration_ns", LONG), ("kind", TEXT),
               ("bytes", LONG), ("stage", TEXT), ("step", INT), ("operator", TEXT), ("set_aside", BOOL)],
    "steps": [("rank", INT), ("step", INT), ("name", TEXT), ("label", TEXT), ("start_ns", LONG), ("host_ns", LONG),
              ("wall_ns", LONG), ("device_ns", LONG), ("kernels", LONG)],
    "device_time": [("rank", INT), ("device", TEXT), ("span_ns", LONG), ("busy_ns", LONG), ("idle_ns", LONG),
                    ("compute_ns", LONG), ("communication_ns", LONG), ("communication_exposed_ns", LONG),
                    ("communication_awaited_ns", LONG), ("copies_exposed_ns", LONG)],
    "idle": [("rank", INT), ("device", TEXT), ("cause", TEXT), ("ns", LONG), ("longest_ns", LONG)],
    "collectives": [("rank", INT), ("device", INT), ("stream", INT), ("start_ns", LONG), ("duration_ns", LONG), ("name", TEXT),
                    ("dtype", TEXT), ("bytes", LONG), ("process_group", TEXT), ("group_size", INT), ("group_ranks", TEXT), ("number", INT),
                    ("exposed_ns", LONG), ("kernel", TEXT)],
    "memory": [("rank", INT), ("device", INT), ("time_ns", LONG), ("bytes", LONG), ("allocated", LONG), ("reserved", LONG)],
    "kernel_sums": [("rank", INT), ("device", INT), ("name", TEXT), ("short_name", TEXT), ("family", TEXT), ("calls", LONG),
                    ("total_ns", LONG), ("min_ns", LONG), ("median_ns", LONG), ("max_ns", LONG)],
    "runs": [("rank", INT), ("job", TEXT), ("run_id", TEXT), ("world_size", INT), ("kind", TEXT), ("model", TEXT),
             ("device_name", TEXT), ("devices", INT), ("devices_described", INT), ("tool", TEXT), ("format", TEXT), ("source", TEXT), ("sha256", TEXT),
             ("clock", TEXT), ("first_ns", LONG), ("last_ns", LONG), ("program", TEXT), ("lost_records", LONG)],
}
NAMES = [
    ("ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_nn", "ampere_bf16_s16816gemm", "gemm", "aten::mm"),
    ("void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 64> >(flash::Flash_fwd_params)", "flash::flash_fwd_kernel",
     "attention", "aten::_flash_attention_forward"),
    ("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int)",
     "at::native::vectorized_elementwise_kernel", "elementwise", "aten::add"),
]
REDUCE = ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
          "communication", "c10d::allreduce_")


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder")
    arguments.add_argument("--job", default="made")
    arguments.add_argument("--ranks", type=int, default=4)
    arguments.add_argument("--steps", type=int, default=5)
    arguments.add_argument("--kernels", type=int, default=40, help="compute kernels of a step")
    arguments.add_argument("--straggler", type=int, default=2)
    arguments.add_argument("--missing", type=int, default=-1)
    asked = arguments.parse_args()
    facts = {"job": asked.job, "straggler": asked.straggler, "ranks": {}}
    for rank in range(asked.ranks):
        if rank == asked.missing:
            continue
        rows, fact = make_rank(asked, rank)
        place = os.path.join(asked.folder, "job=%s" % asked.job, "rank=%d" % rank)
        os.makedirs(place, exist_ok=True)
        for table, columns in SCHEMA.items():
            if rows[table]:
                write(os.path.join(place, table + ".parquet"), table, columns, rows[table])
        facts["ranks"][rank] = fact
    with open(os.path.join(asked.folder, "facts.json"), "w") as out:
        json.dump(facts, out, indent=1)


def make_rank(asked, rank):
    """Rows of all tables, and what a query must answer. All ranks draw the same numbers."""
    draw = random.Random(7)
    every = json.dumps(list(range(asked.ranks)))
    slow = 4 if rank == asked.straggler else 3
    rows = {table: [] for table in SCHEMA}
    compute, communication, copied = [], [], []
    clock = 1_700_000_000_000_000_000
    begin, number, correlation = clock, 0, rank * 10_000_000
    for step in range(asked.steps):
        started, straggling = clock, clock
        before = [len(spans) for spans in (compute, communication, copied)]
        for index in range(asked.kernels):
            name, short, family, operator = NAMES[index % len(NAMES)]
            base = draw.randrange(900, 30_000)
            gap = draw.randrange(0, 2_000) if index % 4 == 0 else 0
            duration = base * slow // 3
            straggling += gap + base * 4 // 3
            correlation += 1
            rows["kernels"].append((rank, 0, 7, clock + gap, duration, name, short, family, "training", step, operator, correlation,
                                    False))
            compute.append((clock + gap, clock + gap + duration))
            if index % 10 == 7:
                # Starts while this rank computes and ends when the last rank has joined.
                start, size = clock + gap + duration // 2, draw.randrange(1, 64) << 20
                lasts = max(straggling - start, 0) + size // 300 + 2_000
                name, short, family, operator = REDUCE
                correlation += 1
                rows["kernels"].append((rank, 0, 20, start, lasts, name, short, family, "training", step, operator, correlation, False))
                rows["collectives"].append([rank, 0, 20, start, lasts, "allreduce", "bf16", size, "0", asked.ranks, every, number, None, short])
                communication.append((start, start + lasts))
                number += 1
            clock += gap + duration
        # The next step starts when gradients are there.
        clock = max(clock, communication[-1][1] if communication else clock)
        size, lasts = 4 << 20, 180_000
        rows["copies"].append((rank, 0, 9, clock - 60_000, lasts, "HtoD", size, "training", step, "aten::copy_", False))
        copied.append((clock - 60_000, clock - 60_000 + lasts))
        rows["memory"].append((rank, 0, clock, size, (20 << 30) + step * 1000 + rank, 40 << 30))
        clock += lasts + 10_000 + 50_000
        own = [span for spans, first in zip((compute, communication, copied), before) for span in spans[first:]]
        rows["steps"].append((rank, step, "ProfilerStep#%d" % step, None, started, clock - started, clock - started,
                              length(union(own)), len(compute) + len(communication) - before[0] - before[1]))
    window_end = max(end for _, end in compute + communication + copied)
    window_start = min(start for start, _ in compute + communication + copied)
    hidden, joint, busy = union(compute), union(compute + communication), union(compute + communication + copied)
    span = window_end - window_start
    fact = {
        "span_ns": span,
        "busy_ns": length(busy),
        "idle_ns": span - length(busy),
        "compute_ns": length(hidden),
        "communication_ns": length(union(communication)),
        "communication_exposed_ns": length(joint) - length(hidden),
        "communication_awaited_ns": 0,
        "copies_exposed_ns": length(busy) - length(joint),
        "kernels": len(rows["kernels"]),
        "gaps": len(busy) - 1,
    }
    ends = [end for _, end in hidden]
    for row in rows["collectives"]:
        row[12] = exposed(row[3], row[3] + row[4], hidden, ends)
    keys = ["span_ns", "busy_ns", "idle_ns", "compute_ns", "communication_ns", "communication_exposed_ns",
            "communication_awaited_ns", "copies_exposed_ns"]
    rows["device_time"].append((rank, "cuda:%d" % rank, *[fact[key] for key in keys]))
    longest = max((after[0] - before[1] for before, after in zip(busy, busy[1:])), default=0)
    rows["idle"].append((rank, "cuda:%d" % rank, "launching", fact["idle_ns"], longest))
    rows["runs"].append((rank, asked.job, "made-%d" % rank, asked.ranks, "training", None, "NVIDIA H200", 1, 1, None, "made", "make_tables.py",
                         "0" * 64, "unix", begin, window_end, "llm-perf", 0))
    by_name = {}
    for row in rows["kernels"]:
        by_name.setdefault(row[5:8], []).append(row[4])
    for (name, short, family), times in by_name.items():
        middle = int(statistics.median(times))
        rows["kernel_sums"].append((rank, 0, name, short, family, len(times), sum(times), min(times), middle, max(times)))
    for table in ("kernels", "copies"):
        rows[table].sort(key=lambda row: (row[1], row[3]))
    return rows, fact


def union(spans):
    """Sorted spans that do not touch."""
    merged = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        elif end > start:
            merged.append([start, end])
    return merged


def length(spans):
    return sum(end - start for start, end in spans)


def exposed(start, end, hidden, ends):
    """What of a span lies outside `hidden`, whose ends are sorted."""
    covered, place = 0, bisect.bisect_right(ends, start)
    while place < len(hidden) and hidden[place][0] < end:
        covered += min(end, hidden[place][1]) - max(start, hidden[place][0])
        place += 1
    return end - start - covered


def write(path, table, columns, rows):
    metadata = {"llm-perf.schema": "llm-perf/tables/1", "llm-perf.table": table}
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        return write_by_duckdb(path, columns, rows, metadata)
    types = {INT: pyarrow.int32(), LONG: pyarrow.int64(), TEXT: pyarrow.string(), BOOL: pyarrow.bool_()}
    schema = pyarrow.schema([(name, types[kind]) for name, kind in columns], metadata=metadata)
    arrays = [pyarrow.array(values, types[kind]) for values, (_, kind) in zip(zip(*rows), columns)]
    pyarrow.parquet.write_table(pyarrow.Table.from_arrays(arrays, schema=schema), path, compression="zstd", row_group_size=131_072)


def write_by_duckdb(path, columns, rows, metadata):
    import duckdb

    database = duckdb.connect()
    database.execute("CREATE TABLE t (%s)" % ", ".join('"%s" %s' % column for column in columns))
    database.executemany("INSERT INTO t VALUES (%s)" % ", ".join("?" for _ in columns), rows)
    kept = ", ".join("'%s': '%s'" % pair for pair in metadata.items())
    database.execute("COPY t TO '%s' (FORMAT parquet, COMPRESSION zstd, KV_METADATA {%s})" % (path.replace("'", "''"), kept))


if __name__ == "__main__":
    main()
