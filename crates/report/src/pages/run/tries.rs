//! Remedies that were tried: predicted beside realised, what they cost, and how to adopt them.

use types::view::{RunView, TriesView};
use types::{TimeChange, Try};

use crate::render::Page;
use crate::render::Table;
use crate::render::text::{code, prose};
use crate::words::number::{UNKNOWN, count, grouped, known, percent, rate, signed};

/// The section of `report.md`; nothing where nothing was tried.
pub(super) fn section(page: &mut Page, run: &RunView<'_>) {
    let view = &run.tries;
    if run.metrics.trials.tries.is_empty() {
        return;
    }
    page.heading("Remedies tried (measured)");
    page.paragraph(&format!(
        "Baseline and remedy alternated on the first input for up to {} each, without a profiler; both generated the same number of \
         tokens. Saved time is relative to a whole {}: the ratio of medians with its 95% interval. A larger batch serves more \
         sequences in a longer {}, so its gain shows as throughput.",
        count(view.rounds, "round"),
        request_noun(run),
        request_noun(run),
    ));
    if let Some(text) = best(run) {
        page.paragraph(&format!("**{text}**"));
    }
    let table = table(view, false);
    if !table.is_empty() {
        page.table(&table);
        page.paragraph("How to adopt:");
        page.list(view.measured.iter().map(|one| format!("{}: {}", code(&one.remedy.to_string()), code(&one.adopt))));
    }
    let notes = view
        .measured
        .iter()
        .flat_map(|one| one.notes.iter().map(|note| format!("{}: {}", code(&one.remedy.to_string()), prose(note))));
    let unfinished = view.unfinished.iter().map(|one| {
        format!("{} ({}): {}", code(&one.remedy.to_string()), one.status.name(), prose(&known(one.reason.as_deref())))
    });
    let lines: Vec<String> = unfinished.chain(notes).collect();
    if !lines.is_empty() {
        page.list(lines);
    }
    if !view.not_applicable.is_empty() {
        page.paragraph(&format!("Not applicable: {}.", absent(view, code)));
    }
}

/// The same for a terminal; nothing where nothing was tried.
pub(super) fn terminal(page: &mut Page, run: &RunView<'_>) {
    let view = &run.tries;
    let table = table(view, true);
    if !table.is_empty() {
        page.table(&table);
    }
    for one in &view.unfinished {
        let reason = prose(&known(one.reason.as_deref()));
        page.paragraph(&format!("{} {}: {reason}", one.remedy, one.status.name()));
    }
    if !view.not_applicable.is_empty() {
        page.paragraph(&format!("not applicable: {}", absent(view, str::to_owned)));
    }
    best(run).iter().for_each(|line| page.paragraph(line));
}

fn table(view: &TriesView<'_>, with_adoption: bool) -> Table {
    let heads =
        "remedy | >predicted | >saved | 95% interval | >per token | >throughput | >memory | >compile | same tokens";
    let mut table = Table::new(&if with_adoption { format!("{heads} | how to adopt") } else { heads.to_owned() });
    for one in &view.measured {
        let cells = [
            one.remedy.to_string(),
            percent(one.predicted_saves_share),
            one.saves_share.map_or(UNKNOWN.to_owned(), signed),
            interval(one),
            one.per_token.map_or(UNKNOWN.to_owned(), per_token),
            one.throughput.map_or(UNKNOWN.to_owned(), |rate| format!("{:.2}x", rate.ratio)),
            memory(one),
            known(one.compile_ns),
            outputs(one),
        ];
        table.row(cells.into_iter().chain(with_adoption.then(|| one.adopt.clone())));
    }
    table
}

