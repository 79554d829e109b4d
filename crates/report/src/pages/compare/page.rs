//! The comparison as a page and for a terminal: the same blocks, fewer columns.

use types::{Change, ComparedRun, Comparison, Difference, ForecastRange, GateOutcome, RunState, Severity};

use super::caveats::caveats;
use super::phrase::{
    self, amount, calls, change, changed, depth, interval, name, per_call, tested, untested, verdict, wrapped,
};
use crate::render::table::printable;
use crate::render::text::{code, codes, prose};
use crate::render::{Page, Table};
use crate::words::caveat::READ_FIRST;
use crate::words::number::{UNKNOWN, known, milliseconds, percent};
use crate::words::serving::compared;

/// Widest name of an operator, kernel or module on a terminal, next to a verdict and without one.
const NAME: [usize; 2] = [28, 34];

/// The comparison as a page, with the largest changes of operators, kernels and modules.
pub fn page(comparison: &Comparison, most_rows: usize) -> Page {
    let mut page = conclusions_page(comparison);
    page.heading("Sides");
    page.facts(sides(comparison, true));
    page.heading("Differences");
    page.table_or(&differences(comparison), "None known.");
    if !comparison.requests.is_empty() {
        page.heading("Requests");
        timed(&mut page, "latency", &comparison.requests, |_, name| compared(name));
    }
    if shows_stages(comparison) {
        page.heading("Stages");
        // Markdown drops leading spaces, so depth is shown by a sign.
        timed(&mut page, "stage", &comparison.stages, |depth, name| match depth {
            0 => name.to_owned(),
            _ => format!("{} {name}", ">".repeat(depth)),
        });
    }
    if !comparison.commands.is_empty() {
        page.heading("Commands");
        timed(&mut page, "command", &comparison.commands, |_, name| code(name));
    }
    for (head, noun, changes) in parts(comparison) {
        if part_head(&mut page, head, changes.len(), most_rows) {
            page.table(&part_table(noun, changes, most_rows, true));
            page.list(no_interval(changes));
        }
    }
    if !comparison.forecasts.is_empty() {
        page.heading("Forecasts");
        page.paragraph(
            "Forecasts of each side's analytic model in eager mode, with 90% intervals. Nothing here was measured.",
        );
        page.table(&forecasts(comparison));
    }
    page.heading("How to read this");
    let last = format!(
        "Change is how much longer the second side takes. A verdict is corrected for the number of rows in its table: the chance \
         of even one wrong verdict in a table without changes is at most {:.0}%. Intervals are not corrected, so one may exclude \
         zero without a verdict.",
        comparison.significance * 100.0
    );
    page.list(phrase::notes(comparison).iter().map(|line| prose(line)).chain([last]));
    page
}

/// The comparison as plain text of at most a hundred columns, with its conclusions last.
pub fn terminal(comparison: &Comparison, most_rows: usize) -> String {
    let mut page = Page::new("");
    page.callout(READ_FIRST, caveats(comparison));
    page.facts(sides(comparison, false));
    if !comparison.requests.is_empty() {
        page.table(&timed_table("latency", &comparison.requests, |_, name| compared(name)));
        page.list(untested(&comparison.requests));
    }
    if shows_stages(comparison) {
        timed(&mut page, "stage", &comparison.stages, indented);
    }
    if !comparison.commands.is_empty() {
        page.table(&timed_table("command", &comparison.commands, |_, name| prose(name)));
        page.list(untested(&comparison.commands));
    }
    for (head, noun, changes) in parts(comparison) {
        if part_head(&mut page, head, changes.len(), most_rows) {
            page.table(&part_table(noun, changes, most_rows, false));
            page.list(no_interval(changes));
            if tested(changes) {
                let count = changed(changes).count();
                page.paragraph(&format!("{count} of {} changed significantly", changes.len()));
            }
        }
    }
    if !comparison.forecasts.is_empty() {
        page.table(&forecasts(comparison));
    }
    let notes = phrase::notes(comparison);
    if !notes.is_empty() {
        page.heading("Notes");
        page.list(notes.iter().map(|note| prose(note)));
    }
    page.heading("Result");
    page.list(conclusions(comparison));
    // A log takes the last line as one.
    format!("{}{}\n", wrapped(&page.terminal()), printable(&phrase::summary(comparison)))
}

/// Stages as plain text, which `profile --from` prints alone.
pub fn stages_terminal(comparison: &Comparison) -> String {
    let mut page = Page::new("");
    page.callout(READ_FIRST, caveats(comparison));
    timed(&mut page, "stage", &comparison.stages, indented);
    wrapped(&page.terminal())
}

/// What makes the sides hard to compare, what changed, and how the gate ended.
fn conclusions_page(comparison: &Comparison) -> Page {
    let mut page = Page::new("Comparison");
    page.callout(READ_FIRST, caveats(comparison));
    page.list(conclusions(comparison));
    page
}

