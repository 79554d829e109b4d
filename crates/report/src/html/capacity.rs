//! The pages of `capacity`: latencies of a load and the server over time in pictures, then the Markdown page; and layouts of a server.

use types::{Capacity, CapacitySweep, CaveatKind, ForecastRange, LatencyForecast, LoadMoment, RunManifest};

use super::chart::{Across, Line, lines};
use super::masthead::{self, Notice};
use super::rows::{Bar, Row, rows};
use super::shell::{self, Section};
use crate::pages::capacity;
use crate::render::html_line;
use crate::render::text::{code, prose};
use crate::words::caveat::READ_FIRST;
use crate::words::number::{decimal, milliseconds, percent};

/// The page of a forecast; the manifest is of the run that it is in.
pub fn capacity_page(found: &Capacity, manifest: Option<&RunManifest>) -> String {
    let figures = &found.figures;
    let mut sections = Vec::new();
    let mut add = |id, title: &str, drawn: Option<String>| {
        sections.extend(drawn.map(|svg| Section::new(id, title, shell::figure("", &svg))));
    };
    let first = [("queue", Some(figures.queue_ms)), ("time to first token", Some(figures.ttft_ms))];
    add("first-token", "To the first token", latencies(&first));
    let token = [("time per output token", figures.tpot_ms), ("time between tokens", figures.itl_ms)];
    add("per-token", "Per output token", latencies(&token));
    add("end-to-end", "End to end", latencies(&[("request", Some(figures.e2el_ms))]));
    add("measured", "Forecast and measured", measured(found));
    let step = |moment: &LoadMoment| moment.batch as f64;
    let waiting = |moment: &LoadMoment| moment.waiting as f64;
    add(
        "sequences",
        "Sequences",
        over_time(found, &[("in a step", step), ("waiting", waiting)], ("sequences", decimal)),
    );
    let used = over_time(found, &[("KV cache in use", |moment| moment.kv)], ("share of the KV cache", share));
    add("kv-cache", "KV cache", used);
    let body = capacity::page(found).html_below("capacity", READ_FIRST);
    sections.push(Section::new("capacity", "Figures", body));
    let assumed = capacity::assumed(found).map(|text| Notice::new(CaveatKind::AssumedDtype, &text));
    let notices: Vec<Notice> =
        assumed.into_iter().chain(capacity::of_load(found).map(|text| Notice::plain(&text))).collect();
    let mut about = capacity::about(found);
    about.push(("origin", Some(capacity::origin(found))));
    about.extend(masthead::of_manifest(manifest));
    about.push(("run", manifest.map(|manifest| code(&manifest.run_id))));
    let title = format!("{} on {}", found.model.model_id, found.server.hardware);
    let top = masthead::banner(&notices) + &masthead::about(about) + &first_screen(found);
    shell::document(&title, &top, &sections, &[])
}

/// The page of layouts: the frontier, then the Markdown page of them.
pub fn layouts_page(found: &CapacitySweep, manifest: Option<&RunManifest>, [json, chart]: [&str; 2]) -> String {
    let frontier = shell::figure("", &capacity::layouts_chart(found));
    let body = capacity::layouts_page(found, json, chart).html_below("layouts", READ_FIRST);
    let sections = [
        Section::new("frontier", "Throughput of a device against that of a user", frontier),
        Section::new("layouts", "Layouts", body),
    ];
    let stopped = found.stopped.then(|| {
        let text = format!("The sweep stopped after {} of {} layouts.", found.points.len(), found.points_planned);
        Notice::new(CaveatKind::Partial, &text)
    });
    let mut about = vec![("model", Some(prose(&found.model.model_id)))];
    about.extend(masthead::of_manifest(manifest));
    about.push(("run", manifest.map(|manifest| code(&manifest.run_id))));
    let top = masthead::banner(&stopped.into_iter().collect::<Vec<_>>()) + &masthead::about(about);
    shell::document(&format!("{}: layouts of a server", found.model.model_id), &top, &sections, &[])
}

