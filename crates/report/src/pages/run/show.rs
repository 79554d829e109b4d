//! A run at a glance, for a terminal: bars where shares add up, a sparkline where something changes from step to step.

use std::fmt::Write;

use types::view::{FindingView, RunView};
use types::{Nanos, Stage};

use super::findings::{self, by_saving};
use super::headline::headline;
use super::operators::OperatorSums;
use super::phrase::{device, model};
use crate::render;
use crate::render::table::{printable, shortened};
use crate::render::text::Text;
use crate::words::caveat::READ_FIRST;
use crate::words::idle;
use crate::words::number::{count, known, milliseconds, percent, time_share};
use crate::words::serving::part;

/// Parts of a character cell, from an eighth to the whole.
const EIGHTHS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];
const SPARKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Fewer columns than this are not laid out for.
const NARROWEST: usize = 40;
/// Findings shown.
const FINDINGS: usize = 3;

/// What is shown, and how wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Glance {
    /// Only this stage.
    pub stage: Option<Stage>,
    /// Rows of each list.
    pub top: usize,
    /// Columns of the terminal.
    pub width: usize,
}

/// The run at a glance. `strong` sets a heading apart.
pub fn glance(run: &RunView<'_>, settings: &Glance, strong: impl Fn(&str) -> String) -> String {
    let settings = Glance { width: settings.width.max(NARROWEST), ..*settings };
    let mut text =
        strong(&shortened(&printable(&format!("{} on {}", model(run.metrics), device(run.metrics))), settings.width))
            + "\n";
    for caveat in run.metrics.caveats.iter().filter(|caveat| !caveat.text.is_empty()) {
        wrapped(&mut text, &format!("{READ_FIRST}: {}", caveat.text), settings.width);
    }
    wrapped(&mut text, &Text::new(&headline(run)).plain(), settings.width);
    let mut list = |title: &str, rows: &[Row]| {
        if !rows.is_empty() {
            let _ = write!(text, "\n{}\n{}", strong(title), bars(rows, settings.width));
        }
    };
    list("latency of a request (share of the mean)", &latency(run, &settings));
    list("stages (share of run)", &stages(run, &settings));
    list("device time (share of span)", &device_time(run, &settings));
    list("lost time (share of lost time)", &lost(run, &settings));
    list("operators by self time", &operators(run, &settings));
    list("kernels (share of kernel time)", &kernels(run, &settings));
    if let Some((title, line)) = steps(run, &settings) {
        let _ = write!(text, "\n{}\n{line}\n", strong(&title));
    }
    what_to_do(&mut text, run, &settings, &strong);
    text
}

/// A bar with its name and its figure.
struct Row {
    name: String,
    share: f64,
    figure: String,
}

fn is_wanted(settings: &Glance, stage: Option<Stage>) -> bool {
    settings.stage.is_none_or(|wanted| stage.is_some_and(|stage| stage.is_within(wanted)))
}

fn latency(run: &RunView<'_>, settings: &Glance) -> Vec<Row> {
    let parts = run.serving.iter().filter(|_| settings.stage.is_none()).flat_map(|view| &view.parts);
    let row = |view: &types::view::PartView| Row {
        name: part(view.name).to_owned(),
        share: view.share.unwrap_or_default(),
        figure: percent(view.share),
    };
    parts.map(row).collect()
}

fn stages(run: &RunView<'_>, settings: &Glance) -> Vec<Row> {
    let row = |view: &types::view::StageView<'_>| {
        let stage = view.stage;
        let mfu = stage.mfu.map(|share| format!(", MFU {}", percent(Some(share)))).unwrap_or_default();
        let mbu = stage.mbu.map(|share| format!(", MBU {}", percent(Some(share)))).unwrap_or_default();
        let depth = std::iter::successors(stage.name.parent(), |parent| parent.parent()).count();
        Some(Row {
            name: format!("{}{}", "  ".repeat(depth), stage.name),
            share: view.run_share?,
            figure: format!("{} {}{mfu}{mbu}", known(stage.wall_ns), percent(view.run_share)),
        })
    };
    run.stages.iter().filter(|view| is_wanted(settings, Some(view.stage.name))).filter_map(row).collect()
}