/// What changed, and how the gate ended.
pub(crate) fn conclusions(comparison: &Comparison) -> Vec<String> {
    let mut conclusions: Vec<_> = phrase::conclusions(comparison).iter().map(|line| prose(line)).collect();
    if let Some(gate) = &comparison.gate {
        conclusions.push(phrase::gate(gate));
        if gate.outcome == GateOutcome::Undecided {
            conclusions.extend(gate.reasons.iter().map(|reason| format!("undecided: {}", prose(reason))));
        }
    }
    conclusions
}

/// The runs of both sides and what the numbers rest on; with small differences on a page that lists none.
fn sides(comparison: &Comparison, ids: bool) -> Vec<(&'static str, Option<String>)> {
    let run = |run: &ComparedRun| {
        let state = match run.state {
            Some(RunState::Partial) => ", partial",
            Some(RunState::Failed) => ", failed",
            Some(RunState::Running) => ", still running",
            Some(RunState::Interrupted) => ", interrupted",
            _ => "",
        };
        let id = if ids { format!("{}, {}", code(&run.id), code(&run.path)) } else { prose(&run.path) };
        Some(id + state)
    };
    let sides = [("base", &comparison.base), ("with", &comparison.with)];
    let runs = sides.into_iter().flat_map(|(name, runs)| runs.iter().map(move |one| (name, run(one))));
    let small = |one: &Difference| {
        let side = |values: &[String]| prose(&super::caveats::values(values));
        format!("{} ({}; {})", one.aspect, side(&one.base), side(&one.with))
    };
    let small = comparison.differences.iter().filter(|one| one.severity == Severity::Info).map(small);
    let small: Vec<String> = small.filter(|_| !ids).collect();
    let small = (!small.is_empty()).then(|| small.join(", "));
    runs.chain([("basis", Some(phrase::basis(comparison))), ("differ in", small)]).collect()
}

fn differences(comparison: &Comparison) -> Table {
    let mut table = Table::new("severity | aspect | base | with | meaning");
    for one in &comparison.differences {
        let side = |values: &[String]| if values.is_empty() { UNKNOWN.to_owned() } else { codes(values) };
        let severity = one.severity.name().to_owned();
        table.row([severity, one.aspect.clone(), side(&one.base), side(&one.with), prose(&one.meaning)]);
    }
    table
}

/// Whether stages, or that there are none, are of interest: requests to a server need none.
fn shows_stages(comparison: &Comparison) -> bool {
    comparison.requests.is_empty() || !comparison.stages.is_empty()
}

fn indented(depth: usize, name: &str) -> String {
    "  ".repeat(depth) + &prose(name)
}

/// Rows that were timed without a profiler, and why one was not tested.
fn timed(page: &mut Page, noun: &str, changes: &[Change], named: impl Fn(usize, &str) -> String) {
    page.table_or(&timed_table(noun, changes, named), &format!("Neither side measured a {noun}."));
    page.list(untested(changes));
}

/// One row per change; `named` turns depth and name into the first cell.
fn timed_table(noun: &str, changes: &[Change], named: impl Fn(usize, &str) -> String) -> Table {
    let mut table = Table::new(&format!("{noun} | >base | >CV | >with | >CV | >change | 95% interval | verdict"));
    for row in changes {
        table.row([
            named(depth(row), &row.name),
            known(row.base.time_ns),
            percent(row.base.spread),
            known(row.with.time_ns),
            percent(row.with.spread),
            change(row.change),
            interval(row.interval),
            verdict(row).to_owned(),
        ]);
    }
    table
}

/// Tables of everything else: their heads, what a row is, and the rows.
fn parts(comparison: &Comparison) -> [(&'static str, &'static str, &[Change]); 7] {
    [
        ("Where requests of the recorded load spend their time (means)", "part", &comparison.request_parts),
        ("Memory", "memory", &comparison.memory),
        ("Steps (geometric means)", "step", &comparison.steps),
        ("Device time", "device time", &comparison.device_time),
        ("Operators", "operator", &comparison.operators),
        ("Kernels", "kernel", &comparison.kernels),
        ("Modules", "module", &comparison.modules),
    ]
}

/// Starts a table of so many rows, unless there is none to show.
fn part_head(page: &mut Page, head: &str, all: usize, most_rows: usize) -> bool {
    match all > most_rows {
        true => page.heading(&format!("{head} (the {most_rows} largest changes of {all})")),
        false if all > 0 => page.heading(head),
        false => {}
    }
    all > 0 && most_rows > 0
}

