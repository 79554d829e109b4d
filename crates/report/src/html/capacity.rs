//! The pages of `capacity`: latencies of a load and the server over time in pictures, then the Markdown page; and layouts of a server.

use types::{
    Capacity, CapacitySweep, CaveatKind, ForecastRange, HighestLoad, LatencyForecast, LayoutPoint, LoadMoment, Origin,
    RunManifest,
};

use super::forecast::forecast_row;
use super::lettering::{WIDTH, width};
use super::masthead::Notice;
use super::picture::standalone;
use super::plot::{Axis, Line, Plot, Scale, Words, drawing, lines};
use super::rows::{Bar, Row, named, rows, with_key};
use super::sheet::Sheet;
use super::shell::Section;
use super::summary::{FirstScreen, Number};
use crate::pages::capacity;
use crate::render::escape::escape;
use crate::render::text::{Text, prose};
use crate::words::caveat::READ_FIRST;
use crate::words::number::{count, decimal, milliseconds, percent, rate, signed};

/// The page of a forecast; the manifest is of the run that it is in.
pub fn capacity_page(found: &Capacity, manifest: Option<&RunManifest>) -> String {
    let figures = &found.figures;
    let ttft = figures.ttft_ms;
    let seen = |what: &str, of: LatencyForecast| {
        let [half, most] = [of.p50.value, of.p99.value].map(milliseconds);
        Some(format!("Half of the requests {what} {half}, 99% within {most}."))
    };
    let per_token = figures.tpot_ms.and_then(|tpot| seen("have an output token within", tpot));
    let first = latencies(&[("queue", Some(figures.queue_ms)), ("time to first token", Some(ttft))]);
    let token = latencies(&[("time per output token", figures.tpot_ms), ("time between tokens", figures.itl_ms)]);
    let whole = latencies(&[("request", Some(figures.e2el_ms))]);
    let most = |of: fn(&LoadMoment) -> f64| found.over_time.iter().map(of).fold(0.0, f64::max);
    let (batch, waiting) = (|moment: &LoadMoment| moment.batch as f64, |moment: &LoadMoment| moment.waiting as f64);
    let sequences = over_time(found, &[("in a step", batch), ("waiting", waiting)], ("sequences", decimal));
    let in_step = format!("At most {} sequences are in a step, and {} wait.", most(batch), most(waiting));
    let used = format!("At most {} of the KV cache is in use.", share(most(|moment| moment.kv)));
    let cache = over_time(found, &[("KV cache in use", |moment| moment.kv)], ("share of the KV cache", share));
    let body = capacity::page(found).html_below("capacity", READ_FIRST);
    let sections = [
        Section::drawn("first-token", "To the first token", seen("have their first token within", ttft), first),
        Section::drawn("per-token", "Per output token", per_token, token),
        Section::drawn("end-to-end", "End to end", seen("end within", figures.e2el_ms), whole),
        Section::drawn("measured", "Forecast and measured", furthest(found), measured(found)),
        Section::drawn("sequences", "Sequences", Some(in_step), sequences),
        Section::drawn("kv-cache", "KV cache", Some(used), cache),
        Some(Section::new("capacity", "Figures", body)),
    ];
    let assumed = capacity::assumed(found).map(|text| Notice::new(CaveatKind::AssumedDtype, &text));
    let notices = assumed.into_iter().chain(capacity::of_load(found).map(|text| Notice::plain(&text))).collect();
    let mut about = capacity::about(found);
    about.push(("origin", Some(capacity::origin(found))));
    Sheet {
        title: format!("{} on {}", found.model.model_id, found.server.hardware),
        document: "capacity.json",
        notices,
        about,
        manifest,
        screen: first_screen(found),
        sections: sections.into_iter().flatten().collect(),
        ..Sheet::default()
    }
    .html()
}

