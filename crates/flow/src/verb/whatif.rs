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
use report::words::Spoken;
use types::timeline::Timeline;
use types::{Exit, Failure, Hardware, Metrics, Nanos, Stage, WhatIf};

pub use analysis::kernel::Family;
pub use analysis::replay::{Change, CopyFate, Pace};

use crate::CollectError;
use crate::pipeline::device::hardware::{self, DeviceError};
use crate::pipeline::error::ImportError;
use crate::pipeline::recorded::earlier::{self, RunPurpose};
use crate::pipeline::recorded::recording::{Recording, RecordingError};
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

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WhatIfError {
    /// Several runs, or runs and files.
    #[error("{subject} is not a file; pass one run, or the trace files of one run")]
    NotOneRun {
        /// What is no file.
        subject: String,
    },
    /// The run has no timeline.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// A source that a reader refuses.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// The run cannot be found.
    #[error(transparent)]
    Collect(#[from] CollectError),
    /// No such device.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Kernels cannot be scaled from a device that nobody names.
    #[error("the trace does not name its device, so kernel times cannot be scaled to another device")]
    UnknownDevice,
    /// The timeline cannot be replayed.
    #[error("{run} cannot be replayed: {reason}")]
    Refused {
        /// The run.
        run: String,
        /// Why.
        reason: String,
    },
}

impl Failure for WhatIfError {
    fn exit(&self) -> Exit {
        match self {
            Self::NotOneRun { .. } | Self::UnknownDevice => Exit::Usage,
            Self::Recording(error) => error.exit(),
            Self::Import(error) => error.exit(),
            Self::Collect(error) => error.exit(),
            Self::Device(error) => error.exit(),
            Self::Refused { .. } => Exit::Failed,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::NotOneRun { .. } => None,
            Self::Recording(error) => error.hint(),
            Self::Import(error) => error.hint(),
            Self::Collect(error) => error.hint(),
            Self::Device(error) => error.hint(),
            Self::UnknownDevice => Some("pass it with `--recorded-on`, such as `--recorded-on h100`".to_owned()),
            Self::Refused { .. } => Some(
                "record CUDA calls as well: use the torch profiler with CPU and CUDA activities, nsys with `--trace \
                 cuda`, or `llm-perf profile -- COMMAND`"
                    .to_owned(),
            ),
        }
    }
}

/// The answer.
pub fn what_if(request: &WhatIfRequest, progress: &mut dyn FnMut(&str)) -> Result<WhatIf, WhatIfError> {
    let (run, files, metrics) = recording(request)?;
    progress("reading");
    let timelines = trace::timelines(&files)?;
    if timelines.is_empty() {
        return Err(RecordingError::NoTimeline { run, reason: "its sources contain only sums and counters" }.into());
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
        let from = device.clone().ok_or(WhatIfError::UnknownDevice)?;
        changes.push((format!("--hardware {}", to.id), Change::Hardware(Box::new([from, to]))));
    }
    progress("replaying");
    let plain = metrics.as_ref().map(plain_times).unwrap_or_default();
    let question =
        Question { run: run.clone(), timelines: &placed, changes: &changes, hardware: device.as_ref(), plain };
    let refused = |refusal: Refusal| WhatIfError::Refused { run, reason: refusal.reason().spoken().text };
    Ok(replay::what_if(&question).map_err(refused)?.spoken())
}

/// As plain text.
pub fn terminal(answer: &WhatIf) -> String {
    report::pages::whatif::terminal(answer)
}

/// What the subject is called, its files, and what its run measured.
fn recording(request: &WhatIfRequest) -> Result<(String, Vec<PathBuf>, Option<Metrics>), WhatIfError> {
    let is_file = |subject: &OsString| Path::new(subject).is_file();
    match request.subject.as_slice() {
        [only] if !is_file(only) => {
            let run = earlier::find(&request.root, only, RunPurpose::Replay)?;
            let Recording { metrics, files } = Recording::of(&run)?;
            Ok((run.manifest().run_id.clone(), files, Some(metrics)))
        }
        files => {
            if let Some(subject) = files.iter().find(|subject| !is_file(subject)) {
                return Err(WhatIfError::NotOneRun { subject: subject.display().to_string() });
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
) -> Result<Option<Hardware>, WhatIfError> {
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
