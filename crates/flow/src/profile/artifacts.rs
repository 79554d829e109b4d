//! The files of a profile besides its metrics.

use std::fmt::Write as _;

use collect::run::RunFolder;
use report::profile::{Assumptions, Setting};
use types::{Environment, InputSet, Metrics};

use super::{ProfileError, ProfileRequest};

/// What the files are made of.
pub(super) struct Bundle<'a> {
    pub(super) metrics: &'a Metrics,
    pub(super) environment: &'a Environment,
    pub(super) inputs: &'a InputSet,
    pub(super) request: &'a ProfileRequest,
}

pub(super) fn write(folder: &mut RunFolder, bundle: &Bundle<'_>) -> Result<(), ProfileError> {
    let Bundle { metrics, environment, inputs, .. } = *bundle;
    folder.write_file("inputs.yaml", report::yaml(inputs)?.as_bytes())?;
    folder.write_file("report.md", report::profile::report_markdown(metrics, environment).as_bytes())?;
    folder.write_file("operators.md", report::profile::operators_markdown(metrics).as_bytes())?;
    folder
        .write_file("stakeholder_summary.md", report::profile::stakeholder_markdown(metrics, environment).as_bytes())?;
    let assumptions = assumptions(bundle);
    folder.write_file("assumptions.md", report::profile::assumptions_markdown(&assumptions).as_bytes())?;
    Ok(())
}

/// One line of JSON for each input.
pub(super) fn write_predictions(folder: &mut RunFolder, texts: &[(String, String)]) -> Result<(), ProfileError> {
    let mut lines = String::new();
    for (input, text) in texts {
        let line = serde_json::json!({ "input": input, "text": text });
        let _ = writeln!(lines, "{line}");
    }
    folder.write_file("predictions.jsonl", lines.as_bytes())?;
    Ok(())
}

fn assumptions(bundle: &Bundle<'_>) -> Assumptions {
    let Bundle { metrics, environment, inputs, request } = *bundle;
    let ProfileRequest { weights, infer, dataset, .. } = request;
    let unknown = || "not known".to_owned();
    let mut device = vec![
        Setting::new("device", metrics.run.device.as_ref().map_or_else(unknown, ToString::to_string)),
        Setting::new("processor", environment.cpu.model.clone().unwrap_or_else(unknown)),
        Setting::new("threads", environment.cpu.threads_available.map_or_else(unknown, |count| count.to_string())),
    ];
    if let Some(peak) = &metrics.peak {
        device.push(Setting::new(format!("{} matrix rate", peak.dtype), format!("{} ({})", peak.flops, peak.source)));
        device.push(Setting::new("memory bandwidth", peak.bytes_per_second));
    }
    let sampling = &dataset.sampling;
    let taken = sampling.samples_per_epoch.map_or_else(|| "all".to_owned(), |count| count.to_string());
    let logits = if request.last_logits_only { "last position" } else { "all positions" };
    let weights_text = match weights.weights.as_str() {
        "synthetic" => format!("made up from seed {}", weights.seed),
        path => path.to_owned(),
    };
    Assumptions {
        run: metrics.run.id.clone(),
        device,
        repeats: vec![
            Setting::new("warm-up rounds", sampling.warmup_rounds),
            Setting::new("repeats", sampling.repeats),
            Setting::new("epochs", sampling.epochs),
        ],
        batch: vec![Setting::new("inputs at once", 1)],
        model: vec![
            Setting::new("model", metrics.run.model.clone().unwrap_or_else(unknown)),
            Setting::new("weights", weights_text),
            Setting::new("computed in", "fp32"),
        ],
        decoding: vec![
            Setting::new("tokens at most", infer.max_new_tokens),
            Setting::new("temperature", infer.temperature),
            Setting::new("top-p", infer.top_p),
            Setting::new("no repeated run of", infer.no_repeat_ngram_size),
            Setting::new("logits at prefill", logits),
            Setting::new("stops at", "the end-of-sequence token or the limit"),
        ],
        preprocessing: vec![
            Setting::new("global view", format!("{0} x {0} pixels", infer.base_size)),
            Setting::new("tile", format!("{0} x {0} pixels", infer.image_size)),
            Setting::new(
                "tiles",
                if infer.crop_mode { format!("{} to {}", infer.min_tiles, infer.max_tiles) } else { "none".into() },
            ),
            Setting::new("normalisation", "mean 0.5, standard deviation 0.5"),
            Setting::new("prompt", format!("{:?}", infer.prompt)),
        ],
        profiling: vec![
            Setting::new("stage times", "passes without instruments"),
            Setting::new("operators", "one more pass over each input, every operation timed"),
        ],
        data: vec![
            Setting::new("images", format!("{} under {}", inputs.count, inputs.dataset_root)),
            Setting::new("taken in each epoch", taken),
            Setting::new("order", if sampling.shuffle { "random" } else { "by name" }),
            Setting::new("seed", sampling.seed),
        ],
        repeat_command: Some(format!("llm-perf profile --from {}", metrics.run.id)),
    }
}
