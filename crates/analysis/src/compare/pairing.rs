//! Which inputs of different runs are the same one.

use std::collections::{BTreeMap, BTreeSet};

use types::{InputSet, Stage};

use super::{RunRecords, Sides};
use crate::statistics::Stratum;

/// Inputs by what they are: their content where every run has a hash of it, their name otherwise.
#[derive(Debug)]
pub(super) struct Pairing {
    by_content: bool,
    /// What every run has.
    common: BTreeSet<String>,
    /// What some run has.
    all: BTreeSet<String>,
}

impl Pairing {
    pub(super) fn new(sides: Sides<'_>) -> Self {
        let by_content = sides.runs().all(|run| names(run).all(|name| hash(run, name).is_some()));
        let mut pairing = Self { by_content, common: BTreeSet::new(), all: BTreeSet::new() };
        for (place, run) in sides.runs().enumerate() {
            let inputs: BTreeSet<String> = names(run).map(|name| pairing.identity(run, name)).collect();
            pairing.common = if place == 0 { inputs.clone() } else { &pairing.common & &inputs };
            pairing.all.extend(inputs);
        }
        pairing
    }

    /// Inputs that every run has.
    pub(super) fn common(&self) -> &BTreeSet<String> {
        &self.common
    }

    /// Whether every run has every input, so that totals over them compare.
    pub(super) fn is_whole(&self) -> bool {
        self.common == self.all
    }

    /// Whether any run names an input.
    pub(super) fn names_inputs(&self) -> bool {
        self.all.iter().any(|identity| !identity.is_empty())
    }

    /// What an input of a run is called when runs are compared.
    pub(super) fn identity(&self, run: &RunRecords, name: &str) -> String {
        hash(run, name).filter(|_| self.by_content).unwrap_or(name).to_owned()
    }

    /// Measured times of a stage by input and rank, in the order they ran, warm-up left out.
    pub(super) fn series(&self, run: &RunRecords, stage: Stage) -> BTreeMap<(String, Option<u32>), Vec<f64>> {
        let mut samples: Vec<_> =
            run.metrics.times.samples.iter().filter(|sample| sample.stage == stage && !sample.warmup).collect();
        samples.sort_by_key(|sample| (sample.epoch, sample.repeat));
        let mut series: BTreeMap<_, Vec<f64>> = BTreeMap::new();
        for sample in samples {
            let key = (self.identity(run, sample.input.as_deref().unwrap_or_default()), sample.rank);
            series.entry(key).or_default().push(sample.wall_ns.get() as f64);
        }
        series
    }

    /// Series that all these runs have, run by run in the same order.
    pub(super) fn common_series<'a>(
        &self,
        runs: impl Iterator<Item = &'a RunRecords>,
        stage: Stage,
    ) -> Vec<Vec<Vec<f64>>> {
        let mut all: Vec<_> = runs.map(|run| self.series(run, stage)).collect();
        let Some(first) = all.first() else { return Vec::new() };
        let keys: Vec<_> = first.keys().filter(|key| all.iter().all(|one| one.contains_key(key))).cloned().collect();
        all.iter_mut().map(|run| keys.iter().filter_map(|key| run.remove(key)).collect()).collect()
    }

    /// One run against another, input by input.
    pub(super) fn strata(&self, base: &RunRecords, with: &RunRecords, stage: Stage) -> Vec<Stratum> {
        let mut series = self.common_series([base, with].into_iter(), stage).into_iter();
        let (base, with) = (series.next().unwrap_or_default(), series.next().unwrap_or_default());
        base.into_iter().zip(with).map(|(base, with)| Stratum { base, with }).collect()
    }
}

/// Inputs a run measured.
fn names(run: &RunRecords) -> impl Iterator<Item = &str> {
    let measured = run.metrics.times.samples.iter().filter(|sample| !sample.warmup);
    let names: BTreeSet<&str> = measured.map(|sample| sample.input.as_deref().unwrap_or_default()).collect();
    names.into_iter()
}

/// SHA-256 of an input, as far as the run wrote it down.
fn hash<'a>(run: &'a RunRecords, name: &str) -> Option<&'a str> {
    let InputSet { images, prompts, .. } = run.inputs.as_ref()?;
    let image = images.iter().find(|image| image.name == name).and_then(|image| image.sha256.as_deref());
    image.or_else(|| prompts.iter().find(|prompt| prompt.name == name).and_then(|prompt| prompt.sha256.as_deref()))
}
