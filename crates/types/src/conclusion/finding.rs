//! Findings: a conclusion, the evidence it rests on and what acting on it would save.

use serde::{Deserialize, Deserializer, Serialize};

use crate::{Facts, JsonSchema, Nanos, Remark, Severity, Stage};

/// One conclusion drawn from a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Stable rule id, such as `launch-bound`.
    #[serde(deserialize_with = "rule")]
    pub rule: String,
    /// How much it matters.
    pub severity: Severity,
    /// Stage it concerns; absent when it concerns the run as a whole, or what lies in none of its stages.
    pub stage: Option<Stage>,
    /// What it rests on, by name and with its units.
    #[serde(default, skip_serializing_if = "Facts::is_empty")]
    pub quantities: Facts,
    /// The same in sentences; empty until `report::words` has said them.
    pub evidence: Vec<String>,
    /// What acting on it would save.
    #[serde(flatten)]
    pub saving: EstimatedSaving,
    /// What to try; empty until `report::words` has said it.
    pub advice: String,
}

/// What acting on a finding would save.
///
/// Holds: `saves_low_ns` <= `saves_ns` <= `saves_high_ns` where all are known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EstimatedSaving {
    /// Time that acting on it would save; absent when this run's numbers do not tell.
    pub saves_ns: Option<Nanos>,
    /// The same as a share of the run.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub saves_share: Option<f64>,
    /// The least that a replay of the run with the change saves; absent where the figure is no replay.
    pub saves_low_ns: Option<Nanos>,
    /// The most.
    pub saves_high_ns: Option<Nanos>,
    /// What the replay assumes.
    pub assumes: Option<Remark>,
    /// What the change saved when it was tried; absent until then.
    pub tried: Option<TriedSaving>,
}

/// What a change saved when it was tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TriedSaving {
    /// What was tried.
    pub remedy: String,
    /// Time saved; negative where it took longer.
    pub saved_ns: Nanos,
    /// Least, with the interval's confidence; absent where there were too few repeats.
    pub saved_low_ns: Option<Nanos>,
    /// Most.
    pub saved_high_ns: Option<Nanos>,
}

impl Finding {
    /// A finding of a rule, still to be said.
    pub fn new(rule: &str, severity: Severity, stage: Option<Stage>, quantities: Facts) -> Self {
        let (rule, saving) = (rule.to_owned(), EstimatedSaving::default());
        Self { rule, severity, stage, quantities, evidence: Vec::new(), saving, advice: String::new() }
    }

    /// The same; acting on it saves this.
    #[must_use]
    pub fn saving(self, saving: EstimatedSaving) -> Self {
        Self { saving, ..self }
    }
}

impl EstimatedSaving {
    /// What acting on it could save at most: more than a replay does where the recorded host holds up the rest.
    pub fn at_stake(&self) -> Option<Nanos> {
        let facts = self.assumes.as_ref().map(|assumes| &assumes.facts);
        facts.and_then(|facts| facts.time("at_most").or_else(|| facts.time("at_stake"))).or(self.saves_ns)
    }

    /// At most this, by what the books hold.
    pub fn at_most(saves: impl Into<Option<Nanos>>) -> Self {
        Self { saves_ns: saves.into(), ..Self::default() }
    }

    /// Between two ends of a replay.
    pub fn replayed(one: Nanos, other: Nanos, assumes: Remark) -> Self {
        let (low, high) = (one.min(other).max(Nanos::ZERO), one.max(other).max(Nanos::ZERO));
        let middle = Nanos::new(low.get() + (high - low).get() / 2);
        Self {
            saves_ns: Some(middle),
            saves_low_ns: Some(low),
            saves_high_ns: Some(high),
            assumes: Some(assumes),
            ..Self::default()
        }
    }
}

/// Rules that older versions called otherwise, with their names of today.
const RENAMED: [(&str, &str); 5] = [
    ("far-from-limits", "far-from-roofline"),
    ("float32-products", "float32-gemms"),
    ("low-occupancy-products", "low-occupancy-gemms"),
    ("small-expert-products", "small-expert-gemms"),
    ("variance", "run-to-run-variation"),
];

fn today(rule: String) -> String {
    RENAMED.iter().find(|(old, _)| *old == rule).map_or(rule, |(_, new)| (*new).to_owned())
}

/// A rule by its name of today, whatever the file calls it.
fn rule<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    String::deserialize(deserializer).map(today)
}

/// The same for a list of them.
pub(crate) fn rules<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(Vec::<String>::deserialize(deserializer)?.into_iter().map(today).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_of_an_older_file_is_read_by_its_name_of_today() {
        let text = r#"{"rule": "float32-products", "severity": "info", "stage": null, "evidence": [], "saves_ns": null,
            "saves_share": null, "advice": ""}"#;
        assert_eq!(serde_json::from_str::<Finding>(text).unwrap().rule, "float32-gemms");
        assert_eq!(today("launch-bound".to_owned()), "launch-bound");
    }
}
