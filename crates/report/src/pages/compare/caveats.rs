//! Whether the sides can be compared: what stands before every verdict.

use types::{Caveat, CaveatKind, ComparedRun, Comparison, Difference, Facts, Severity};

use crate::render::table::shortened;
use crate::render::text::{capital, sentence};
use crate::words;
use crate::words::number::UNKNOWN;

/// Longest list of values in a caveat.
const VALUES: usize = 120;

/// How far a change between the sides can be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparability {
    /// Nothing is known to differ but what was changed on purpose.
    Comparable,
    /// The same work under other conditions: a change may come from those.
    OtherConditions,
    /// The sides did different work.
    OtherWork,
}

impl Comparability {
    /// The end of a conclusion.
    pub(super) const fn but(self) -> &'static str {
        match self {
            Self::Comparable => "",
            Self::OtherConditions => ", but the runs are not directly comparable (see above)",
            Self::OtherWork => ", but the runs are not comparable (see above)",
        }
    }
}

/// Whether the sides can be compared.
pub(crate) fn comparability(comparison: &Comparison) -> Comparability {
    let gravest = comparison.differences.iter().map(|one| one.severity).max();
    match (gravest, disturbed(comparison).next()) {
        (Some(Severity::Error), _) => Comparability::OtherWork,
        (Some(Severity::Warning), _) | (_, Some(_)) => Comparability::OtherConditions,
        _ => Comparability::Comparable,
    }
}

/// What a reader must know before the first number, one line each.
pub(crate) fn caveats(comparison: &Comparison) -> Vec<String> {
    let grave = comparison.differences.iter().filter(|one| one.severity > Severity::Info).map(different);
    let busy = disturbed(comparison).map(|(run, why)| Facts::new().with("run", &run.path).with("disturbed", why));
    let said = |facts: Facts| {
        let mut caveat = Caveat::new(CaveatKind::NotComparable, facts);
        words::caveat::say(&mut caveat);
        sentence(&caveat.text)
    };
    grave.chain(busy).map(said).collect()
}

fn different(one: &Difference) -> Facts {
    let side =
        |name: &str, of: &[String]| (!of.is_empty()).then(|| format!("{name} {}", shortened(&values(of), VALUES)));
    let sides: Vec<String> = side("base", &one.base).into_iter().chain(side("with", &one.with)).collect();
    let meaning = capital(one.meaning.trim_end_matches('.'));
    Facts::new().with("aspect", &one.aspect).with("sides", sides.join(", ")).with("meaning", meaning)
}

/// Runs that other work on the machine disturbed, and how.
pub(super) fn disturbed(comparison: &Comparison) -> impl Iterator<Item = (&ComparedRun, &str)> {
    let runs = comparison.base.iter().chain(&comparison.with);
    runs.filter_map(|run| Some((run, &**run.disturbed.as_ref()?)))
}

/// Values of a side; the first few where there are many.
pub(super) fn values(values: &[String]) -> String {
    const MOST: usize = 3;
    match values.len() {
        0 => UNKNOWN.to_owned(),
        length if length > MOST => format!("{} and {} more", values[..MOST].join(", "), length - MOST),
        _ => values.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::compare::sample;

    #[test]
    fn every_grave_difference_and_every_disturbed_run_is_a_line() {
        let mut comparison = sample::apart();
        comparison.base[0].disturbed = Some("3 of 10 samples were disturbed (other processes)".into());
        let expected = [
            "Different inputs: base invoice.png, letter.png, with other.png. ",
            "Different model: base deepseek-ocr-tiny, with deepseek-ocr-tiny-with-a-name-that-is-far-too-long. ",
            "Different status: with tmp/profile-output/20251116-090000: partial, not used: broken.png. ",
            "`tmp/profile-output/20251115-034712`: 3 of 10 samples were disturbed (other processes).",
        ];
        let lines = caveats(&comparison);
        assert_eq!(lines.len(), expected.len(), "{lines:#?}");
        assert!(lines.iter().zip(expected).all(|(line, start)| line.starts_with(start)), "{lines:#?}");
        assert_eq!(comparability(&comparison), Comparability::OtherWork);
    }

    #[test]
    fn a_disturbed_run_alone_makes_a_verdict_doubtful() {
        let mut comparison = sample::runs();
        assert_eq!((comparability(&comparison), caveats(&comparison).len()), (Comparability::Comparable, 0));
        comparison.with[2].disturbed = Some("5 of 6 samples were disturbed (steal time)".into());
        assert_eq!(comparability(&comparison), Comparability::OtherConditions);
    }
}
