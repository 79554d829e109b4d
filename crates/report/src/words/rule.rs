//! What each rule says: one row a rule.

use types::{Facts, Finding};

use super::template::{first, lines};

/// The words of a rule. Every text is a template, see [`super::template`].
pub(crate) struct RuleWords {
    /// Its id, as in documents.
    pub(crate) rule: &'static str,
    /// What people call it.
    pub(crate) title: &'static str,
    /// What it concludes, in one sentence: the first that can be said.
    pub(crate) claim: &'static [&'static str],
    /// The numbers behind it, one line each: all that can be said.
    pub(crate) evidence: &'static [&'static str],
    /// What to do, in one sentence: the first that can be said.
    pub(crate) action: &'static [&'static str],
    /// How, and what the estimate leaves out: all that can be said.
    pub(crate) advice: &'static [&'static str],
}

/// Every rule, in the order of `docs/reference/metrics.md`.
pub(crate) const RULES: &[RuleWords] = &[RuleWords {
    rule: "launch-bound",
    title: "Launch-bound",
    claim: &["The GPU is idle {idle_share} ({idle} of {wall}) because the CPU launches kernels too slowly."],
    evidence: &[
        "The GPU is busy {busy_share}.",
        "{launches|launch} per {unit}, one every {interval}.",
        "One token takes {token}; its roofline time is {token_roofline} (modelled).",
        "The shortest gap between two kernels is {shortest_gap}; it is assumed to remain after every kernel.",
    ],
    action: &[
        "?repeats Capture the step in a CUDA graph.",
        "Give each launch more work: use a larger batch or fused operators.",
    ],
    advice: &[
        "?repeats Use `torch.compile(mode=\"reduce-overhead\")`, `torch.cuda.graph`, or a serving engine that captures graphs; then fuse the remaining small kernels.",
        "!repeats If the same pass runs again with the same shapes, a CUDA graph launches it at once.",
        "A faster CPU helps in proportion; a faster GPU does not help. Profilers slow the CPU down, so check the figure without one.",
    ],
}];

/// The row of a rule.
pub(crate) fn words(rule: &str) -> Option<&'static RuleWords> {
    RULES.iter().find(|row| row.rule == rule)
}

/// What people call a rule; its id where it has no row.
pub(crate) fn title(rule: &str) -> &str {
    words(rule).map_or(rule, |row| row.title)
}

/// What to do about a finding, in one sentence; of an older file, the first sentence of its advice.
pub(crate) fn action(finding: &Finding) -> String {
    let said = words(&finding.rule).and_then(|row| first(row.action, &finding.quantities));
    said.unwrap_or_else(|| finding.advice.split_inclusive(". ").next().unwrap_or_default().trim().to_owned())
}

impl RuleWords {
    /// The conclusion, then the numbers behind it.
    pub(crate) fn evidence(&self, facts: &Facts) -> Vec<String> {
        first(self.claim, facts).into_iter().chain(lines(self.evidence, facts)).collect()
    }

    /// What to do, then how.
    pub(crate) fn advice(&self, facts: &Facts) -> String {
        let all: Vec<String> = first(self.action, facts).into_iter().chain(lines(self.advice, facts)).collect();
        all.join(" ")
    }
}
