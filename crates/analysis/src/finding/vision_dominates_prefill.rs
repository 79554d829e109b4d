//! Most of prefill is spent on pictures. Where some pages ran with tiles and some without, the run tells what tiles cost.

use std::collections::BTreeSet;

use types::{Base, EstimatedSaving, Facts, Finding, InputFacts, Nanos, Severity, Stage};

use super::{Claim, Found, Run};
use crate::loss::Cause;
use crate::statistics::{median, share};
use crate::timings::rounded;

/// Share of prefill above which the text part is the smaller one.
const MOST_OF_PREFILL: f64 = 0.5;

/// The rule's name.
pub(super) const RULE: &str = "vision-dominates-prefill";

pub(super) fn check(run: &Run<'_>) -> Option<Found> {
    let (vision, prefill) = (run.timings.total(Stage::Vision)?, run.timings.total(Stage::Prefill)?);
    let part = share(vision.get() as f64, prefill.get() as f64).filter(|part| *part > MOST_OF_PREFILL)?;
    let parts = [Stage::Sam, Stage::Clip, Stage::Projector].into_iter();
    let parts = parts.filter_map(|stage| Some((stage, run.timings.total(stage)?)));
    let longest = parts.max_by_key(|(_, time)| *time);
    let tiles = Tiles::of(run);
    let saves = tiles.saves();
    let facts = Facts::new()
        .with("vision", vision)
        .with("prefill", prefill)
        .with_share("vision_share", part, Base::Stage(Stage::Prefill))
        .with_known("encoder", longest.map(|(stage, _)| Base::Stage(stage)))
        .with_known("encoder_time", longest.map(|(_, time)| time));
    let facts = tiles.add_to(facts).with_if("comparable", saves.is_some());
    let saving = EstimatedSaving::at_most(saves);
    let finding = Finding::new(RULE, Severity::Info, Some(Stage::Vision), facts).saving(saving);
    Some(Found::new(finding, Claim::Work(encoder_causes(run))))
}

/// Operators of the encoders: fewer tiles are less of each.
fn encoder_causes(run: &Run<'_>) -> Vec<Cause> {
    let names: BTreeSet<_> = run.operators(Stage::Vision).map(|operator| operator.record.name.as_str()).collect();
    names.into_iter().map(|name| Cause::Operator(name.to_owned())).collect()
}

/// Vision times of pages with tiles and without.
struct Tiles {
    /// Tiles, median time and instances of each page that has tiles.
    tiled: Vec<(u64, f64, u64)>,
    /// Median time of each page without.
    plain: Vec<f64>,
}

impl Tiles {
    fn of(run: &Run<'_>) -> Self {
        let medians = run.timings.medians(Stage::Vision);
        let mut tiles = Self { tiled: Vec::new(), plain: Vec::new() };
        for (input, runs) in run.timings.inputs(Stage::Vision) {
            let facts = run.subject.inputs.iter().find(|facts: &&InputFacts| facts.name == input);
            let (Some([across, down]), Some(time)) = (facts.and_then(|facts| facts.crop_grid), medians.get(input))
            else {
                continue;
            };
            match across.saturating_mul(down) {
                0 | 1 => tiles.plain.push(*time),
                count => tiles.tiled.push((count, *time, runs.len() as u64)),
            }
        }
        tiles
    }

    /// How many pages of each kind there are and what they take.
    fn add_to(&self, mut facts: Facts) -> Facts {
        let times: Vec<_> = self.tiled.iter().map(|one| one.1).collect();
        if let Some(time) = median(&times) {
            let most = self.tiled.iter().map(|one| one.0).max().unwrap_or_default();
            facts = facts.with("tiled", self.tiled.len()).with("most_tiles", most).with("tiled_time", rounded(time));
        }
        match median(&self.plain) {
            Some(time) => facts.with("untiled", self.plain.len()).with("untiled_time", rounded(time)),
            None => facts,
        }
    }

    /// What all measured runs of tiled pages would save at the time of a page without tiles.
    fn saves(&self) -> Option<Nanos> {
        let plain = median(&self.plain)?;
        let saved = self.tiled.iter().map(|(_, time, runs)| (time - plain).max(0.0) * *runs as f64);
        Some(rounded(saved.sum())).filter(|saved| *saved > Nanos::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::fired;
    use crate::sample::{Case, case, page, timed};

    fn run(prefill: [i64; 2], vision: [i64; 2], grids: [[u64; 2]; 2]) -> Vec<Finding> {
        let mut samples = Vec::new();
        let mut inputs = Vec::new();
        for (index, name) in ["a", "b"].into_iter().enumerate() {
            for repeat in 0..2 {
                samples.push(timed(Stage::Prefill, name, repeat, prefill[index]));
                samples.push(timed(Stage::Vision, name, repeat, vision[index]));
                samples.push(timed(Stage::Sam, name, repeat, vision[index] - 10));
            }
            inputs.push(InputFacts { crop_grid: Some(grids[index]), ..page(name, 10, 1) });
        }
        fired(&Case { samples, inputs, ..case() }, RULE)
    }

    #[test]
    fn tiles_save_what_the_page_without_them_shows() {
        let found = run([1_000, 500], [900, 200], [[2, 3], [1, 1]]);
        // Two runs of the tiled page, 900 - 200 each; all runs together take 2 * (1000 + 500).
        assert_eq!((found.len(), found[0].saving.saves_ns), (1, Some(Nanos::new(1_400))));
        assert!((found[0].saving.saves_share.unwrap() - 1_400.0 / 3_000.0).abs() < 1e-12);
        let facts = &found[0].quantities;
        assert_eq!(
            (facts.count("tiled"), facts.count("most_tiles"), facts.count("untiled")),
            (Some(1), Some(6), Some(1))
        );
        assert_eq!(facts.share("vision_share"), Some(2_200.0 / 3_000.0));
    }

    #[test]
    fn without_a_page_to_compare_with_the_saving_is_unknown() {
        let found = run([1_000, 1_000], [900, 900], [[2, 3], [2, 3]]);
        assert_eq!((found.len(), found[0].saving.saves_ns), (1, None));
        let untiled = run([1_000, 1_000], [900, 900], [[1, 1], [1, 1]]);
        assert!(found[0].quantities.has("tiled") && !untiled[0].quantities.has("tiled"));
        assert!([&found, &untiled].iter().all(|found| !found[0].quantities.has("comparable")));
    }

    #[test]
    fn half_of_prefill_does_not_fire() {
        assert_eq!(run([1_000, 1_000], [500, 500], [[2, 3], [1, 1]]), []);
    }
}
