//! Samples in order: by stage and input, warm-up left out.

use std::collections::BTreeMap;

use types::{InputFacts, Nanos, Sample, Stage, Statistics, Variance};

use crate::statistics::{describe, median, relative_spread, share, standard_deviation};

/// Measured times, by stage, then by input, each in the order it ran.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timings<'a> {
    stages: BTreeMap<Stage, BTreeMap<&'a str, Vec<&'a Sample>>>,
}

impl<'a> Timings<'a> {
    /// Sorts the samples that are no warm-up. A sample without an input belongs to the only one there is.
    pub(crate) fn new(samples: &'a [Sample], inputs: &'a [InputFacts]) -> Self {
        let only = match inputs {
            [only] => only.name.as_str(),
            _ => "",
        };
        let mut stages: BTreeMap<Stage, BTreeMap<&'a str, Vec<&'a Sample>>> = BTreeMap::new();
        for sample in samples.iter().filter(|sample| !sample.warmup) {
            let input = sample.input.as_deref().unwrap_or(only);
            stages.entry(sample.stage).or_default().entry(input).or_default().push(sample);
        }
        for runs in stages.values_mut().flat_map(BTreeMap::values_mut) {
            runs.sort_by_key(|sample| (sample.epoch, sample.repeat));
        }
        Self { stages }
    }

    /// Stages that were measured, parents before children.
    pub(crate) fn stages(&self) -> impl Iterator<Item = Stage> {
        Stage::ALL.into_iter().filter(|stage| self.stages.contains_key(stage))
    }

    /// Runs of a stage, input by input.
    pub(crate) fn inputs(&self, stage: Stage) -> impl Iterator<Item = (&'a str, &[&'a Sample])> {
        self.stages.get(&stage).into_iter().flatten().map(|(input, runs)| (*input, runs.as_slice()))
    }

    /// Measured instances of a stage.
    pub(crate) fn instances(&self, stage: Stage) -> u64 {
        self.inputs(stage).map(|(_, runs)| runs.len() as u64).sum()
    }

    /// Time of all instances of a stage; absent when there is none.
    pub(crate) fn total(&self, stage: Stage) -> Option<Nanos> {
        let stage = self.stages.get(&stage)?;
        Some(stage.values().flatten().map(|sample| sample.wall_ns).sum())
    }

    /// Time of prefill and decode: the whole, because every other stage is nested in one of them.
    pub(crate) fn wall(&self) -> Option<Nanos> {
        let tops: Vec<_> = self.stages().filter(|stage| stage.parent().is_none()).collect();
        (!tops.is_empty()).then(|| tops.into_iter().filter_map(|stage| self.total(stage)).sum())
    }

    /// Median time of a stage per input, in nanoseconds.
    pub(crate) fn medians(&self, stage: Stage) -> BTreeMap<&'a str, f64> {
        self.inputs(stage).filter_map(|(input, runs)| Some((input, median(&nanoseconds(runs))?))).collect()
    }

    /// Statistics of a stage over all inputs, in milliseconds.
    pub(crate) fn milliseconds(&self, stage: Stage) -> Option<Statistics> {
        let times: Vec<_> =
            self.inputs(stage).flat_map(|(_, runs)| runs.iter().map(|sample| sample.wall_ns.as_millis())).collect();
        describe(&times)
    }

    /// Why times differ: repeats of one input, and inputs.
    pub(crate) fn variance(&self) -> Variance {
        let repeat = |stage| (stage, self.repeat_variation(stage));
        let input = |stage| (stage, self.input_variation(stage));
        Variance {
            repeat_cv_per_stage: self.stages().map(repeat).collect(),
            input_cv_per_stage: self.stages().map(input).collect(),
        }
    }

    /// Spread of one input's runs, each input weighed by its degrees of freedom.
    fn repeat_variation(&self, stage: Stage) -> Option<f64> {
        let (mut squares, mut freedom) = (0.0, 0.0);
        for (_, runs) in self.inputs(stage) {
            let Some(spread) = relative_spread(&nanoseconds(runs)) else { continue };
            let free = (runs.len() - 1) as f64;
            squares += spread.powi(2) * free;
            freedom += free;
        }
        share(squares, freedom).map(f64::sqrt)
    }

    fn input_variation(&self, stage: Stage) -> Option<f64> {
        let medians: Vec<f64> = self.medians(stage).into_values().collect();
        share(standard_deviation(&medians)?, describe(&medians)?.mean)
    }
}

/// Times of runs, for statistics.
pub(crate) fn nanoseconds(runs: &[&Sample]) -> Vec<f64> {
    runs.iter().map(|sample| sample.wall_ns.get() as f64).collect()
}

/// A derived time, rounded to what a clock could show.
pub(crate) fn rounded(nanoseconds: f64) -> Nanos {
    Nanos::new(nanoseconds.round() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::timed;

    #[test]
    fn warm_up_is_in_no_figure() {
        let mut samples = vec![timed(Stage::Prefill, "a", 0, 900), timed(Stage::Prefill, "a", 1, 100)];
        samples[0].warmup = true;
        let timings = Timings::new(&samples, &[]);
        assert_eq!((timings.instances(Stage::Prefill), timings.total(Stage::Prefill)), (1, Some(Nanos::new(100))));
        assert_eq!(timings.total(Stage::Decode), None);
    }

    #[test]
    fn inputs_that_differ_leave_the_repeat_variance_alone() {
        let samples = [("a", 100), ("a", 100), ("b", 300), ("b", 300)];
        let samples: Vec<_> = samples.iter().map(|(input, time)| timed(Stage::Decode, input, 0, *time)).collect();
        let variance = Timings::new(&samples, &[]).variance();
        assert_eq!(variance.repeat_cv_per_stage[&Stage::Decode], Some(0.0));
        // Medians 100 and 300: mean 200, deviation sqrt(2 * 100^2 / 1).
        let expected = 20_000f64.sqrt() / 200.0;
        assert!((variance.input_cv_per_stage[&Stage::Decode].unwrap() - expected).abs() < 1e-12);
    }

    #[test]
    fn repeats_that_differ_leave_the_input_variance_alone() {
        let samples = [("a", 90), ("a", 110), ("b", 90), ("b", 110)];
        let samples: Vec<_> = samples.iter().map(|(input, time)| timed(Stage::Decode, input, 0, *time)).collect();
        let variance = Timings::new(&samples, &[]).variance();
        assert_eq!(variance.input_cv_per_stage[&Stage::Decode], Some(0.0));
        let expected = 200f64.sqrt() / 100.0;
        assert!((variance.repeat_cv_per_stage[&Stage::Decode].unwrap() - expected).abs() < 1e-12);
    }

    #[test]
    fn a_single_run_has_neither_variance() {
        let samples = [timed(Stage::Decode, "a", 0, 5)];
        let variance = Timings::new(&samples, &[]).variance();
        assert_eq!(variance.repeat_cv_per_stage[&Stage::Decode], None);
        assert_eq!(variance.input_cv_per_stage[&Stage::Decode], None);
    }
}
