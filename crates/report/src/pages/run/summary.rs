//! `stakeholder_summary.md`: the run on half a page, for people who decide and will not read tables.
//!
//! What ran, the number that matters, the problem, what to do with what it would give and how sure that is, and what limits
//! this. Every sentence is made from this run's numbers; a sentence without its number is left out.

use types::view::RunView;
use types::{DeviceTime, Environment, IdleCause, IdleTime, Nanos};

use super::advice::{Advice, advice, main_finding, problem};
use super::phrase::{device, extent, imported_facts, model};
use super::{appendix, caveats, device_time, findings, headline, imported, serving};
use crate::render::Page;
use crate::render::text::{capital, prose};
use crate::words::caveat::{has_graphs_only, no_findings};
use crate::words::idle;
use crate::words::kind::Phrase;
use crate::words::number::{count, percent, time_share, tokens_per_second};
use crate::words::rule;

/// Share of the time from which a cause of idle time is worth a word.
const WORTH_NAMING: f64 = 0.05;
/// Share of the time from which idle time of unknown cause is the problem.
const WORTH_EXPLAINING: f64 = 0.1;
/// Pieces of advice.
const ADVICE: usize = 3;
/// Smaller findings named.
const NAMED: usize = 4;

/// The summary, and the tables behind it.
pub fn summary_page(run: &RunView<'_>, machine: &Environment) -> Page {
    with_sections(run, machine, |_| {})
}

/// The same, with sections of another page among the tables.
pub(crate) fn with_sections(run: &RunView<'_>, machine: &Environment, more: impl FnOnce(&mut Page)) -> Page {
    let mut page = Page::new(&format!("Summary: {} on {}", prose(model(run.metrics)), prose(&device(run.metrics))));
    caveats::callout(&mut page, run.metrics);
    page.paragraph(&format!("**What ran.** {}", what_ran(run)));
    page.paragraph(&format!("**The number that matters.** {}", number(run)));
    let advice = advice(run);
    let is_host_only = imported::is_host_only(run);
    let problem = problem(run, &advice).or_else(|| unexplained(run)).unwrap_or_else(|| {
        if has_graphs_only(&run.metrics.caveats) {
            return format!("Unknown: {}.", no_findings(&run.metrics.caveats));
        }
        let none = if is_host_only {
            "No work of a GPU is recorded, so nothing can be said of it."
        } else {
            "No rule found a problem worth acting on."
        };
        none.to_owned()
    });
    page.paragraph(&format!("**The problem.** {problem}"));
    let to_do = if is_host_only && advice.is_empty() { imported::RECORD_DEVICES } else { introduction(&advice) };
    page.paragraph(&format!("**What to do.** {to_do}"));
    page.steps(advice.iter().take(ADVICE).map(Advice::said));
    if let Some(smaller) = smaller(run, &advice) {
        page.paragraph(&smaller);
    }
    page.paragraph(&format!("**What limits this.** {}", limits(run, &advice)));
    page.heading("Appendix");
    appendix::sections(&mut page, run, machine, more);
    page
}

fn what_ran(run: &RunView<'_>) -> String {
    let (metrics, facts) = (run.metrics, imported_facts(run.metrics));
    let named = metrics.run.model.as_deref().map_or_else(|| capital(model(metrics)), prose);
    let subject = format!("{named} on {}", prose(&device(metrics)));
    let Some(facts) = facts else { return format!("{subject}: {}.", extent(metrics)) };
    let traces = count(facts.sources.len() as u64, "trace");
    if let Some(view) = &run.serving {
        let load = serving::extent(&view.serving.load);
        return format!(
            "{subject}: a serving engine under a load of {load}; read from {traces} and the client's results."
        );
    }
    let kind = facts.kind.as_ref().map(|kind| format!("{}, ", kind.kind.phrase())).unwrap_or_default();
    format!("{subject}: {kind}read from {traces}.")
}

