//! Bars whose parts add up to a whole: stages of a run, the time of a device.

use types::view::{DeviceTimeView, RunView, StageView};
use types::{Nanos, Stage};

use super::palette::{COMMUNICATION, COMPUTE, COPIES, Colour, REST};
use super::rows::{Part, Row, nanoseconds, stacked, with_key};
use crate::words::idle;
use crate::words::number::percent;

/// Devices drawn.
const DEVICES: usize = 128;

/// Stages of a run, those that are part of another below it, at its place. Absent without stages.
pub(super) fn stage_bars(run: &RunView<'_>) -> Option<String> {
    let timed = |parent: Option<Stage>| {
        let inside = run.stages.iter().filter(move |view| view.stage.parent == parent);
        inside.filter_map(|view| Some((view, view.stage.wall_ns?)))
    };
    let sum: Nanos = timed(None).map(|(_, wall)| wall).sum();
    let of_run = |(view, wall): (&StageView<'_>, Nanos)| Some((wall.get() as f64 / view.run_share?) as i64);
    let whole = timed(None).find_map(of_run).map_or(sum, |whole| Nanos::new(whole).max(sum));
    let (mut drawn, mut key) = (Vec::new(), Vec::new());
    let (mut open, mut next) = (vec![(None, Nanos::ZERO, whole)], 0);
    while let Some((parent, start, around)) = open.get(next).copied() {
        next += 1;
        let named = |(view, wall): (&StageView<'_>, Nanos)| (view.stage.name, wall);
        let stages: Vec<(Stage, Nanos)> = timed(parent).map(named).collect();
        let inside: Nanos = stages.iter().map(|(_, wall)| *wall).sum();
        if inside <= Nanos::ZERO || inside > around {
            continue;
        }
        let part = |(stage, wall): &(Stage, Nanos)| Part::new(stage.name(), Colour::Stage(*stage).class(), *wall);
        let mut parts: Vec<Part> = stages.iter().map(part).collect();
        key.extend(parts.iter().map(|part| (part.class.clone(), part.of(whole))));
        // A thousandth is rounding.
        if (around - inside).get() > around.get() / 1_000 {
            let rest = parent.map_or("outside stages".to_owned(), |parent| format!("rest of {parent}"));
            let rest = Part::new(rest, REST, around - inside);
            key.extend(parent.is_none().then(|| (REST.to_owned(), rest.of(whole))));
            parts.push(rest);
        }
        let name = parent.map_or("all".to_owned(), |parent| format!("inside {parent}"));
        drawn.push(Row { name, bars: stacked(&parts, start, whole), figure: around.to_string() });
        let mut at = start;
        open.extend(stages.into_iter().map(|(stage, wall)| {
            let from = at;
            at += wall;
            (Some(stage), from, wall)
        }));
    }
    with_key("Stages of the run", &drawn, ("time, all instances together", nanoseconds), &key)
}

/// How the time of each device divides, with a caption where there are more than are drawn. Absent without device work.
pub(super) fn device_bars(run: &RunView<'_>) -> Option<(String, String)> {
    let (all, mut key) = (run.device_time.len(), Vec::new());
    let mut row = |view: &DeviceTimeView<'_>| {
        let time = view.time;
        let mut parts = vec![
            Part::new("compute", COMPUTE, time.compute_ns),
            Part::new("exposed communication", COMMUNICATION, time.communication_exposed_ns),
            Part::new("exposed copies", COPIES, time.copies_exposed_ns),
        ];
        parts.extend(view.causes.iter().map(|(idle, _)| {
            Part::new(format!("idle: {}", idle::cause(idle.cause)), Colour::Idle(idle.cause).class(), idle.ns)
        }));
        for part in parts.iter().filter(|part| part.time > Nanos::ZERO) {
            let said = if all > 1 { part.name.clone() } else { part.of(time.span_ns) };
            if key.iter().all(|(class, _)| *class != part.class) {
                key.push((part.class.clone(), said));
            }
        }
        let rank = time.rank.map(|rank| format!("rank {rank}, ")).unwrap_or_default();
        Row {
            name: format!("{rank}{}", time.device),
            bars: stacked(&parts, Nanos::ZERO, time.span_ns),
            figure: format!("{}, busy {}", time.span_ns, percent(view.busy)),
        }
    };
    let drawn: Vec<Row> = run.device_time.iter().take(DEVICES).map(&mut row).collect();
    let caption = if all > DEVICES { format!("the first {DEVICES} of {all} devices") } else { String::new() };
    let axis = ("time from the first work of a device to its last", nanoseconds as fn(f64) -> String);
    Some((caption, with_key("Time of each device", &drawn, axis, &key)?))
}
