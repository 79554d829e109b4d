//! A comparison: what the evidence supports, what could not be tested, and which samples are noisy.

use std::borrow::Cow;
use std::collections::BTreeMap;

use types::view::{ChangesView, ComparisonView, NoisySamples};
use types::{Change, ChangeVerdict, Comparison, Measured};

use crate::kernel::short_name;

/// The view of a comparison.
pub fn comparison(comparison: &Comparison) -> ComparisonView<'_> {
    ComparisonView {
        comparison,
        stages: changes(&comparison.stages, |name| name.into()),
        noisy: comparison.stages.iter().chain(&comparison.commands).filter_map(noisy).collect(),
        commands: changes(&comparison.commands, |name| name.into()),
        memory: changes(&comparison.memory, |name| name.into()),
        steps: changes(&comparison.steps, |name| name.into()),
        device_time: changes(&comparison.device_time, |name| name.into()),
        operators: changes(&comparison.operators, |name| name.into()),
        kernels: changes(&comparison.kernels, |name| short_name(name).into()),
        modules: changes(&comparison.modules, |name| name.into()),
    }
}

fn changes<'a>(changes: &'a [Change], printed: fn(&'a str) -> Cow<'a, str>) -> ChangesView<'a> {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for change in changes {
        if let Some(reason) = &change.untested {
            reasons.entry(reason).or_default().push(&change.name);
        }
    }
    let all = |names: &[&str]| names.len() == changes.len() && names.len() > 1;
    let untested = reasons.into_iter().map(|(reason, names)| (reason, if all(&names) { Vec::new() } else { names }));
    ChangesView {
        rows: changes.iter().map(|change| (printed(&change.name), change)).collect(),
        changed: changes.iter().filter(|change| change.verdict != ChangeVerdict::NoEvidence).collect(),
        tested: changes.iter().any(|change| change.untested.is_none()),
        untested: untested.collect(),
    }
}

fn noisy(change: &Change) -> Option<NoisySamples<'_>> {
    let both = |of: fn(&Measured) -> u64| of(&change.base) + of(&change.with);
    let noisy = NoisySamples {
        name: &change.name,
        samples: both(|side| side.samples),
        outliers: both(|side| side.outliers),
        warm_up: both(|side| side.warm_up),
    };
    (noisy.outliers > 0 || noisy.warm_up > 0).then_some(noisy)
}
