//! What estimates cost: `cargo run --release -p llm-perf-meter --example sweep_cost`.
//!
//! Ten thousand workloads of a model, batch by batch and prompt by prompt, each priced for one device, on one thread. A
//! built-in model and a number of workloads can be given.

use llm_perf_meter::hardware::Catalogue;
use llm_perf_meter::{Estimator, Roofline, WorkloadSettings};
use network::{Model, Preset};
use types::{AttentionKind, DType, LogitsKind, PageKind, Parallel, Quantisation, RoutingKind};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_else(|| "deepseek-ocr".to_owned());
    let count: u64 = arguments.next().and_then(|number| number.parse().ok()).unwrap_or(10_000);
    let Some(Ok(config)) = Preset::find(&name).map(Preset::config) else {
        return println!("no built-in model is called {name}");
    };
    let model = Model::new(&config);
    let catalogue = Catalogue::built_in().expect("the built-in devices are read");
    let h200 = catalogue.find("h200").expect("the H200 is built in");
    let workload = |number: u64| {
        let settings = WorkloadSettings { batch: 1 + number % 100, text_tokens: Some(16 + number / 100), ..settings() };
        settings.resolve(&model, DType::Bf16).expect("the workload fits the model")
    };
    let begin = processor_seconds();
    let estimator = Estimator::new(&model, &workload(0)).expect("the first workload is metered");
    println!("layers compared in {:.3} CPU-s", processor_seconds() - begin);
    let begin = processor_seconds();
    let mut milliseconds = 0.0;
    for number in 0..count {
        let estimate = estimator.estimate(&workload(number)).expect("the workload is metered");
        let roofline = Roofline::new(h200, estimate.matrix_dtypes(), None).expect("the H200 has the rates");
        milliseconds += estimate.times(&roofline).prefill.total.as_millis();
    }
    let seconds = processor_seconds() - begin;
    println!(
        "{count} workloads in {seconds:.2} CPU-s, {:.0} us each ({milliseconds:.0} ms of prefill)",
        seconds / count as f64 * 1e6
    );
}

fn settings() -> WorkloadSettings {
    WorkloadSettings {
        profile_id: "cost".into(),
        description: String::new(),
        doc_kind: PageKind::Synthetic,
        num_pages: 1,
        batch: 1,
        dtype: None,
        attention: AttentionKind::Eager,
        logits: LogitsKind::All,
        routing: RoutingKind::Balanced,
        base_size: Some(1024),
        image_size: Some(640),
        crop_mode: None,
        crop_grid: Some([1, 2]),
        image_pixels: None,
        text_tokens: Some(19),
        seq_len: None,
        max_new_tokens: Some(512),
        decode_steps: None,
        quantisation: Quantisation::default(),
        parallel: Parallel::default(),
    }
}

/// Time this program has had a processor, so that a busy machine does not change the answer; zero where the system does
/// not tell.
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|nanoseconds| nanoseconds.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}
