//! What `llm-perf whatif` prints.

use types::{CriticalPathPart, DeviceTime, IdleCause, Nanos, ReplayBasis, ReplayedTime, WhatIf};

use crate::pages::run::critical_path::replayed_whole;
use crate::render::text::{capital, prose, sentence};
use crate::render::{Page, Table};
use crate::words::caveat::READ_FIRST;
use crate::words::idle;
use crate::words::number::{count, known, percent, signed, time_share};

/// Causes of the critical path shown; the others are added up.
const CAUSES: usize = 8;

/// The answer as plain text.
pub fn terminal(answer: &WhatIf) -> String {
    page(answer).terminal()
}

fn page(answer: &WhatIf) -> Page {
    let mut page = Page::new("");
    page.callout(READ_FIRST, caveats(answer));
    let changes = answer.changes.iter().map(|one| {
        let change = format!("{}: {}", prose(&one.change), sentence(&one.assumes));
        ("change", Some(change))
    });
    let none = answer.changes.is_empty().then(|| "none named; this is the run as it is".to_owned());
    let facts = [("run", Some(prose(&answer.run)))].into_iter().chain(changes);
    let predicted = (!answer.changes.is_empty()).then(|| predicted(answer));
    page.facts(facts.chain([("change", none), ("replay", Some(replayed(answer))), ("result", predicted)]));
    let mut table = heads("device time");
    for (name, of) in parts() {
        let whole = |time: &ReplayedTime| sum(time, |device| device.span_ns);
        row(&mut table, &name, answer, |time| (sum(time, &*of), whole(time)));
    }
    if has_devices(answer) {
        page.table(&table);
    }
    let shown = causes(answer);
    let mut table = heads("critical path");
    for cause in &shown {
        row(&mut table, cause, answer, |time| (on_path(time, |part| *part.cause == **cause), on_path(time, |_| true)));
    }
    let other = |part: &CriticalPathPart| !shown.iter().any(|cause| *part.cause == **cause);
    row(&mut table, "other causes", answer, |time| (on_path(time, other), on_path(time, |_| true)));
    row(&mut table, "total", answer, |time| (on_path(time, |_| true), on_path(time, |_| true)));
    page.table(&table);
    page.list(sums(answer));
    page
}

/// What a reader must know before the first number.
fn caveats(answer: &WhatIf) -> Vec<String> {
    let mut lines = vec!["Predicted by replaying the trace; nothing was measured with these changes.".to_owned()];
    if answer.replay.basis != Some(ReplayBasis::PlainRun) {
        lines.push("Times are those of the traced run, profiler overhead included.".to_owned());
    }
    lines.extend(answer.notes.iter().map(|note| capital(&sentence(note.trim_end_matches('.'))) + "."));
    lines
}

/// How well the replay fits the recording, and the plain runs where there are any.
fn replayed(answer: &WhatIf) -> String {
    let replay = &answer.replay;
    let off = known(replay.residual.map(signed));
    let whole = replayed_whole(Some(answer.before.time_ns), &answer.before.device_time);
    let whole = whole.map(|whole| format!(", {whole}")).unwrap_or_default();
    let fit = format!("{} unchanged, {} recorded ({off}){whole}", known(replay.replayed_ns), known(replay.measured_ns));
    match replay.basis {
        Some(ReplayBasis::PlainRun) => {
            format!("{fit}; host time is scaled to plain runs of {}", known(replay.basis_ns))
        }
        _ => fit,
    }
}

/// What the changes come to.
fn predicted(answer: &WhatIf) -> String {
    let [low, high] = [answer.after_low_ns, answer.after_high_ns].map(|time| time.to_string());
    let interval = if low == high { String::new() } else { format!(", between {low} and {high}") };
    let change = known(answer.saves_share.map(|share| signed(-share)));
    format!("{} would become {}{interval} ({change})", answer.before.time_ns, answer.after.time_ns)
}

fn heads(what: &str) -> Table {
    Table::new(&format!("{what} | >before | >of total | >after | >of total"))
}

