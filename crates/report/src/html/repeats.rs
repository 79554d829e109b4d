//! How long each stage took over the repeats: the median, and from the shortest to the longest.

use types::view::RunView;
use types::{Stage, Statistics};

use super::palette::Colour;
use super::rows::{Bar, Row, rows};
use crate::pages::run::phrase::nested;
use crate::words::number::milliseconds;

/// The stages of one inference. Absent where none was repeated.
pub(super) fn repeats(run: &RunView<'_>) -> Option<String> {
    let times = run.metrics.times.aggregates.stage_ms.iter().filter(|(_, times)| times.n > 1);
    let row = |(stage, times): (&Stage, &Statistics)| {
        let range = format!("{} to {}", milliseconds(times.min), milliseconds(times.max));
        let hint = format!("{stage}: {} in the median, {range}", milliseconds(times.median));
        let bar = Bar::new(times.median, Colour::Stage(*stage).class(), hint).within(Some((times.min, times.max)));
        Row {
            name: nested(*stage),
            bars: vec![bar],
            figure: format!("{} ({range}, n={})", milliseconds(times.median), times.n),
        }
    };
    let drawn: Vec<Row> = times.map(row).collect();
    let what = "time of one inference: the median, and from the shortest to the longest";
    rows("stages over repeats", &drawn, (what, milliseconds))
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
