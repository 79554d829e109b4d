//! Findings, the same on every front: what was found and where, what it rests on, what acting on it saves, and what to do.

use std::cmp::Ordering::Equal;

use types::view::{FindingView, RunView, Saving, SavingBasis};
use types::{Base, EstimatedSaving, Finding, Nanos, Severity, Stage};

use crate::render::Page;
use crate::render::text::{capital, code, prose, sentence};
use crate::words::caveat::no_findings;
use crate::words::number::{count, percent};
use crate::words::{counter_rows, rule};

/// Share of the run from which a saving is worth a paragraph.
const WORTH_A_PARAGRAPH: f64 = 0.01;

/// The section of a report: the largest savings first, then what matters otherwise, then the rest in a line each.
pub(super) fn section(page: &mut Page, run: &RunView<'_>) {
    page.heading("Findings");
    if run.findings.is_empty() {
        return page.paragraph(&format!("None: {}.", no_findings(&run.metrics.caveats)));
    }
    if let Some(devices) = of_devices(run) {
        page.paragraph(&devices);
    }
    let found = by_saving(run);
    let (large, small): (Vec<&FindingView<'_>>, Vec<_>) = found.into_iter().partition(|view| matters(view.finding));
    for view in large {
        let finding = view.finding;
        let (title, place, severity) = (title(&finding.rule), place(view), finding.severity.name());
        page.paragraph(&format!("**{title}** ({place}, {severity}, {})", code(&finding.rule)));
        let rest = [estimate(view), format!("What to do: {}", finished(&finding.advice))];
        page.list(finding.evidence.iter().map(|line| finished(line)).chain(rest));
    }
    if small.is_empty() {
        return;
    }
    page.paragraph("Smaller findings, which save less than 1% of the run or an unknown amount:");
    let mut rules: Vec<&str> = small.iter().map(|view| view.finding.rule.as_str()).collect();
    rules.sort();
    rules.dedup();
    page.list(rules.into_iter().map(|rule| {
        let found: Vec<_> = small.iter().filter(|view| view.finding.rule == rule).collect();
        let places: Vec<_> = found.iter().map(|view| place(view)).collect();
        let claims = found.iter().filter_map(|view| view.finding.evidence.first()).map(|line| finished(line) + " ");
        let advice = found.first().map(|view| finished(&view.finding.advice)).unwrap_or_default();
        // Their estimates are not shown.
        let advice: String = advice.split_inclusive(". ").filter(|line| !line.starts_with("The estimate ")).collect();
        let (title, places, claims) = (title(rule), places.join(", "), claims.collect::<String>());
        format!("**{title}** ({places}, {}): {claims}{advice}", code(rule))
    }));
}

/// How many findings and warnings there are, and the largest savings, in lines for a terminal.
pub(super) fn outlook(run: &RunView<'_>, savings: usize) -> Vec<String> {
    let mut parts = Vec::new();
    if !run.findings.is_empty() {
        let warnings = run.warning_rules.iter().map(|rule| title(rule)).collect::<Vec<_>>().join(", ");
        let warnings = if warnings.is_empty() { warnings } else { format!(" (warnings: {warnings})") };
        parts.push(count(run.findings.len() as u64, "finding") + &warnings);
    }
    if !run.data_warnings.is_empty() {
        let counters =
            run.data_warnings.iter().map(|one| prose(&counter_rows::title(&one.counter))).collect::<Vec<_>>();
        parts.push(format!("{} ({})", count(counters.len() as u64, "data-quality warning"), counters.join(", ")));
    }
    let counts = (!parts.is_empty()).then(|| parts.join(", "));
    let is_worth_a_line = |view: &&FindingView<'_>| view.saving.as_ref().is_none_or(|saving| !is_nothing(saving));
    let largest = run.largest_savings.iter().filter(is_worth_a_line).take(savings);
    counts.into_iter().chain(largest.map(|view| format!("estimated saving: {}", brief(view)))).collect()
}

/// A finding in a line: `Launch-bound (decode), 83.1% of decode (210 ms of 252 ms)`.
pub(super) fn brief(view: &FindingView<'_>) -> String {
    let saves = view.saving.as_ref().map_or("unknown".to_owned(), saving);
    format!("{} ({}), {saves}", title(&view.finding.rule), place(view))
}

/// The quantity of a finding that says how much of the requests' latency it takes.
pub(super) const OF_LATENCY: &str = "latency_share";
/// Part of a saving below which the width of its range says nothing.
const NARROW: f64 = 0.05;
/// Share that rounds to less than 0.1%.
const NOTHING: f64 = 0.0005;

/// What people call a rule.
pub(crate) fn title(rule: &str) -> String {
    prose(rule::title(rule))
}

/// What people call these rules.
pub(crate) fn titles(rules: &[String]) -> String {
    rules.iter().map(|rule| title(rule)).collect::<Vec<_>>().join(", ")
}

/// The findings, the largest saving or share of the requests' latency first; those without either keep their order.
pub(crate) fn by_saving<'a>(run: &'a RunView<'a>) -> Vec<&'a FindingView<'a>> {
    let whole = run.findings.iter().filter_map(|view| view.saving?.whole_ns).max().unwrap_or_default();
    let mut findings: Vec<_> = run.findings.iter().collect();
    findings.sort_by(|one, other| at_stake(other, whole).partial_cmp(&at_stake(one, whole)).unwrap_or(Equal));
    findings
}

