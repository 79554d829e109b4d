//! A small sweep for the tests of this module.

use serde_json::{Value, json};
use types::{
    Assumption, Bytes, BytesPerSecond, ForecastRange, Origin, SchemaTag, Sweep, SweepAxis, SweepDevice, SweepFigures,
    SweepForecast, SweepPoint,
};

/// Three batches, two kinds of attention, two devices; the smaller device has no rate for flash attention.
pub(crate) fn sweep() -> Sweep {
    let device = |id: &str, memory: u64| SweepDevice {
        id: id.to_owned(),
        name: id.to_uppercase(),
        memory_bytes: Bytes::new(memory),
        bytes_per_second: BytesPerSecond::new(1e12),
        interconnect_bytes_per_second: None,
        forecast_basis: (id == "h200").then(|| "calibration of h200 (2712 points, 2026-11-17)".to_owned()),
    };
    let mut points = Vec::new();
    for attention in ["eager", "flash"] {
        for batch in [1u64, 8, 64] {
            for hardware in ["h200", "tiny"] {
                let missing = attention == "flash" && hardware == "tiny";
                let slow = if hardware == "tiny" { 15.0 } else { 1.0 };
                let settings = json!({"workload.batch": batch, "workload.attention": attention});
                points.push(SweepPoint {
                    point: points.len() as u64,
                    hardware: hardware.to_owned(),
                    settings: settings.as_object().cloned().unwrap_or_default(),
                    figures: (!missing).then(|| figures(batch, slow)),
                    error: missing.then(|| "tiny lists no dense bf16 matrix rate; it lists fp16, fp32".to_owned()),
                });
            }
        }
    }
    let text = |text: &str| Value::String(text.to_owned());
    Sweep {
        schema: SchemaTag::new(),
        tool_version: "0.1.0".to_owned(),
        origin: Origin::Modelled,
        model: crate::pages::analytic::sample::report().model,
        workload: serde_json::Map::new(),
        axes: vec![
            SweepAxis { key: "workload.attention".to_owned(), values: vec![text("eager"), text("flash")] },
            SweepAxis { key: "workload.batch".to_owned(), values: vec![json!(1), json!(8), json!(64)] },
        ],
        hardware: vec![device("h200", 150 << 30), device("tiny", 4 << 30)],
        points_planned: points.len() as u64,
        stopped: false,
        points,
        assumptions: vec![Assumption { text: "Launching costs nothing.".to_owned(), origin: Origin::Assumed }],
    }
}

fn figures(batch: u64, slow: f64) -> SweepFigures {
    let step = slow * (0.4 + 0.01 * batch as f64);
    SweepFigures {
        devices: 1,
        seq_len: 512,
        ttft_ms: slow * 6.25 * batch as f64,
        time_per_output_token_ms: Some(step),
        decode_tokens_per_second: Some(batch as f64 / step * 1e3),
        total_time_ms: slow * 6.25 * batch as f64 + 511.0 * step,
        prefill_bound: "compute".to_owned(),
        decode_bound: Some("memory".to_owned()),
        weights_bytes: Bytes::new(6_672_212_480),
        activations_peak_bytes: Bytes::new(1_000_000_000 * batch),
        kv_bytes: Bytes::new(62_853_120 * batch),
        total_bytes: Bytes::new(6_672_212_480 + 1_062_853_120 * batch),
        fits: slow < 2.0,
        sequences_that_fit: Some(if slow < 2.0 { 2276 - 16 * batch } else { 0 }),
        prefill_sent_bytes: Bytes::ZERO,
        step_sent_bytes: Some(Bytes::ZERO),
        forecast: (slow < 2.0).then_some(SweepForecast {
            origin: Origin::Modelled,
            ttft_ms: ForecastRange { value: 9.0 * batch as f64, low: 8.0 * batch as f64, high: 12.0 * batch as f64 },
            time_per_output_token_ms: Some(ForecastRange { value: 3.0 * step, low: 2.5 * step, high: 4.0 * step }),
        }),
    }
}
