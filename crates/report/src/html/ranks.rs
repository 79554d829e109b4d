//! Ranks of a distributed run side by side.

use std::collections::BTreeMap;

use types::view::{DeviceTimeView, RunView};
use types::{Nanos, Stage};

use super::palette::{COMMUNICATION, COMPUTE, COPIES, Colour, IDLE, WAITS, parts};
use super::rows::{Bar, Row, Rows, nanoseconds, rows};
use crate::words::number::{milliseconds, percent};

/// Devices drawn.
const DEVICES: usize = 128;
/// Ranks drawn for each stage.
const RANKS: usize = 64;

/// The stages of each rank, how long each waited for the others, and the time of each device. Empty for a run of one rank.
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
                    class: Colour::Stage(*stage).class(),
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
        .map(|(stage, found)| {
            (stage.to_string(), rows("stage of each rank", &found, ("median time of the stage", milliseconds)))
        })
        .collect();
    let waits = times.rank_arrivals.as_ref().map(|arrivals| {
        let row = |one: &types::RankArrival| Row {
            name: format!("rank {}", one.rank),
            bars: vec![Bar {
                from: 0.0,
                to: one.waited_ns.get() as f64,
                class: WAITS.to_owned(),
                hint: format!("rank {}: waited {}, last to arrive {} times", one.rank, one.waited_ns, one.last),
                interval: None,
            }],
            figure: format!("{} ({}), last {}x", one.waited_ns, percent(one.waited_share), one.last),
        };
        let found: Vec<Row> = arrivals.ranks.iter().take(RANKS).map(row).collect();
        (
            "time waiting in collectives for the last rank".to_owned(),
            rows("waiting time of each rank", &found, ("time, all collectives", nanoseconds)),
        )
    });
    drawn.extend(waits);
    drawn.extend(devices(run));
    drawn
}

/// Each device as one bar of its parts. Absent for a single device.
fn devices(run: &RunView<'_>) -> Option<(String, String)> {
    let all = run.device_time.len();
    let row = |view: &DeviceTimeView<'_>| {
        let time = view.time;
        let parts = [
            ("compute", COMPUTE, time.compute_ns),
            ("exposed communication", COMMUNICATION, time.communication_exposed_ns),
            ("exposed copies", COPIES, time.copies_exposed_ns),
            ("idle", IDLE, time.idle_ns),
        ];
        let mut from = 0.0;
        let bar = |(part, class, time): (&str, &str, Nanos)| {
            let start = from;
            from += time.get() as f64;
            Bar { from: start, to: from, class: class.to_owned(), hint: format!("{part}: {time}"), interval: None }
        };
        let rank = time.rank.map(|rank| format!("rank {rank}, ")).unwrap_or_default();
        Row {
            name: format!("{rank}{}", time.device),
            bars: parts.map(bar).into(),
            figure: format!("{}, busy {}", time.span_ns, percent(view.busy)),
        }
    };
    let found: Vec<Row> = run.device_time.iter().take(DEVICES).map(row).collect();
    let cut = if all > DEVICES { format!("; the first {DEVICES} of {all}") } else { String::new() };
    let drawn = Rows {
        title: "time of each device",
        rows: &found,
        axis: Some(("device time", nanoseconds)),
        key: &parts(),
        ..Rows::default()
    };
    let drawn = drawn.draw();
    (all > 1).then(|| (format!("device time{cut}"), drawn))
}
