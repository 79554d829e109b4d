//! Why there is no deep run.

use std::time::Duration;

use collect::tool::Complaint;
use types::{Bytes, Exit, Failure};

use crate::CollectError;
use crate::pipeline::device::hardware::DeviceError;
use crate::pipeline::error::ImportError;

/// Why there is no deep run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeepError {
    /// Nothing here can be profiled.
    #[error("no NVIDIA GPU to profile: {problem}")]
    NoGpu {
        /// What was found instead.
        problem: String,
    },
    /// Nothing here can record a timeline.
    #[error("cannot record a timeline: {found}")]
    NoCollector {
        /// What was found.
        found: String,
        /// What to do.
        next_step: String,
    },
    /// The configuration of a tool says something it does not understand.
    #[error("{key}: {reason}")]
    Preset {
        /// The key.
        key: String,
        /// What is wrong.
        reason: String,
    },
    /// The program does not run by itself.
    #[error("the program fails without a profiler: it {how}{said}")]
    Baseline {
        /// How it ended.
        how: String,
        /// What it said last, framed.
        said: String,
    },
    /// The timeline could not be recorded.
    #[error("the timeline was not recorded: {what}{said}")]
    Timeline {
        /// What went wrong.
        what: String,
        /// What the tool said last, framed.
        said: String,
        /// What it complained about, where its words are known.
        complaint: Option<Complaint>,
    },
    /// The timeline has no kernel.
    #[error(
        "the timeline has no kernels: the program did not use the GPU, or used it in a process that was not traced"
    )]
    NoKernels,
    /// The interpreter cannot be made ready for counters.
    #[error("cannot prepare the interpreter for reading counters: {what}")]
    Prepare {
        /// What went wrong.
        what: String,
    },
    /// A trace grew beyond its bound.
    #[error("the trace reached {size} and was stopped; the limit is {most}")]
    TooLarge {
        /// How large it was.
        size: Bytes,
        /// What is allowed.
        most: Bytes,
    },
    /// The timeline took longer than a pass may.
    #[error("the timeline was not recorded: the pass took longer than {} s and was stopped", most.as_secs())]
    TooLong {
        /// What is allowed.
        most: Duration,
    },
    /// The user stopped it.
    #[error("stopped in pass `{pass}`")]
    Interrupted {
        /// The pass.
        pass: String,
        /// The run.
        run: String,
    },
    /// A run that cannot go on.
    #[error("cannot resume run {run}: {reason}")]
    NotResumable {
        /// The run.
        run: String,
        /// Why not.
        reason: String,
    },
    /// Reading or analysing what was recorded.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// The device that was named.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The run folder, or a child.
    #[error(transparent)]
    Collect(#[from] CollectError),
    /// A document could not be written down.
    #[error(transparent)]
    Report(#[from] report::ReportError),
    /// Metering.
    #[error(transparent)]
    Meter(#[from] meter::MeterError),
}

impl Failure for DeepError {
    fn exit(&self) -> Exit {
        match self {
            Self::Preset { .. } | Self::NotResumable { .. } | Self::Meter(_) => Exit::Usage,
            Self::Import(error) => error.exit(),
            Self::Device(error) => error.exit(),
            Self::Collect(error) => error.exit(),
            _ => Exit::Failed,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::NoGpu { .. } => Some(
                "check the machine with `llm-perf doctor`; measure on the CPU with `llm-perf profile`, or import a \
                 trace from another machine with `llm-perf import`"
                    .to_owned(),
            ),
            Self::NoCollector { next_step, .. } => Some(next_step.clone()),
            Self::Preset { .. } => Some("show the resolved configuration with `llm-perf config`".to_owned()),
            Self::Baseline { .. } => Some("run it without llm-perf first; its full output is in logs/".to_owned()),
            Self::Timeline { complaint, .. } => {
                Some(complaint.map_or("the full output of the tool is in logs/", Complaint::hint).to_owned())
            }
            Self::Prepare { .. } => Some("its full output is in logs/counters-target.stderr".to_owned()),
            Self::NoKernels => {
                Some("check that the program runs on the GPU; nsys also traces its child processes".to_owned())
            }
            Self::TooLarge { .. } => Some(
                "record less: `--mode light`, fewer repeats of the program, a capture range \
                 (pipeline.nsys.nsys_cli.capture_range=nvtx), or a larger `--largest-trace`"
                    .to_owned(),
            ),
            Self::TooLong { .. } => {
                Some("record less: `--mode light`, fewer repeats of the program, or a larger `--pass-limit`".to_owned())
            }
            Self::Interrupted { run, .. } => Some(format!("continue with `llm-perf deep --resume {run}`")),
            Self::NotResumable { .. } => Some("start a new run".to_owned()),
            Self::Import(error) => error.hint(),
            Self::Device(error) => error.hint(),
            Self::Collect(error) => error.hint(),
            Self::Report(_) | Self::Meter(_) => None,
        }
    }
}
