//! What holds of any two runs.

use proptest::prelude::*;
use types::{ChangeVerdict, Comparison, Sample, Stage};

use super::{run, two};
use crate::sample::timed;

/// The comparison with a word for every remark: a document without them is refused.
fn said(mut comparison: Comparison) -> Comparison {
    let meanings = comparison.differences.iter_mut().map(|one| &mut one.meaning);
    let tables = [
        &mut comparison.stages,
        &mut comparison.commands,
        &mut comparison.memory,
        &mut comparison.steps,
        &mut comparison.device_time,
        &mut comparison.operators,
        &mut comparison.kernels,
        &mut comparison.modules,
    ];
    let rows = tables.into_iter().flatten().filter_map(|row| row.untested.as_mut());
    let disturbed = comparison.base.iter_mut().chain(&mut comparison.with).filter_map(|run| run.disturbed.as_mut());
    for remark in meanings.chain(rows).chain(disturbed).chain(&mut comparison.notes) {
        remark.text.clone_from(&remark.id);
    }
    comparison
}

fn any_samples() -> impl Strategy<Value = Vec<Sample>> {
    let one = (0usize..6, 0usize..2, 0u32..6, 1i64..1_000_000, any::<bool>());
    proptest::collection::vec(one, 0..30).prop_map(|all| {
        let make = |(stage, input, repeat, time, warmup): (usize, usize, u32, i64, bool)| Sample {
            warmup,
            ..timed(Stage::ALL[stage], ["a", "b"][input], repeat, time)
        };
        all.into_iter().map(make).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_run_compared_with_itself_has_not_changed(samples in any_samples()) {
        let one = run("a", samples);
        let comparison = two(&one, &one);
        for change in [&comparison.stages, &comparison.operators, &comparison.modules].into_iter().flatten() {
            prop_assert_eq!(change.verdict, ChangeVerdict::NoEvidence);
            prop_assert_eq!(change.change.unwrap_or(0.0), 0.0);
            prop_assert!(change.interval.is_none_or(|interval| interval.low <= 0.0 && interval.high >= 0.0));
        }
        prop_assert_eq!(comparison.differences, []);
    }

    #[test]
    fn exchanging_the_sides_turns_every_change_around(first in any_samples(), second in any_samples()) {
        let (one, other) = (run("a", first), run("b", second));
        let (forth, back) = (two(&one, &other), two(&other, &one));
        let near = |a: f64, b: f64| (a.ln_1p() + b.ln_1p()).abs() < 1e-6;
        for (forth, back) in forth.stages.iter().zip(&back.stages) {
            prop_assert_eq!(&forth.name, &back.name);
            prop_assert!(forth.change.zip(back.change).is_none_or(|(forth, back)| near(forth, back)));
            prop_assert!(forth.interval.zip(back.interval).is_none_or(|(forth, back)| near(forth.low, back.high)));
            let turned = match back.verdict {
                ChangeVerdict::Faster => ChangeVerdict::Slower,
                ChangeVerdict::Slower => ChangeVerdict::Faster,
                ChangeVerdict::NoEvidence => ChangeVerdict::NoEvidence,
            };
            prop_assert_eq!(forth.verdict, turned);
        }
        let json = serde_json::to_string(&said(forth)).unwrap();
        prop_assert!(serde_json::from_str::<Comparison>(&json).is_ok(), "{json}");
    }
}
