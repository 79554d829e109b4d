//! How the time of each device divides: the sentence a report starts with, and its section.

use types::view::{DeviceTimeView, RunView};
use types::{IdleCause, Nanos};

use crate::render::Page;
use crate::render::Table;
use crate::render::text::{capital, code};
use crate::words::idle;
use crate::words::number::{count, grouped, known, percent, time_share};

/// Devices that get a sentence of their own.
const SENTENCES: usize = 2;
/// Share of a device's time from which a part is worth a word in the first sentence.
pub(super) const WORTH_NAMING: f64 = 0.05;
/// Share of a recording that is most of it.
const MOST: f64 = 0.5;

/// The first sentences: how busy each device was, with what, and why it was idle. Absent without device work.
pub(super) fn headline(run: &RunView<'_>) -> Option<String> {
    let devices = &run.device_time;
    if devices.is_empty() {
        return None;
    }
    let mut text: Vec<String> = devices.iter().take(SENTENCES).map(sentence).collect();
    text.extend(around(run));
    if devices.len() > SENTENCES {
        text.push(format!(
            "{} more are in the table of device time.",
            count((devices.len() - SENTENCES) as u64, "device")
        ));
    }
    Some(text.join(" "))
}

/// The time of a recording, with how much of it lies before the first work of its one device or after the last; absent where that is
/// less than this share.
pub(super) fn surrounded(run: &RunView<'_>, least: f64) -> Option<String> {
    let [one] = run.device_time.as_slice() else { return None };
    let wall = run.metrics.times.totals.wall_ns?;
    let outside = wall - one.time.span_ns;
    time_share(outside, wall).filter(|share| *share >= least)?;
    let [all, part] = [wall, outside].map(|time| time.to_string());
    let part = if all == part { "nearly all" } else { &part };
    Some(format!("{all}, {part} of it before the first work of the device or after the last"))
}

/// The same in a sentence, where it is most of the recording.
pub(super) fn around(run: &RunView<'_>) -> Option<String> {
    let text = surrounded(run, MOST).filter(|_| run.engine_steps.is_empty())?;
    Some(format!("The recording takes {text}."))
}

/// `cuda:0 was busy for 567 ms of 1.08 s (52.6%). Compute took 560 ms. It was idle for 513 ms; 410 ms of that is launch overhead.`
fn sentence(view: &DeviceTimeView<'_>) -> String {
    let time = view.time;
    let named = |share: Option<f64>| share.is_some_and(|share| share >= WORTH_NAMING);
    let parts = [
        ("compute", time.compute_ns, view.compute),
        ("exposed communication", time.communication_exposed_ns, view.communication_exposed),
        ("exposed copies", time.copies_exposed_ns, view.copies_exposed),
    ];
    let parts = parts.iter().filter(|(.., share)| named(*share));
    let parts = parts.enumerate().map(|(index, (what, ns, _))| match index {
        0 => format!("{} took {ns}", capital(what)),
        _ => format!("{what} {ns}"),
    });
    let mut text =
        format!("**{} was busy for {} of {} ({}).**", time.device, time.busy_ns, time.span_ns, percent(view.busy));
    let parts = parts.collect::<Vec<_>>().join(", ");
    if !parts.is_empty() {
        text += &format!(" {parts}.");
    }
    if named(view.idle) {
        let main = view.causes.first().filter(|(idle, share)| idle.cause != IdleCause::NotRecorded && named(*share));
        let main = main.map(|(idle, _)| format!("; {} of that is {}", idle.ns, idle::cause(idle.cause)));
        text += &format!(" It was idle for {}{}.", time.idle_ns, main.unwrap_or_default());
    }
    text
}

/// The section of a report.
pub(super) fn section(page: &mut Page, run: &RunView<'_>) {
    if run.device_time.is_empty() {
        return;
    }
    page.heading("Device time (measured)");
    let mut table = Table::new("device | >span | >busy | >compute | >exposed communication | >exposed copies | >idle");
    for view in &run.device_time {
        let time = view.time;
        let of = |ns: Nanos, share: Option<f64>| format!("{ns} ({})", percent(share));
        table.row([
            time.device.to_string(),
            time.span_ns.to_string(),
            of(time.busy_ns, view.busy),
            of(time.compute_ns, view.compute),
            of(time.communication_exposed_ns, view.communication_exposed),
            of(time.copies_exposed_ns, view.copies_exposed),
            of(time.idle_ns, view.idle),
        ]);
    }
    page.table(&table);
    page.paragraph(
        "The span runs from a device's first kernel, copy or memset to the end of its last. Compute, exposed communication, exposed \
         copies and idle time add up to it. Communication is exposed while no other kernel runs; a copy or memset is exposed while no \
         kernel runs. Shares are of the span.",
    );
    awaited(page, run);
    idle_causes(page, run);
    copies(page, run);
}

/// Communication that looks hidden and is not.
fn awaited(page: &mut Page, run: &RunView<'_>) {
    let devices =
        run.device_time.iter().map(|view| view.time).filter(|time| time.communication_awaited_ns > Nanos::ZERO);
    page.list(devices.map(|time| {
        let (awaited, all) = (time.communication_awaited_ns, time.communication_ns);
        format!(
            "{}: {awaited} of {all} of communication overlaps only with kernels that started early behind it on the same stream and \
             wait for it (programmatic dependent launch). They are counted as compute, and this communication is not hidden.",
            time.device
        )
    }));
}

fn idle_causes(page: &mut Page, run: &RunView<'_>) {
    let mut table = Table::new("device | idle time due to | >time | >share of span | >longest gap | inside");
    for view in &run.device_time {
        for (idle, share) in &view.causes {
            let inside = idle.inside.iter().map(|place| format!("{} {}", code(&place.name), place.ns));
            table.row([
                view.time.device.to_string(),
                idle::cause(idle.cause).to_owned(),
                idle.ns.to_string(),
                percent(*share),
                idle.longest_ns.to_string(),
                inside.collect::<Vec<_>>().join(", "),
            ]);
        }
    }
    if !table.is_empty() {
        page.table(&table);
    }
}

fn copies(page: &mut Page, run: &RunView<'_>) {
    let mut table = Table::new("device | copies | >calls | >time | >bytes | >rate");
    for view in &run.device_time {
        for (copy, rate) in &view.copies {
            table.row([
                view.time.device.to_string(),
                copy.kind.clone(),
                grouped(copy.calls),
                copy.ns.to_string(),
                known(copy.bytes),
                known(*rate),
            ]);
        }
    }
    if !table.is_empty() {
        page.table(&table);
    }
}
