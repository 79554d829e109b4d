//! The critical path of a traced run, and how well it replays.

use types::view::RunView;
use types::{DeviceTime, Nanos, ReplayBasis};

use crate::render::Page;
use crate::render::Table;
use crate::render::text::prose;
use crate::words::number::{percent, signed};

/// Causes shown.
const CAUSES: usize = 8;

/// Share of a device's span below which its idle time decides nothing.
const HARDLY_IDLE: f64 = 0.01;

/// Whether devices have work all the time. A host that waits for them in ways that are not recorded is on a replayed path, and decides
/// nothing.
pub(crate) fn is_busy(run: &RunView<'_>) -> bool {
    let times = &run.metrics.breakdown.device_time;
    let is_busy = |time: &DeviceTime| (time.idle_ns.get() as f64) < time.span_ns.get() as f64 * HARDLY_IDLE;
    !times.is_empty() && times.iter().all(is_busy)
}

/// What a replayed time adds up, where it is not simply that of one device.
pub(crate) fn replayed_whole(measured: Option<Nanos>, devices: &[DeviceTime]) -> Option<String> {
    let spans: Nanos = devices.iter().map(|device| device.span_ns).sum();
    match devices.len() {
        _ if devices.is_empty() || measured.is_none() => None,
        _ if measured != Some(spans) => Some("all stages added up".to_owned()),
        1 => None,
        several => Some(format!("{several} devices added up")),
    }
}

/// What sets the time, by cause.
pub(super) fn section(page: &mut Page, run: &RunView<'_>) {
    let conclusions = &run.metrics.conclusions;
    let Some(replay) = &conclusions.replay else { return };
    page.heading("Critical path (replayed)");
    if let Some(reason) = &replay.refused {
        let is_estimated = conclusions.findings.iter().any(|finding| finding.saving.saves_ns.is_some());
        let bounds = if is_estimated { " Estimated savings are upper bounds from the findings alone." } else { "" };
        return page.paragraph(&format!("Not replayed: {}.{bounds}", prose(reason.trim_end_matches('.'))));
    }
    let time = |time: Option<Nanos>| time.map_or("-".to_owned(), |time| time.to_string());
    let residual = replay.residual.map_or("-".to_owned(), signed);
    let basis = match replay.basis {
        Some(ReplayBasis::PlainRun) => {
            format!(
                "Savings are relative to the plain runs ({}); host time is scaled to match them.",
                time(replay.basis_ns)
            )
        }
        _ => "Savings are relative to the traced run, profiler overhead included.".to_owned(),
    };
    let together = replay.together_ns.filter(|together| *together > Nanos::ZERO);
    let together = together
        .map(|together| format!(" All changes that findings propose, those without an estimate of their own included, save an estimated {together}; not measured."));
    page.paragraph(&format!(
        "An unchanged replay takes {}; the recording took {} ({residual}){}. {basis}{}",
        time(replay.replayed_ns),
        time(replay.measured_ns),
        replayed_whole(replay.measured_ns, &run.metrics.breakdown.device_time)
            .map(|whole| format!(", {whole}"))
            .unwrap_or_default(),
        together.unwrap_or_default()
    ));
    if is_busy(run) {
        return page.paragraph("The devices are idle for less than 1% of their span: their own work sets its time.");
    }
    let mut table = Table::new("cause | >time | >share of path");
    for part in conclusions.critical_path.iter().take(CAUSES) {
        table.row([prose(&part.cause), part.ns.to_string(), percent(Some(part.share))]);
    }
    page.table_or(&table, "The path is empty.");
    if !table.is_empty() {
        let several = run.metrics.breakdown.device_time.len() > 1;
        let one = if several { ", over all devices on one clock" } else { "" };
        page.paragraph(&format!(
            "The path leads from the end of the run back to its first record{one}, always through whatever was waited for last. Host \
             time on it counts whether or not a device ran meanwhile, so it can differ from the idle time of the same cause.",
        ));
    }
}