/// The largest changes. A terminal has room for verdicts or for calls.
fn part_table(noun: &str, changes: &[Change], most_rows: usize, wide: bool) -> Table {
    let (verdicts, counts) = (wide || tested(changes), wide || !tested(changes));
    let last = [(verdicts, "| 95% interval | verdict"), (counts, "| >calls | >change per call")];
    let last: String = last.into_iter().filter(|(shown, _)| *shown).map(|(_, heads)| heads).collect();
    let mut table = Table::new(&format!("{noun} | stage | >base | >with | >change {last}"));
    if !wide {
        table = table.widest(NAME[usize::from(counts)]);
    }
    let is_requests = noun == "part";
    for row in changes.iter().take(most_rows) {
        let mut cells = vec![
            if is_requests { compared(&row.name) } else { code(&name(row)) },
            row.stage.map(|stage| stage.to_string()).unwrap_or_default(),
            amount(&row.base),
            amount(&row.with),
            change(row.change),
        ];
        if verdicts {
            cells.extend([interval(row.interval), verdict(row).to_owned()]);
        }
        if counts {
            cells.extend([calls(row), per_call(row)]);
        }
        table.row(cells);
    }
    table
}

/// Why no row has an interval, where none has.
fn no_interval(changes: &[Change]) -> Option<String> {
    let mut reasons: Vec<String> = Vec::new();
    for reason in changes.iter().filter(|_| !tested(changes)).filter_map(|change| change.untested.as_ref()) {
        let reason = prose(reason);
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    match reasons.as_slice() {
        [] => None,
        [one] => Some(format!("no interval: {one}")),
        several => Some(format!("no interval, for one of these reasons: {}", several.join("; "))),
    }
}

/// What was forecast of the stages of both sides.
fn forecasts(comparison: &Comparison) -> Table {
    let mut table = Table::new("forecast | >base | >with | >change");
    let time = |range: ForecastRange| {
        format!("{} ({} to {})", milliseconds(range.value), milliseconds(range.low), milliseconds(range.high))
    };
    for row in &comparison.forecasts {
        table.row([prose(&row.stage), time(row.base), time(row.with), change(Some(row.change))]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::compare::phrase::WIDTH;
    use crate::pages::compare::sample;
    use crate::words::Spoken;

    fn printed(comparison: &Comparison) -> String {
        let text = terminal(comparison, 5);
        let lines = text.lines().filter(|line| !line.starts_with("summary: "));
        let wide: Vec<_> = lines.filter(|line| line.chars().count() > WIDTH).collect();
        assert_eq!(wide, Vec::<&str>::new());
        text
    }

    #[test]
    fn rows_of_one_side_and_of_the_other_have_reasons_of_their_own() {
        let rows = |reasons: &[&str]| -> Vec<Change> {
            let row = sample::repeats().operators[0].clone();
            let of = |reason: &&str| Change { untested: Some((*reason).into()), ..row.clone() };
            reasons.iter().map(of).collect()
        };
        let said = |reasons: &[&str]| no_interval(&rows(reasons)).unwrap_or_default();
        assert_eq!(said(&["only the first side has it"; 2]), "no interval: only the first side has it");
        let both = ["only the first side has it", "only the second side has it"];
        let expected = "no interval, for one of these reasons: only the first side has it; only the second side has it";
        assert_eq!(said(&both), expected);
    }

    #[test]
    fn repeats_of_two_runs() {
        insta::assert_snapshot!("repeats_as_a_page", page(&sample::repeats(), 3).markdown());
        insta::assert_snapshot!("repeats_on_a_terminal", printed(&sample::repeats()));
    }

    #[test]
    fn several_runs_per_side() {
        insta::assert_snapshot!("runs_as_a_page", page(&sample::runs(), 3).markdown());
        insta::assert_snapshot!("runs_on_a_terminal", printed(&sample::runs()));
    }

    #[test]
    fn loads_on_two_servers() {
        insta::assert_snapshot!("loads_on_a_terminal", printed(&sample::loads().spoken()));
        let page = page(&sample::loads().spoken(), 9).markdown();
        assert!(page.contains("| others' prefill ") && page.contains("| load, per output token |"), "{page}");
    }

    #[test]
    fn runs_that_hardly_compare() {
        insta::assert_snapshot!("apart_on_a_terminal", printed(&sample::apart()));
    }

    #[test]
    fn what_hinders_a_comparison_stands_before_its_verdict() {
        let comparison = sample::repeats();
        for text in [printed(&comparison), page(&comparison, 3).markdown(), conclusions_page(&comparison).comment()] {
            let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("no `{part}` in {text}"));
            assert!(at(READ_FIRST) < at("Different llm-perf: base 0.1.0, with 0.2.0."), "{text}");
            assert!(
                at("Different llm-perf") < at("decode: 6.1% more time, but the runs are not directly comparable"),
                "{text}"
            );
            assert!(!text.contains("decode is slower"), "{text}");
        }
        assert!(printed(&sample::runs()).contains("prefill is faster: "));
    }

    #[test]
    fn every_sample_is_a_valid_document() {
        for comparison in [sample::repeats(), sample::runs(), sample::apart(), sample::loads(), sample::empty()] {
            let found = crate::validate(&serde_json::to_vec(&comparison.spoken()).unwrap()).unwrap();
            assert_eq!(found.violations, []);
        }
    }

    #[test]
    fn two_empty_runs_give_a_page() {
        let page = page(&sample::empty(), 3).markdown();
        assert!(page.contains("Neither side measured a stage.") && page.contains("undecided"), "{page}");
    }
}
