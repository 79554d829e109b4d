//! From roofline to measured: what the hardware allows, and every cause that adds to it.

use std::fmt::Write;

use types::view::RunView;
use types::{Nanos, Stage};

use super::chart::{clipped, room};
use super::lettering::WIDTH;
use super::palette::of_words;
use crate::render::escape::escape;
use crate::render::text::Text;
use crate::words::number::percent;

/// Causes drawn one by one.
const CAUSES: usize = 10;
const ROW: f64 = 26.0;
const BAR: f64 = 16.0;
/// Room for figures on the right.
const RIGHT: f64 = 150.0;

/// A step of the waterfall.
struct Step {
    name: String,
    from: Nanos,
    time: Nanos,
    class: String,
}

/// One drawing per stage whose roofline time and causes are known and add up; others are left out.
pub(super) fn waterfalls(run: &RunView<'_>) -> Vec<(Stage, String)> {
    let top = run.stages.iter().filter(|view| view.stage.parent.is_none());
    let drawn = top.filter_map(|view| {
        let stage = view.stage;
        let (wall, least) = (stage.wall_ns?, stage.speed_of_light_ns?);
        Some((stage.name, draw(stage.name, wall, &steps(run, stage.name, wall, least)?)))
    });
    drawn.collect()
}

/// Roofline, causes from the largest down, what is in no cause, and the whole. Absent where the causes hold more than there is,
/// as they may where they come from a slower pass.
fn steps(run: &RunView<'_>, stage: Stage, wall: Nanos, least: Nanos) -> Option<Vec<Step>> {
    let mut causes: Vec<_> =
        run.metrics.conclusions.lost_time.iter().filter(|lost| lost.stage == Some(stage)).collect();
    causes.sort_by_key(|lost| std::cmp::Reverse(lost.lost_ns));
    let sum: Nanos = causes.iter().map(|lost| lost.lost_ns).sum();
    let rest = wall - least - sum;
    // A thousandth is rounding.
    if causes.is_empty() || rest.get() < -wall.get() / 1_000 {
        return None;
    }
    let mut steps =
        vec![Step { name: "roofline time".to_owned(), from: Nanos::ZERO, time: least, class: "c-least".to_owned() }];
    let mut at = least;
    let mut add = |name: String, time: Nanos| {
        let class = of_words(&name).unwrap_or_else(|| "c-lost".to_owned());
        steps.push(Step { name, from: at, time, class });
        at += time;
    };
    for lost in causes.iter().take(CAUSES) {
        add(Text::new(&lost.cause).plain(), lost.lost_ns);
    }
    let smaller: Nanos = causes.iter().skip(CAUSES).map(|lost| lost.lost_ns).sum();
    if smaller > Nanos::ZERO {
        add(format!("{} smaller causes", causes.len() - CAUSES), smaller);
    }
    if rest > Nanos::ZERO {
        add("unexplained".to_owned(), rest);
    }
    steps.push(Step { name: "measured".to_owned(), from: Nanos::ZERO, time: wall, class: "c-measured".to_owned() });
    Some(steps)
}

fn draw(stage: Stage, wall: Nanos, steps: &[Step]) -> String {
    let height = ROW * steps.len() as f64 + 8.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" \
         aria-label=\"{stage} from roofline to measured\" font-family=\"sans-serif\" font-size=\"12\">\n"
    );
    let left = room(steps.iter().map(|step| step.name.as_str()));
    let scale = (WIDTH - left - RIGHT) / wall.get().max(1) as f64;
    for (index, step) in steps.iter().enumerate() {
        let y = ROW * index as f64 + 6.0;
        let x = left + step.from.get() as f64 * scale;
        let width = (step.time.get() as f64 * scale).max(1.0);
        let share = percent(Some(step.time.get() as f64 / wall.get().max(1) as f64));
        // Writing to a string cannot fail.
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" class=\"t\">{}</text>\
             <rect x=\"{x:.2}\" y=\"{y:.1}\" width=\"{width:.2}\" height=\"{BAR}\" class=\"{}\"><title>{}: {}</title></rect>\
             <text x=\"{:.1}\" y=\"{:.1}\" class=\"m\">{} ({share})</text>",
            left - 8.0,
            y + 12.5,
            escape(&clipped(&step.name)),
            step.class,
            escape(&step.name),
            step.time,
            x + width + 6.0,
            y + 12.5,
            step.time
        );
    }
    svg + "</svg>\n"
}