/// The page of layouts: the frontier, then the Markdown page of them.
pub fn layouts_page(found: &CapacitySweep, manifest: Option<&RunManifest>, [json, chart]: [&str; 2]) -> String {
    let body = capacity::layouts_page(found, json, chart).html_below("layouts", READ_FIRST);
    let best = capacity::best(found);
    let ends = [highest(found, "of a device", of_device), highest(found, "for a user", of_user)];
    let ends: Vec<String> = ends.into_iter().flatten().collect();
    let title = "Throughput of a device against that of a user";
    let sections = [
        Section::drawn("frontier", title, Some(on_frontier(found)), Some(frontier(found))),
        Some(Section::new("layouts", "Layouts", body)),
    ];
    let stopped = found.stopped.then(|| {
        let text = format!("The sweep stopped after {} of {} layouts.", found.points.len(), found.points_planned);
        Notice::new(CaveatKind::Partial, &text)
    });
    let origins = || found.points.iter().filter_map(|point| point.figures.as_ref()).map(|figures| figures.origin);
    let is_assumed = origins().any(|origin| origin == Origin::Assumed);
    let assumed = "The forecasts rest at least partly on assumptions, which are listed below.";
    let assumed = is_assumed.then(|| Notice::new(CaveatKind::AssumedDtype, assumed));
    Sheet {
        title: format!("{}: {} of a server", found.model.model_id, count(found.points.len() as u64, "layout")),
        document: "capacity-sweep.json",
        notices: stopped.into_iter().chain(assumed).collect(),
        about: vec![("model", Some(prose(&found.model.model_id)))],
        manifest,
        screen: FirstScreen {
            headline: best.map(|best| format!("**{best}.** ")).unwrap_or_default() + &ends.concat(),
            source: &["layouts"],
            ..FirstScreen::default()
        },
        sections: sections.into_iter().flatten().collect(),
        ..Sheet::default()
    }
    .html()
}

/// What a load comes to, in a sentence and in numbers.
fn first_screen(found: &Capacity) -> FirstScreen {
    let figures = &found.figures;
    let per_token = figures.tpot_ms.map(|tpot| format!(", then {} per token", milliseconds(tpot.p50.value)));
    let most = capacity::about(found).into_iter().find(|(name, _)| *name == "highest load").and_then(|(_, text)| text);
    let headline = format!(
        "{} of the requests have their first token within {}{}.** The server writes {} tokens/s; its device is busy for {} of the \
         time.",
        most.map_or("**Half".to_owned(), |text| format!("**Highest load: {text}.** **Under the load given, half")),
        milliseconds(figures.ttft_ms.p50.value),
        per_token.unwrap_or_default(),
        decimal(figures.output_throughput.value),
        percent(Some(figures.busy.value)),
    );
    let number = |name: &'static str, range: ForecastRange, write: Words| {
        let [value, low, high] = [range.value, range.low, range.high].map(write);
        Number::new(name, value, format!("forecast; 90%: {low} to {high}"), &["capacity"])
    };
    let load = |highest: HighestLoad| {
        let rate = highest.requests_per_second.map(|range| number("highest load, requests/s", range, decimal));
        rate.or_else(|| Some(number("highest load, requests at a time", highest.concurrency?, decimal)))
    };
    let numbers = [
        found.highest.and_then(load),
        Some(number("time to first token, p50", figures.ttft_ms.p50, milliseconds)),
        Some(number("time to first token, p99", figures.ttft_ms.p99, milliseconds)),
        figures.tpot_ms.map(|tpot| number("time per token, p50", tpot.p50, milliseconds)),
        Some(number("output tokens/s", figures.output_throughput, decimal)),
        Some(number("device busy", figures.busy, share)),
    ];
    FirstScreen {
        headline,
        source: &["capacity"],
        numbers: numbers.into_iter().flatten().collect(),
        answers: Vec::new(),
    }
}

fn share(value: f64) -> String {
    percent(Some(value))
}

