//! `whatif`: the time of a run under changes, by replay of its timeline.
//!
//! The timeline of a run is read again from where it was recorded or imported; a trace file is read as it is. Nothing is
//! written.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use analysis::PlacedTimeline;
use analysis::attribution::{self, Attribution, AttributionSettings};
use analysis::replay::{self, Question, Refusal};
pub use report::pages::whatif::terminal;
use report::words::Spoken;
use types::timeline::Timeline;
use types::{Hardware, Metrics, Nanos, Stage, UserError, WhatIf};

pub use analysis::kernel::Family;
pub use analysis::replay::{Change, CopyFate, Pace};

use crate::pipeline::device::hardware;
use crate::pipeline::recorded::earlier::{self, RunPurpose};
use crate::pipeline::recorded::recording::{Recording, no_timeline};
use crate::pipeline::subject::devices;
use crate::pipeline::trace;

/// What is asked.
#[derive(Debug)]
pub struct WhatIfRequest {
    /// A run, or files of traces: one for each rank.
    pub subject: Vec<OsString>,
    /// Folder that holds the runs.
    pub root: PathBuf,
    /// Changes as they were asked for; all of them are made at once.
    pub changes: Vec<(String, Change)>,
    /// Another device to run on.
    pub hardware: Option<String>,
    /// The device of the recording, where the trace does not name it.
    pub recorded_on: Option<String>,
    /// Folder with devices of the user.
    pub config_dir: Option<PathBuf>,
}

/// The answer.
pub fn what_if(request: &WhatIfRequest, progress: &mut dyn FnMut(&str)) -> Result<WhatIf, UserError> {
    let (run, files, metrics) = recording(request)?;
    progress("reading");
    let timelines = trace::timelines(&files)?;
    if timelines.is_empty() {
        return Err(no_timeline(&run, "its sources contain only sums and counters"));
    }
    progress("attributing device work");
    let attribution: Vec<Attribution> =
        timelines.iter().map(|timeline| attribution::attribute(timeline, &AttributionSettings::default())).collect();
    let rank = |timeline: &Timeline| timeline.job.as_ref().and_then(|job| job.rank);
    let placed: Vec<PlacedTimeline<'_>> = timelines
        .iter()
        .zip(&attribution)
        .map(|(timeline, attribution)| PlacedTimeline {
            timeline,
            attribution,
            rank: rank(timeline),
            devices: BTreeMap::new(),
        })
        .collect();
    let device = device(request, &timelines, metrics.as_ref())?;
    let mut changes = request.changes.clone();
    if let Some(name) = &request.hardware {
        let to = hardware::find(request.config_dir.as_deref(), name)?;
        let from = device.clone().ok_or_else(|| {
            UserError::usage("the trace does not name its device, so kernel times cannot be scaled to another device")
                .hint("pass it with `--recorded-on`, such as `--recorded-on h100`")
        })?;
        changes.push((format!("--hardware {}", to.id), Change::Hardware(Box::new([from, to]))));
    }
    progress("replaying");
    let plain = metrics.as_ref().map(plain_times).unwrap_or_default();
    let question =
        Question { run: run.clone(), timelines: &placed, changes: &changes, hardware: device.as_ref(), plain };
    let refused = |refusal: Refusal| {
        UserError::failed(format!("{run} cannot be replayed: {}", refusal.reason().spoken().text)).hint(
            "record CUDA calls as well: use the torch profiler with CPU and CUDA activities, nsys with `--trace cuda`, \
             or `llm-perf profile -- COMMAND`",
        )
    };
    Ok(replay::what_if(&question).map_err(refused)?.spoken())
}

/// What the subject is called, its files, and what its run measured.
fn recording(request: &WhatIfRequest) -> Result<(String, Vec<PathBuf>, Option<Metrics>), UserError> {
    let is_file = |subject: &OsString| Path::new(subject).is_file();
    match request.subject.as_slice() {
        [only] if !is_file(only) => {
            let run = earlier::find(&request.root, only, RunPurpose::Replay)?;
            let Recording { metrics, files } = Recording::of(&run)?;
            Ok((run.manifest().run_id.clone(), files, Some(metrics)))
        }
        files => {
            if let Some(subject) = files.iter().find(|subject| !is_file(subject)) {
                let subject = subject.display();
                let message = format!("{subject} is not a file; pass one run, or the trace files of one run");
                return Err(UserError::usage(message));
            }
            let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
            Ok((names.join(", "), files.iter().map(PathBuf::from).collect(), None))
        }
    }
}

/// The device that was named, else that of the run, else that of the trace.
fn device(
    request: &WhatIfRequest,
    timelines: &[Timeline],
    metrics: Option<&Metrics>,
) -> Result<Option<Hardware>, UserError> {
    let config_dir = request.config_dir.as_deref();
    if let Some(name) = &request.recorded_on {
        return Ok(Some(hardware::find(config_dir, name)?));
    }
    let catalogue = hardware::catalogue(config_dir)?;
    let of_run = metrics.iter().flat_map(|metrics| &metrics.devices).find_map(|device| device.hardware.clone());
    let of_run = of_run.and_then(|id| catalogue.find(&id).ok().cloned());
    Ok(of_run.or_else(|| timelines.iter().find_map(|timeline| devices::of_timeline(&catalogue, timeline))))
}

/// What one instance of prefill and of decode took without a profiler, where the run was also traced with one.
fn plain_times(metrics: &Metrics) -> BTreeMap<Stage, Nanos> {
    let trace = metrics.conditions.trace.as_ref();
    if trace.is_none_or(|trace| trace.traced_pass.is_none()) {
        return BTreeMap::new();
    }
    let times = metrics.times.aggregates.stage_ms.iter().filter(|(stage, _)| stage.parent().is_none());
    times.map(|(stage, times)| (*stage, Nanos::new((times.median * 1e6).round() as i64))).collect()
}
