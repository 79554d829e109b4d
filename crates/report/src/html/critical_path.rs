//! The critical path: what sets the time of a recorded run, by cause.

use types::view::RunView;

use super::palette::of_words;
use super::rows::{Bar, Row, rows};
use crate::render::text::Text;
use crate::words::number::percent;

/// Causes drawn.
const CAUSES: usize = 10;
/// A share below which a bar cannot be seen.
const LEAST: f64 = 0.001;

/// Its causes, longest first. Absent where the run was not replayed, or devices are never idle.
pub(super) fn critical_path(run: &RunView<'_>) -> Option<String> {
    if crate::pages::run::critical_path::is_busy(run) {
        return None;
    }
    let row = |part: &types::CriticalPathPart| {
        let class = of_words(&part.cause).unwrap_or_else(|| "f-other".to_owned());
        Row {
            name: Text::new(&part.cause).plain(),
            bars: vec![Bar::new(part.share, class, format!("{}: {}", part.cause, part.ns))],
            figure: format!("{} ({})", part.ns, percent(Some(part.share))),
        }
    };
    let parts = &run.metrics.conclusions.critical_path;
    let drawn: Vec<Row> = parts.iter().filter(|part| part.share >= LEAST).take(CAUSES).map(row).collect();
    rows("critical path by cause", &drawn, ("share of the critical path", |share| percent(Some(share))))
}
