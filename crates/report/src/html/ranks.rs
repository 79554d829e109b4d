//! Ranks of a distributed run side by side. The time of their devices is drawn as that of every device is.

use std::collections::BTreeMap;

use types::Stage;
use types::view::RunView;

use super::palette::{Colour, WAITS};
use super::rows::{Bar, Row, nanoseconds, rows};
use crate::words::number::{milliseconds, percent};

/// Ranks drawn.
const RANKS: usize = 64;

/// The stages of each rank, and how long each waited for the others. Empty for a run of one rank.
pub(super) fn rank_charts(run: &RunView<'_>) -> Vec<(String, String)> {
    let times = &run.metrics.times;
    let mut stages: BTreeMap<Stage, Vec<Row>> = BTreeMap::new();
    for rank in times.ranks.iter().take(RANKS) {
        let name = format!("rank {}", rank.rank);
        for (stage, found) in &rank.stage_ms {
            let figure = milliseconds(found.median);
            let range = Some((found.min, found.max)).filter(|_| found.n > 1);
            let bar = Bar::new(found.median, Colour::Stage(*stage).class(), format!("{name}: {figure}")).within(range);
            stages.entry(*stage).or_default().push(Row { name: name.clone(), bars: vec![bar], figure });
        }
    }
    let stages = stages.into_iter().filter(|(_, found)| found.len() > 1).filter_map(|(stage, found)| {
        Some((stage.to_string(), rows("stage of each rank", &found, ("median time of the stage", milliseconds))?))
    });
    let waits = times.rank_arrivals.as_ref().and_then(|arrivals| {
        let row = |one: &types::RankArrival| {
            let name = format!("rank {}", one.rank);
            let hint = format!("{name}: waited {}, last to arrive {} times", one.waited_ns, one.last);
            Row {
                name,
                bars: vec![Bar::new(one.waited_ns.get() as f64, WAITS, hint)],
                figure: format!("{} ({}), last {}x", one.waited_ns, percent(one.waited_share), one.last),
            }
        };
        let found: Vec<Row> = arrivals.ranks.iter().take(RANKS).map(row).collect();
        let drawn = rows("waiting time of each rank", &found, ("time, all collectives", nanoseconds))?;
        Some(("time waiting in collectives for the last rank".to_owned(), drawn))
    });
    stages.chain(waits).collect()
}
