//! `llm-perf attach`: processes that already run, recorded for some seconds.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use config::Overrides;
use flow::StopRequest;
use flow::attach;
use flow::import::{ImportRequest, MEMORY, NamedSubject, NcuPreset, RegionChoice};
use flow::inject::AttachRequest;
use types::{Exit, UserError};

use crate::context::Context;
use crate::duration::duration;
use crate::resolution::{self, ModelFlags};

/// Record processes that already run, started with `llm-perf run`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Number or name of a process; the processes below it are recorded too
    #[arg(value_name = "PID|NAME")]
    process: String,
    /// Configuration overrides (key=value), such as workload.seq_len=286
    #[arg(value_name = "OVERRIDE")]
    overrides: Vec<String>,
    /// How long to record, such as 5s or 500ms, at most 1h
    #[arg(long = "for", value_name = "TIME", default_value = "5s", value_parser = duration)]
    duration: Duration,
    /// Time only launches of CUDA graphs, with events and without CUPTI: costs little, and records no kernels
    #[arg(long)]
    graphs_only: bool,
    /// Model that runs: a built-in name, config.json, folder with one, or GGUF file
    #[arg(long, value_name = "NAME|PATH")]
    model: Option<OsString>,
    /// Run folder to write; must be new or empty
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the metrics as JSON
    #[arg(long)]
    json: bool,
}

/// Longest recording the library accepts.
const LONGEST: Duration = Duration::from_secs(3600);

/// Parts of the configuration that say nothing of a process that runs.
const UNUSED: [&str; 8] =
    ["infer", "dataset", "pipeline.torch_profiler", "pipeline.nsys", "runner", "inputs", "engine", "device"];

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<Exit, UserError> {
    if arguments.duration > LONGEST || arguments.duration < Duration::from_millis(1) {
        return Err(UserError::usage("`--for` takes 1ms to 1h").hint("record several times"));
    }
    let given = Overrides::typed(&arguments.overrides)?;
    let flags = ModelFlags { model: arguments.model.as_deref(), ..ModelFlags::default() };
    let config = resolution::compose(&flags.overrides(&given), context)?;
    let subject = NamedSubject {
        name: None,
        model: flags.model.map(|named| resolution::model::load(&config, Some(named))).transpose()?,
        workload: resolution::workload::request(&config, flags.model.is_some())?,
        hardware: resolution::hardware(&config)?,
        config_dir: context.config_dir.clone(),
    };
    let regions = RegionChoice::new(&config.get::<NcuPreset>("pipeline.ncu")?)
        .map_err(|(key, error)| UserError::usage(format!("pipeline.ncu.ncu_cli.{key}: {error}")))?;
    let what = AttachRequest {
        target: arguments.process.clone(),
        duration: arguments.duration,
        graphs_only: arguments.graphs_only,
    };
    let request = ImportRequest { files: Vec::new(), subject, regions, tables: None, requests: None, memory: MEMORY };
    let run = resolution::run_request("attach", &config, &given, arguments.out.as_deref())?;
    let kept = config.without(&UNUSED).to_yaml();
    let interrupt = StopRequest::catch();
    let attached = context.progress(|display| {
        let (mut tell, stop) = (|doing: &str| display.doing(doing), || interrupt.is_set());
        attach::attach(&what, request, run, &kept, &mut tell, &stop)
    })?;
    context.messages.print_answer(arguments.json, &attached.metrics, || attach::terminal(&attached.metrics))?;
    Ok(context.messages.finish(&attached.missing, &[("report", attached.folder.join("report.html"))]))
}
