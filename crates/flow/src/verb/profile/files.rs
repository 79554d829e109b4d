//! The files of a profile of a model, beside its metrics.

use std::fmt::Write as _;

use collect::run::RunFolder;
use report::pages::run::{Assumptions, Setting};
use types::{Environment, Metrics, UserError};

use crate::pipeline::folder::bundle::{self, Bundle};
use crate::pipeline::recorded::provenance::FedInputs;
use crate::pipeline::target::Engine;
use crate::runner::request::ProfileRequest;
use crate::runner::settings::{DecodingSettings, InferSettings};

/// What the files are made of.
pub(super) struct ProfileFiles<'a> {
    pub(super) metrics: &'a Metrics,
    pub(super) environment: &'a Environment,
    pub(super) inputs: &'a FedInputs,
    pub(super) request: &'a ProfileRequest,
    /// Element type of the arithmetic.
    pub(super) computed: String,
    /// How it was measured.
    pub(super) profiling: Vec<Setting>,
    /// Rows of each table of operators, where the user says how many.
    pub(super) operator_rows: Option<usize>,
}

/// Writes the inputs and every page.
pub(super) fn write(folder: &mut RunFolder, files: &ProfileFiles<'_>) -> Result<(), UserError> {
    let ProfileFiles { metrics, environment, inputs, operator_rows, .. } = *files;
    inputs.write(folder)?;
    let assumptions = assumptions(files);
    bundle::write(folder, &Bundle { metrics, environment, assumptions, kernels: None, operator_rows, timelines: &[] })
}

/// One line of JSON for each input.
pub(super) fn write_predictions(folder: &mut RunFolder, texts: &[(String, String)]) -> Result<(), UserError> {
    let mut lines = String::new();
    for (input, text) in texts {
        let line = serde_json::json!({ "input": input, "text": text });
        let _ = writeln!(lines, "{line}");
    }
    folder.write_file("predictions.jsonl", lines.as_bytes())?;
    Ok(())
}

fn assumptions(files: &ProfileFiles<'_>) -> Assumptions {
    let ProfileFiles { metrics, environment, inputs, request, computed, profiling, .. } = files;
    let ProfileRequest { weights, infer, dataset, .. } = *request;
    let unknown = || "not known".to_owned();
    let mut device = vec![
        Setting::new("device", metrics.run.device.as_ref().map_or_else(unknown, ToString::to_string)),
        Setting::new("processor", environment.cpu.model.clone().unwrap_or_else(unknown)),
        Setting::new("threads", environment.cpu.threads_available.map_or_else(unknown, |count| count.to_string())),
    ];
    if let Some(peak) = &metrics.utilisation.peak {
        device.push(Setting::new(format!("{} matrix rate", peak.dtype), format!("{} ({})", peak.flops, peak.source)));
        device.push(Setting::new("memory bandwidth", peak.bytes_per_second));
    }
    let sampling = &dataset.sampling;
    let taken = sampling.samples_per_epoch.map_or_else(|| "all".to_owned(), |count| count.to_string());
    let weights_text = match weights.weights.as_str() {
        "synthetic" => format!("random, seed {}", weights.seed),
        path => path.to_owned(),
    };
    let weights_dtype = metrics.conditions.settings.as_ref().and_then(|settings| settings.weights_dtype);
    let weights_dtype = weights_dtype.map_or_else(unknown, |dtype| dtype.to_string());
    let mut repeats = vec![
        Setting::new("warm-up rounds", sampling.warmup_rounds),
        Setting::new("repeats", sampling.repeats),
        Setting::new("epochs", sampling.epochs),
    ];
    if infer.passes() > 1 {
        repeats.push(Setting::new("forward passes in a round or repeat, each timed", infer.passes()));
    }
    Assumptions {
        run: metrics.run.id.clone(),
        device,
        repeats,
        batch: vec![Setting::new("inputs per batch", infer.batch())],
        model: vec![
            Setting::new("model", metrics.run.model.clone().unwrap_or_else(unknown)),
            Setting::new("weights", weights_text),
            Setting::new("weights stored in", weights_dtype),
            Setting::new("computed in", computed.clone()),
        ],
        decoding: infer.decoding().map_or_else(
            || vec![Setting::new("decoding", "none: one forward pass is the prefill stage")],
            |decoding| decoded(decoding, request),
        ),
        preprocessing: preprocessed(infer),
        profiling: profiling.clone(),
        data: vec![
            Setting::new(
                infer.feed().plural(),
                format!("{} under {}", inputs.document.count, inputs.document.dataset_root),
            ),
            Setting::new("inputs per epoch", taken),
            Setting::new("order", if sampling.shuffle { "random" } else { "by name" }),
            Setting::new("seed", sampling.seed),
        ],
        repeat_command: Some(format!("llm-perf profile --from {}", metrics.run.id)),
    }
}

fn decoded(decoding: &DecodingSettings, request: &ProfileRequest) -> Vec<Setting> {
    let mut settings = vec![
        Setting::new("maximum tokens", decoding.max_new_tokens),
        Setting::new("temperature", decoding.temperature),
    ];
    if request.engine == Engine::Torch.name() {
        settings.push(Setting::new("top-p, no repeated n-gram of", "not applied: the most likely token is taken"));
    } else {
        settings.push(Setting::new("top-p", decoding.top_p));
        settings.push(Setting::new("no repeated n-gram of", decoding.no_repeat_ngram_size));
    }
    settings.extend([
        Setting::new(
            "logits at prefill",
            if request.infer.last_logits_only() { "last position" } else { "all positions" },
        ),
        Setting::new("stops at", "the end-of-sequence token or the limit"),
    ]);
    settings
}

fn preprocessed(infer: &InferSettings) -> Vec<Setting> {
    let square = |side: u64| format!("{side} x {side} pixels");
    match infer {
        InferSettings::Pages(page, _) => {
            let tiles = format!("{} to {}", page.min_tiles, page.max_tiles);
            vec![
                Setting::new("global view", square(page.base_size)),
                Setting::new("tile", square(page.image_size)),
                Setting::new("tiles", if page.crop_mode { tiles } else { "none".into() }),
                Setting::new("normalisation", "mean 0.5, standard deviation 0.5"),
                Setting::new("prompt", format!("{:?}", page.prompt)),
            ]
        }
        InferSettings::Prompts(prompt, _) => match prompt.seq_len {
            Some(length) => vec![Setting::new("tokens", format!("{length} random tokens, seed {}", prompt.seed))],
            None => vec![Setting::new("prompt", format!("{:?}", prompt.prompt))],
        },
        InferSettings::Pictures(pictures) => vec![
            Setting::new("picture", square(pictures.image_size)),
            Setting::new("pixels", format!("random, from -1 to 1, seed {}", pictures.seed)),
        ],
    }
}
