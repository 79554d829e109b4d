//! What `llm-perf whatif` prints.

use types::{CriticalPathPart, DeviceTime, IdleCause, Nanos, ReplayBasis, ReplayedTime, WhatIf};

use crate::render::text::{capital, prose, sentence};
use crate::render::{Page, Table};
use crate::words::caveat::READ_FIRST;
use crate::words::idle;
use crate::words::number::{known, percent, signed, time_share};

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
    page.table(&table);
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
    let fit = format!("{} unchanged, {} recorded ({off})", known(replay.replayed_ns), known(replay.measured_ns));
    match replay.basis {
        Some(ReplayBasis::PlainRun) => {
            format!("{fit}; host time is scaled to plain runs of {}", known(replay.basis_ns))
        }
        _ => fit,
    }
}

/// What the changes come to.
fn predicted(answer: &WhatIf) -> String {
    let interval = match answer.after_low_ns == answer.after_high_ns {
        true => String::new(),
        false => format!(", between {} and {}", answer.after_low_ns, answer.after_high_ns),
    };
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

/// Why totals of the tables are not the times above them, where they are not.
fn sums(answer: &WhatIf) -> Vec<String> {
    let mut lines = Vec::new();
    let (before, after) = (&answer.before, &answer.after);
    if answer.after_low_ns != answer.after_high_ns {
        lines.push(format!(
            "the tables show the upper end of the interval, {}; the result above is its middle, {}",
            answer.after_high_ns, after.time_ns
        ));
    }
    let (span, path) = (sum(before, |device| device.span_ns), on_path(before, |_| true));
    if span != before.time_ns {
        lines.push(format!(
            "device time runs from the first to the last work of each device, {span}; the result above is the time of all \
             stages, {}",
            before.time_ns
        ));
    }
    if path != before.time_ns && path != span {
        lines.push(format!("the critical path runs from the first call of the trace to its last work, {path}"));
    }
    lines
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
