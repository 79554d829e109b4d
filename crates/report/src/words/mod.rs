//! Words: every sentence a report says, and the one way to write a number.
//!
//! `analysis` concludes in facts. [`Spoken::spoken`] says them once, right after a document was made, so that the document, its
//! pages and the terminal say the same. One row a rule, a counter, a caveat and a remark, most in text files: adding one is adding a row.

pub(crate) mod assumption;
pub(crate) mod capacity;
pub(crate) mod cause;
pub(crate) mod caveat;
mod counter;
pub(crate) mod counter_rows;
mod document;
pub(crate) mod fleet;
pub(crate) mod idle;
pub(crate) mod kind;
pub mod number;
pub(crate) mod remark;
mod rows;
pub(crate) mod rule;
pub(crate) mod serving;
mod template;

use types::{AnalyticReport, Finding, Metrics};

/// A document that has something to say.
pub trait Spoken: Sized {
    /// Says whatever is not said yet.
    fn say(&mut self);

    /// The document with its sentences.
    #[must_use]
    fn spoken(mut self) -> Self {
        self.say();
        self
    }
}

impl Spoken for Metrics {
    fn say(&mut self) {
        let conclusions = &mut self.conclusions;
        conclusions.findings.iter_mut().for_each(finding);
        conclusions.quality.iter_mut().for_each(counter::say);
        self.caveats.iter_mut().for_each(caveat::say);
        conclusions.replay.iter_mut().filter_map(|replay| replay.refused.as_mut()).for_each(remark::say);
        conclusions.critical_path.iter_mut().for_each(|part| remark::say(&mut part.cause));
        conclusions.lost_time.iter_mut().for_each(|lost| remark::say(&mut lost.cause));
        let breakdown = &mut self.breakdown;
        let modules = breakdown.modules.iter_mut().chain(&mut breakdown.module_kinds);
        modules.filter_map(|module| module.cause.as_mut()).for_each(remark::say);
        self.conditions.trace.iter_mut().for_each(Spoken::say);
    }
}

impl Spoken for AnalyticReport {
    fn say(&mut self) {
        self.caveats.iter_mut().for_each(caveat::say);
    }
}

/// Says a finding, unless it is said already.
fn finding(finding: &mut Finding) {
    if let Some(words) = rule::words(&finding.rule).filter(|_| finding.evidence.is_empty()) {
        finding.evidence = words.evidence(&finding.quantities);
        finding.advice = words.advice(&finding.quantities, finding.saving.saves_ns.is_some());
    }
    finding.saving.assumes.iter_mut().for_each(remark::say);
}
