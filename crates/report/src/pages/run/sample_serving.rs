//! A small load on a server for tests: three requests, seven steps, one request that failed.

use types::{
    Bytes, Flops, Goodput, Joules, Latency, LoadEnergy, Metrics, Nanos, OffsetBasis, Quantile, RequestClock,
    RequestJoin, RequestParts, RequestSource, RequestStep, RequestWork, Served, ServedLoad, ServedRequest, Serving,
    StepBasis, StepBatch, StepGroup, StepSummary, StepWork, Steps, TraceFacts,
};

use super::sample;

/// What is added to the client's times.
const OFFSET: Nanos = Nanos::new(1_000_000_000);
/// Prompts, sequences that decode, and milliseconds of each step.
const STEPS: [(u64, u64, i64); 7] = [(1, 0, 20), (1, 1, 24), (0, 2, 5), (0, 2, 5), (1, 2, 22), (0, 3, 6), (0, 2, 5)];

/// The load with the trace of its server.
pub(crate) fn traced() -> Metrics {
    let mut metrics = client_alone();
    metrics.served = served(true);
    metrics.conditions.trace = Some(TraceFacts::default());
    metrics.times.steps = Some(Steps {
        basis: StepBasis::EngineAnnotations,
        wall_ms: None,
        device_ms: None,
        list: STEPS.iter().enumerate().map(|(place, step)| step_summary(place, *step)).collect(),
    });
    metrics
}

/// The load as its client saw it.
pub(crate) fn client_alone() -> Metrics {
    Metrics { served: served(false), ..sample::empty() }
}

fn ms(time: i64) -> Nanos {
    Nanos::new(time * 1_000_000)
}

fn step_start(place: usize) -> i64 {
    10 + STEPS[..place].iter().map(|(.., time)| time + 1).sum::<i64>()
}

fn step_summary(place: usize, (prompts, sequences, time): (u64, u64, i64)) -> StepSummary {
    let group = |sequences| StepGroup { sequences, ..StepGroup::default() };
    let batch = StepBatch { tokens: None, context: group(prompts), generation: group(sequences) };
    let start = OFFSET + ms(step_start(place));
    StepSummary {
        name: format!("execute_context_{prompts}_generation_{sequences}"),
        label: batch.label(),
        start_ns: Some(start - ms(1)),
        device_start_ns: Some(start),
        device_end_ns: Some(start + ms(time)),
        host_ns: ms(2),
        wall_ns: ms(time + 1),
        device_ns: ms(time),
        kernels: 400,
        batch: Some(batch),
        // A prompt whose first tokens were processed before the trace is of unknown length.
        work: (place > 0).then(|| StepWork {
            flops_matrix: Flops::new(1_000_000_000 * (1 + prompts * 100) as u128),
            bytes: Bytes::new(2_000_000_000),
            roofline_ns: Some(ms(time / 2)),
            mfu: Some(0.1 * prompts as f64),
            mbu: Some(0.4),
        }),
        ..StepSummary::default()
    }
}

fn served(joined: bool) -> Served {
    let mut requests = vec![
        request(0, [36, 74], 900, &[0, 1, 2, 3], [9, 20, 16, 24, 3, 2]),
        request(20, [37, 83], 700, &[1, 2, 3, 4, 5], [12, 16, 14, 35, 4, 2]),
        request(60, [50, 72], 600, &[4, 5, 6], [26, 21, 2, 18, 3, 2]),
        ServedRequest {
            error: Some("503".to_owned()),
            ttft_ns: None,
            latency_ns: None,
            ..request(70, [0, 0], 5, &[], [0; 6])
        },
    ];
    requests[2].id = Some("cmpl-2".to_owned());
    if !joined {
        requests.iter_mut().for_each(|request| {
            request.parts = None;
            request.steps.clear();
        });
    }
    let parts = requests.iter().filter_map(|request| request.parts).reduce(|sum, parts| sum + parts);
    let join = RequestJoin {
        offset_ns: OFFSET,
        offset_low_ns: OFFSET - Nanos::new(1_100_000),
        offset_high_ns: OFFSET + ms(5),
        basis: OffsetBasis::Fitted,
        requests: 3,
        requests_in_trace: 3,
        tokens: 12,
        steps: 7,
        steps_agreeing: Some(7),
    };
    let serving = Serving {
        source: RequestSource::VllmBench,
        clock: RequestClock::Monotonic,
        load: load(),
        recorded: None,
        join: joined.then_some(join),
        parts,
    };
    Served { serving: Some(serving), requests }
}

/// When it was due, its time to the first token and to the last, its prompt, its steps, and its parts from queue to return.
fn request(due: i64, [first, last]: [i64; 2], prompt: u64, steps: &[u64], parts: [i64; 6]) -> ServedRequest {
    let [queue, own, other, decode, host, back] = parts.map(ms);
    let parts = RequestParts {
        queue_ns: queue,
        own_prefill_ns: own,
        other_prefill_ns: other,
        decode_ns: decode,
        host_ns: host,
        return_ns: back,
        ..RequestParts::default()
    };
    let step = |(place, step): (usize, &u64)| match place {
        0 => RequestStep { step: *step, tokens: prompt, work: RequestWork::Prefill },
        _ => RequestStep { step: *step, tokens: 1, work: RequestWork::Decode },
    };
    ServedRequest {
        id: None,
        due_ns: Some(ms(due)),
        ttft_ns: Some(ms(first)),
        latency_ns: Some(ms(last)),
        input_tokens: Some(prompt),
        output_tokens: Some(steps.len() as u64),
        error: None,
        parts: (!steps.is_empty()).then_some(parts),
        steps: steps.iter().enumerate().map(step).collect(),
    }
}

fn load() -> ServedLoad {
    let known = |time: i64| Quantile { ns: ms(time), low_ns: Some(ms(time - 3)), high_ns: Some(ms(time + 4)) };
    let alone = |time: i64| Quantile { ns: ms(time), low_ns: None, high_ns: None };
    let latency = |times: [Quantile; 4], n| {
        let [mean, p50, p90, p99] = times;
        Some(Latency { mean, p50, p90, p99, n, halves_ns: None })
    };
    ServedLoad {
        requests: 4,
        completed: 3,
        failed: 1,
        duration_ns: Some(ms(132)),
        input_tokens: 2_200,
        output_tokens: 12,
        request_rate: Some(24.0),
        request_throughput: Some(22.7),
        input_throughput: Some(16_667.0),
        output_throughput: Some(90.9),
        max_concurrency: Some(3),
        ttft: latency([41, 37, 47, 50].map(known), 3),
        tpot: latency([12, 12, 13, 13].map(alone), 3),
        itl: latency([12, 7, 24, 26].map(alone), 9),
        e2el: latency([76, 74, 81, 83].map(known), 3),
        energy: Some(LoadEnergy { joules: Joules::from_millijoules(48_000), gpus: 1 }),
        joules_per_output_token: Joules::from_millijoules(48_000).per(100),
        goodput: Some(Goodput {
            objective: "ttft=40ms,tpot=20ms".parse().unwrap(),
            requests: 2,
            share: 0.5,
            per_second: Some(15.2),
        }),
    }
}
