//! `llm-perf import`: a run from the files of other tools.

use std::path::{Path, PathBuf};
use std::time::Duration;

use flow::import::{self, ImportRequest, STANDARD_INPUT, WorkloadRequest};
use flow::model::{self, LoadedModel, ModelSettings};
use flow::{RunRequest, WorkloadSettings};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use types::Exit;

use super::analyze::model_overrides;
use crate::arguments::Context;
use crate::config::{Composer, Config, Origin};
use crate::error::CliError;

/// Make a run from traces of the torch profiler, Nsight Systems or Nsight Compute
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Files of one run, `-` for standard input, and changes to the configuration such as workload.seq_len=286
    #[arg(value_name = "FILE|OVERRIDE", required = true)]
    files: Vec<String>,
    /// The model that ran: a built-in one, or the path of a config.json
    #[arg(long, value_name = "NAME|FILE")]
    model: Option<String>,
    /// The workload it ran; read off the shapes in the trace unless given
    #[arg(long, value_name = "NAME")]
    workload: Option<String>,
    /// The device it ran on; read off the trace unless given
    #[arg(long, value_name = "NAME")]
    hardware: Option<String>,
    /// The run folder; must be absent or empty
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the metrics as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  llm-perf import trace.json.gz
  llm-perf import trace.json --model deepseek-ocr
  llm-perf import report.sqlite counters.csv --hardware h200
  llm-perf import report.sqlite --model deepseek-ocr workload.seq_len=286 workload.base_size=1024
  llm-perf import rank0.json rank1.json
  ssh gpu-host cat trace.json.gz | llm-perf import - --json | jq .totals

Files are known by their first bytes and may be gzip or zstd: torch profiler JSON, Nsight Systems
SQLite (nsys export --type sqlite), nsys stats CSV, Nsight Compute CSV (ncu --csv, page raw or
details), files of our collector (*.wire). Several files must be of one run. They are not copied.";

/// Parts of the configuration an import never reads; they would only claim something in `config.yaml`.
const UNUSED: [&str; 8] = [
    "~infer",
    "~dataset/sampling@dataset.sampling",
    "~dataset",
    "~pipeline",
    "~runner",
    "~inputs",
    "~engine",
    "~device",
];

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<Exit, CliError> {
    let (files, overrides) = sort_out(arguments)?;
    let composer = Composer::new(context.config_dir.as_deref())?;
    let config = composer.compose(&overrides)?;
    let model = arguments.model.is_some().then(|| load(&config)).transpose()?;
    let request = ImportRequest {
        files,
        model,
        workload: workload(arguments.model.is_some(), &config, &overrides)?,
        hardware: config.get::<Option<String>>("hardware")?,
        config_dir: context.config_dir.clone(),
    };
    let run = RunRequest {
        root: config.get::<PathBuf>("run.output_root")?,
        out: arguments.out.clone(),
        ..RunRequest::new("import", std::env::args().collect())
    };
    let recorded = recorded(&composer, &request, overrides)?;
    let bar = bar(context);
    let imported = import::import(&request, run, &recorded.to_yaml(), &mut |doing| bar.set_message(doing.to_owned()));
    bar.finish_and_clear();
    let imported = imported?;
    if arguments.json {
        context.messages.print_json(&imported.metrics)?;
    } else {
        context.messages.print(&import::terminal(&imported.metrics))?;
    }
    for missing in &imported.missing {
        context.messages.warning(format!("partial: {missing}"));
    }
    context.messages.note(format!("report: {}", imported.folder.join("report.md").display()));
    Ok(if imported.missing.is_empty() { Exit::Done } else { Exit::Partial })
}