/// The times a user of the model sees, or how busy its devices were.
fn number(run: &RunView<'_>) -> String {
    if let Some(view) = &run.serving {
        return [serving::answer(view), serving::whereabouts(view).unwrap_or_default()].join(" ").trim().to_owned();
    }
    let rates = &run.metrics.times.throughput;
    let busy = match run.device_time.as_slice() {
        [one] if run.engine_steps.is_empty() => one.busy.map(|share| {
            let time = one.time;
            let busy = format!("The GPU was busy for {} of {} ({})", time.busy_ns, time.span_ns, percent(Some(share)));
            let main = one.causes.first().filter(|(_, share)| share.is_some_and(|share| share >= WORTH_NAMING));
            let main = main
                .map(|(idle, _)| format!("; largest cause of idle time: {} ({})", idle::cause(idle.cause), idle.ns));
            let around = device_time::around(run).map(|around| format!(" {around}")).unwrap_or_default();
            format!("{busy}{}.{around}", main.unwrap_or_default())
        }),
        _ => None,
    };
    let seen = match (rates.ttft_ns, rates.time_per_output_token_ns, rates.decode_tokens_per_second) {
        (Some(first), Some(token), Some(rate)) => {
            format!("{first} to the first token, then {token} per token ({}).", tokens_per_second(rate))
        }
        (Some(first), ..) => format!("{first} to the first token."),
        (None, Some(token), Some(rate)) => format!("{token} per token ({}).", tokens_per_second(rate)),
        _ if busy.is_some() => String::new(),
        _ => headline(run).replace("**", ""),
    };
    [seen, busy.unwrap_or_default()].join(" ").trim().to_owned()
}

/// Idle time that no rule can speak of, because the recording does not show what caused it.
fn unexplained(run: &RunView<'_>) -> Option<String> {
    let times = &run.metrics.breakdown.device_time;
    let sum = |of: &dyn Fn(&DeviceTime) -> Nanos| -> Nanos { times.iter().map(of).sum() };
    let unknown = |idle: &&IdleTime| matches!(idle.cause, IdleCause::NotRecorded | IdleCause::HostUnknown);
    let idle = sum(&|time| time.idle.iter().filter(unknown).map(|idle| idle.ns).sum());
    let share = time_share(idle, sum(&|time| time.span_ns)).filter(|share| *share >= WORTH_EXPLAINING)?;
    let devices = if times.len() > 1 { "The GPUs are" } else { "The GPU is" };
    Some(format!("{devices} idle for {idle} ({}), and the recording does not show why.", percent(Some(share))))
}

fn introduction(advice: &[Advice<'_>]) -> &'static str {
    match advice {
        [] => "No change with a worthwhile saving is known.",
        [one] if one.saves.is_none() => "What this would save is unknown:",
        [_] => "One change is worth making:",
        _ => "In this order:",
    }
}

/// What the problem and the advice leave out, in one line.
fn smaller<'a>(run: &'a RunView<'a>, advice: &[Advice<'a>]) -> Option<String> {
    let main = main_finding(run, advice).map(|view| view.finding.rule.as_str());
    let advised = |rule: &str| main == Some(rule) || advice.iter().take(ADVICE).any(|one| one.rule == rule);
    let mut titles: Vec<&str> = Vec::new();
    for view in run.findings.iter().filter(|view| !advised(&view.finding.rule)) {
        let title = rule::title(&view.finding.rule);
        if !titles.contains(&title) {
            titles.push(title);
        }
    }
    let more = titles.len().saturating_sub(NAMED);
    titles.truncate(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!titles.is_empty()).then(|| format!("Smaller findings: {}{more}.", prose(&titles.join(", "))))
}

fn limits(run: &RunView<'_>, advice: &[Advice<'_>]) -> String {
    let mut said = Vec::new();
    if run.metrics.utilisation.peak.is_some() && !run.metrics.utilisation.work_per_stage.is_empty() {
        said.push(
            "FLOPs, bytes and roofline times are modelled from the model's configuration; times are measured."
                .to_owned(),
        );
    }
    if advice.iter().any(|one| one.saves.is_some()) {
        said.push("Savings are estimates that do not add up exactly; measure again after each change.".to_owned());
    }
    said.extend(findings::of_devices(run));
    if !run.data_warnings.is_empty() {
        said.push(format!("The report lists {}.", count(run.data_warnings.len() as u64, "data-quality warning")));
    }
    if said.is_empty() {
        said.push("Only what is stated here was measured.".to_owned());
    }
    said.join(" ")
}

#[cfg(test)]
mod tests {
    use analysis::view::run;
    use types::{Facts, Finding, Metrics, Severity};

    use super::*;
    use crate::pages::run::sample;

    fn text(metrics: &Metrics) -> String {
        summary_page(&run(metrics), &sample::environment()).markdown()
    }

