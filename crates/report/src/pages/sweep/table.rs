//! The table of a sweep: settings, then figures.

use types::{ForecastRange, Sweep, SweepPoint};

use super::csv::value;
use crate::render::Table;
use crate::words::number::{grouped, known, milliseconds, rate};

/// A key without the part that all keys have.
pub(crate) fn short(key: &str) -> &str {
    key.strip_prefix("workload.").unwrap_or(key)
}

/// Columns of figures; numbers are marked by `>`. Times are roofline times with the forecast beside them.
const HEADS: [&str; 10] = [
    "device",
    ">first token",
    ">forecast",
    ">per token",
    ">forecast",
    ">tokens/s",
    ">memory",
    "fits",
    ">sequences",
    "bound",
];

/// The points as people read them.
pub(super) fn table<'a>(sweep: &Sweep, points: impl Iterator<Item = &'a SweepPoint>) -> Table {
    let spread = sweep.points.iter().filter_map(|point| point.figures.as_ref()).any(|figures| figures.devices > 1);
    let mut table = Table::default();
    for axis in &sweep.axes {
        table.column(short(&axis.key), axis.values.iter().all(serde_json::Value::is_number));
    }
    for head in HEADS {
        table.column(head.trim_start_matches('>'), head.starts_with('>'));
    }
    if spread {
        table.column("sent per step", true);
    }
    points.for_each(|point| table.row(row(sweep, point, spread)));
    table
}

fn row(sweep: &Sweep, point: &SweepPoint, spread: bool) -> Vec<String> {
    let settings = sweep.axes.iter().map(|axis| point.settings.get(&axis.key).map(value).unwrap_or_default());
    let mut cells: Vec<String> = settings.collect();
    let count = point.figures.as_ref().map_or(1, |figures| figures.devices);
    cells.push(if count > 1 { format!("{count} x {}", point.hardware) } else { point.hardware.clone() });
    let Some(figures) = &point.figures else {
        cells.extend((3..HEADS.len() + 1).map(|_| known(None::<u64>)));
        cells.push("not modelled".to_owned());
        cells.extend(spread.then(|| known(None::<u64>)));
        return cells;
    };
    let bound = match &figures.decode_bound {
        Some(decode) if *decode != figures.prefill_bound => format!("{}, then {decode}", figures.prefill_bound),
        _ => figures.prefill_bound.clone(),
    };
    cells.extend([
        milliseconds(figures.ttft_ms),
        known(figures.forecast.map(|forecast| range(forecast.ttft_ms))),
        known(figures.time_per_output_token_ms.map(milliseconds)),
        known(figures.forecast.and_then(|forecast| forecast.time_per_output_token_ms).map(range)),
        known(figures.decode_tokens_per_second.map(rate)),
        figures.total_bytes.to_string(),
        if figures.fits { "yes" } else { "NO" }.to_owned(),
        known(figures.sequences_that_fit.map(grouped)),
        bound,
    ]);
    cells.extend(spread.then(|| known(figures.step_sent_bytes)));
    cells
}

/// A forecast and its interval, in one unit.
fn range(range: ForecastRange) -> String {
    format!("{} ({} to {})", milliseconds(range.value), milliseconds(range.low), milliseconds(range.high))
}