/// A part and its whole on both sides, unless neither side has it.
fn row(table: &mut Table, name: &str, answer: &WhatIf, of: impl Fn(&ReplayedTime) -> (Nanos, Nanos)) {
    let [(was, before), (is, after)] = [of(&answer.before), of(&answer.after)];
    if was > Nanos::ZERO || is > Nanos::ZERO {
        let share = |part, whole| percent(time_share(part, whole));
        table.row([prose(name), was.to_string(), share(was, before), is.to_string(), share(is, after)]);
    }
}

/// Why totals of the tables are not the times above them, where they read differently.
fn sums(answer: &WhatIf) -> Vec<String> {
    let mut lines = Vec::new();
    let sides = [(&answer.before, answer.before.time_ns), (&answer.after, answer.after_high_ns)];
    if answer.after_high_ns.to_string() != answer.after.time_ns.to_string() {
        lines.push(format!(
            "the tables show the upper end of the interval, {}; the result above is its middle, {}",
            answer.after_high_ns, answer.after.time_ns
        ));
    }
    let differs = |of: &dyn Fn(&ReplayedTime) -> Nanos| {
        let apart = |(side, time): &(&ReplayedTime, Nanos)| of(side).to_string() != time.to_string();
        sides.iter().any(apart).then(|| (of(&answer.before), of(&answer.after)))
    };
    let (stages, longest) = (answer.before.time_ns, answer.after_high_ns);
    let several = answer.before.device_time.len();
    let is_devices = sum(&answer.before, |device| device.span_ns) == answer.before.time_ns;
    let whole = if is_devices {
        format!("the replayed time of {}", count(several as u64, "device"))
    } else {
        "the time of all stages".to_owned()
    };
    if let Some((before, after)) = differs(&|side| sum(side, |device| device.span_ns)).filter(|_| has_devices(answer)) {
        lines.push(format!(
            "device time runs from the first to the last work of each device, {before} before and {after} after; {whole} \
             is {stages} before and {longest} after"
        ));
    }
    if let Some((before, after)) = differs(&|side| on_path(side, |_| true)) {
        lines.push(format!(
            "the critical path covers {before} before and {after} after; {whole} is {stages} before and {longest} \
             after"
        ));
    }
    lines
}

fn has_devices(answer: &WhatIf) -> bool {
    !answer.before.device_time.is_empty()
}

fn sum(time: &ReplayedTime, of: impl Fn(&DeviceTime) -> Nanos) -> Nanos {
    time.device_time.iter().map(of).sum()
}

fn on_path(time: &ReplayedTime, is: impl Fn(&CriticalPathPart) -> bool) -> Nanos {
    time.critical_path.iter().filter(|part| is(part)).map(|part| part.ns).sum()
}

/// A part of a device's time: its name, and the part itself.
type DevicePart = (String, Box<dyn Fn(&DeviceTime) -> Nanos>);

/// Parts of the devices' time.
fn parts() -> Vec<DevicePart> {
    let mut parts: Vec<DevicePart> = vec![
        ("compute".to_owned(), Box::new(|time| time.compute_ns)),
        ("exposed communication".to_owned(), Box::new(|time| time.communication_exposed_ns)),
        ("exposed copies".to_owned(), Box::new(|time| time.copies_exposed_ns)),
    ];
    for cause in IdleCause::ALL {
        let of = move |time: &DeviceTime| time.idle.iter().filter(|idle| idle.cause == cause).map(|idle| idle.ns).sum();
        parts.push((format!("idle: {}", idle::cause(cause)), Box::new(of)));
    }
    parts.push(("total".to_owned(), Box::new(|time| time.span_ns)));
    parts
}

