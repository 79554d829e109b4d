//! A forecast for tests.

use types::{
    Bytes, Capacity, CapacityAssumption, EnergyForecast, ForecastRange, HighestLoad, LatencyForecast, LimitedLatency,
    LoadArrivals, LoadFigures, LoadMoment, Origin, PriceForecast, RequestForecast, SchemaTag, SimulatedLoad,
    SimulatedServer,
};

fn range(value: f64) -> ForecastRange {
    ForecastRange { value, low: 0.9 * value, high: 1.1 * value }
}

fn latency(mean: f64) -> LatencyForecast {
    LatencyForecast { mean: range(mean), p50: range(0.9 * mean), p99: range(2.0 * mean) }
}

/// A hundred requests of an eight-billion-parameter model.
pub(crate) fn capacity() -> Capacity {
    let moment =
        |at: u64| LoadMoment { at_ms: at as f64 * 100.0, batch: 1 + at % 20, waiting: at % 3, kv: at as f64 / 2e3 };
    let request = |at: u64| RequestForecast {
        sent_ms: Some(at as f64 * 125.0),
        input_tokens: 512,
        output_tokens: 128,
        ttft_ms: Some(range(36.0)),
        tpot_ms: Some(range(5.4)),
        e2el_ms: Some(range(721.0)),
        measured: None,
    };
    Capacity {
        schema: SchemaTag::new(),
        tool_version: "0.0.0".to_owned(),
        origin: Origin::Modelled,
        basis: "calibration of h200 (2413 points, 2026-11-18)".to_owned(),
        calibrated_share: 0.97,
        simulations: 25,
        model: crate::pages::sweep::sample::sweep().model,
        server: SimulatedServer {
            hardware: "h200".to_owned(),
            devices: 1,
            tensor_parallel: 1,
            servers: 1,
            router: None,
            decoding: None,
            engine: "vllm".to_owned(),
            max_num_seqs: 1024,
            max_num_batched_tokens: 8192,
            kv_blocks: 58_351,
            kv_origin: Origin::Modelled,
            block_size: 16,
            weights_bytes: Bytes::new(16_060_000_000),
            kv_bytes: Bytes::new(122_370_000_000),
        },
        load: SimulatedLoad {
            arrivals: LoadArrivals::Rate { per_second: Some(8.0) },
            requests: 100,
            refused: 0,
            failed: 0,
            input_tokens: 51_200,
            output_tokens: 12_800,
            objective: "ttft=200ms,tpot=20ms".parse().ok(),
        },
        figures: LoadFigures {
            ttft_ms: latency(36.4),
            tpot_ms: Some(latency(5.37)),
            itl_ms: Some(latency(5.37)),
            e2el_ms: latency(590.7),
            queue_ms: latency(6.5),
            output_throughput: range(793.0),
            input_throughput: range(5382.0),
            request_throughput: range(7.6),
            goodput_share: Some(ForecastRange { value: 1.0, low: 1.0, high: 1.0 }),
            kv_peak: range(0.012),
            preemptions: ForecastRange { value: 0.0, low: 0.0, high: 0.0 },
            batch: range(4.2),
            busy: range(0.81),
        },
        highest: Some(HighestLoad {
            requests_per_second: Some(range(41.0)),
            concurrency: None,
            share: 0.99,
            limited_by: LimitedLatency::Tpot,
        }),
        energy: Some(EnergyForecast {
            watts: 700.0,
            origin: Origin::Assumed,
            joules_per_million_input_tokens: range(42_000.0),
            joules_per_million_output_tokens: range(640_000.0),
        }),
        price: Some(PriceForecast {
            per_device_hour: 3.5,
            per_million_input_tokens: range(0.062),
            per_million_output_tokens: range(0.91),
        }),
        measured: Vec::new(),
        over_time: (0..120).map(moment).collect(),
        requests: (0..3).map(request).collect(),
        assumptions: vec![CapacityAssumption::PagedAttention, CapacityAssumption::WarmServer],
        ignored_options: Vec::new(),
        step_residuals: Vec::new(),
        is_corrected: false,
    }
}
