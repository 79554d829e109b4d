//! Whether the program launches its kernels itself, or something that it starts does.

use types::{PassRecord, QualityCounter, Severity};

use super::plan;
use super::request::DeepRequest;
use crate::import::Placed;

/// From this share of launches on, it is worth a word.
const WORTH_A_WORD: f64 = 0.5;

/// Launches of other processes than the one that was started, where they are most of them. Nsight Compute takes long for
/// those that it passes over there. An interpreter of ours it starts itself, and Nsight Systems stands in between.
pub(super) fn launches(request: &DeepRequest, passes: &[PassRecord], placed: &[Placed]) -> Option<QualityCounter> {
    let timeline = passes.iter().find(|pass| pass.name == "timeline" && pass.tool.as_deref() == Some("llm-perf"))?;
    let started = timeline.process.filter(|_| !plan::is_torch(request) && request.ncu.enabled)?;
    let (mut all, mut others) = (0u64, 0u64);
    for Placed { timeline, attribution, .. } in placed {
        for call in attribution.launch.iter().flatten() {
            let thread = timeline.calls[*call as usize].thread;
            let process = timeline.threads.get(thread.0 as usize).and_then(|thread| thread.process);
            all += 1;
            others += u64::from(process.is_some_and(|process| process != started));
        }
    }
    let share = (all > 0).then(|| others as f64 / all as f64).filter(|share| *share > WORTH_A_WORD)?;
    Some(QualityCounter {
        counter: "launches_of_child_processes".to_owned(),
        value: others,
        share: Some(share),
        severity: Severity::Info,
        remedy: "Nsight Compute takes about 0.1 s for every launch that it passes over in a child of the process it starts; name \
                 the program that launches the kernels itself behind `--`, not a script around it"
            .to_owned(),
    })
}
