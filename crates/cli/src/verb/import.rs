//! `llm-perf import`: a run from the files of other tools.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use config::{Config, Overrides};
use flow::import::{self, ImportRequest, RequestFile, STANDARD_INPUT, TablesRequest};
use types::{Bytes, Exit, Objective, UserError};

use crate::context::Context;
use crate::resolution::{self, ModelFlags};
use crate::size::size;
use crate::subject;

/// Import PyTorch profiler, Nsight Systems or Nsight Compute traces
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Files of one run (`-` for stdin) and configuration overrides such as workload.seq_len=286
    #[arg(value_name = "FILE|OVERRIDE", required = true)]
    files: Vec<OsString>,
    /// Model that ran: a built-in name, config.json, folder with one, or GGUF file
    #[arg(long, value_name = "NAME|PATH")]
    model: Option<OsString>,
    /// Workload that ran [default: inferred from the shapes in the trace]
    #[arg(long, value_name = "NAME")]
    workload: Option<String>,
    /// Device it ran on [default: read from the trace]
    #[arg(long, value_name = "NAME")]
    hardware: Option<String>,
    /// Also write Parquet tables to DIR/job=NAME/rank=N, one folder per rank
    #[arg(long, value_name = "DIR")]
    tables: Option<PathBuf>,
    /// Job name in the tables [default: name of the folder that holds the trace]
    #[arg(long, value_name = "NAME", requires = "tables")]
    job: Option<String>,
    /// Results of the load that the server answered meanwhile: joins every request to its steps and kernels
    #[arg(long, value_name = "FILE")]
    requests: Option<PathBuf>,
    /// Latencies that are acceptable, such as ttft=200ms,itl=30ms (also tpot, e2el): gives the goodput
    #[arg(long, value_name = "LIST", requires = "requests")]
    slo: Option<Objective>,
    /// Memory for the rows of the trace; the rest spills to $TMPDIR, else to the run folder [default: 512MB]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    memory: Option<Bytes>,
    /// Run folder to write; must be new or empty
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the metrics as JSON
    #[arg(long)]
    json: bool,
}

/// Parts of the configuration an import never reads; they would only claim something in `config.yaml`.
const UNUSED: [&str; 8] =
    ["infer", "dataset", "pipeline.torch_profiler", "pipeline.nsys", "runner", "inputs", "engine", "device"];

/// Files of a folder that are named.
const NAMED: usize = 4;

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<Exit, UserError> {
    let (files, given) = split_arguments(&arguments.files)?;
    let flags = ModelFlags {
        model: arguments.model.as_deref(),
        workload: arguments.workload.as_deref(),
        hardware: arguments.hardware.as_deref(),
    };
    let config = resolution::compose(&flags.overrides(&given), context)?;
    let subject = subject::named(&config, flags.model, context)?;
    let regions = subject::regions(&config)?;
    let tables = arguments.tables.as_deref().zip(files.first());
    let tables =
        tables.map(|(folder, trace)| TablesRequest::new(folder, arguments.job.as_deref(), trace)).transpose()?;
    let memory = arguments.memory.unwrap_or(import::MEMORY);
    let requests = arguments.requests.clone().map(|path| RequestFile { path, objective: arguments.slo });
    let request = ImportRequest { files, subject, regions, tables, requests, memory };
    let run = resolution::run_request("import", &config, &given, arguments.out.as_deref())?;
    let kept = used(config, &request).to_yaml();
    let imported = context.telling(|tell| import::import(&request, run, &kept, tell))?;
    context.messages.print_answer(arguments.json, &imported.value, || import::terminal(&imported.value))?;
    Ok(context.messages.ended(&imported, &[("report", "report.html")]))
}

/// Files apart from overrides. An override has an equals sign and is no file.
fn split_arguments(arguments: &[OsString]) -> Result<(Vec<PathBuf>, Overrides), UserError> {
    let (mut given, mut files) = (Vec::new(), Vec::new());
    for argument in arguments {
        match argument.to_str() {
            Some(text) if text.contains('=') && !Path::new(text).exists() => given.push(text),
            _ => files.push(PathBuf::from(argument)),
        }
    }
    if files.is_empty() {
        return Err(UserError::usage("no file to import").hint("add a file, or `-` to read stdin"));
    }
    if files.iter().filter(|file| file.as_os_str() == STANDARD_INPUT).count() > 1 {
        return Err(UserError::usage("stdin (`-`) can be read only once"));
    }
    if let Some(folder) = files.iter().find(|file| file.is_dir()) {
        return Err(is_folder(folder));
    }
    Ok((files, Overrides::typed(&given)?))
}

/// A folder among the files, with what can be done with it.
fn is_folder(folder: &Path) -> UserError {
    let error = UserError::usage(format!("{} is a folder; `import` takes files", folder.display()));
    let fleet = flow::command_line(["llm-perf".as_ref(), "fleet".as_ref(), folder.as_os_str()]);
    let error = error.hint(format!("for the traces of many ranks, use `{fleet}`"));
    let files = import::importable(folder);
    if files.is_empty() {
        return error;
    }
    let named: Vec<String> = files.iter().take(NAMED).map(|file| file.display().to_string()).collect();
    let more = files.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    error.hint(format!("files in it to import: {}{more}", named.join(", ")))
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
