//! Does the catalogue know the peaks of every GPU here? Without them there is no share of a peak to report.

use types::Verdict;

use super::{CheckOutcome, Probe, listed};

pub(super) fn examine(probe: &Probe) -> CheckOutcome {
    let gpus = &probe.capture.environment.gpus;
    if gpus.is_empty() {
        return CheckOutcome::skipped("no GPU");
    }
    let mut unknown: Vec<String> =
        gpus.iter().filter(|gpu| gpu.hardware.is_none()).filter_map(|gpu| gpu.name.clone()).collect();
    unknown.dedup();
    if let Some(first) = unknown.first() {
        let step = format!("add a hardware file for it; `llm-perf hardware '{first}'` shows how");
        return CheckOutcome::bad(Verdict::Missing, format!("no peak rates known for {}", listed(&unknown)), step);
    }
    let mut known: Vec<String> = gpus.iter().filter_map(|gpu| gpu.hardware.clone()).collect();
    known.dedup();
    if known.is_empty() {
        let step = "choose the device with `--hardware NAME`";
        return CheckOutcome::bad(Verdict::Missing, "the GPU does not report its name", step);
    }
    CheckOutcome::ok(format!("known as {}", listed(&known)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::sample;

    #[test]
    fn a_gpu_without_an_entry_is_named_with_the_way_to_add_it() {
        let mut probe = sample::h200();
        assert_eq!(examine(&probe), CheckOutcome::ok("known as h200"));
        probe.capture.environment.gpus.push(sample::gpu("NVIDIA Unheard Of"));
        let outcome = examine(&probe);
        assert_eq!(outcome.verdict, Verdict::Missing);
        assert_eq!(outcome.found, "no peak rates known for NVIDIA Unheard Of");
        assert!(outcome.next_step.unwrap().contains("`llm-perf hardware 'NVIDIA Unheard Of'`"));
        assert_eq!(examine(&sample::processor_only()).verdict, Verdict::Skipped);
    }
}
