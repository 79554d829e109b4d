//! Earlier runs: which of them a verb can go on with.

use std::ffi::OsStr;
use std::path::Path;

use collect::run::{Fitness, RunIndex, StoredRun, find_fitting_run};
use types::{RunState, UserError};

use crate::pipeline::recorded::provenance::NATIVE_TRACE;

/// What a run is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunPurpose {
    /// To look at it.
    Show,
    /// To run its model again.
    Repeat,
    /// To finish it.
    Resume,
    /// To write what it recorded for other tools.
    Export,
    /// To replay the timeline of a device.
    Replay,
    /// To lay it beside a prediction or another run.
    Compare,
    /// To learn the times of operators from it.
    Calibrate,
}

impl RunPurpose {
    fn fitness(self) -> Fitness {
        match self {
            Self::Show => Fitness { wanted: "is readable", fits: |_| true },
            Self::Repeat => Fitness {
                wanted: "is a `profile` run of a model",
                fits: |run| is_repeatable(run) && run.has_file("config.yaml") && run.has_file("metrics.json"),
            },
            Self::Resume => Fitness {
                wanted: "is an incomplete `deep` run",
                fits: |run| {
                    let is_open = !matches!(run.state().0, RunState::Complete | RunState::Running);
                    run.manifest().verb == "deep" && run.has_file("plan.json") && is_open
                },
            },
            Self::Calibrate => {
                Fitness { wanted: "has operators of a device", fits: |run| run.has_file("metrics.json") }
            }
            Self::Compare => Fitness { wanted: "has metrics", fits: |run| run.has_file("metrics.json") },
            Self::Export => Fitness { wanted: "has a timeline", fits: has_timeline },
            Self::Replay => Fitness {
                wanted: "has the timeline of a device",
                fits: |run| has_timeline(run) && !run.has_file(NATIVE_TRACE),
            },
        }
    }
}

fn has_timeline(run: &StoredRun) -> bool {
    let is_trace = |path: &str| path.starts_with("trace/") || path.ends_with(".sqlite");
    let is_recorded = || run.manifest().files.iter().any(|file| is_trace(&file.path));
    run.has_file("metrics.json") && (run.manifest().verb == "import" || is_recorded())
}

/// Whether `profile --from` can run the same again: `profile` ran a model, and no command after `--`.
pub fn is_repeatable(run: &StoredRun) -> bool {
    run.manifest().kind() == "profile"
}

/// The run that `selector` names, among those in `root` and those that `--out` put elsewhere; `latest` is the newest that serves the
/// purpose, `latest:KIND` the newest of a kind.
pub fn find(root: &Path, selector: impl AsRef<OsStr>, purpose: RunPurpose) -> Result<StoredRun, UserError> {
    find_fitting_run(root, RunIndex::of_user().as_ref(), selector, &purpose.fitness())
}
