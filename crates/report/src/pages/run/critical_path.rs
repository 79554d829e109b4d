//! The critical path of a traced run, and how well it replays.

use types::view::RunView;
use types::{Nanos, ReplayBasis};

use crate::render::Page;
use crate::render::Table;
use crate::render::text::prose;
use crate::words::number::{percent, signed};

/// Causes shown.
const CAUSES: usize = 8;

/// What sets the time, by cause.
pub(super) fn section(page: &mut Page, run: &RunView<'_>) {
    let conclusions = &run.metrics.conclusions;
    let Some(replay) = &conclusions.replay else { return };
    page.heading("Critical path (replayed)");
    if let Some(reason) = &replay.refused {
        return page
            .paragraph(&format!("Not replayed: {}. Savings are bounds by what the findings claim.", prose(reason)));
    }
    let time = |time: Option<Nanos>| time.map_or("-".to_owned(), |time| time.to_string());
    let residual = replay.residual.map_or("-".to_owned(), signed);
    let basis = match replay.basis {
        Some(ReplayBasis::PlainRun) => {
            format!("Savings are of the plain runs ({}): host time is scaled to them.", time(replay.basis_ns))
        }
        _ => "Savings are of the traced pass, with what its profiler cost.".to_owned(),
    };
    let together = replay.together_ns.filter(|together| *together > Nanos::ZERO);
    let together = together.map(|together| format!(" All findings together would save {together}; not tried."));
    page.paragraph(&format!(
        "Replayed unchanged: {} of {} recorded ({residual}). {basis}{}",
        time(replay.replayed_ns),
        time(replay.measured_ns),
        together.unwrap_or_default()
    ));
    let mut table = Table::new("cause | >time | >share of the path");
    for part in conclusions.critical_path.iter().take(CAUSES) {
        table.row([prose(&part.cause), part.ns.to_string(), percent(Some(part.share))]);
    }
    page.table_or(&table, "Nothing of it was recorded.");
}
