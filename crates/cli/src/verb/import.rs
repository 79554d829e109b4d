//! `llm-perf import`: a run from the files of other tools.

use std::path::{Path, PathBuf};

use config::{Config, Overrides};
use flow::import::{self, ImportRequest, NamedSubject, NcuPreset, RegionChoice, STANDARD_INPUT, TablesRequest};
use types::{Bytes, Exit};

use crate::context::Context;
use crate::error::CliError;
use crate::resolution::{self, ModelFlags};
use crate::size::size;

/// Import traces of the torch profiler, Nsight Systems or Nsight Compute as a run
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Files of one run, `-` for standard input, and configuration overrides such as workload.seq_len=286
    #[arg(value_name = "FILE|OVERRIDE", required = true)]
    files: Vec<String>,
    /// The model that ran: a built-in one, or the path of a config.json or of a GGUF file
    #[arg(long, value_name = "NAME|FILE")]
    model: Option<String>,
    /// The workload that ran [default: inferred from the shapes in the trace]
    #[arg(long, value_name = "NAME")]
    workload: Option<String>,
    /// The device that it ran on [default: read from the trace]
    #[arg(long, value_name = "NAME")]
    hardware: Option<String>,
    /// Write Parquet tables too: into DIR/job=NAME/rank=N, one folder for each rank
    #[arg(long, value_name = "DIR")]
    tables: Option<PathBuf>,
    /// Name of the job in the tables [default: name of the folder that holds the trace]
    #[arg(long, value_name = "NAME", requires = "tables")]
    job: Option<String>,
    /// Memory for the rows of the trace; more spill to TMPDIR, or to the run folder without it [default: 512MB]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    memory: Option<Bytes>,
    /// The run folder; must be new or empty
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
  llm-perf import rank0.json.gz --tables tables --job monday
  ssh gpu-host cat trace.json.gz | llm-perf import - --json | jq .totals

Formats are detected from the first bytes, and files may be compressed with gzip or zstd: torch
profiler JSON, Nsight Systems SQLite (nsys export --type sqlite), nsys stats CSV, Nsight Compute CSV
(ncu --csv, page raw or details), and files of the built-in collector (*.wire). Reports (.nsys-rep,
.ncu-rep) are exported with the installed nsys or ncu. Several files must come from one run. They are
not copied.";

/// Parts of the configuration an import never reads; they would only claim something in `config.yaml`.
const UNUSED: [&str; 8] =
    ["infer", "dataset", "pipeline.torch_profiler", "pipeline.nsys", "runner", "inputs", "engine", "device"];

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<Exit, CliError> {
    let (files, given) = split_arguments(&arguments.files)?;
    let flags = ModelFlags {
        model: arguments.model.as_deref(),
        workload: arguments.workload.as_deref(),
        hardware: arguments.hardware.as_deref(),
    };
    let config = resolution::compose(&flags.overrides(&given), context)?;
    let subject = NamedSubject {
        model: arguments.model.is_some().then(|| resolution::model::load(&config)).transpose()?,
        workload: resolution::workload::request(&config, arguments.model.is_some())?,
        hardware: resolution::hardware(&config)?,
        config_dir: context.config_dir.clone(),
    };
    let regions = RegionChoice::new(&config.get::<NcuPreset>("pipeline.ncu")?).map_err(|(key, error)| {
        CliError::usage(format!("pipeline.ncu.ncu_cli.{key}: {error}"))
            .hint("a name is exact; a pattern begins with regex:")
    })?;
    let tables = arguments.tables.as_deref().zip(files.first());
    let tables =
        tables.map(|(folder, trace)| TablesRequest::new(folder, arguments.job.as_deref(), trace)).transpose()?;
    let memory = arguments.memory.unwrap_or(import::MEMORY);
    let request = ImportRequest { files, subject, regions, tables, memory };
    let run = resolution::run_request("import", &config, &given, arguments.out.as_deref())?;
    let kept = used(config, &request).to_yaml();
    let imported =
        context.progress(|display| import::import(&request, run, &kept, &mut |doing| display.doing(doing)))?;
    context.messages.print_answer(arguments.json, &imported.metrics, || import::terminal(&imported.metrics))?;
    Ok(context.messages.finish(&imported.missing, &[("report", imported.folder.join("report.html"))]))
}

/// Files apart from overrides. An override has an equals sign and is no file.
fn split_arguments(arguments: &[String]) -> Result<(Vec<PathBuf>, Overrides), CliError> {
    let is_override = |text: &&String| text.contains('=') && !Path::new(text).exists();
    let (given, files): (Vec<&String>, Vec<&String>) = arguments.iter().partition(is_override);
    if files.is_empty() {
        return Err(CliError::usage("no file to import").hint("llm-perf import FILE...; `-` reads standard input"));
    }
    if files.iter().filter(|file| *file == &STANDARD_INPUT).count() > 1 {
        return Err(CliError::usage("standard input can be read only once"));
    }
    Ok((files.into_iter().map(PathBuf::from).collect(), Overrides::typed(&given)?))
}

/// The configuration with only what this import uses.
fn used(config: Config, request: &ImportRequest) -> Config {
    let config = config.without(&UNUSED).only_set_below("pipeline").without(match request.subject.model {
        Some(_) => &["model.weights", "model.seed"],
        None => &["model"],
    });
    // What the user set stays; what the profile beneath it says was not used.
    if request.subject.workload.profile.is_some() { config } else { config.only_set_below("workload") }
}
