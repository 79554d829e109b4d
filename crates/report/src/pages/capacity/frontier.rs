//! `capacity-sweep.svg`: output tokens per second of each device against those of each user, and the frontier.

use std::fmt::Write;

use types::{CapacitySweep, LayoutPoint};

use super::layouts::described;
use crate::pages::sweep::scale::Scale;
use crate::render::escape::escape;
use crate::words::number::rate;

/// Width and height of the inside, and the room around it.
const SIZE: [f64; 2] = [560.0, 360.0];
const ROOM: [f64; 2] = [70.0, 50.0];

/// A layout and where it stands.
struct Place<'a> {
    user: f64,
    device: f64,
    point: &'a LayoutPoint,
}

impl<'a> Place<'a> {
    fn of(point: &'a LayoutPoint) -> Option<Self> {
        let figures = point.figures.as_ref()?;
        let user = figures.tokens_per_second_per_user?.value;
        Some(Self { user, device: figures.tokens_per_second_per_device.value, point })
    }
}

/// Scales across and up.
struct Axes {
    across: Scale,
    up: Scale,
}

impl Axes {
    fn x(&self, value: f64) -> f64 {
        ROOM[0] + SIZE[0] * self.across.place(value)
    }

    fn y(&self, value: f64) -> f64 {
        ROOM[1] + SIZE[1] * (1.0 - self.up.place(value))
    }

    // Writing to a string cannot fail, here and below.
    fn draw(&self, svg: &mut String) {
        let (left, right, bottom) = (ROOM[0], ROOM[0] + SIZE[0], ROOM[1] + SIZE[1] + 16.0);
        for tick in self.up.ticks() {
            let (at, beside, text) = (self.y(tick), left - 6.0, rate(tick));
            let _ = writeln!(
                svg,
                r##"<line x1="{left:.1}" y1="{at:.1}" x2="{right:.1}" y2="{at:.1}" stroke="#ddd"/>
<text x="{beside:.1}" y="{at:.1}" text-anchor="end" fill="#555">{text}</text>"##
            );
        }
        for tick in self.across.ticks() {
            let (at, text) = (self.x(tick), rate(tick));
            let _ =
                writeln!(svg, r##"<text x="{at:.1}" y="{bottom:.1}" text-anchor="middle" fill="#555">{text}</text>"##);
        }
    }
}

/// The frontier as an image of its own.
pub fn layouts_chart(sweep: &CapacitySweep) -> String {
    let mut places: Vec<Place<'_>> = sweep.points.iter().filter_map(Place::of).collect();
    places.sort_by(|a, b| a.user.total_cmp(&b.user));
    let axes = Axes {
        across: Scale::of_figures(places.iter().map(|place| place.user)),
        up: Scale::of_figures(places.iter().map(|place| place.device)),
    };
    let (width, height) = (SIZE[0] + 2.0 * ROOM[0], SIZE[1] + 2.0 * ROOM[1]);
    let (name, right, below) = (escape(&sweep.model.model_id), ROOM[0] + SIZE[0], height - 10.0);
    let mut svg = format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0}" height="{height:.0}" viewBox="0 0 {width:.0} {height:.0}" font-family="sans-serif" font-size="12">
<rect width="100%" height="100%" fill="white"/>
<text x="16" y="24" font-size="16" font-weight="bold">{name}: output tokens/s per device</text>
<text x="{right:.0}" y="{below:.0}" text-anchor="end" fill="#555">output tokens/s per user (simulated)</text>
"##
    );
    axes.draw(&mut svg);
    let frontier = places.iter().filter(|place| place.point.on_frontier);
    let line: Vec<String> =
        frontier.map(|place| format!("{:.1},{:.1}", axes.x(place.user), axes.y(place.device))).collect();
    let line = line.join(" ");
    let _ = writeln!(svg, r##"<polyline points="{line}" fill="none" stroke="#0072b2" stroke-width="2"/>"##);
    for Place { user, device, point } in &places {
        let fill = if point.on_frontier { "#0072b2" } else { "#bbb" };
        let (x, y, title) = (axes.x(*user), axes.y(*device), escape(&described(sweep, point)));
        let _ =
            writeln!(svg, r##"<circle cx="{x:.1}" cy="{y:.1}" r="4" fill="{fill}"><title>{title}</title></circle>"##);
    }
    svg.push_str("</svg>\n");
    svg
}