/// Mean and percentiles of latencies, each with its interval.
fn latencies(found: &[(&str, Option<LatencyForecast>)]) -> Option<String> {
    let row = |name: String, range: ForecastRange| {
        forecast_row(&name, range.value, "c-predicted", Some((range.low, range.high)))
    };
    let known = found.iter().filter_map(|(name, latency)| Some((*name, (*latency)?)));
    let drawn: Vec<Row> = known
        .flat_map(|(name, LatencyForecast { mean, p50, p99 })| {
            [("mean", mean), ("p50", p50), ("p99", p99)].map(|(part, range)| row(format!("{name}, {part}"), range))
        })
        .collect();
    rows("latencies of the load", &drawn, ("time, with its 90% interval", milliseconds))
}

/// Latencies as a client measured them beside the forecast.
fn measured(found: &Capacity) -> Option<String> {
    let row = |figure: &types::MeasuredFigure| {
        let (name, part) = figure.figure.split_once("_ms.")?;
        let ForecastRange { value, low, high } = figure.forecast;
        let bar = |time: f64, class: &str, what: &str| Bar::new(time, class, format!("{what}: {}", milliseconds(time)));
        Some(Row {
            name: format!("{} {part}", name.to_uppercase()),
            bars: vec![
                bar(value, "c-predicted", "forecast").within(Some((low, high))),
                bar(figure.measured, "c-measured", "measured"),
            ],
            figure: format!("{} (measured {})", milliseconds(value), milliseconds(figure.measured)),
        })
    };
    let drawn: Vec<Row> = found.measured.iter().filter_map(row).collect();
    let key = named([("c-predicted", "forecast, with its 90% interval"), ("c-measured", "measured by the client")]);
    with_key("forecast and measured latencies", &drawn, ("time", milliseconds), &key)
}

/// The figure whose forecast is furthest from what was measured.
fn furthest(found: &Capacity) -> Option<String> {
    let most = found.measured.iter().max_by(|one, other| one.error.abs().total_cmp(&other.error.abs()))?;
    let name = most.figure.replace("_ms.", " ").replace('_', " ");
    Some(format!("The forecast is furthest off for {name}: {} of what the client measured.", signed(most.error)))
}

