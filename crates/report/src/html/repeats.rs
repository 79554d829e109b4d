//! How long each stage took over the repeats: the median, and from the shortest to the longest.

use types::view::RunView;
use types::{Stage, Statistics};

use super::palette::Colour;
use super::rows::{Bar, Row, Rows};
use crate::words::number::milliseconds;

/// The stages of one inference. Absent where none was repeated.
pub(super) fn repeats(run: &RunView<'_>) -> Option<String> {
    let times = run.metrics.times.aggregates.stage_ms.iter().filter(|(_, times)| times.n > 1);
    let row = |(stage, times): (&Stage, &Statistics)| {
        let range = format!("{} to {}", milliseconds(times.min), milliseconds(times.max));
        Row {
            name: stage.parent().map_or_else(|| stage.to_string(), |parent| format!("{parent} > {stage}")),
            bars: vec![Bar {
                to: times.median,
                class: Colour::Stage(*stage).class(),
                hint: format!("{stage}: {} in the median, {range}", milliseconds(times.median)),
                interval: Some((times.min, times.max)),
                ..Bar::default()
            }],
            figure: format!("{} ({range}, n={})", milliseconds(times.median), times.n),
        }
    };
    let rows: Vec<Row> = times.map(row).collect();
    let axis = Some((
        "time of one inference: the median, and from the shortest to the longest",
        milliseconds as fn(f64) -> String,
    ));
    let drawn = Rows { title: "stages over repeats", rows: &rows, axis, ..Rows::default() };
    (!rows.is_empty()).then(|| drawn.draw())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_repeated_stage_has_its_median_and_its_range() {
        let metrics = crate::pages::run::sample::metrics();
        let svg = repeats(&analysis::view::run(&metrics)).unwrap();
        let repeated = metrics.times.aggregates.stage_ms.values().filter(|times| times.n > 1).count();
        assert_eq!(svg.matches("class=\"whisker\"").count(), repeated);
        assert!(svg.contains(", n="), "{svg}");
        assert_eq!(repeats(&analysis::view::run(&crate::pages::run::sample::empty())), None);
    }
}
