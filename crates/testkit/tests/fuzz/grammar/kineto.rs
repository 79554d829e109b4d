//! Traces of the torch profiler: operators in threads that launch kernels in streams, with the fields of each kind of event.

use serde_json::{Value, json};

use super::{name, number, span};
use crate::random::Random;

/// A trace. Its times are microseconds with three places, as the profiler writes them.
pub(crate) fn trace(random: &mut Random) -> Vec<u8> {
    let mut clock = if random.once_in(4) { 0 } else { 6_000_000_000_000 };
    let events: Vec<Value> = (0..1 + random.below(120)).flat_map(|_| event(random, &mut clock)).collect();
    let mut trace = json!({"schemaVersion": 1, "traceEvents": events});
    if !random.once_in(3) {
        trace["baseTimeNanoseconds"] =
            json!(if random.once_in(8) { number(random) } else { 1_760_000_000_000_000_000 });
        let devices: Vec<Value> = (0..random.below(4)).map(|_| device(random)).collect();
        trace["deviceProperties"] = json!(devices);
    }
    if random.once_in(2) {
        let groups: Vec<Value> = (0..random.below(4)).map(|_| group(random)).collect();
        trace["distributedInfo"] = json!({
            "backend": "nccl", "rank": number(random), "world_size": number(random), "pg_config": groups,
        });
    }
    trace.to_string().into_bytes()
}

fn device(random: &mut Random) -> Value {
    let names = ["NVIDIA H200", "NVIDIA A100-SXM4-80GB", "AMD Instinct MI300X", "GPU"];
    json!({
        "id": number(random), "name": random.one_of(&names), "totalGlobalMem": number(random).wrapping_shl(30),
        "numSms": number(random), "computeMajor": 9, "computeMinor": 0,
    })
}

fn group(random: &mut Random) -> Value {
    let ranks: Vec<i64> = (0..random.below(9)).map(|_| number(random)).collect();
    json!({"pg_name": number(random).to_string(), "pg_desc": "default_pg", "pg_size": number(random), "ranks": ranks})
}

/// One event, or a call with the work it launches and the flow between them.
fn event(random: &mut Random, clock: &mut i64) -> Vec<Value> {
    let (process, thread) = (random.below(3), random.below(4));
    let host = |event: Value, [start, length]: [i64; 2]| {
        let mut event = event;
        (event["ts"], event["dur"]) = (time(start), time(length));
        (event["pid"], event["tid"]) = (json!(process), json!(thread));
        event
    };
    match random.below(10) {
        0 | 1 => {
            let operator = json!({"ph": "X", "cat": "cpu_op", "name": name(random, "operator"), "args": operator_arguments(random)});
            vec![host(operator, span(random, clock))]
        }
        2 => {
            let args = json!({"Python id": number(random), "Python parent id": number(random)});
            vec![host(
                json!({"ph": "X", "cat": "python_function", "name": name(random, "python"), "args": args}),
                span(random, clock),
            )]
        }
        3 => {
            let category = *random.one_of(&["user_annotation", "gpu_user_annotation", "cuda_profiler_range"]);
            let annotation =
                json!({"ph": "X", "cat": category, "name": name(random, "range"), "args": operator_arguments(random)});
            vec![host(annotation, span(random, clock))]
        }
        4 => {
            let args = json!({
                "Total Reserved": number(random), "Total Allocated": number(random), "Bytes": number(random),
                "Addr": number(random), "Device Id": number(random), "Device Type": random.below(3),
            });
            vec![host(json!({"ph": "i", "name": "[memory]", "s": "t", "args": args}), span(random, clock))]
        }
        _ => launched(random, clock, &host),
    }
}

