//! From roofline to measured: what the hardware allows, and every cause that adds to it.

use types::view::RunView;
use types::{Nanos, Stage};

use super::palette::of_words;
use super::rows::{Bar, Row, nanoseconds, rows};
use crate::render::text::Text;
use crate::words::number::{count, percent, time_share};

/// Causes drawn one by one.
const CAUSES: usize = 10;

/// One drawing per stage whose roofline time and causes are known and add up; others are left out.
pub(super) fn waterfalls(run: &RunView<'_>) -> Vec<(String, String)> {
    let top = run.stages.iter().filter(|view| view.stage.parent.is_none());
    let drawn = top.filter_map(|view| {
        let stage = view.stage;
        let (wall, least) = (stage.wall_ns?, stage.speed_of_light_ns?);
        let steps = steps(run, stage.name, wall, least)?;
        let axis = format!("time of {}, {}", stage.name, count(stage.instances, "instance"));
        let title = format!("{} from roofline to measured", stage.name);
        Some((stage.name.to_string(), rows(&title, &steps, (&axis, nanoseconds))?))
    });
    drawn.collect()
}

/// Roofline, causes from the largest down, what is in no cause, and the whole. Absent where the causes hold more than there is,
/// as they may where they come from a slower pass.
fn steps(run: &RunView<'_>, stage: Stage, wall: Nanos, least: Nanos) -> Option<Vec<Row>> {
    let mut causes: Vec<_> =
        run.metrics.conclusions.lost_time.iter().filter(|lost| lost.stage == Some(stage)).collect();
    causes.sort_by_key(|lost| std::cmp::Reverse(lost.lost_ns));
    let sum: Nanos = causes.iter().map(|lost| lost.lost_ns).sum();
    let rest = wall - least - sum;
    // A thousandth is rounding.
    if causes.is_empty() || rest.get() < -wall.get() / 1_000 {
        return None;
    }
    let step = |name: String, from: Nanos, time: Nanos, class: &str| {
        let figure = format!("{time} ({})", percent(time_share(time, wall)));
        let hint = format!("{name}: {figure}");
        let [from, to] = [from, from + time].map(|at| at.get() as f64);
        Row { name, bars: vec![Bar::new(to, class, hint).starting(from)], figure }
    };
    let mut steps = vec![step("roofline time".to_owned(), Nanos::ZERO, least, "c-least")];
    let mut at = least;
    let mut add = |name: String, time: Nanos| {
        let class = of_words(&name).unwrap_or_else(|| "c-lost".to_owned());
        steps.push(step(name, at, time, &class));
        at += time;
    };
    for lost in causes.iter().take(CAUSES) {
        add(Text::new(&lost.cause).plain(), lost.lost_ns);
    }
    let smaller: Nanos = causes.iter().skip(CAUSES).map(|lost| lost.lost_ns).sum();
    if smaller > Nanos::ZERO {
        add(format!("{} smaller causes", causes.len() - CAUSES), smaller);
    }
    if rest.get() > wall.get() / 1_000 {
        add("unexplained".to_owned(), rest);
    }
    steps.push(step("measured".to_owned(), Nanos::ZERO, wall, "c-measured"));
    Some(steps)
}