/// Files apart from overrides. An override has an equals sign and is no file; what the flags say becomes overrides too.
fn sort_out(arguments: &Arguments) -> Result<(Vec<PathBuf>, Vec<String>), CliError> {
    let is_override = |text: &&String| text.contains('=') && !Path::new(text).exists();
    let (given, files): (Vec<&String>, Vec<&String>) = arguments.files.iter().partition(is_override);
    if files.is_empty() {
        return Err(CliError::usage("no file to import").hint("llm-perf import FILE...; `-` reads standard input"));
    }
    if files.iter().filter(|file| *file == &STANDARD_INPUT).count() > 1 {
        return Err(CliError::usage("standard input can be read only once"));
    }
    let mut overrides: Vec<String> = arguments.model.iter().flat_map(|model| model_overrides(model)).collect();
    overrides.extend(arguments.workload.iter().map(|workload| format!("workload={workload}")));
    overrides.extend(arguments.hardware.iter().map(|hardware| format!("hardware='{}'", hardware.replace('\'', "''"))));
    overrides.extend(given.into_iter().cloned());
    Ok((files.into_iter().map(PathBuf::from).collect(), overrides))
}

pub(super) fn load(config: &Config) -> Result<LoadedModel, CliError> {
    let settings: ModelSettings = config.get("model")?;
    Ok(model::load(&settings)?)
}

/// The workload as far as the user says; what the configuration says by itself does not count.
pub(super) fn workload(
    has_model: bool,
    config: &Config,
    overrides: &[String],
) -> Result<WorkloadRequest, CliError> {
    let mut settings: WorkloadSettings = config.get("workload")?;
    let chosen = overrides.iter().rev().find_map(|text| text.strip_prefix("workload="));
    let set = |one: crate::config::Explanation| {
        matches!(one.origin, Origin::Override { .. }).then(|| one.key.strip_prefix("workload.").map(str::to_owned))?
    };
    let mut overridden: Vec<String> = config.explain().into_iter().filter_map(set).collect();
    // `crop_grid` is explained by its two numbers.
    for key in &mut overridden {
        if let Some((list, _)) = key.split_once(['.', '[']) {
            *key = list.to_owned();
        }
    }
    overridden.dedup();
    let one_of =
        |one: &str, other: &str| overridden.iter().any(|key| key == one) && !overridden.iter().any(|key| key == other);
    // Setting one of two quantities that go together sets the other.
    if one_of("seq_len", "text_tokens") {
        settings.text_tokens = None;
    }
    if one_of("text_tokens", "seq_len") {
        settings.seq_len = None;
    }
    if one_of("decode_steps", "max_new_tokens") {
        settings.max_new_tokens = None;
    }
    if one_of("max_new_tokens", "decode_steps") {
        settings.decode_steps = None;
    }
    if !has_model && (chosen.is_some() || !overridden.is_empty()) {
        return Err(CliError::usage("a workload without a model says nothing").hint("name the model too: --model NAME"));
    }
    Ok(WorkloadRequest { settings, profile: chosen.map(str::to_owned), overridden })
}

/// The configuration with only what this import uses.
fn recorded(composer: &Composer, request: &ImportRequest, mut overrides: Vec<String>) -> Result<Config, CliError> {
    overrides.extend(UNUSED.map(str::to_owned));
    match request.model {
        Some(_) => overrides.extend(["~model.weights".to_owned(), "~model.seed".to_owned()]),
        None => overrides.push("~model".to_owned()),
    }
    if request.workload.profile.is_none() {
        // What the user set stays; what the profile beneath it says was not used.
        let (set, mut others): (Vec<_>, Vec<_>) = overrides.into_iter().partition(|text| text.starts_with("workload."));
        others.push("~workload".to_owned());
        others.extend(set.into_iter().map(|text| format!("+{text}")));
        overrides = others;
    }
    Ok(composer.compose(&overrides)?)
}

/// Says what is being done, from the first second on.
fn bar(context: &Context) -> ProgressBar {
    let target = if context.messages.is_quiet() { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let style = ProgressStyle::with_template("{spinner} {msg} ({elapsed})")
        .unwrap_or_else(|_| ProgressStyle::default_spinner());
    let bar = ProgressBar::with_draw_target(None, target).with_style(style);
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}