fn device_time(run: &RunView<'_>, settings: &Glance) -> Vec<Row> {
    if settings.stage.is_some() {
        return Vec::new();
    }
    let part = |name: String, time: Nanos, share: Option<f64>| Row {
        name,
        share: share.unwrap_or_default(),
        figure: format!("{time} {}", percent(share)),
    };
    let rows = run.device_time.iter().flat_map(|view| {
        let (time, device) = (view.time, &view.time.device);
        let rank = time.rank.map(|rank| format!("rank {rank} ")).unwrap_or_default();
        let name = |what: &str| format!("{rank}{device} {what}");
        let mut rows = vec![
            part(name("compute"), time.compute_ns, view.compute),
            part(name("exposed communication"), time.communication_exposed_ns, view.communication_exposed),
            part(name("exposed copies"), time.copies_exposed_ns, view.copies_exposed),
        ];
        rows.extend(
            view.causes
                .iter()
                .map(|(idle, share)| part(name(&format!("idle: {}", idle::cause(idle.cause))), idle.ns, *share)),
        );
        rows.retain(|row| row.share > 0.0);
        rows
    });
    rows.take(settings.top).collect()
}

fn lost(run: &RunView<'_>, settings: &Glance) -> Vec<Row> {
    let causes = &run.metrics.conclusions.lost_time;
    let all: Nanos = causes.iter().map(|lost| lost.lost_ns).sum();
    let wanted = causes.iter().filter(|lost| is_wanted(settings, lost.stage));
    let row = |lost: &types::LostTime| {
        let share = time_share(lost.lost_ns, all);
        let figure = format!("{} {}", lost.lost_ns, percent(share));
        Row { name: staged(&lost.cause, lost.stage, settings), share: share.unwrap_or_default(), figure }
    };
    wanted.map(row).take(settings.top).collect()
}

fn operators(run: &RunView<'_>, settings: &Glance) -> Vec<Row> {
    let all = OperatorSums::of(run.metrics).self_ns;
    let rows = run.metrics.breakdown.operators.iter().filter(|operator| is_wanted(settings, operator.stage));
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by_key(|operator| std::cmp::Reverse(operator.self_ns));
    let row = |operator: &&types::OperatorSummary| {
        let (time, share) = (operator.self_ns, time_share(operator.self_ns, all));
        let figure = format!("{time} {}, {}", percent(share), count(operator.calls, "call"));
        Row { name: staged(&operator.name, operator.stage, settings), share: share.unwrap_or_default(), figure }
    };
    rows.iter().map(row).take(settings.top).collect()
}

fn kernels(run: &RunView<'_>, settings: &Glance) -> Vec<Row> {
    let mut rows: Vec<_> = run.kernels.rows.iter().filter(|view| is_wanted(settings, view.kernel.stage)).collect();
    rows.sort_by_key(|view| std::cmp::Reverse(view.kernel.total_ns));
    let row = |view: &&types::view::KernelView<'_>| Row {
        name: staged(&view.kernel.short_name, view.kernel.stage, settings),
        share: view.share.unwrap_or_default(),
        figure: format!("{} {}, {}", view.kernel.total_ns, percent(view.share), count(view.kernel.calls, "launch")),
    };
    rows.iter().map(row).take(settings.top).collect()
}

/// The name with its stage, unless all rows are of one.
fn staged(name: &str, stage: Option<Stage>, settings: &Glance) -> String {
    match stage.filter(|stage| settings.stage != Some(*stage)) {
        Some(stage) => format!("{name} ({stage})"),
        None => name.to_owned(),
    }
}

fn steps(run: &RunView<'_>, settings: &Glance) -> Option<(String, String)> {
    let steps = run.metrics.times.steps.as_ref().filter(|steps| steps.list.len() > 1)?;
    if settings.stage.is_some_and(|stage| stage != Stage::Decode) {
        return None;
    }
    let times: Vec<f64> = steps.list.iter().map(|step| step.wall_ns.get() as f64).collect();
    let range = steps.wall_ms.as_ref().map(|wall| {
        format!(", median {}, {} to {}", milliseconds(wall.median), milliseconds(wall.min), milliseconds(wall.max))
    });
    Some((
        format!("wall time of {}{}", count(times.len() as u64, "step"), range.unwrap_or_default()),
        sparkline(&times, settings.width),
    ))
}

fn what_to_do(text: &mut String, run: &RunView<'_>, settings: &Glance, strong: impl Fn(&str) -> String) {
    let wanted = |view: &&FindingView<'_>| view.finding.stage.is_none() || is_wanted(settings, view.finding.stage);
    let (large, small): (Vec<_>, Vec<_>) =
        by_saving(run).into_iter().filter(wanted).partition(|view| findings::matters(view.finding));
    if large.is_empty() {
        return;
    }
    let _ = write!(text, "\n{}\n", strong("what to do"));
    for view in large.iter().take(FINDINGS) {
        let line = format!("{}. {}", findings::brief(view), findings::finished(&view.finding.advice));
        wrapped(text, &Text::new(&line).plain(), settings.width);
    }
    let more = large.len().saturating_sub(FINDINGS) + small.len();
    if more > 0 {
        let _ = writeln!(text, "{} in report.md", count(more as u64, "more finding"));
    }
}

