//! Collectives of a trace, and how ranks reach them.

use types::view::RunView;
use types::{CollectiveSummary, Nanos, RankArrivals};

use crate::render::Page;
use crate::render::Table;
use crate::render::text::code;
use crate::words::number::{count, grouped, known, percent};

/// Collectives shown.
const COLLECTIVES: usize = 10;

/// The collectives that take most time.
pub(super) fn collectives(page: &mut Page, run: &RunView<'_>) {
    let rows = &run.metrics.breakdown.collectives;
    if rows.is_empty() {
        return;
    }
    page.heading("Collectives (measured)");
    let mut table = Table::new(
        "collective | >message | >ranks | group | >calls | >time | >shortest | >bus bandwidth | >bus bandwidth, shortest call | >of link bandwidth",
    );
    for row in rows.iter().take(COLLECTIVES) {
        table.row([
            code(&row.name),
            known(row.bytes),
            known(row.group_size),
            row.group.as_deref().map_or(known(None::<u32>), code),
            grouped(row.calls),
            row.total_ns.to_string(),
            row.min_ns.to_string(),
            known(row.bus_bytes_per_second),
            known(row.bus_bytes_per_second_best),
            links(row),
        ]);
    }
    page.table(&table);
    if rows.iter().any(|row| row.bytes.is_none() && row.group_size.is_none()) {
        page.paragraph(
            "Calls that the trace does not describe are named after their kernel; their message size and bandwidth are unknown.",
        );
    }
    page.paragraph(
        "Bus bandwidth is defined as in `nccl-tests`: bytes that cross the links of a rank, divided by time; it needs the number of \
         ranks. Time includes waiting for other ranks, which is least in the shortest call. Link bandwidth is that of the hardware \
         catalogue: all links of a device in one direction, for groups within one machine.",
    );
    if rows.len() > COLLECTIVES {
        page.paragraph(&format!("{} more are in `metrics.json`.", grouped((rows.len() - COLLECTIVES) as u64)));
    }
}

fn links(row: &CollectiveSummary) -> String {
    match (row.link_share, row.link_bytes_per_second) {
        (Some(share), Some(link)) => format!("{} of {link}", percent(Some(share))),
        _ => known(None::<u32>),
    }
}

/// The collective that takes most time, in a line of the terminal.
pub(super) fn line(run: &RunView<'_>) -> Option<String> {
    let row = run.metrics.breakdown.collectives.first()?;
    let size = row.bytes.map(|bytes| format!(" of {bytes}")).unwrap_or_default();
    let ranks = row.group_size.map(|ranks| format!(" among {ranks} ranks")).unwrap_or_default();
    let devices = run.device_time.iter().filter(|view| view.time.communication_ns > Nanos::ZERO).count();
    let on = if devices > 1 { format!(" on {devices} devices together") } else { String::new() };
    let mut text = format!("{}{size}{ranks}: {} in {}{on}", row.name, count(row.calls, "call"), row.total_ns);
    match (row.bus_bytes_per_second, row.bytes) {
        (Some(rate), _) => text += &format!(", bus bandwidth {rate}"),
        (None, None) => text += "; the recording names no message size for it, so its bandwidth is unknown",
        (None, Some(_)) => {}
    }
    if let (Some(best), Some(_)) = (row.bus_bytes_per_second_best, row.link_share) {
        text += &format!(", {best} in the shortest call ({})", links(row));
    }
    Some(text)
}

/// Who waits for whom.
pub(super) fn arrivals(page: &mut Page, arrivals: &RankArrivals) {
    page.paragraph(&format!(
        "{} were matched on all recorded ranks, by name and end time; 95% of the ends are within {} of each other, and arrivals closer \
         together than that count as simultaneous. A rank waits while it is in a collective that another recorded rank has not reached.",
        count(arrivals.collectives, "collective"),
        arrivals.ends_within_ns
    ));
    let mut table = Table::new(">rank | >times last to arrive | >waiting | >share of its device time");
    for row in &arrivals.ranks {
        table.row([row.rank.to_string(), grouped(row.last), row.waited_ns.to_string(), percent(row.waited_share)]);
    }
    page.table(&table);
}
