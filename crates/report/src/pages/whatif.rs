//! What `llm-perf whatif` prints.

use types::{CriticalPathPart, DeviceTime, IdleCause, Nanos, ReplayBasis, WhatIf};

use crate::render::table::{Table, printable};
use crate::words::idle;
use crate::words::number::{percent, signed};

/// Causes of the critical path shown.
const CAUSES: usize = 8;

/// The answer as plain text.
pub fn terminal(answer: &WhatIf) -> String {
    let mut text = format!("{}\n", printable(&answer.run));
    for change in &answer.changes {
        text += &format!("  {}: {}\n", change.change, change.assumes);
    }
    text += &format!("\n{}\n", replayed(answer));
    if answer.changes.is_empty() {
        text += "\nno change was named; this is the run as it is\n\n";
    } else {
        text += &format!("\n{}\n\n", predicted(answer));
    }
    let mut table = Table::new("device time|>before||>after|");
    let whole = |times: &[DeviceTime]| -> Nanos { times.iter().map(|time| time.span_ns).sum() };
    let (before, after) = (&answer.before.device_time, &answer.after.device_time);
    for (name, of) in parts() {
        let [was, is] = [before, after].map(|times| times.iter().map(&*of).sum::<Nanos>());
        if was > Nanos::ZERO || is > Nanos::ZERO {
            table.row([name, was.to_string(), part(was, whole(before)), is.to_string(), part(is, whole(after))]);
        }
    }
    text += &format!("{table}\n");
    let mut table = Table::new("critical path|>before||>after|");
    for cause in causes(answer) {
        let find = |path: &[CriticalPathPart]| path.iter().find(|part| *part.cause == *cause).cloned();
        let cells = [find(&answer.before.critical_path), find(&answer.after.critical_path)].map(|part| {
            let share = part.as_ref().map(|part| part.share);
            (
                part.map_or("-".to_owned(), |part| part.ns.to_string()),
                share.map_or(String::new(), |share| percent(Some(share))),
            )
        });
        let [(was, was_share), (is, is_share)] = cells;
        table.row([cause, was, was_share, is, is_share]);
    }
    text += &format!("{table}\n");
    for note in &answer.notes {
        text += &format!("note: {note}\n");
    }
    text += "predicted, not tried\n";
    text
}

/// How well the replay fits, and what the figures are of.
fn replayed(answer: &WhatIf) -> String {
    let replay = &answer.replay;
    let time = |time: Option<Nanos>| time.map_or("-".to_owned(), |time| time.to_string());
    let residual = replay.residual.map_or("-".to_owned(), signed);
    let fit = format!(
        "replayed unchanged: {} of {} recorded ({residual})",
        time(replay.replayed_ns),
        time(replay.measured_ns)
    );
    match replay.basis {
        Some(ReplayBasis::PlainRun) => {
            format!("{fit}; host time is scaled to the plain runs, which take {}", time(replay.basis_ns))
        }
        _ => format!("{fit}; times are those of the traced pass, with what the profiler cost"),
    }
}

/// What the changes come to.
fn predicted(answer: &WhatIf) -> String {
    let interval = match answer.after_low_ns == answer.after_high_ns {
        true => String::new(),
        false => format!(", between {} and {}", answer.after_low_ns, answer.after_high_ns),
    };
    let change = answer.saves_share.map_or("-".to_owned(), |share| signed(-share));
    format!("{} would become {}{interval} ({change})", answer.before.time_ns, answer.after.time_ns)
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
        let of = move |time: &DeviceTime| {
            time.idle.iter().filter(|idle| idle.cause == cause).map(|idle| idle.ns).sum::<Nanos>()
        };
        parts.push((format!("idle: {}", idle::cause(cause)), Box::new(of)));
    }
    parts.push(("total".to_owned(), Box::new(|time| time.span_ns)));
    parts
}

fn part(time: Nanos, whole: Nanos) -> String {
    match whole > Nanos::ZERO {
        true => percent(Some(time.get() as f64 / whole.get() as f64)),
        false => String::new(),
    }
}

/// The longest causes of either side.
fn causes(answer: &WhatIf) -> Vec<String> {
    let mut causes: Vec<String> = Vec::new();
    let (before, after) = (&answer.before.critical_path, &answer.after.critical_path);
    for part in before.iter().take(CAUSES).chain(after.iter().take(CAUSES)) {
        if !causes.contains(&part.cause.text) {
            causes.push(part.cause.text.clone());
        }
    }
    causes
}
