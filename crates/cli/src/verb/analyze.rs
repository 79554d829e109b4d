//! `llm-perf analyze`: what a model costs on a workload, from its configuration alone.

mod sweep;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use config::{Config, Overrides};
use flow::analyze::{self, AnalyzeSettings, DEFAULT_DEVICE};
use flow::runs;
use types::{Exit, UserError};

use crate::context::Context;
use crate::resolution::{self, ModelFlags};

/// Predict FLOPs, bytes, memory and roofline time from a config.json
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Configuration overrides (key=value), such as workload.batch=4 or 'workload.crop_grid=[2,3]'
    #[arg(value_name = "OVERRIDE")]
    overrides: Vec<String>,
    /// Built-in model, config.json, folder with one, or GGUF file [default: deepseek-ocr]
    #[arg(long, value_name = "NAME|PATH")]
    model: Option<OsString>,
    /// Workload profile [default: the standard profile of the model]
    #[arg(long, value_name = "NAME")]
    workload: Option<String>,
    /// Devices to predict for, separated by commas; the report covers the first [default: h200]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    hardware: Vec<String>,
    /// Sweep a workload key over several values, such as workload.batch=1,2,4; can be repeated
    #[arg(long, value_name = "KEY=VALUES")]
    sweep: Vec<String>,
    /// Launch overhead to add per operation, in microseconds
    #[arg(long, value_name = "US")]
    launch_us: Option<f64>,
    /// Compare the network with a TorchInfo snapshot: torchinfo-unique-layers.json or its folder
    #[arg(long, value_name = "FILE", conflicts_with = "sweep")]
    torchinfo: Option<PathBuf>,
    /// Compare the prediction with a run that measured the same model and workload
    #[arg(long, value_name = "RUN", conflicts_with = "sweep")]
    measured: Option<OsString>,
    /// Run folder to write; must be new or empty
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the report as JSON; write nothing unless --out is given
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<Exit, UserError> {
    let flags = ModelFlags {
        model: arguments.model.as_deref(),
        workload: arguments.workload.as_deref(),
        // Several may be named, and the configuration holds one.
        hardware: None,
    };
    let given = Overrides::typed(&arguments.overrides)?;
    let (config, model) = resolution::resolve_modelled(&flags, &given, context)?;
    if !arguments.sweep.is_empty() {
        return sweep::run(arguments, &given, context, &config, &model);
    }
    let devices = devices(arguments, &config)?;
    if devices.is_empty() && !arguments.json {
        context.messages.note(format!("predicting for {DEFAULT_DEVICE}; select another device with --hardware NAME"));
    }
    let settings = AnalyzeSettings {
        workload: resolution::workload::settings(&config)?,
        devices,
        config_dir: context.config_dir.clone(),
        launch_us: arguments.launch_us,
        torchinfo: arguments.torchinfo.clone(),
        measured: arguments
            .measured
            .as_ref()
            .map(|run| runs::find(Path::new(runs::DEFAULT_ROOT), run, runs::RunPurpose::Compare))
            .transpose()?,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let run = resolution::run_request("analyze", &config, &given, arguments.out.as_deref())?;
    let analysis = analyze::analyze(&model, &settings)?;
    context.messages.print_answer(arguments.json, &analysis.report, || analyze::table(&analysis.report))?;
    if arguments.json && arguments.out.is_none() {
        return Ok(Exit::Done);
    }
    let folder = analyze::keep(&analysis, &config.to_yaml(), run)?;
    Ok(context.messages.finish(&[], &[("report", folder.join(analyze::HTML))]))
}

/// Devices of the flag, else of the configuration.
fn devices(arguments: &Arguments, config: &Config) -> Result<Vec<String>, UserError> {
    match arguments.hardware.as_slice() {
        [] => Ok(resolution::hardware(config)?.into_iter().collect()),
        named => Ok(named.to_vec()),
    }
}
