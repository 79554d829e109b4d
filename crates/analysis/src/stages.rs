//! Stages and the rates a user sees, from measured times.

use std::collections::BTreeMap;

use types::{InputFacts, Origin, Stage, StageSummary, Throughput};

use crate::loss::Ledger;
use crate::statistics::share;
use crate::timings::{Timings, rounded};
use crate::utilisation::Utilisation;

/// Tokens one instance of a stage handles: the prompt for prefill, its image tokens for vision, and for decode every
/// token but the first, which prefill gives. The encoders see patches, not tokens; a network without a prompt sees none.
fn tokens(stage: Stage, input: &InputFacts) -> Option<u64> {
    match stage {
        Stage::Prefill => Some(input.prompt_tokens).filter(|tokens| *tokens > 0),
        Stage::Vision => Some(input.image_tokens),
        Stage::Decode => Some(input.generated_tokens.saturating_sub(1)),
        Stage::Sam | Stage::Clip | Stage::Projector => None,
    }
}

/// Every measured stage, parents before children.
pub(crate) fn summaries(
    timings: &Timings<'_>,
    inputs: &[InputFacts],
    utilisation: &BTreeMap<Stage, Utilisation>,
    lost: &Ledger,
) -> Vec<StageSummary> {
    let summary = |stage: Stage| {
        let used = utilisation.get(&stage);
        let least = lost.stages().iter().find(|one| one.stage == stage).and_then(|one| one.least);
        StageSummary {
            name: stage,
            parent: stage.parent(),
            instances: timings.instances(stage),
            wall_ns: timings.total(stage),
            gpu_busy_ns: None,
            kernel_ns: None,
            kernel_count: None,
            tokens: all_tokens(timings, inputs, stage),
            mfu: used.and_then(Utilisation::mfu),
            mbu: used.and_then(Utilisation::mbu),
            origin: Origin::Measured,
            speed_of_light_ns: least,
            lost_ns: least.map(|_| lost.lost(stage, |_| true)),
        }
    };
    timings.stages().map(summary).collect()
}

/// Tokens of all instances; absent where one ran on an input that nothing is known of.
fn all_tokens(timings: &Timings<'_>, inputs: &[InputFacts], stage: Stage) -> Option<u64> {
    let known = |name: &str| inputs.iter().find(|input| input.name == name);
    timings
        .inputs(stage)
        .map(|(name, runs)| tokens(stage, known(name)?)?.checked_mul(runs.len() as u64))
        .try_fold(0u64, |sum, tokens| sum.checked_add(tokens?))
}

/// Rates from medians, so that one interrupted run does not change them.
pub(crate) fn throughput(timings: &Timings<'_>, inputs: &[InputFacts]) -> Throughput {
    let (decode_tokens, decode) = paired(timings, inputs, Stage::Decode);
    let (prompt_tokens, prefill) = paired(timings, inputs, Stage::Prefill);
    // A network that generates nothing has no first token to wait for.
    let generates = inputs.is_empty() || inputs.iter().any(|input| input.generated_tokens > 0);
    let first = timings.milliseconds(Stage::Prefill).filter(|_| generates);
    Throughput {
        ttft_ns: first.map(|statistics| rounded(statistics.median * 1e6)),
        time_per_output_token_ns: share(decode, decode_tokens).map(rounded),
        decode_tokens_per_second: share(decode_tokens * 1e9, decode).filter(|rate| *rate > 0.0),
        prefill_tokens_per_second: share(prompt_tokens * 1e9, prefill).filter(|rate| *rate > 0.0),
    }
}

/// Tokens and median nanoseconds, summed over the inputs that have both.
fn paired(timings: &Timings<'_>, inputs: &[InputFacts], stage: Stage) -> (f64, f64) {
    let medians = timings.medians(stage);
    let pair = |input: &InputFacts| {
        let tokens = tokens(stage, input).filter(|tokens| *tokens > 0)?;
        Some((tokens as f64, *medians.get(input.name.as_str())?))
    };
    inputs.iter().filter_map(pair).fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1))
}

#[cfg(test)]
mod tests {
    use types::Nanos;

    use super::*;
    use crate::sample::{page, timed};

    #[test]
    fn the_first_token_belongs_to_prefill_and_the_others_to_decode() {
        // 5 tokens: one from prefill, four from 800 ns of decode.
        let inputs = [page("a", 100, 5)];
        let samples = [timed(Stage::Prefill, "a", 0, 1_000), timed(Stage::Decode, "a", 0, 800)];
        let timings = Timings::new(&samples, &inputs);
        let rates = throughput(&timings, &inputs);
        assert_eq!(rates.ttft_ns, Some(Nanos::new(1_000)));
        assert_eq!(rates.time_per_output_token_ns, Some(Nanos::new(200)));
        assert_eq!(rates.decode_tokens_per_second, Some(5e6));
        assert_eq!(rates.prefill_tokens_per_second, Some(1e8));
        let stages = summaries(&timings, &inputs, &BTreeMap::new(), &Ledger::default());
        assert_eq!(stages.iter().map(|stage| stage.tokens).collect::<Vec<_>>(), [Some(100), Some(4)]);
    }

    #[test]
    fn a_run_that_decodes_nothing_has_no_time_per_token() {
        let inputs = [page("a", 100, 1)];
        let samples = [timed(Stage::Prefill, "a", 0, 1_000)];
        let rates = throughput(&Timings::new(&samples, &inputs), &inputs);
        assert_eq!((rates.time_per_output_token_ns, rates.decode_tokens_per_second), (None, None));
        assert!(rates.ttft_ns.is_some());
    }

    #[test]
    fn a_network_without_tokens_has_no_first_one() {
        let inputs = [page("a", 0, 0)];
        let samples = [timed(Stage::Prefill, "a", 0, 1_000)];
        let timings = Timings::new(&samples, &inputs);
        assert_eq!(throughput(&timings, &inputs), Throughput::default());
        assert_eq!(summaries(&timings, &inputs, &BTreeMap::new(), &Ledger::default())[0].tokens, None);
    }

    #[test]
    fn an_unknown_input_makes_tokens_unknown_not_zero() {
        let inputs = [page("a", 100, 5)];
        let samples = [timed(Stage::Prefill, "a", 0, 10), timed(Stage::Prefill, "b", 0, 10)];
        let stages = summaries(&Timings::new(&samples, &inputs), &inputs, &BTreeMap::new(), &Ledger::default());
        assert_eq!(stages[0].tokens, None);
    }
}