/// Names, bars and figures in columns that together fill the width and no more.
fn bars(rows: &[Row], width: usize) -> String {
    let length = |text: &str| text.chars().count();
    let figures = rows.iter().map(|row| length(&row.figure)).max().unwrap_or_default();
    let longest = rows.iter().map(|row| length(&row.name)).max().unwrap_or_default();
    let room = width.saturating_sub(figures + 2);
    // A bar shorter than this shows nothing; a name this long can be told from others.
    let names = longest.min(room.saturating_sub(12)).max(room.min(16));
    let bar = room.saturating_sub(names + 1);
    let largest = rows.iter().map(|row| row.share).fold(0.0, f64::max);
    let mut text = String::new();
    for row in rows {
        let name = printable(&row.name);
        let drawn = if largest > 0.0 { drawn_bar(row.share / largest, bar) } else { String::new() };
        let line = format!("{:names$} {drawn:bar$}  {}", shortened(&name, names), row.figure);
        let _ = writeln!(text, "{}", shortened(line.trim_end(), width));
    }
    text
}

fn drawn_bar(share: f64, width: usize) -> String {
    let eighths = (share.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    let mut bar = "█".repeat(eighths / 8);
    if let Some(part) = (eighths % 8).checked_sub(1) {
        bar.push(EIGHTHS[part]);
    }
    bar
}

/// Values from zero up, neighbours taken together where there are more than columns: the largest of them shows.
fn sparkline(values: &[f64], width: usize) -> String {
    let most = values.iter().copied().fold(0.0, f64::max);
    if most <= 0.0 || width == 0 {
        return String::new();
    }
    let spark = |stretch: &[f64]| {
        let value = stretch.iter().copied().fold(0.0, f64::max);
        SPARKS[((value / most * 8.0).ceil() as usize).clamp(1, 8) - 1]
    };
    values.chunks(values.len().div_ceil(width)).map(spark).collect()
}

/// A paragraph in lines that fit, however long its words.
fn wrapped(text: &mut String, paragraph: &str, width: usize) {
    let paragraph = printable(paragraph);
    let words: Vec<_> = paragraph.split_whitespace().map(|word| shortened(word, width)).collect();
    let _ = writeln!(text, "{}", render::wrapped(&words.join(" "), width).join("\n"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::run::sample;

    #[test]
    fn a_glance_fits_every_width() {
        let metrics = sample::metrics();
        let run = analysis::view::run(&metrics);
        for width in [0, 40, 60, 80, 120, 200] {
            let text = glance(&run, &Glance { stage: None, top: 5, width }, str::to_owned);
            let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= width.max(NARROWEST), "{widest} columns of {width}:\n{text}");
        }
        insta::assert_snapshot!(glance(&run, &Glance { stage: None, top: 5, width: 100 }, str::to_owned));
    }

    #[test]
    fn a_stage_alone_shows_only_what_is_in_it() {
        let metrics = sample::metrics();
        let settings = Glance { stage: Some(Stage::Decode), top: 5, width: 100 };
        let text = glance(&analysis::view::run(&metrics), &settings, str::to_owned);
        let stages: Vec<_> = text.split("\n\n").find(|part| part.starts_with("stages")).unwrap().lines().collect();
        assert!(stages.len() == 2 && stages[1].starts_with("decode"), "{text}");
    }

    #[test]
    fn bars_and_sparks_keep_their_proportions() {
        assert_eq!(drawn_bar(0.5, 10), "█████");
        assert_eq!(drawn_bar(0.0, 10), "");
        assert_eq!(drawn_bar(1.0 / 16.0, 2), "▏");
        assert_eq!(sparkline(&[1.0, 8.0, 4.0], 80), "▁█▄");
        assert_eq!(sparkline(&[1.0, 8.0, 4.0, 4.0], 2), "█▄");
        assert_eq!(sparkline(&[0.0], 80), "");
    }

    #[test]
    fn an_empty_run_still_has_its_name() {
        let metrics = sample::empty();
        let text = glance(&analysis::view::run(&metrics), &Glance { stage: None, top: 5, width: 80 }, str::to_owned);
        assert!(text.lines().count() >= 2, "{text}");
    }
}
