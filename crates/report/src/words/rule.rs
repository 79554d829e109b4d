//! What each rule says: one row a rule.

use std::sync::LazyLock;

use types::{Facts, Finding};

use super::rows::{Row, rows};
use super::template::{first, lines};

static RULES: LazyLock<Vec<Row>> = LazyLock::new(|| rows(include_str!("rules.txt")));

/// How a sentence about an estimate starts; each is a template of its own.
const ESTIMATE: &str = "The estimate ";

/// The row of a rule.
pub(crate) fn words(rule: &str) -> Option<&'static Row> {
    RULES.iter().find(|row| row.id == rule)
}

/// What people call a rule; its id where it has no row.
pub(crate) fn title(rule: &str) -> &str {
    words(rule).map_or(rule, |row| row.title)
}

/// What to do about a finding, in one sentence; of an older file, the first sentence of its advice.
pub(crate) fn action(finding: &Finding) -> String {
    let said = words(&finding.rule).and_then(|row| first(&row.part("action"), &finding.quantities));
    said.unwrap_or_else(|| finding.advice.split_inclusive(". ").next().unwrap_or_default().trim().to_owned())
}

impl Row {
    /// The conclusion, then the numbers behind it.
    pub(crate) fn evidence(&self, facts: &Facts) -> Vec<String> {
        first(&self.part("claim"), facts).into_iter().chain(lines(&self.part("evidence"), facts)).collect()
    }

    /// What to do, then how; what an estimate rests on only where there is one.
    pub(crate) fn advice(&self, facts: &Facts, is_estimated: bool) -> String {
        let how =
            lines(&self.part("advice"), facts).into_iter().filter(|line| is_estimated || !line.starts_with(ESTIMATE));
        first(&self.part("action"), facts).into_iter().chain(how).collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use types::{Base, Bytes, BytesPerSecond, Nanos};

    use super::*;

    /// Words that no reader of a report should meet.
    const FORBIDDEN: [&str; 10] =
        ["nobody", "promised", "told", "in all", "besides", "picture", "pictures", "taken to", "products", "begin"];

    /// A source file of the rules in analysis.
    fn source(file: &str) -> String {
        let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../analysis/src/finding"));
        fs::read_to_string(folder.join(file)).unwrap()
    }

    /// Every rule of analysis in its order: the id, and the text of its file and of the helpers that it uses.
    fn rules() -> Vec<(String, String)> {
        let table = source("mod.rs");
        let rows = table.lines().filter_map(|line| line.trim().strip_prefix('(')?.split_once("::RULE,"));
        rows.map(|(module, _)| {
            let mut text = source(&format!("{module}.rs"));
            let id = text.split("RULE: &str = \"").nth(1).and_then(|rest| rest.split('"').next()).unwrap().to_owned();
            for helper in ["copies", "launches", "idle"] {
                if text.contains(&format!("use super::{helper}::")) {
                    text += &source(&format!("{helper}.rs"));
                }
            }
            if text.contains("use crate::pressure::") {
                text += &source("../pressure.rs");
            }
            (id, text)
        })
        .collect()
    }

    /// The templates of a rule, each of which must be part of something.
    fn templates(row: &Row) -> Vec<&'static str> {
        let templates = ["claim", "evidence", "action", "advice"].map(|part| row.part(part)).concat();
        assert_eq!(templates.len(), row.templates.len(), "{}", row.id);
        templates
    }

    /// The names of facts in a template: in gaps, and in the conditions of the line and of its optional parts.
    fn names(template: &str) -> Vec<&str> {
        let gaps = template.split('{').skip(1).filter_map(|gap| gap.split(['|', ':', '}']).next());
        let lines = std::iter::once(template).chain(template.split("[[").skip(1));
        let conditions = lines.flat_map(|line| {
            let conditions = line.split(' ').take_while(|word| word.starts_with(['?', '!', '*']));
            conditions.map(|word| &word[1..])
        });
        gaps.chain(conditions).collect()
    }

    #[test]
    fn every_rule_of_analysis_has_its_row_in_the_same_order() {
        let ids: Vec<_> = rules().into_iter().map(|(id, _)| id).collect();
        assert_eq!(ids, RULES.iter().map(|row| row.id).collect::<Vec<_>>());
    }

    #[test]
    fn templates_name_facts_that_the_rule_gives() {
        for ((id, source), row) in rules().iter().zip(RULES.iter()) {
            for name in templates(row).into_iter().flat_map(names) {
                assert!(source.contains(&format!("\"{name}\"")), "{id} gives no fact `{name}`");
            }
        }
    }