/// What a load comes to, in a sentence and in numbers.
fn first_screen(found: &Capacity) -> String {
    let figures = &found.figures;
    let per_token = figures.tpot_ms.map(|tpot| format!(", then {} per token", milliseconds(tpot.p50.value)));
    let said = format!(
        "**Half of the requests have their first token after {}{}.** The server writes {} tokens/s; its device is busy for {} of the \
         time.",
        milliseconds(figures.ttft_ms.p50.value),
        per_token.unwrap_or_default(),
        decimal(figures.output_throughput.value),
        percent(Some(figures.busy.value)),
    );
    let number = |name: &str, range: ForecastRange, write: fn(f64) -> String| {
        let [value, low, high] = [range.value, range.low, range.high].map(write);
        format!("<div><dt>{name}</dt><dd>{value}</dd><dd class=\"m\">forecast; 90%: {low} to {high}</dd></div>\n")
    };
    let mut numbers = number("time to first token, p50", figures.ttft_ms.p50, milliseconds);
    numbers += &number("time to first token, p99", figures.ttft_ms.p99, milliseconds);
    numbers += &figures.tpot_ms.map(|tpot| number("time per token, p50", tpot.p50, milliseconds)).unwrap_or_default();
    numbers += &number("output tokens/s", figures.output_throughput, decimal);
    numbers += &number("device busy", figures.busy, share);
    format!("<div class=\"verdict\"><p>{}</p></div>\n<dl class=\"numbers\">\n{numbers}</dl>\n", html_line(&said))
}

fn share(value: f64) -> String {
    percent(Some(value))
}

/// Mean and percentiles of latencies, each with its interval.
fn latencies(found: &[(&str, Option<LatencyForecast>)]) -> Option<String> {
    let row = |name: String, range: ForecastRange| {
        let [value, low, high] = [range.value, range.low, range.high].map(milliseconds);
        let figure = format!("{value} ({low} to {high})");
        let bar = Bar {
            from: 0.0,
            to: range.value,
            class: "c-predicted".to_owned(),
            hint: format!("{name}: {figure}"),
            interval: Some((range.low, range.high)),
        };
        Row { name, bars: vec![bar], figure }
    };
    let known = found.iter().filter_map(|(name, latency)| Some((*name, (*latency)?)));
    let drawn: Vec<Row> = known
        .flat_map(|(name, LatencyForecast { mean, p50, p99 })| {
            [("mean", mean), ("p50", p50), ("p99", p99)].map(|(part, range)| row(format!("{name}, {part}"), range))
        })
        .collect();
    let axis = ("time, with its 90% interval", milliseconds as fn(f64) -> String);
    (!drawn.is_empty()).then(|| rows("latencies of the load", &drawn, axis))
}

/// Latencies as a client measured them beside the forecast.
fn measured(found: &Capacity) -> Option<String> {
    let row = |figure: &types::MeasuredFigure| {
        let (name, part) = figure.figure.split_once("_ms.")?;
        let ForecastRange { value, low, high } = figure.forecast;
        let bar = |to: f64, class: &str, what: &str, interval| Bar {
            from: 0.0,
            to,
            class: class.to_owned(),
            hint: format!("{what}: {}", milliseconds(to)),
            interval,
        };
        Some(Row {
            name: format!("{} {part}", name.to_uppercase()),
            bars: vec![
                bar(value, "c-predicted", "forecast", Some((low, high))),
                bar(figure.measured, "c-measured", "measured", None),
            ],
            figure: format!("{} (measured {})", milliseconds(value), milliseconds(figure.measured)),
        })
    };
    let drawn: Vec<Row> = found.measured.iter().filter_map(row).collect();
    let axis = ("time; forecast above, measured below", milliseconds as fn(f64) -> String);
    (!drawn.is_empty()).then(|| rows("forecast and measured latencies", &drawn, axis))
}

/// A name and the figure of a moment that it stands for.
type Figure = (&'static str, fn(&LoadMoment) -> f64);

/// Figures of the server from the first request on.
fn over_time(found: &Capacity, figures: &[Figure], up: (&str, fn(f64) -> String)) -> Option<String> {
    let line = |(place, (name, value)): (usize, &Figure)| Line {
        name: (*name).to_owned(),
        class: ["l-0", "l-1"][place % 2],
        points: found.over_time.iter().map(|moment| (moment.at_ms, value(moment))).collect(),
        stepped: true,
    };
    let drawn: Vec<Line> = figures.iter().enumerate().map(line).collect();
    let across = Across { title: "time since the first request", words: milliseconds, whole: false };
    lines("the server over time", &drawn, &across, up)
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
        assert_eq!(svg.matches("class=\"c-measured\"").count(), 1, "{svg}");
        assert!(svg.contains("TTFT p50") && svg.contains("30.0 ms (measured 33.0 ms)"), "{svg}");
    }
}
