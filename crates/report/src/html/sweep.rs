//! The page of a sweep: its chart, then the Markdown page of it.

use types::{CaveatKind, RunManifest, Sweep, SweepFigures};

use super::lettering::WIDTH;
use super::masthead::Notice;
use super::picture::standalone;
use super::plot::{Axis, LEFT, Plot, Scale, TOP, Words, drawing};
use super::sheet::Sheet;
use super::shell::Section;
use super::summary::{FirstScreen, Number};
use crate::pages::sweep::{self, Series};
use crate::render::text::{capital, prose};
use crate::words::caveat::READ_FIRST;
use crate::words::number::{count, grouped, milliseconds, rate};

/// A panel: its title, the figure it shows, and how that is written.
type Panel = (&'static str, fn(&SweepFigures) -> Option<f64>, Words);

/// The panels, from left to right.
const PANELS: [Panel; 3] = [
    ("time to first token", |figures| Some(figures.ttft_ms), milliseconds),
    ("time per output token", |figures| figures.time_per_output_token_ms, milliseconds),
    ("decode, tokens/s", |figures| figures.decode_tokens_per_second, rate),
];
const COLOURS: usize = 6;
/// Lines that can be told apart: in each colour whole and with dashes of two kinds.
const LINES: usize = 3 * COLOURS;
const CLASSES: [&str; COLOURS] = ["l-0", "l-1", "l-2", "l-3", "l-4", "l-5"];
const DASHES: [&str; 3] = ["", " d-1", " d-2"];
/// Marks below a panel that are legible.
const MARKS: usize = 8;

/// The page; the manifest is of the run that it is in.
pub fn sweep_page(found: &Sweep, manifest: Option<&RunManifest>) -> String {
    let seen = sweep::range(found);
    let sections = [
        Section::drawn("chart", "Roofline times and rates along the first axis", seen, Some(drawn(found))),
        Some(Section::new("points", "Points", sweep::page(found, "sweep.csv", "").html_below("points", READ_FIRST))),
    ];
    let stopped = sweep::stopped(found).map(|text| Notice::new(CaveatKind::Partial, &text));
    let assumed = sweep::assumed(found).map(|text| Notice::new(CaveatKind::AssumedDtype, &text));
    let parameters = grouped(found.model.parameters.total);
    let about = vec![
        ("model", Some(format!("{}, {parameters} parameters", prose(&found.model.model_id)))),
        ("sweep", Some(format!("{} over {}", count(found.points.len() as u64, "point"), prose(&sweep::axes(found))))),
        ("origin", Some("modelled from the configuration; nothing was measured".to_owned())),
    ];
    let best = || sweep::best(found).into_iter().filter_map(|(name, text)| Some((name, text?)));
    let said: Vec<String> = best().map(|(name, text)| format!("{name}: {text}")).collect();
    let number = |(name, text): (&'static str, String)| {
        let (value, place) = text.split_once(" at ").unwrap_or((&text, ""));
        Number::new(name, value, format!("roofline, {place}"), &["points"])
    };
    Sheet {
        title: format!("{}: sweep over {}", found.model.model_id, sweep::axes(found)),
        document: "sweep.json",
        notices: stopped.into_iter().chain(assumed).collect(),
        about,
        manifest,
        screen: FirstScreen {
            headline: format!("**{}**, at the peak rates of the device.", capital(&said.join("; "))),
            source: &["points"],
            numbers: best().map(number).collect(),
            answers: Vec::new(),
        },
        sections: sections.into_iter().flatten().collect(),
        ..Sheet::default()
    }
    .html()
}

/// `sweep.svg`.
pub fn sweep_chart(found: &Sweep) -> String {
    standalone(&drawn(found))
}

/// First token, time per token and tokens per second along the first axis, side by side.
fn drawn(found: &Sweep) -> String {
    let panels: Vec<(Panel, Series)> =
        PANELS.into_iter().filter_map(|panel| Some((panel, Series::new(found, panel.1)?))).collect();
    let Some((_, first)) = panels.first() else {
        let text = "<text x=\"0\" y=\"16\" class=\"m\">nothing varies, so there is nothing to draw</text>";
        return drawing("sweep", 24.0, text, &[], 0.0);
    };
    let class = |index: usize| format!("{}{}", CLASSES[index % COLOURS], DASHES[index / COLOURS % DASHES.len()]);
    let lines = first.lines.iter().take(LINES).enumerate();
    let mut key: Vec<_> = lines.map(|(index, line)| (class(index), line.label.clone())).collect();
    if found.points.iter().filter_map(|point| point.figures.as_ref()).any(|figures| !figures.fits) {
        key.push(("hollow l-0".to_owned(), "hollow: does not fit the device's memory".to_owned()));
    }
    if first.lines.len() > LINES {
        key.push(("k-rest".to_owned(), format!("{LINES} of {} lines are drawn; the CSV has all", first.lines.len())));
    }
    let wide = WIDTH / panels.len() as f64;
    let plots = panels.iter().enumerate().map(|(at, (panel, series))| plot(panel, series, wide * at as f64, wide));
    let (mut body, mut bottom) = (String::new(), 0.0);
    for (plot, (panel, series)) in plots.zip(&panels) {
        body += &plot.grid();
        for (index, line) in series.lines.iter().take(LINES).enumerate() {
            let points: Vec<(f64, f64)> = line.points.iter().map(|point| (point.x, point.y)).collect();
            body += &plot.line(&points, &class(index), false, &line.label);
            for point in &line.points {
                let hint = format!("{}: {}", line.label, (panel.2)(point.y));
                let hollow = if point.fits { "" } else { "hollow " };
                body += &plot.dot((point.x, point.y), 3.5, &format!("{hollow}{}", CLASSES[index % COLOURS]), &hint);
            }
        }
        bottom = plot.bottom();
    }
    drawing("times and rates along the first axis", bottom, &body, &key, 0.0)
}

fn plot((title, _, words): &Panel, series: &Series, left: f64, wide: f64) -> Plot {
    let points = || series.lines.iter().take(LINES).flat_map(|line| &line.points);
    let across = Scale::over(series.ticks.iter().map(|tick| tick.0), series.numeric);
    let marks = series.ticks.iter().step_by(series.ticks.len().div_ceil(MARKS).max(1)).cloned().collect();
    Plot {
        left: left + LEFT,
        top: TOP,
        width: wide - LEFT - 20.0,
        height: 220.0,
        across: Axis { title: sweep::short(&series.axis).to_owned(), scale: across, marks },
        up: Some(Axis::new(title, Scale::of_figures(points().map(|point| point.y)), *words)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::sweep::sample;

    #[test]
    fn a_sweep_has_its_chart_and_its_points_on_one_page() {
        let page = sweep_page(&sample::sweep(), None);
        assert!(page.contains("<section id=\"chart\"") && page.contains("<svg") && page.contains("<table>"), "{page}");
        assert_eq!(page.matches("<script>").count(), 1);
        assert!(!page.contains(" style="), "the policy lets no style in: {page}");
        assert!(page.contains("<p class=\"verdict\">") && page.contains("<dt>highest throughput</dt>"), "{page}");
    }

    #[test]
    fn three_panels_with_a_line_for_each_combination() {
        let svg = sweep_chart(&sample::sweep());
        assert_eq!(svg.matches("<path d=\"M").count(), 3 * 3 + 3, "{svg}");
        assert!(svg.contains("hollow: does not fit") && svg.contains("class=\"hollow l-"), "{svg}");
        assert!(svg.starts_with("<svg ") && svg.contains("prefers-color-scheme:dark"), "{svg}");
        // Nothing but numbers in coordinates.
        assert!(!svg.contains("NaN") && !svg.contains("\"inf"), "{svg}");
    }

    #[test]
    fn a_single_point_has_nothing_to_draw_and_says_so() {
        let mut sweep = sample::sweep();
        sweep.axes.clear();
        sweep.hardware.truncate(1);
        sweep.points.truncate(1);
        assert!(sweep_chart(&sweep).contains("nothing varies"));
    }

    #[test]
    fn more_lines_than_can_be_told_apart_are_counted() {
        let mut sweep = sample::sweep();
        let first = sweep.points[0].clone();
        sweep.axes[0].values = (0..40).map(|index| serde_json::json!(format!("kind {index}"))).collect();
        sweep.points = sweep.axes[0]
            .values
            .clone()
            .into_iter()
            .map(|kind| {
                let mut point = first.clone();
                point.settings.insert("workload.attention".to_owned(), kind);
                point
            })
            .collect();
        assert!(sweep_chart(&sweep).contains("18 of 40 lines are drawn"));
    }
}
