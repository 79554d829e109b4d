//! Ranks of a distributed run side by side.

use std::collections::BTreeMap;

use types::Stage;
use types::view::RunView;

use super::chart::{Bar, Row, rows};
use crate::number::{milliseconds, percent};

/// Ranks drawn for each stage.
const RANKS: usize = 64;

/// The stages of each rank, and how long each waited for the others. Empty for a run of one rank.
pub(super) fn rank_charts(run: &RunView<'_>) -> Vec<(String, String)> {
    let times = &run.metrics.times;
    let mut stages: BTreeMap<Stage, Vec<Row>> = BTreeMap::new();
    for rank in times.ranks.iter().take(RANKS) {
        for (stage, found) in &rank.stage_ms {
            stages.entry(*stage).or_default().push(Row {
                name: format!("rank {}", rank.rank),
                bars: vec![Bar {
                    from: 0.0,
                    to: found.median,
                    class: "c-0",
                    hint: format!("rank {}: {}", rank.rank, milliseconds(found.median)),
                    interval: Some((found.min, found.max)).filter(|_| found.n > 1),
                }],
                figure: milliseconds(found.median),
            });
        }
    }
    let mut drawn: Vec<(String, String)> = stages
        .into_iter()
        .filter(|(_, found)| found.len() > 1)
        .map(|(stage, found)| (stage.to_string(), rows("stage of each rank", &found)))
        .collect();
    let waits = times.rank_arrivals.as_ref().map(|arrivals| {
        let row = |one: &types::RankArrival| Row {
            name: format!("rank {}", one.rank),
            bars: vec![Bar {
                from: 0.0,
                to: one.waited_ns.get() as f64,
                class: "c-communication",
                hint: format!("rank {}: waited {}, arrived last {} times", one.rank, one.waited_ns, one.last),
                interval: None,
            }],
            figure: format!("{} ({}), last {}x", one.waited_ns, percent(one.waited_share), one.last),
        };
        let found: Vec<Row> = arrivals.ranks.iter().take(RANKS).map(row).collect();
        ("waiting for the last rank in collectives".to_owned(), rows("waits of each rank", &found))
    });
    drawn.extend(waits);
    drawn
}