    #[test]
    fn the_summary_says_what_this_run_showed() {
        insta::assert_snapshot!(text(&sample::metrics()));
    }

    #[test]
    fn two_different_runs_are_advised_different_things() {
        let section = |metrics: &Metrics| {
            let page = text(metrics);
            let section = page.split("**What to do.**").nth(1).unwrap();
            section.split("**What limits this.**").next().unwrap().to_owned()
        };
        assert_ne!(section(&sample::metrics()), section(&sample::without_peak()));
        assert!(section(&sample::empty()).contains("No change with a worthwhile saving is known."));
    }

    #[test]
    fn a_warning_about_which_little_can_be_done_is_not_the_problem_beside_much_that_can() {
        let finding = |rule: &str, severity, share: Option<f64>| {
            let mut finding = Finding::new(rule, severity, None, Facts::new());
            finding.evidence = vec![format!("It is {rule}.")];
            finding.saving.saves_ns = share.map(|share| Nanos::new((share * 1e6) as i64));
            finding.saving.saves_share = share;
            finding
        };
        let problem = |warned: Option<f64>, gaps: f64| {
            let mut metrics = sample::empty();
            metrics.conclusions.findings = vec![
                finding("exposed-communication", Severity::Warning, warned),
                finding("launch-gaps", Severity::Info, Some(gaps)),
            ];
            text(&metrics).split("**The problem.** It is ").nth(1).unwrap().split('.').next().unwrap().to_owned()
        };
        assert_eq!(problem(Some(0.015), 0.118), "launch-gaps");
        assert_eq!(problem(Some(0.015), 0.03), "exposed-communication");
        assert_eq!(problem(Some(0.06), 0.118), "exposed-communication");
        assert_eq!(problem(None, 0.118), "exposed-communication", "what it saves is unknown");
    }

    #[test]
    fn idle_time_of_unknown_cause_is_the_problem_where_no_rule_finds_one() {
        let mut metrics = sample::empty();
        let idle =
            |cause, ns: i64| IdleTime { cause, ns: Nanos::new(ns), longest_ns: Nanos::new(ns), inside: Vec::new() };
        let of = |unknown: i64| {
            let (span_ns, unknown) = (Nanos::new(1_000_000), idle(IdleCause::NotRecorded, unknown));
            DeviceTime {
                device: types::DeviceId::cuda(0),
                rank: None,
                span_ns,
                busy_ns: span_ns - unknown.ns,
                idle_ns: unknown.ns,
                late_start_ns: Nanos::ZERO,
                compute_ns: span_ns - unknown.ns,
                communication_ns: Nanos::ZERO,
                communication_exposed_ns: Nanos::ZERO,
                communication_awaited_ns: Nanos::ZERO,
                copies_exposed_ns: Nanos::ZERO,
                copies: Vec::new(),
                idle: vec![unknown],
            }
        };
        metrics.breakdown.device_time = vec![of(900_000)];
        let problem = "**The problem.** The GPU is idle for 900 us (90.0%), and the recording does not show why.";
        assert!(text(&metrics).contains(problem), "{}", text(&metrics));
        metrics.breakdown.device_time = vec![of(90_000)];
        assert!(text(&metrics).contains("No rule found a problem worth acting on."));
        let around = "of it before the first work of the device or after the last.";
        for (wall, told) in [
            (3_000_000, Some("The recording takes 3.00 ms, 2.00 ms ")),
            (3_000_000_000, Some("The recording takes 3.00 s, nearly all ")),
            (1_900_000, None),
        ] {
            metrics.times.totals.wall_ns = Some(Nanos::new(wall));
            let text = text(&metrics);
            let expected = told.map_or(!text.contains(around), |told| text.contains(&(told.to_owned() + around)));
            assert!(expected, "{text}");
        }
    }

    #[test]
    fn half_a_page_comes_before_the_tables() {
        for metrics in [sample::metrics(), sample::without_peak(), sample::empty()] {
            let page = text(&metrics);
            let words = page.split("## Appendix").next().unwrap().split_whitespace().count();
            assert!(words <= 350, "{words} words: {page}");
        }
    }

    #[test]
    fn an_unknown_device_claims_no_utilisation() {
        let page = text(&sample::without_peak());
        assert!(!page.contains("of peak FLOP/s"), "{page}");
    }
}
