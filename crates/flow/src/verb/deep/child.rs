//! Whether the program launches its kernels itself, or something that it starts does.

use types::{PassRecord, QualityCounter, Severity};

use super::plan;
use super::request::DeepRequest;
use crate::pipeline::trace::Placed;

/// From this share of launches on, it is worth a word.
const WORTH_A_WORD: f64 = 0.5;

/// Launches of other processes than the one that was started, where they are most of them. Nsight Compute takes long for
/// those that it passes over there. An interpreter of ours it starts itself, and Nsight Systems stands in between.
pub(super) fn launches(request: &DeepRequest, passes: &[PassRecord], placed: &[Placed]) -> Option<QualityCounter> {
    let timeline = passes.iter().find(|pass| pass.name == "timeline" && pass.tool.as_deref() == Some("llm-perf"))?;
    let started = timeline.process.filter(|_| !plan::is_torch(request) && request.ncu.enabled)?;
    let launching = placed.iter().flat_map(|Placed { timeline, attribution, .. }| {
        let thread = |call: &u32| timeline.threads.get(timeline.calls[*call as usize].thread.0 as usize);
        attribution.launch.iter().flatten().map(move |call| thread(call).and_then(|thread| thread.process))
    });
    let (others, share) = of_others(started, launching)?;
    Some(QualityCounter {
        counter: "launches_of_child_processes".to_owned(),
        value: others,
        share: Some(share),
        severity: Severity::Info,
        remedy: "Nsight Compute takes about 0.1 s for every launch it skips in a child process; after `--`, pass the \
                 program that launches the kernels, not a script that starts it"
            .to_owned(),
    })
}

/// Launches of other processes than the one that was started, and their share, where they are most.
fn of_others(started: u32, launching: impl Iterator<Item = Option<u32>>) -> Option<(u64, f64)> {
    let (mut all, mut others) = (0u64, 0u64);
    for process in launching {
        all += 1;
        others += u64::from(process.is_some_and(|process| process != started));
    }
    (all > 0).then(|| (others, others as f64 / all as f64)).filter(|(_, share)| *share > WORTH_A_WORD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_launches_itself_gets_no_word() {
        let launches = |processes: &[Option<u32>]| of_others(7, processes.iter().copied());
        assert_eq!(launches(&[Some(7); 3]), None);
        assert_eq!(launches(&[Some(7), Some(7), Some(9)]), None);
        assert_eq!(launches(&[None; 3]), None, "what is not known counts for nothing");
        assert_eq!(launches(&[]), None);
        assert_eq!(launches(&[Some(9), Some(9), Some(9), Some(7)]), Some((3, 0.75)));
    }
}