/// The longest causes of either side.
fn causes(answer: &WhatIf) -> Vec<String> {
    let mut causes: Vec<String> = Vec::new();
    for side in [&answer.before, &answer.after] {
        for part in side.critical_path.iter().take(CAUSES) {
            if !causes.contains(&part.cause.text) {
                causes.push(part.cause.text.clone());
            }
        }
    }
    causes
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::{ReplaySummary, SchemaTag};

    fn path(causes: u64) -> Vec<CriticalPathPart> {
        let part = |cause: u64| CriticalPathPart {
            cause: format!("cause {cause}").into(),
            ns: Nanos::new(1_000_000),
            share: 1.0 / causes as f64,
        };
        (0..causes).map(part).collect()
    }

    fn answer() -> WhatIf {
        let side = |time: i64, causes: u64| ReplayedTime {
            time_ns: Nanos::new(time),
            device_time: Vec::new(),
            critical_path: path(causes),
        };
        WhatIf {
            schema: SchemaTag::default(),
            run: "run".to_owned(),
            changes: vec![types::ReplayedChange { change: "--cuda-graphs".to_owned(), assumes: "it repeats".into() }],
            replay: ReplaySummary {
                measured_ns: Some(Nanos::new(12_000_000)),
                replayed_ns: Some(Nanos::new(12_000_000)),
                residual: Some(0.0),
                basis: None,
                basis_ns: None,
                together_ns: None,
                refused: None,
            },
            before: side(12_000_000, 12),
            after: side(8_500_000, 9),
            after_low_ns: Nanos::new(8_000_000),
            after_high_ns: Nanos::new(9_000_000),
            saves_ns: Nanos::new(3_500_000),
            saves_share: Some(3.5 / 12.0),
            notes: vec!["a collective takes as long as recorded".into()],
        }
    }

    #[test]
    fn what_is_not_shown_of_the_path_is_added_up_and_totals_that_differ_are_explained() {
        let text = terminal(&answer());
        assert!(text.starts_with("Read this first:\n  - Predicted by replaying the trace"), "{text}");
        assert!(text.contains("  - A collective takes as long as recorded.\n"), "{text}");
        let row = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {text}"));
            line.split("  ").filter(|cell| !cell.is_empty()).map(|cell| cell.trim().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(row("other causes"), ["other causes", "4.00 ms", "33.3%", "1.00 ms", "11.1%"]);
        assert_eq!(row("total"), ["total", "12.0 ms", "100%", "9.00 ms", "100%"]);
        assert!(
            text.contains("the tables show the upper end of the interval, 9.00 ms; the result above is its middle")
        );
    }

    #[test]
    fn times_of_several_devices_are_said_to_be_added_up_and_are_no_stages() {
        let device = |ordinal: u32| DeviceTime {
            rank: None,
            device: types::DeviceId::cuda(ordinal),
            span_ns: Nanos::new(6_000_000),
            busy_ns: Nanos::new(6_000_000),
            late_start_ns: Nanos::ZERO,
            compute_ns: Nanos::new(6_000_000),
            communication_exposed_ns: Nanos::ZERO,
            communication_ns: Nanos::ZERO,
            communication_awaited_ns: Nanos::ZERO,
            copies_exposed_ns: Nanos::ZERO,
            idle_ns: Nanos::ZERO,
            idle: Vec::new(),
            copies: Vec::new(),
        };
        let mut two = answer();
        two.before.device_time = vec![device(0), device(1)];
        let time = sum(&two.before, |device| device.span_ns);
        (two.before.time_ns, two.replay.measured_ns) = (time, Some(time));
        let text = terminal(&two);
        assert!(text.contains("recorded (0%), 2 devices added up"), "{text}");
        assert!(text.contains("the replayed time of 2 devices is"), "{text}");
        assert!(!text.contains("stages"), "{text}");
        two.before.device_time.pop();
        assert!(terminal(&two).contains("recorded (0%), all stages added up"));
    }

    #[test]
    fn an_interval_that_reads_as_one_number_is_none() {
        let mut answer = answer();
        (answer.after_low_ns, answer.after_high_ns) = (Nanos::new(8_500_000), Nanos::new(8_500_010));
        assert!(!terminal(&answer).contains("between"), "{}", terminal(&answer));
    }
}