fn launched(random: &mut Random, clock: &mut i64, host: &dyn Fn(Value, [i64; 2]) -> Value) -> Vec<Value> {
    let (correlation, operator) = (number(random), number(random));
    let called = span(random, clock);
    let category = *random.one_of(&["cuda_runtime", "cuda_driver"]);
    let args = json!({"correlation": correlation, "External id": operator, "cbid": 1});
    let call = host(json!({"ph": "X", "cat": category, "name": name(random, "call"), "args": args}), called);
    // A graph launches several kernels, most calls one, some none.
    let count = if random.once_in(6) { random.below(8) } else { 1 };
    let mut events = vec![call];
    for _ in 0..count {
        let is_kernel = !random.once_in(4);
        let (device, stream) = (random.below(2), random.below(3));
        let mut args = json!({"device": device, "stream": stream, "context": 1, "correlation": correlation, "External id": operator});
        if is_kernel {
            for field in ["grid", "block"] {
                args[field] = json!([1 + random.below(200), number(random), 1]);
            }
            (args["registers per thread"], args["shared memory"]) = (json!(number(random)), json!(number(random)));
            (args["queued"], args["est. achieved occupancy %"]) = (json!(0), json!(random.below(200)));
        } else {
            args["bytes"] = json!(number(random));
        }
        if random.once_in(4) {
            args["graph node id"] = json!((number(random) as u64) << 32 | random.below(9) as u64);
        }
        if random.once_in(6) {
            collective(random, &mut args);
        }
        let kind = if is_kernel { "kernel" } else { *random.one_of(&["gpu_memcpy", "gpu_memset"]) };
        let named = name(random, if is_kernel { "kernel" } else { "copy" });
        let [start, length] = span(random, clock);
        events.push(json!({
            "ph": "X", "cat": kind, "name": named, "pid": device, "tid": stream, "ts": time(start), "dur": time(length), "args": args,
        }));
    }
    for (phase, event) in [("s", 0), ("f", events.len() - 1)] {
        let (ts, pid, tid) = (events[event]["ts"].clone(), events[event]["pid"].clone(), events[event]["tid"].clone());
        events.push(json!({"ph": phase, "id": correlation, "cat": "ac2g", "name": "ac2g", "bp": "e", "ts": ts, "pid": pid, "tid": tid}));
    }
    if random.once_in(8) {
        let at = random.below(events.len());
        events.remove(at);
    }
    events
}

fn operator_arguments(random: &mut Random) -> Value {
    let shapes: Vec<Value> = (0..random.below(5)).map(|_| shape(random, 2)).collect();
    let types: Vec<&str> = shapes.iter().map(|_| name(random, "type")).collect();
    let mut args =
        json!({"External id": number(random), "Ev Idx": number(random), "Input Dims": shapes, "Input type": types});
    if random.once_in(6) {
        collective(random, &mut args);
    }
    if random.once_in(4) {
        args["Concrete Inputs"] = json!(["", "[1, 1]", number(random).to_string(), "True"]);
        args["Input Strides"] = args["Input Dims"].clone();
    }
    args
}

/// Sizes of a tensor, or of a list of tensors.
fn shape(random: &mut Random, deeper: u32) -> Value {
    if deeper > 0 && random.once_in(8) {
        let inner: Vec<Value> = (0..random.below(4)).map(|_| shape(random, deeper - 1)).collect();
        return json!(inner);
    }
    json!((0..random.below(5)).map(|_| number(random)).collect::<Vec<i64>>())
}

fn collective(random: &mut Random, args: &mut Value) {
    args["Collective name"] = json!(name(random, "collective"));
    args["dtype"] = json!(*random.one_of(&["BFloat16", "Float", "Byte", "x"]));
    for field in ["In msg nelems", "Out msg nelems", "Group size", "Src Rank", "Dst Rank", "Seq"] {
        args[field] = json!(number(random));
    }
    args["Process Group Name"] = json!(number(random).to_string());
    args["Process Group Description"] = json!("default_pg");
    args["Process Group Ranks"] = json!(*random.one_of(&["[0, 1]", "[0, 1, 2, ..., 7]", "[]", "[4294967296]", "[0"]));
}

/// Nanoseconds as the profiler writes them.
fn time(nanoseconds: i64) -> Value {
    if nanoseconds.unsigned_abs() < 1 << 52 { json!(nanoseconds as f64 / 1e3) } else { json!(nanoseconds) }
}