/// What was timed as a whole.
fn request_noun(run: &RunView<'_>) -> &'static str {
    if run.forward_pass_ms.is_some() { "forward pass" } else { "request" }
}

fn interval(one: &Try) -> String {
    match (one.low, one.high) {
        (Some(low), Some(high)) => format!("{} to {}", signed(low), signed(high)),
        _ => UNKNOWN.to_owned(),
    }
}

fn per_token(change: TimeChange) -> String {
    format!("{} -> {}", change.baseline_ns, change.tried_ns)
}

fn memory(one: &Try) -> String {
    match (one.baseline_peak_memory_bytes, one.peak_memory_bytes) {
        (Some(before), Some(after)) => format!("{before} -> {after}"),
        _ => UNKNOWN.to_owned(),
    }
}

fn outputs(one: &Try) -> String {
    let Some(output) = &one.output else { return UNKNOWN.to_owned() };
    let distance =
        output.max_logit_distance.map(|distance| format!(", logits within {distance:.1e}")).unwrap_or_default();
    match (output.equal, output.tokens) {
        (true, 0) => format!("no tokens{distance}"),
        (true, _) => format!("yes{distance}"),
        (false, tokens) => format!("no: {} of {}{distance}", grouped(output.differing_tokens), grouped(tokens)),
    }
}

fn absent(view: &TriesView<'_>, name: impl Fn(&str) -> String) -> String {
    let one = |one: &&Try| format!("{} ({})", name(&one.remedy.to_string()), prose(&known(one.reason.as_deref())));
    view.not_applicable.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// What to take, in a sentence or two.
fn best(run: &RunView<'_>) -> Option<String> {
    let view = &run.tries;
    let of = |one: &Try| {
        let rates = one.throughput.map(|rates| {
            let unit = if one.per_token.is_some() { "tokens/s" } else { "sequences/s" };
            format!("{} {unit} instead of {}", rate(rates.tried_per_second), rate(rates.baseline_per_second))
        });
        rates.unwrap_or_default()
    };
    let fastest = view.fastest.map(|one| {
        let saved = one.saves_share.map_or(UNKNOWN.to_owned(), |share| percent(Some(share)));
        format!("Fastest: {} saves {saved} of a {}, {}.", one.remedy, request_noun(run), of(one))
    });
    let highest = view.highest_throughput.filter(|one| view.fastest.is_none_or(|fastest| fastest.remedy != one.remedy));
    let highest = highest.map(|one| {
        let cost = one.saves_share.filter(|share| *share < 0.0);
        let cost = cost.map(|share| format!(", but each {} takes {} longer", request_noun(run), percent(Some(-share))));
        format!("Highest throughput: {}, {}{}.", one.remedy, of(one), cost.unwrap_or_default())
    });
    let text = [fastest, highest].into_iter().flatten().collect::<Vec<_>>().join(" ");
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use analysis::view::run;
    use types::{Metrics, Nanos, OutputChange, RateChange, TimeChange, Trials, TryStatus};

    use super::*;
    use crate::pages::run::sample;

    fn one(remedy: &str, saves: Option<f64>, rate: f64) -> Try {
        let tried = saves.map(|saves| Nanos::new((1e6 * (1.0 - saves)) as i64));
        Try {
            remedy: remedy.parse().unwrap(),
            status: if saves.is_some() { TryStatus::Tried } else { TryStatus::Failed },
            reason: saves.is_none().then(|| "out of memory".to_owned()),
            baseline_ns: tried.map(|_| Nanos::new(1_000_000)),
            tried_ns: tried,
            saves_share: saves,
            low: saves.map(|saves| saves - 0.01),
            high: saves.map(|saves| saves + 0.01),
            predicted_saves_share: Some(0.5),
            first_token: None,
            per_token: saves.map(|saves| TimeChange {
                baseline_ns: Nanos::new(1_000),
                tried_ns: Nanos::new(400),
                saves_share: saves,
                low: None,
                high: None,
            }),
            throughput: saves.map(|_| RateChange {
                baseline_per_second: 100.0,
                tried_per_second: 100.0 * rate,
                ratio: rate,
                low: Some(rate - 0.1),
                high: Some(rate + 0.1),
            }),
            output: saves.map(|_| OutputChange {
                equal: false,
                tokens: 16,
                differing_tokens: 3,
                max_logit_distance: Some(0.25),
            }),
            baseline_peak_memory_bytes: None,
            peak_memory_bytes: None,
            compile_ns: None,
            adopt: "a=b".to_owned(),
            notes: Vec::new(),
            turns: Vec::new(),
        }
    }

    fn printed(metrics: &Metrics) -> String {
        let mut page = Page::default();
        terminal(&mut page, &run(metrics));
        page.terminal()
    }

    fn metrics(tries: Vec<Try>) -> Metrics {
        Metrics { trials: Trials::checked(tries), ..sample::metrics() }
    }

    #[test]
    fn the_fastest_and_the_highest_throughput_are_named_with_their_cost() {
        let metrics =
            metrics(vec![one("cuda-graph", Some(0.6), 2.5), one("batch-8", Some(-0.5), 5.0), one("bf16", None, 0.0)]);
        let text = printed(&metrics);
        let best = "Fastest: cuda-graph saves 60.0% of a request, 250 tokens/s instead of 100. Highest throughput: batch-8, \
                    500 tokens/s instead of 100, but each request takes 50.0% longer.";
        assert!(text.contains(best), "{text}");
        assert!(
            text.contains("bf16 failed: out of memory") && text.contains("no: 3 of 16, logits within 2.5e-1"),
            "{text}"
        );
        let row = text.lines().find(|line| line.starts_with("cuda-graph")).unwrap();
        for part in ["50.0%", "+60.0%", "+59.0% to +61.0%", "1.00 us -> 400 ns", "2.50x", "a=b"] {
            assert!(row.contains(part), "{part}: {row}");
        }
    }

    #[test]
    fn what_saves_nothing_beyond_doubt_is_not_called_fastest_and_nothing_tried_says_nothing() {
        let metrics = metrics(vec![one("last-logits", Some(0.005), 1.0)]);
        assert!(!printed(&metrics).contains("Fastest"));
        assert_eq!(printed(&sample::metrics()), "");
    }
}
