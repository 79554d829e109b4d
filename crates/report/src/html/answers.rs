//! The four questions of the first screen: where the time goes, how far that is from the hardware, why, and what to do.
//!
//! Each answer leads to the part of the page that it is taken from. What a run does not tell is said to be unknown, with what
//! would tell it.

use std::fmt::Write;

use types::LostTime;
use types::view::{DeviceTimeView, EngineStepsView, RunView, StageView};

use crate::pages::run::{advice, critical_path, findings, imported_facts, no_utilisation, serving};
use crate::render::html_line;
use crate::render::text::{capital, code, prose as plain};
use crate::words::cause;
use crate::words::caveat::no_findings;
use crate::words::number::{percent, time_share};

/// A part of the whole that is worth a word.
const WORTH_NAMING: f64 = 0.05;
/// Parts named of each kind.
const NAMED: usize = 3;

/// A question, its answer as Markdown, with a line for each of several steps and a note below them, and where there is more: the first of these anchors that the page has.
pub(super) struct Answer {
    pub(super) question: &'static str,
    pub(super) text: String,
    pub(super) more: &'static [&'static str],
}

/// The answers as a list. `find` picks the anchor that the page has.
pub(super) fn html(answers: Vec<Answer>, find: impl Fn(&[&'static str]) -> Option<&'static str>) -> String {
    if answers.is_empty() {
        return String::new();
    }
    let mut list = "<dl class=\"answers\">\n".to_owned();
    for Answer { question, text, more } in answers {
        let question = match find(more) {
            Some(anchor) => format!("<a href=\"#{anchor}\">{question}</a>"),
            None => question.to_owned(),
        };
        let (steps, note) = text.split_once("\n\n").unwrap_or((&text, ""));
        let lines: Vec<String> = steps.lines().map(html_line).collect();
        let text = match lines.as_slice() {
            [one] => one.clone(),
            several => format!("<ol><li>{}</li></ol>{}", several.join("</li><li>"), html_line(note)),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(list, "<div><dt>{question}</dt><dd>{text}</dd></div>");
    }
    list + "</dl>\n"
}

/// What a run says to each of the questions.
pub(super) fn answers(run: &RunView<'_>) -> Vec<Answer> {
    vec![
        Answer {
            question: "Where does the time go?",
            text: time(run),
            more: &["requests", "stages", "device-time", "shares", "report"],
        },
        Answer {
            question: "How far is that from the hardware?",
            text: hardware(run),
            more: &["lost-time", "roofline", "report-mfu-and-mbu", "report-device-time", "report"],
        },
        Answer { question: "Why?", text: why(run), more: &["critical-path", "report-lost-time", "report"] },
        Answer { question: "What to do?", text: to_do(run), more: &["report-findings", "report"] },
    ]
}

fn time(run: &RunView<'_>) -> String {
    let mut said: Vec<String> = run.serving.as_ref().and_then(serving::whereabouts).into_iter().collect();
    let top = run.stages.iter().filter(|view| view.stage.parent.is_none());
    let stages: Vec<String> = top.filter_map(|view| stage(run, view)).collect();
    if !stages.is_empty() {
        let several = run.stages.iter().any(|view| view.stage.instances > 1);
        let total = if several { "Total over all instances: " } else { "" };
        said.push(capital(&format!("{total}{}.", stages.join(", "))));
    }
    if said.is_empty() {
        let parts = [
            ("compute", mean(run, |device| device.compute)),
            ("exposed communication", mean(run, |device| device.communication_exposed)),
            ("exposed copies", mean(run, |device| device.copies_exposed)),
            ("idle", mean(run, |device| device.idle)),
        ];
        let parts: Vec<String> = parts
            .into_iter()
            .filter(|(_, share)| share.is_some_and(|share| share >= WORTH_NAMING))
            .map(|(what, share)| format!("{what} {}", percent(share)))
            .collect();
        if !parts.is_empty() {
            said.push(format!("Device time: {}.", parts.join(", ")));
        }
    }
    let families = run.kernels.families.iter().filter(|family| family.share.is_some_and(|share| share >= WORTH_NAMING));
    let families: Vec<String> = families
        .take(NAMED)
        .map(|family| format!("{} {}", cause::family(family.family), percent(family.share)))
        .collect();
    if !families.is_empty() {
        // The share of a family is of the kernels' time, which may be little of the device's.
        said.push(format!("Kernel time (total {}): {}.", run.kernels.total_ns, families.join(", ")));
    } else if let Some(centre) = run.cost_centres.rows.first() {
        let stage = centre.stage.map(|stage| format!(" in {stage}")).unwrap_or_default();
        let (kind, whole) = (run.cost_centres.kind, run.cost_centres.whole);
        said.push(format!("Largest {kind}: {}{stage}, {} of {whole}.", code(centre.name), percent(centre.share)));
    }
    match (said.is_empty(), run.commands.is_empty()) {
        (false, _) => said.join(" "),
        (true, false) => "Unknown: the command was timed as a whole; nothing inside it was recorded.".to_owned(),
        (true, true) => "Unknown: neither stages nor device work were recorded.".to_owned(),
    }
}

/// The mean over the devices; absent where one of them does not know it, or there is none.
fn mean(run: &RunView<'_>, share: impl Fn(&DeviceTimeView<'_>) -> Option<f64>) -> Option<f64> {
    let shares: Vec<f64> = run.device_time.iter().map(share).collect::<Option<_>>()?;
    (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
}

/// `prefill 592 ms (86.0% of the run; vision 457 ms of it)`.
fn stage(run: &RunView<'_>, view: &StageView<'_>) -> Option<String> {
    let whole = view.stage.wall_ns?;
    let inside = run.stages.iter().filter(|other| other.stage.parent == Some(view.stage.name));
    let longest =
        inside.filter_map(|other| Some((other.stage.name, other.stage.wall_ns?))).max_by_key(|(_, wall)| *wall);
    let of_it = longest.map(|(name, wall)| format!("; {name} {wall} of it")).unwrap_or_default();
    let of = if imported_facts(run.metrics).is_some() { "recording" } else { "run" };
    Some(format!("{} {whole} ({} of the {of}{of_it})", view.stage.name, percent(view.run_share)))
}

fn hardware(run: &RunView<'_>) -> String {
    if was_not_recorded(run) {
        return "Unknown: the command's use of devices was not recorded.".to_owned();
    }
    let top = run.stages.iter().filter(|view| view.stage.parent.is_none());
    let reached = |view: &StageView<'_>| {
        let (least, wall, share) = (view.stage.speed_of_light_ns?, view.stage.wall_ns?, view.efficiency?);
        Some(format!("{} of {} ({least} of {wall})", percent(Some(share)), view.stage.name))
    };
    let reached = top.filter_map(reached);
    let step = |view: &EngineStepsView| {
        let (least, mean) = (view.roofline_mean_ns?, view.mean_ns?);
        let what = view.label.map_or("a step".to_owned(), |label| format!("a {} step", label.name()));
        Some(format!("{} of {what} ({least} of {mean}, mean)", percent(time_share(least, mean))))
    };
    let mut reached: Vec<String> = reached.collect();
    if reached.is_empty() {
        reached = run.engine_steps.iter().filter_map(step).take(NAMED).collect();
    }
    let mut text =
        if reached.is_empty() { String::new() } else { format!("Roofline time is {}. ", reached.join(", ")) };
    match &run.metrics.utilisation.peak {
        Some(peak) => {
            let (dtype, source) = (peak.dtype, plain(&peak.source));
            text += &format!("Peak: {} in {dtype}, {} ({source}).", peak.flops, peak.bytes_per_second);
        }
        None => {
            // Of a serving engine, the time around its steps says nothing about them.
            let top = run.stages.iter().filter(|view| view.stage.parent.is_none());
            let busy =
                |view: &StageView<'_>| Some(format!("{} of {}", percent(Some(view.busy_share?)), view.stage.name));
            let busy: Vec<String> = top.filter_map(busy).collect();
            // What the first sentence says, where a device was recorded.
            let whole = mean(run, |device| device.busy).or(run.busy_share);
            match (busy.as_slice(), whole) {
                ([], None) => {}
                ([], Some(share)) if run.device_time.len() > 1 => {
                    text += &format!("The devices are busy for {} of their span on average. ", percent(Some(share)));
                }
                ([], Some(share)) => text += &format!("The device is busy for {} of its span. ", percent(Some(share))),
                (stages, _) => text += &format!("The device is busy for {}. ", stages.join(", ")),
            }
            text += &no_utilisation(run);
        }
    }
    text
}

/// Whether the run is of a command that was timed from outside alone.
fn was_not_recorded(run: &RunView<'_>) -> bool {
    !run.commands.is_empty() && run.metrics.conditions.trace.is_none()
}

fn why(run: &RunView<'_>) -> String {
    if was_not_recorded(run) {
        return "Unknown: nothing inside the command was recorded.".to_owned();
    }
    let (problem, _) = advice::problem_and_steps(run);
    let mut said: Vec<String> = problem.into_iter().collect();
    let path = run.metrics.conclusions.critical_path.iter().filter(|part| part.share >= WORTH_NAMING);
    let path: Vec<String> =
        path.take(NAMED).map(|part| format!("{} {}", part.cause, percent(Some(part.share)))).collect();
    if critical_path::is_busy(run) {
        let longest = run.kernels.rows.iter().max_by_key(|view| view.kernel.total_ns);
        let longest = longest.map(|view| {
            format!(" The longest is {}: {} of kernel time.", code(&view.kernel.short_name), percent(view.share))
        });
        said.push(format!("Hardly any idle time: the kernels set the time.{}", longest.unwrap_or_default()));
    } else if !path.is_empty() {
        said.push(format!("On the critical path: {}.", path.join(", ")));
    } else {
        let lost = &run.metrics.conclusions.lost_time;
        let causes = lost.iter().filter(|lost| lost.share.is_some_and(|share| share >= WORTH_NAMING));
        let causes: Vec<String> = causes.take(NAMED - 1).map(loss).collect();
        said.extend((!causes.is_empty()).then(|| format!("Largest losses: {}.", causes.join("; "))));
    }
    if said.is_empty() {
        "Unknown: no cause accounts for 5% of the time, or no causes were recorded.".to_owned()
    } else {
        said.join(" ")
    }
}

/// `launch overhead (decode): 210 ms, 83.1% of the time in stages`.
fn loss(lost: &LostTime) -> String {
    let stage = lost.stage.map(|stage| format!(" ({stage})")).unwrap_or_default();
    let of = if lost.stage.is_some() { "the time in stages" } else { "device time" };
    format!("{}{stage}: {}, {} of {of}", lost.cause, lost.lost_ns, percent(lost.share))
}

fn to_do(run: &RunView<'_>) -> String {
    let (_, mut steps) = advice::problem_and_steps(run);
    steps.truncate(NAMED);
    // How savings were found is said once where it is the same for all.
    let basis = steps.first().and_then(|step| step.rfind(" (").map(|at| step[at..].to_owned()));
    if let Some(basis) = basis.filter(|basis| steps.len() > 1 && steps.iter().all(|step| step.ends_with(basis))) {
        let steps: Vec<&str> = steps.iter().filter_map(|step| step.strip_suffix(&basis)).collect();
        let note = basis.trim_start_matches(" (").trim_end_matches(").");
        return format!("{}.\n\nSavings are {note}.", steps.join(".\n"));
    }
    if !steps.is_empty() {
        return steps.join("\n");
    }
    let mut titles: Vec<String> = run.findings.iter().map(|view| findings::title(&view.finding.rule)).collect();
    titles.dedup();
    match titles.as_slice() {
        [] => format!("Nothing: {}.", no_findings(&run.metrics.caveats)),
        titles => format!("No change with a known saving of 1% or more. Findings: {}.", titles.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::run::sample;
    use crate::render::text::Text;

    fn texts(metrics: &types::Metrics) -> Vec<String> {
        answers(&analysis::view::run(metrics)).iter().map(|answer| Text::new(&answer.text).terminal()).collect()
    }

    #[test]
    fn every_question_is_answered_from_the_numbers_of_the_run() {
        insta::assert_snapshot!(texts(&sample::metrics()).join("\n\n"));
    }

    #[test]
    fn what_a_run_does_not_tell_is_said_to_be_unknown() {
        let said = texts(&sample::empty());
        assert!(said[0].starts_with("Unknown:") && said[2].starts_with("Unknown:"), "{said:?}");
        assert!(said[1].contains("unknown"), "{said:?}");
        let said = texts(&sample::without_peak());
        assert!(!said[1].contains("Peak") && said[1].contains("unknown"), "{said:?}");
    }

    #[test]
    fn a_question_leads_to_a_part_that_the_page_has() {
        let metrics = sample::metrics();
        let list = html(answers(&analysis::view::run(&metrics)), |anchors| {
            anchors.iter().copied().find(|one| *one == "report-findings")
        });
        assert_eq!(list.matches("href=").count(), 1);
        assert!(list.contains("<a href=\"#report-findings\">What to do?</a>"), "{list}");
    }
}
