//! Bars whose parts add up to a whole: stages of a run, the time of a device.

use std::fmt::Write;

use types::Nanos;
use types::view::{DeviceTimeView, RunView};

use super::lettering::{self, WIDTH};
use super::palette::{COMMUNICATION, COMPUTE, COPIES, Colour, ink};
use super::rows::{key, key_lines};
use crate::render::escape::escape;
use crate::words::idle;
use crate::words::number::percent;

const ROW: f64 = 34.0;
const BAR: f64 = 22.0;
const LEGEND: f64 = 20.0;
/// Sizes of the letters in a bar and below it.
const IN_BAR: f64 = 13.0;
const BELOW: f64 = 12.0;

/// Devices drawn; the section on ranks has more of them.
const DEVICES: usize = 8;

/// A part of a bar.
struct Part {
    name: String,
    time: Nanos,
    class: String,
}

/// A bar.
struct Bar {
    name: String,
    whole: Nanos,
    parts: Vec<Part>,
}

/// Stages of a run, the nested ones beneath the stage they are part of. Absent without stages.
pub(super) fn stage_bars(run: &RunView<'_>) -> Option<String> {
    let wall = |name| run.stages.iter().find(|view| view.stage.name == name).and_then(|view| view.stage.wall_ns);
    let top: Vec<Part> = run
        .stages
        .iter()
        .filter(|view| view.stage.parent.is_none())
        .filter_map(|view| Some((view.stage.name, view.stage.wall_ns?)))
        .map(|(name, time)| Part { name: name.to_string(), time, class: Colour::Stage(name).class() })
        .collect();
    let whole: Nanos = top.iter().map(|part| part.time).sum();
    if whole <= Nanos::ZERO {
        return None;
    }
    let mut bars = vec![Bar { name: "all stages".to_owned(), whole, parts: top }];
    for parent in run.stages.iter().map(|view| view.stage.name) {
        let inside = run.stages.iter().filter(|view| view.stage.parent == Some(parent));
        let mut parts: Vec<Part> = inside
            .filter_map(|view| Some((view.stage.name, view.stage.wall_ns?)))
            .map(|(name, time)| Part { name: name.to_string(), time, class: Colour::Stage(name).class() })
            .collect();
        let (sum, around) = (parts.iter().map(|part| part.time).sum::<Nanos>(), wall(parent));
        if let Some(around) = around.filter(|around| sum > Nanos::ZERO && sum <= *around) {
            if around > sum {
                parts.push(Part { name: format!("rest of {parent}"), time: around - sum, class: "c-rest".to_owned() });
            }
            bars.push(Bar { name: format!("inside {parent}"), whole: around, parts });
        }
    }
    Some(draw("Stages of the run", &bars))
}

/// How the time of each device divides, with a caption where there are more than are drawn. Absent without device work.
pub(super) fn device_bars(run: &RunView<'_>) -> Option<(String, String)> {
    let all = run.device_time.len();
    let bars: Vec<Bar> = run.device_time.iter().take(DEVICES).map(device_bar).collect();
    let caption = if all > DEVICES { format!("the first {DEVICES} of {all} devices") } else { String::new() };
    (!bars.is_empty()).then(|| (caption, draw("Time of each device", &bars)))
}

fn device_bar(view: &DeviceTimeView<'_>) -> Bar {
    let time = view.time;
    let part = |name: &str, time, class: &str| Part { name: name.to_owned(), time, class: class.to_owned() };
    let mut parts = vec![
        part("compute", time.compute_ns, COMPUTE),
        part("exposed communication", time.communication_exposed_ns, COMMUNICATION),
        part("exposed copies", time.copies_exposed_ns, COPIES),
    ];
    parts.extend(view.causes.iter().map(|(idle, _)| {
        part(&format!("idle: {}", idle::cause(idle.cause)), idle.ns, &Colour::Idle(idle.cause).class())
    }));
    parts.retain(|part| part.time > Nanos::ZERO);
    let rank = time.rank.map(|rank| format!("rank {rank}, ")).unwrap_or_default();
    Bar { name: format!("{rank}{}", time.device), whole: time.span_ns, parts }
}

fn share(part: Nanos, whole: Nanos) -> f64 {
    (part.get() as f64 / whole.get().max(1) as f64).clamp(0.0, 1.0)
}

fn draw(title: &str, bars: &[Bar]) -> String {
    let keys: Vec<Vec<(String, String)>> = bars.iter().map(legend).collect();
    let tall = |key: &[(String, String)]| ROW + 16.0 + LEGEND * key_lines(key, 0.0);
    let height: f64 = keys.iter().map(|key| tall(key)).sum();
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" aria-label=\"{}\" \
         font-family=\"sans-serif\" font-size=\"{IN_BAR}\">\n",
        escape(title)
    );
    let mut top = 0.0;
    for (bar, entries) in bars.iter().zip(&keys) {
        // Writing to a string cannot fail.
        let _ = writeln!(
            svg,
            "<text x=\"0\" y=\"{:.1}\" class=\"t\">{}, {}</text>",
            top + 13.0,
            escape(&bar.name),
            bar.whole
        );
        svg += &drawn(bar, top + 20.0);
        svg += &format!("<g font-size=\"{BELOW}\">{}</g>\n", key(entries, 0.0, top + 20.0 + BAR));
        top += tall(entries);
    }
    svg + "</svg>\n"
}

fn drawn(bar: &Bar, y: f64) -> String {
    let (mut svg, mut left) = (String::new(), 0.0);
    for part in &bar.parts {
        let width = WIDTH * share(part.time, bar.whole);
        let hint = format!("{}: {}, {}", part.name, part.time, percent(Some(share(part.time, bar.whole))));
        // Writing to a string cannot fail.
        let _ = write!(
            svg,
            "<rect x=\"{left:.2}\" y=\"{y:.1}\" width=\"{:.2}\" height=\"{BAR}\" class=\"{}\"><title>{}</title></rect>",
            width.max(0.5),
            part.class,
            escape(&hint)
        );
        if lettering::width(&part.name, IN_BAR) + 8.0 < width {
            let _ = write!(
                svg,
                "<text x=\"{:.1}\" y=\"{:.1}\" class=\"{}\">{}</text>",
                left + 5.0,
                y + 15.5,
                if part.class == "c-rest" { "m" } else { ink(&part.class) },
                escape(&part.name)
            );
        }
        left += width;
    }
    svg + "\n"
}

/// Every part with its time and share.
fn legend(bar: &Bar) -> Vec<(String, String)> {
    let entry = |part: &Part| {
        let share = percent(Some(share(part.time, bar.whole)));
        (part.class.clone(), format!("{} {} ({share})", part.name, part.time))
    };
    bar.parts.iter().map(entry).collect()
}