/// The share of the longest whole, or of the requests' latency, that a finding is about.
fn at_stake(view: &FindingView<'_>, whole: Nanos) -> Option<f64> {
    let stake = view.saving.as_ref().and(view.finding.saving.at_stake());
    let of_time = stake.map(|stake| stake.get() as f64 / whole.get().max(1) as f64);
    view.finding.quantities.share(OF_LATENCY).or(of_time)
}

/// Whether a finding is more than a line: it saves enough, or it is a warning.
pub(crate) fn matters(finding: &Finding) -> bool {
    finding.severity > Severity::Info || finding.saving.saves_share.is_some_and(|share| share >= WORTH_A_PARAGRAPH)
}

/// A finding's place: its stage. One without is about a run as a whole, or about what lies in none of its stages.
pub(crate) fn place(view: &FindingView<'_>) -> &'static str {
    let is_outside = view.finding.quantities.get("where") == Some(&Base::OutsideStages.into());
    view.finding.stage.map_or(if is_outside { "outside stages" } else { "whole run" }, Stage::name)
}

/// What a saving of the whole is a share of.
pub(crate) fn basis(basis: SavingBasis) -> String {
    let name = match basis {
        SavingBasis::Run => "the run",
        SavingBasis::Stages => "the time in stages",
        SavingBasis::Devices(devices) if devices > 1 => return format!("the spans of {devices} devices"),
        SavingBasis::Devices(_) => "the device span",
        SavingBasis::ProfiledPass => "the profiled pass",
        SavingBasis::PlainRun => "the run without a profiler",
    };
    name.to_owned()
}

/// What times and shares of findings are of, where that is more than one device.
pub(super) fn of_devices(run: &RunView<'_>) -> Option<String> {
    let devices = run.metrics.breakdown.device_time.len();
    (devices > 1 && !run.findings.is_empty()).then(|| {
        format!(
            "Times of findings are sums over {devices} devices, and shares are of the time of all of them together."
        )
    })
}

/// What acting on a finding saves: `83.1% of decode (210 ms of 252 ms)`.
pub(crate) fn saving(saving: &Saving) -> String {
    let whole = match (saving.stage, saving.basis) {
        (Some(stage), SavingBasis::ProfiledPass) => format!("{stage} in the profiled pass"),
        (Some(stage), _) => stage.to_string(),
        (None, basis) => self::basis(basis),
    };
    let of = saving.whole_ns.map(|whole| format!(" of {whole}")).unwrap_or_default();
    let all = if saving.per_input_ns.is_some() { ", all runs" } else { "" };
    format!("{} of {whole} ({}{of}{all})", percent(saving.share), saving.saves_ns)
}

/// The saving, what it assumes, and whether it was measured.
pub(crate) fn estimate(view: &FindingView<'_>) -> String {
    let Some(found) = &view.saving else { return "Estimated saving: unknown.".to_owned() };
    let EstimatedSaving { saves_low_ns, saves_high_ns, assumes, tried, .. } = &view.finding.saving;
    let at_most = assumes.as_ref().and_then(|assumes| assumes.facts.time("at_most"));
    if let Some(at_most) = at_most.filter(|_| tried.is_none() && is_nothing(found)) {
        return format!(
            "Estimated saving: none beyond that of other findings when this timeline is replayed; at most {at_most} where nothing else \
             takes its place. Not measured."
        );
    }
    let range = saves_low_ns.zip(*saves_high_ns);
    let is_wide = |(low, high): &(Nanos, Nanos)| (*high - *low).get() as f64 > NARROW * found.saves_ns.get() as f64;
    let range = range.filter(is_wide).map(|(low, high)| format!(", between {low} and {high}"));
    let each = found.per_input_ns.map(|each| format!("; {each} per input")).unwrap_or_default();
    let assumes = assumes.as_ref().map(|text| format!("; assumes {}", sentence(text.trim_end_matches('.'))));
    let measured = match tried {
        None => "not measured".to_owned(),
        Some(tried) => format!("measured with {}: {} saved", code(&tried.remedy), tried.saved_ns),
    };
    let (range, assumes) = (range.unwrap_or_default(), assumes.unwrap_or_default());
    format!("Estimated saving: {}{range}{each}{assumes}; {measured}.", saving(found))
}

/// Whether a saving is as good as none.
fn is_nothing(saving: &Saving) -> bool {
    saving.saves_ns == Nanos::ZERO || saving.share.is_some_and(|share| share < NOTHING)
}

/// A text of a document as a sentence. Texts of older files are fragments.
pub(crate) fn finished(text: &str) -> String {
    let text = capital(&sentence(text.trim()));
    if text.ends_with(['.', '!', '?']) || text.is_empty() { text } else { text + "." }
}
