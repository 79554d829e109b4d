//! Remedies that were tried: the baseline of each, what it saved, and what it changed.

use serde::{Deserialize, Serialize};

use crate::{Bytes, JsonSchema, Nanos, Remedies};

/// Every remedy of a run that was to be tried.
///
/// Holds: a try has figures only where both sides ran, and each interval holds its figure; one that was not carried through
/// says why ([`Trials::checked`]).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trials {
    /// In the order they were tried; combinations last.
    #[serde(default)]
    pub tries: Vec<Try>,
}

/// One remedy, or several together, against the baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Try {
    /// What was changed.
    pub remedy: Remedies,
    /// What came of it.
    pub status: TryStatus,
    /// Why it was not carried through; absent where it was.
    pub reason: Option<String>,
    /// A request of the baseline: median of its turns.
    pub baseline_ns: Option<Nanos>,
    /// The same with the remedy. A request is the whole batch where a batch was tried.
    pub tried_ns: Option<Nanos>,
    /// What it saved of a request's time; negative where requests take longer.
    #[schemars(range(max = 1.0))]
    pub saves_share: Option<f64>,
    /// Lower end of the 95% interval of that.
    #[schemars(range(max = 1.0))]
    pub low: Option<f64>,
    /// Upper end.
    #[schemars(range(max = 1.0))]
    pub high: Option<f64>,
    /// What was predicted, of a request's time; absent where nothing was.
    #[schemars(range(max = 1.0))]
    pub predicted_saves_share: Option<f64>,
    /// Time to the first token, or of a forward pass.
    pub first_token: Option<TimeChange>,
    /// Time per output token.
    pub per_token: Option<TimeChange>,
    /// Tokens per second over whole requests; sequences per second where no tokens are generated.
    pub throughput: Option<RateChange>,
    /// The answers side by side; absent where they were not compared.
    pub output: Option<OutputChange>,
    /// Device memory in tensors, at most, during the baseline's turns.
    pub baseline_peak_memory_bytes: Option<Bytes>,
    /// The same with the remedy.
    pub peak_memory_bytes: Option<Bytes>,
    /// What compiling or capturing took, once.
    pub compile_ns: Option<Nanos>,
    /// The setting or the line of code that adopts it.
    pub adopt: String,
    /// What else is to be known of the comparison.
    pub notes: Vec<String>,
    /// Every inference that was timed, in the order they ran.
    pub turns: Vec<TryTurn>,
}

crate::named! {
    /// What came of a try.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum TryStatus {
        /// It ran to its end.
        Tried = "tried",
        /// It began and failed.
        Failed = "failed",
        /// It changes nothing here, or cannot be applied.
        NotApplicable = "not applicable",
        /// There was no time for it, or the run ended before.
        NotReached = "not reached",
    }
}

/// A time on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimeChange {
    /// Median of the baseline.
    pub baseline_ns: Nanos,
    /// Median with the remedy.
    pub tried_ns: Nanos,
    /// Share saved; negative where it takes longer.
    #[schemars(range(max = 1.0))]
    pub saves_share: f64,
    /// Lower end of the 95% interval; absent where there are too few turns.
    #[schemars(range(max = 1.0))]
    pub low: Option<f64>,
    /// Upper end.
    #[schemars(range(max = 1.0))]
    pub high: Option<f64>,
}

/// A rate on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateChange {
    /// Of the baseline.
    #[schemars(range(min = 0.0))]
    pub baseline_per_second: f64,
    /// With the remedy.
    #[schemars(range(min = 0.0))]
    pub tried_per_second: f64,
    /// The second over the first.
    #[schemars(range(min = 0.0))]
    pub ratio: f64,
    /// Lower end of the 95% interval of that; absent where there are too few turns.
    #[schemars(range(min = 0.0))]
    pub low: Option<f64>,
    /// Upper end.
    #[schemars(range(min = 0.0))]
    pub high: Option<f64>,
}

/// Two answers to the same prompt.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OutputChange {
    /// Whether every token is the same.
    pub equal: bool,
    /// Tokens that were compared.
    pub tokens: u64,
    /// Tokens that differ; after the first, the two answer different texts.
    pub differing_tokens: u64,
    /// The largest distance of two logits while both had seen the same tokens; absent where logits were not kept.
    #[schemars(range(min = 0.0))]
    pub max_logit_distance: Option<f64>,
}

/// One inference of either side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TryTurn {
    /// Whether it is the baseline's.
    pub baseline: bool,
    /// The round; in each both sides run once.
    pub round: u32,
    /// Until the first logits.
    pub prefill_ns: Nanos,
    /// From there to the last token; absent where none is generated.
    pub decode_ns: Option<Nanos>,
    /// The whole request.
    pub wall_ns: Nanos,
    /// Tokens each sequence got; zero where none is generated.
    pub tokens: u64,
    /// Sequences at once.
    pub sequences: u64,
}

impl TimeChange {
    /// Whether the interval holds the figure.
    fn holds(saves: f64, low: Option<f64>, high: Option<f64>) -> bool {
        low.is_none_or(|low| low <= saves) && high.is_none_or(|high| saves <= high)
    }
}

impl Trials {
    /// The tries, with what would break an invariant left out.
    pub fn checked(tries: Vec<Try>) -> Self {
        let sound = |change: Option<TimeChange>| {
            change.map(|one| {
                if TimeChange::holds(one.saves_share, one.low, one.high) {
                    one
                } else {
                    TimeChange { low: None, high: None, ..one }
                }
            })
        };
        let one = |mut one: Try| {
            one.first_token = sound(one.first_token);
            one.per_token = sound(one.per_token);
            if one.saves_share.is_none_or(|saves| !TimeChange::holds(saves, one.low, one.high)) {
                (one.low, one.high) = (None, None);
            }
            match one.status {
                TryStatus::Tried => one.reason = None,
                _ => one.reason = one.reason.or_else(|| Some("the run does not say why".to_owned())),
            }
            one
        };
        Self { tries: tries.into_iter().map(one).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Remedy;

    #[test]
    fn an_interval_that_misses_its_figure_is_left_out_and_a_failure_has_a_reason() {
        let one = Try {
            remedy: Remedy::Compile.into(),
            status: TryStatus::Failed,
            reason: None,
            baseline_ns: Some(Nanos::new(10)),
            tried_ns: Some(Nanos::new(5)),
            saves_share: Some(0.5),
            low: Some(0.6),
            high: Some(0.7),
            predicted_saves_share: None,
            first_token: None,
            per_token: Some(TimeChange {
                baseline_ns: Nanos::new(2),
                tried_ns: Nanos::new(1),
                saves_share: 0.5,
                low: Some(0.4),
                high: Some(0.6),
            }),
            throughput: None,
            output: None,
            baseline_peak_memory_bytes: None,
            peak_memory_bytes: None,
            compile_ns: None,
            adopt: String::new(),
            notes: Vec::new(),
            turns: Vec::new(),
        };
        let checked = Trials::checked(vec![one]).tries.remove(0);
        assert_eq!((checked.low, checked.high, checked.saves_share), (None, None, Some(0.5)));
        assert_eq!(checked.per_token.unwrap().low, Some(0.4));
        assert!(checked.reason.is_some());
    }
}
