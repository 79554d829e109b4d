//! The passes of a deep run, told before they are made.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use collect::tool::ncu;
use collect::{Command, command_line};
use types::{Collector, DeepPlan, PlannedPass, SchemaTag, Stage, UserError};

use super::pass_name::{BASELINE, BASELINE_AGAIN, OPERATORS, TIMELINE_NSYS};
use super::request::{DeepRequest, Mode};
use super::tools::Tools;
use crate::pipeline::target::{Engine, TargetKind};

/// What a deep run will do here. Nothing is started and nothing is written.
pub fn plan(request: &DeepRequest) -> Result<DeepPlan, UserError> {
    Ok(of(request, &Tools::find(request)?))
}

pub(super) fn of(request: &DeepRequest, tools: &Tools) -> DeepPlan {
    let target = request.target.argv();
    let replayed = if is_torch(request) {
        ["python3", "driver.py", "request.json"].map(OsString::from).to_vec()
    } else {
        request.target.argv_once()
    };
    let folder = Path::new("RUN");
    let timeline = folder.join("nsys/timeline");
    let mut passes = vec![pass(BASELINE, "the program without a profiler, to time it", Some(baseline(request)))];
    let by_nsys = tools.nsys.as_ref().ok().map(|nsys| request.nsys.nsys_cli.command(nsys, &timeline, target));
    passes.push(if tools.inject {
        pass(
            "timeline",
            "every kernel, copy and range, with the built-in collector; with Nsight Systems if the collector sees no \
             kernels",
            Some(baseline(request)),
        )
    } else {
        pass("timeline", "every kernel, copy and range, with Nsight Systems", by_nsys)
    });
    if request.collector == Collector::Both {
        let about = "the same timeline again, with Nsight Systems";
        let by_nsys = tools.nsys.as_ref().ok().map(|nsys| request.nsys.nsys_cli.command(nsys, &timeline, target));
        passes.push(pass(TIMELINE_NSYS, about, by_nsys));
    }
    if request.mode == Mode::Deep {
        let about = "the program without a profiler again, unless it takes a minute: run-to-run variation";
        passes.push(pass(BASELINE_AGAIN, about, Some(baseline(request))));
    }
    if request.operators {
        passes.push(pass(
            OPERATORS,
            "operators by name, with torch.profiler",
            Some(command(&request.target.argv_once())),
        ));
    }
    let mut left_out = request.mode.left_out();
    match (&tools.ncu, request.ncu.enabled) {
        (Ok(ncu), true) => {
            for stage in &request.stages {
                let mut capture = request.ncu.ncu_cli.capture(folder.join(format!("ncu/{stage}")));
                capture.filter_mode = ncu::launch_counting(ncu);
                if capture.options.kernel_name.is_none() {
                    capture.options.kernel_name = Some("KERNELS-OF-THE-TIMELINE".to_owned());
                }
                if capture.options.nvtx.include.is_empty() {
                    capture.options.nvtx.include = vec!["RANGE-OF-THE-STAGE".to_owned()];
                }
                let about = format!(
                    "hardware counters of the top {} kernels of {stage} by time, with Nsight Compute",
                    request.top_kernels
                );
                passes.push(pass(&counters(Some(*stage)), &about, Some(capture.command(&ncu.path, &replayed))));
            }
        }
        (Err(short), true) => left_out.push(format!("no hardware counters: {}; {}", short.found, short.next_step)),
        (_, false) => left_out.push("no hardware counters: pipeline.ncu.enabled is false".to_owned()),
    }
    passes.push(pass("report", "kernels.md, kernels.json, metrics.json, the reports", None));
    DeepPlan {
        schema: SchemaTag::new(),
        arguments: written(&request.arguments),
        folder: std::env::current_dir().unwrap_or_default().display().to_string(),
        target: written(target),
        mode: request.mode.name().to_owned(),
        collector: tools.collector().to_owned(),
        stages: request.stages.clone(),
        top_kernels: request.top_kernels,
        largest_trace: request.largest_trace,
        passes,
        left_out,
    }
}

/// Name of the pass that reads counters of a stage.
pub(super) fn counters(stage: Option<Stage>) -> String {
    format!("counters-{}", stage.map_or("run", Stage::name))
}

/// Whether the program under the model is an interpreter.
pub(super) fn is_torch(request: &DeepRequest) -> bool {
    request.target.kind() == TargetKind::Workload(Engine::Torch)
}

pub(super) fn baseline(request: &DeepRequest) -> Command {
    with_variables(command(request.target.argv()), request)
}

/// Words as a command.
pub(super) fn command(words: &[OsString]) -> Command {
    Command::of_words(words).unwrap_or_else(|| Command::new("", [""; 0]))
}

/// The same with the variables of the target.
pub(super) fn with_variables(command: Command, request: &DeepRequest) -> Command {
    command.with_variables(request.target.environment().iter().cloned())
}

/// Words of a command line as they are kept: without secrets.
pub(super) fn written<W: AsRef<OsStr>>(words: &[W]) -> Vec<String> {
    collect::masked(words).iter().map(|word| word.to_string_lossy().into_owned()).collect()
}

fn pass(name: &str, about: &str, command: Option<Command>) -> PlannedPass {
    PlannedPass {
        name: name.to_owned(),
        about: about.to_owned(),
        command: command.map(|command| command_line(command.words())),
    }
}