    #[test]
    fn sentences_are_plain_english_without_ids() {
        for row in RULES.iter() {
            let [claim, action, advice] = ["claim", "action", "advice"].map(|part| row.part(part));
            assert!(!claim.is_empty() && !action.is_empty() && !advice.is_empty(), "{}", row.id);
            let texts = [vec![row.title], claim, action, advice].concat();
            for text in texts {
                // Code and gaps have names of their own.
                let code: String = text.split('`').step_by(2).collect();
                let plain: String =
                    code.split('{').map(|part| part.split_once('}').map_or(part, |(_, rest)| rest)).collect();
                let words: Vec<&str> =
                    plain.split_whitespace().skip_while(|word| word.starts_with(['?', '!'])).collect();
                let sentence =
                    format!(" {} ", words.join(" ").to_lowercase().replace(['.', ',', ';', ':', '(', ')'], " "));
                assert!(!words.iter().any(|word| word.contains('_')), "{}: {text}", row.id);
                let is_id = |other: &&Row| other.id.contains('-') && plain.contains(other.id);
                assert!(RULES.iter().find(is_id).is_none(), "{}: {text}", row.id);
                for word in FORBIDDEN {
                    assert!(!sentence.contains(&format!(" {word} ")), "{}: `{word}` in: {text}", row.id);
                }
                assert!(text == row.title || text.ends_with('.'), "{}: {text}", row.id);
            }
        }
    }

    #[test]
    fn a_finding_is_said_with_what_is_known_of_it() {
        let collective =
            Facts::new().with("name", "all_to_all").with("calls", 6_u64).with("time", Nanos::new(12_000_000));
        let known = collective.clone().with("bytes", Bytes::new(4_000_000)).with("ranks", 8_u64);
        let rate = |gigabytes: f64| BytesPerSecond::new(gigabytes * 1e9);
        let known = known.with("bus", rate(1.75)).with("bus_best", rate(3.5)).with("link", rate(350.0));
        let known = known.with_share("link_share", 0.01, Base::LinkBandwidth);
        let facts = Facts::new()
            .with("exposed", Nanos::new(20_000_000))
            .with_share("exposed_share", 0.25, Base::DeviceTime)
            .with("span", Nanos::new(80_000_000))
            .with("communication", Nanos::new(30_000_000))
            .with("collectives", vec![collective, known]);
        let expected = [
            "Communication is exposed for 20.0 ms of 80.0 ms (25.0% of the device span): no other kernel runs at the same time.",
            "Communication takes 30.0 ms in total.",
            "`all_to_all` of unknown size among an unknown number of ranks: 6 calls, 12.0 ms.",
            "`all_to_all` of 4.00 MB among 8 ranks: 6 calls, 12.0 ms; bus bandwidth 1.75 GB/s, 3.50 GB/s in the shortest \
             call, 1.0% of the 350 GB/s that a GPU's links carry one way.",
        ];
        assert_eq!(words("exposed-communication").unwrap().evidence(&facts), expected);
    }

    #[test]
    fn advice_fits_the_kind_of_run() {
        let row = words("exposed-communication").unwrap();
        let advice = |fact: &str| row.advice(&Facts::new().with_if(fact, true), true);
        assert!(advice("training").contains("gradient buckets"));
        for kind in ["inference", "unknown"] {
            assert!(!advice(kind).contains("gradient") && advice(kind).contains("two batches"), "{}", advice(kind));
        }
        let row = words("low-occupancy-gemms").unwrap();
        assert!(row.advice(&Facts::new(), true).contains("use split-K kernels"));
        assert!(!row.advice(&Facts::new().with_if("split_k", true), true).contains("use split-K"));
    }

    #[test]
    fn runs_that_other_work_disturbed_are_not_called_unexplained() {
        let row = words("run-to-run-variation").unwrap();
        let facts = Facts::new().with_if("unexplained", true);
        assert!(row.advice(&facts, false).contains("the recording does not show why"));
        let facts = facts.with("disturbed", 3_u64).with("inferences", 8_u64);
        assert_eq!(row.evidence(&facts), ["Other work on the machine disturbed 3 of 8 inferences."]);
        assert!(
            row.advice(&facts, false)
                .starts_with("Stop other jobs and measure again. The runs differ throughout. The disturb")
        );
    }
}
