//! Advice: what findings that call for the same thing would give together, in the order in which it is worth doing.

use std::cmp::Ordering::Equal;

use types::view::{FindingView, RunView, Saving};
use types::{Nanos, Severity};

use super::findings::{OF_LATENCY, basis, place};
use crate::render::text::sentence;
use crate::words::number::percent;
use crate::words::rule;

/// Share of the whole that a saving must have to be worth advice.
const WORTH_ADVICE: f64 = 0.01;
/// Share of the whole that a saving must have to be called a problem.
const WORTH_A_PROBLEM: f64 = 0.05;

/// Something to do, and the findings that call for it.
pub(super) struct Advice<'a> {
    pub(super) rule: &'a str,
    action: String,
    findings: Vec<&'a FindingView<'a>>,
    /// The part of the whole that it would save, where that is known.
    pub(super) saves: Option<f64>,
    /// The part of the requests' latency that it is about.
    latency: Option<f64>,
}

impl Advice<'_> {
    /// What to do, what that would give, and how sure that is.
    pub(super) fn said(&self) -> String {
        let mut places: Vec<&str> = self.findings.iter().map(|view| place(view)).collect();
        places.dedup();
        let place = if places == ["whole run"] { String::new() } else { format!(" ({})", places.join(" and ")) };
        format!("{}{place}: {}", sentence(self.action.trim_end_matches('.')), self.gain())
    }

    /// The part of the time that it would save, or of the requests' latency that it is about.
    fn share(&self) -> Option<f64> {
        self.latency.or(self.saves)
    }

    /// What it would give.
    fn gain(&self) -> String {
        match (self.saves, &self.findings[0].saving, self.latency) {
            (Some(share), Some(saving), _) => self.saved(share, saving),
            (.., Some(latency)) => {
                format!("its cause takes {} of request latency; what this saves is unknown.", percent(Some(latency)))
            }
            _ => String::new(),
        }
    }

    fn saved(&self, share: f64, saving: &Saving) -> String {
        let savings = || self.findings.iter().map(|view| &view.finding.saving);
        let tried: Vec<_> = savings().filter_map(|saving| saving.tried.as_ref()).map(|tried| tried.saved_ns).collect();
        let (saves, how) = match (tried.as_slice(), savings().all(|saving| saving.saves_low_ns.is_some())) {
            ([], true) => ("saves about", "predicted by replaying the recorded timeline, not measured".to_owned()),
            ([], false) => ("saves at most", "not measured".to_owned()),
            (tried, _) => {
                ("predicted to save", format!("saved {} when it was tried", tried.iter().copied().sum::<Nanos>()))
            }
        };
        format!("{saves} {} of {} ({how}).", percent(Some(share)), basis(saving.basis))
    }
}

/// What to do, the largest share of the time or of the requests' latency first. Only what is worth it.
pub(super) fn advice<'a>(run: &'a RunView<'a>) -> Vec<Advice<'a>> {
    let mut all: Vec<Advice<'a>> = Vec::new();
    for view in &run.findings {
        let (rule, saves) = (view.finding.rule.as_str(), view.finding.saving.saves_share);
        let latency = view.finding.quantities.share(OF_LATENCY);
        if saves.is_none() && latency.is_none() {
            continue;
        }
        let action = rule::action(view.finding);
        match all.iter_mut().find(|one| one.rule == rule && one.action == action) {
            Some(one) => {
                one.saves = Some(one.saves.unwrap_or_default() + saves.unwrap_or_default());
                one.findings.push(view);
            }
            None => all.push(Advice { rule, action, findings: vec![view], saves, latency }),
        }
    }
    all.retain(|one| one.share() >= Some(WORTH_ADVICE));
    all.sort_by(|one, other| other.share().partial_cmp(&one.share()).unwrap_or(Equal));
    for one in &mut all {
        one.findings.sort_by_key(|view| std::cmp::Reverse(view.finding.saving.saves_ns));
        one.saves = one.saves.map(|share| share.min(1.0));
    }
    all
}

/// The finding that is called the problem: under a load what matters most, else the first warning, else what saves most. A warning
/// about which little can be done comes after advice that saves much.
pub(super) fn main_finding<'a>(run: &'a RunView<'a>, advice: &[Advice<'a>]) -> Option<&'a FindingView<'a>> {
    let first = advice.first();
    let of_requests = first.filter(|_| advice.iter().any(|one| one.latency.is_some()));
    let is_large = |share: Option<f64>| share.is_none_or(|share| share >= WORTH_A_PROBLEM);
    let is_first_large = first.is_some_and(|one| one.saves.is_some() && is_large(one.saves));
    let comes_first = |view: &&FindingView<'_>| {
        let is_warning = view.finding.severity > Severity::Info;
        is_warning && (!is_first_large || is_large(view.finding.saving.saves_share))
    };
    let warning = || run.findings.iter().find(comes_first);
    of_requests.map(|one| one.findings[0]).or_else(warning).or(first.map(|one| one.findings[0]))
}

fn claim(view: &FindingView<'_>) -> Option<String> {
    Some(format!("{}.", sentence(view.finding.evidence.first()?).trim_end_matches('.')))
}

/// What is wrong, in a sentence, and what to do in order, each with what that gives.
pub(crate) fn problem_and_steps(run: &RunView<'_>) -> (Option<String>, Vec<String>) {
    let advice = advice(run);
    (problem(run, &advice), advice.iter().map(Advice::said).collect())
}

/// What is wrong, in a sentence.
pub(super) fn problem<'a>(run: &'a RunView<'a>, advice: &[Advice<'a>]) -> Option<String> {
    let view = main_finding(run, advice)?;
    let claim = claim(view)?;
    let is_little = |one: &Advice<'_>| one.latency.is_none() && one.saves.is_none_or(|share| share < WORTH_A_PROBLEM);
    let is_little = view.finding.severity == Severity::Info && advice.first().is_none_or(is_little);
    Some(if is_little { format!("Nothing large was found. The largest: {claim}") } else { claim })
}