/// A name and the figure of a moment that it stands for.
type Figure = (&'static str, fn(&LoadMoment) -> f64);

/// Figures of the server from the first request on.
fn over_time(found: &Capacity, figures: &[Figure], up: (&str, Words)) -> Option<String> {
    let line = |(place, (name, value)): (usize, &Figure)| Line {
        name: (*name).to_owned(),
        class: ["l-0", "l-1"][place % 2],
        points: found.over_time.iter().map(|moment| (moment.at_ms, value(moment))).collect(),
    };
    let drawn: Vec<Line> = figures.iter().enumerate().map(line).collect();
    let across = |first, last| Axis::new("time since the first request", Scale::between(first, last), milliseconds);
    lines("the server over time", &drawn, across, up, true)
}

/// A throughput of a layout.
type Throughput = fn(&LayoutPoint) -> Option<f64>;

fn of_user(point: &LayoutPoint) -> Option<f64> {
    Some(point.figures.as_ref()?.tokens_per_second_per_user?.value)
}

fn of_device(point: &LayoutPoint) -> Option<f64> {
    Some(point.figures.as_ref()?.tokens_per_second_per_device.value)
}

/// `Highest output of a device: 972 tokens/s at tensor=1`.
fn highest(found: &CapacitySweep, what: &str, of: Throughput) -> Option<String> {
    let known = found.points.iter().filter_map(|point| Some((point, of(point)?)));
    let (point, tokens) = known.max_by(|one, other| one.1.total_cmp(&other.1))?;
    Some(format!("Highest output {what}: {} tokens/s at {}. ", rate(tokens), capacity::described(found, point)))
}

fn on_frontier(found: &CapacitySweep) -> String {
    let on = found.points.iter().filter(|point| point.on_frontier).count();
    format!("{on} of {} on the frontier: no other is better for both.", count(found.points.len() as u64, "layout"))
}

/// `capacity-sweep.svg`.
pub fn layouts_chart(found: &CapacitySweep) -> String {
    standalone(&frontier(found))
}

/// Output tokens per second of each device against those of each user, and the frontier.
fn frontier(found: &CapacitySweep) -> String {
    let known = found.points.iter().filter_map(|point| Some((point, (of_user(point)?, of_device(point)?))));
    let mut places: Vec<(&LayoutPoint, (f64, f64))> = known.collect();
    places.sort_by(|one, other| one.1.0.total_cmp(&other.1.0));
    let scale = |of: fn(&(f64, f64)) -> f64| Scale::of_figures(places.iter().map(move |(_, place)| of(place)));
    let plot = Plot::wide(
        300.0,
        Axis::new("output tokens/s per user (simulated)", scale(|place| place.0), rate),
        Axis::new("output tokens/s per device (simulated)", scale(|place| place.1), rate),
    );
    let best: Vec<(f64, f64)> = places.iter().filter(|(point, _)| point.on_frontier).map(|(_, place)| *place).collect();
    let mut body = plot.grid() + &plot.line(&best, "l-0", false, "frontier");
    for (point, place) in &places {
        let class = if point.on_frontier { "l-0" } else { "k-rest" };
        let name = Text::new(&capacity::described(found, point)).plain();
        body +=
            &plot.dot(*place, 5.0, class, &format!("{name}: {} per user, {} per device", rate(place.0), rate(place.1)));
        // Names of a few can be told apart.
        if places.len() <= 12 {
            let (x, y) = (plot.x(place.0) + 8.0, plot.y(place.1) - 8.0);
            let x = x.min(WIDTH - width(&name, 12.0));
            body += &format!("<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"t\">{}</text>\n", escape(&name));
        }
    }
    let key = named([("l-0", "frontier: no other layout is better for both"), ("k-rest", "other layouts")]);
    drawing("output of layouts", plot.bottom(), &body, &key, plot.left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::capacity::sample;

    #[test]
    fn a_forecast_has_its_latencies_and_its_server_over_time_on_one_page() {
        let found = sample::capacity();
        let page = capacity_page(&found, None);
        for section in ["first-token", "per-token", "end-to-end", "sequences", "kv-cache", "capacity"] {
            assert!(page.contains(&format!("<section id=\"{section}\"")), "{section}: {page}");
        }
        assert!(page.contains(&milliseconds(found.figures.ttft_ms.p99.value)), "{page}");
        assert_eq!(page.matches("<script>").count(), 1);
        let drawn = page.split("<script>").next().unwrap();
        assert!(!drawn.contains(" style=") && !drawn.contains("NaN"), "the policy lets no style in: {drawn}");
    }

    #[test]
    fn only_assumptions_are_called_so() {
        let mut found = sample::capacity();
        found.load.refused = 3;
        let page = capacity_page(&found, None);
        let banner = page.split("id=\"read-first\"").nth(1).unwrap().split("</ul>").next().unwrap();
        assert!(banner.contains("<li>The server refuses 3 of "), "{banner}");
    }

    #[test]
    fn what_a_client_measured_stands_beside_its_forecast() {
        let mut found = sample::capacity();
        assert_eq!(measured(&found), None);
        let forecast = ForecastRange { value: 30.0, low: 20.0, high: 40.0 };
        let figure =
            |figure: &str| types::MeasuredFigure { figure: figure.to_owned(), measured: 33.0, forecast, error: -0.1 };
        found.measured = vec![figure("ttft_ms.p50"), figure("output_throughput")];
        let svg = measured(&found).unwrap();
        assert_eq!(svg.matches("<title>measured: 33.0 ms</title>").count(), 1, "{svg}");
        assert_eq!(svg.matches("class=\"c-measured\"").count(), 2, "the bar and its key: {svg}");
        assert!(svg.contains("TTFT p50") && svg.contains("30.0 ms (measured 33.0 ms)"), "{svg}");
    }
}
