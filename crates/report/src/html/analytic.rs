//! The page of an analytic model: stages, modes and modules in pictures, then the Markdown page of it.

use types::{AnalyticReport, Bytes, CaveatKind, ForecastTime, Nanos, RunManifest};

use super::answers::Answer;
use super::forecast::forecast_row;
use super::masthead::{self, Notice};
use super::rows::{Bar, Row, Rows, named, rows};
use super::sheet::Sheet;
use super::shell::Section;
use super::summary::{FirstScreen, Number};
use crate::pages::analytic::{self, mode_name, usual};
use crate::render::text::{capital, code, prose};
use crate::words::caveat::READ_FIRST;
use crate::words::number::{milliseconds, percent, share};

/// Modules drawn.
const MODULES: usize = 12;

/// The page; the manifest is of the run that it is in.
pub fn analytic_page(report: &AnalyticReport, manifest: Option<&RunManifest>) -> String {
    let body = analytic::summary_page(report).html_below("summary", READ_FIRST);
    let sections = [
        Section::drawn("stages", "Roofline and forecast of each stage", longest_stage(report), stages(report)),
        Section::drawn("modes", "Forecast by execution mode", fastest_mode(report), modes(report)),
        Section::drawn("modules", "Modules by roofline time", longest_module(report), modules(report)),
        Section::drawn("memory", "Memory", Some(fits(report)), memory(report)),
        Some(Section::new("summary", "Figures", body)),
    ];
    let mut notices = masthead::notices(&report.caveats);
    notices.extend(analytic::of_forecast(report).iter().map(|text| Notice::new(CaveatKind::AssumedDtype, text)));
    Sheet {
        title: format!("{} on {}", report.model.model_id, report.device.name),
        document: "static_analysis/analytic_model/report.json",
        notices,
        about: about(report),
        manifest,
        screen: first_screen(report),
        sections: sections.into_iter().flatten().collect(),
        ..Sheet::default()
    }
    .html()
}

fn about(report: &AnalyticReport) -> masthead::About {
    let is_measured = !report.measured_parts.is_empty() || report.measured_total_time_ms.is_some();
    let origin = if is_measured {
        "modelled from the configuration, but for what is marked as measured"
    } else {
        "modelled from the configuration; nothing was measured"
    };
    vec![
        ("model", Some(prose(&analytic::model(&report.model)))),
        ("workload", Some(prose(&analytic::workload(report)))),
        ("device", Some(prose(&report.device.name))),
        ("origin", Some(origin.to_owned())),
    ]
}

fn first_screen(report: &AnalyticReport) -> FirstScreen {
    let mut numbers = vec![Number::new(
        "roofline time",
        milliseconds(report.predicted_total_time_ms),
        "modelled, at peak rates",
        &["stages"],
    )];
    let mut likely = String::new();
    if let Some(mode) = usual(report)
        && let (Some(time), Some((low, high))) = (millis(mode.total.forecast_ns), interval(&mode.total))
    {
        let range = |low, high| format!("forecast; 90%: {} to {}", milliseconds(low), milliseconds(high));
        let (name, [first, from, to]) = (mode_name(mode.mode), [time, low, high].map(milliseconds));
        likely = format!(" Likely: {first} in {name} mode (90%: {from} to {to}).");
        numbers.push(Number::new(format!("likely time, {name}"), first, range(low, high), &["modes", "stages"]));
        let mut add = |name: &'static str, of: types::ForecastRange| {
            numbers.push(Number::new(name, milliseconds(of.value), range(of.low, of.high), &["summary-forecast"]));
        };
        add("likely time to first token", mode.ttft_ms);
        mode.time_per_output_token_ms.into_iter().for_each(|step| add("likely time per output token", step));
    }
    numbers.push(Number::new("memory", report.memory.total_bytes, "modelled", &["memory"]));
    if let Some(measured) = report.measured_total_time_ms {
        numbers.insert(0, Number::new("measured", milliseconds(measured), "by the run beside it", &["summary"]));
    }
    let time = [analytic::stage_shares(report), analytic::longest_modules(report)];
    let answer = |question, text: Option<String>, more| Some(Answer { question, text: text?, more });
    let far = analytic::largest(report).map(|parts| format!("The largest parts of the likely time {}.", prose(&parts)));
    let answers = [
        answer("Where does the time go?", Some(time.into_iter().flatten().collect::<Vec<_>>().join(" ")), &["modules"]),
        answer("What keeps it from the roofline?", far, &["modes", "summary-forecast"]),
        answer("Does it fit?", Some(fits(report)), &["memory"]),
    ];
    FirstScreen {
        headline: analytic::times(report) + &likely,
        source: &["summary-stages"],
        numbers,
        answers: answers.into_iter().flatten().collect(),
    }
}

fn millis(time: Option<Nanos>) -> Option<f64> {
    time.map(|time| time.as_millis())
}

fn interval(time: &ForecastTime) -> Option<(f64, f64)> {
    millis(time.forecast_low_ns).zip(millis(time.forecast_high_ns))
}

/// Roofline time of each stage beside its forecast. They are thousands of times apart: places on a logarithmic axis.
fn stages(report: &AnalyticReport) -> Option<String> {
    let row = |stage: &analytic::StageRow<'_>| {
        let (name, forecast) = (stage.name, &stage.cost.forecast);
        let dot = |what: &str, time: f64, class: &str| {
            Bar::new(time, class, format!("{name}: {what} {}", milliseconds(time)))
        };
        let roofline = dot("roofline time", stage.cost.time_ms, "c-least");
        let likely = millis(forecast.forecast_ns);
        let said = likely.map(|time| format!(", likely {}", milliseconds(time))).unwrap_or_default();
        let likely = likely.map(|time| dot("forecast", time, "c-predicted").within(interval(forecast)));
        let around = stage.around.last().map_or_else(String::new, |around| format!("{around} > "));
        Row {
            name: format!("{around}{name}"),
            bars: likely.into_iter().chain([roofline]).collect(),
            figure: format!("{}{said}", milliseconds(stage.cost.time_ms)),
        }
    };
    let found: Vec<Row> = analytic::ordered(report).iter().filter(|stage| stage.cost.time_ms > 0.0).map(row).collect();
    let key = named([("c-least", "roofline time"), ("c-predicted", "forecast, with its 90% interval")]);
    let drawn = Rows {
        title: "roofline and forecast of each stage",
        rows: &found,
        axis: Some(("time of a request, logarithmic", milliseconds)),
        key: &key,
        are_dots: true,
        ..Rows::default()
    };
    (!found.is_empty()).then(|| drawn.draw())
}

/// `Decode takes 95.6% of the roofline time; it is likely to take 75.5 times that.`
fn longest_stage(report: &AnalyticReport) -> Option<String> {
    let stages = analytic::ordered(report);
    let top = stages.iter().filter(|stage| stage.around.is_empty());
    let most = top.max_by(|one, other| one.cost.time_ms.total_cmp(&other.cost.time_ms))?;
    let part = percent(share(most.cost.time_ms, report.predicted_total_time_ms));
    let times = millis(most.cost.forecast.forecast_ns).and_then(|likely| share(likely, most.cost.time_ms));
    let likely = times.map(|times| format!("; it is likely to take {times:.1} times its own")).unwrap_or_default();
    Some(format!("{} takes {part} of the roofline time{likely}.", capital(&prose(most.name))))
}

/// The forecast of each mode. Absent where there is nothing to choose.
fn modes(report: &AnalyticReport) -> Option<String> {
    let row = |mode: &types::ModeForecast| {
        Some(forecast_row(mode_name(mode.mode), millis(mode.total.forecast_ns)?, "c-predicted", interval(&mode.total)))
    };
    let found: Vec<Row> = report.forecast.as_ref()?.modes.iter().filter_map(row).collect();
    let drawn = rows("forecast by execution mode", &found, ("time of a request, with its 90% interval", milliseconds));
    drawn.filter(|_| found.len() > 1)
}

/// `Graph mode is likely to take 17.3% of the time of eager mode.`
fn fastest_mode(report: &AnalyticReport) -> Option<String> {
    let usual = usual(report)?;
    let modes = report.forecast.as_ref()?.modes.iter().filter(|mode| mode.total.forecast_ns.is_some());
    let fastest = modes.min_by_key(|mode| mode.total.forecast_ns)?;
    let part = percent(share(millis(fastest.total.forecast_ns)?, millis(usual.total.forecast_ns)?));
    let [fast, slow] = [fastest, usual].map(|mode| mode_name(mode.mode));
    (fast != slow).then(|| format!("{} mode is likely to take {part} of the time of {slow} mode.", capital(fast)))
}

/// The modules with most roofline time.
fn modules(report: &AnalyticReport) -> Option<String> {
    let row = |role: &analytic::ModuleRole| {
        let (name, time) = (role.name.clone(), milliseconds(role.time_ms));
        let hint = format!("{name}: {time}, {} and {}", role.flops, role.bytes);
        let figure = format!("{time} ({})", percent(share(role.time_ms, report.predicted_total_time_ms)));
        Row { name, bars: vec![Bar::new(role.time_ms, "c-least", hint)], figure }
    };
    let found: Vec<Row> = analytic::by_time(report, MODULES).iter().map(row).collect();
    rows("modules by roofline time", &found, ("roofline time of a request", milliseconds))
}

fn longest_module(report: &AnalyticReport) -> Option<String> {
    let modules = analytic::by_time(report, 1);
    let most = modules.first()?;
    let part = percent(share(most.time_ms, report.predicted_total_time_ms));
    Some(format!("{} takes {part} of the roofline time.", code(&most.name)))
}

/// What takes memory, against what there is.
fn memory(report: &AnalyticReport) -> Option<String> {
    let need = &report.memory;
    let parts = [
        ("weights", "l-0", need.weights_bytes),
        ("activations, peak", "l-1", need.activations_peak_bytes),
        ("KV cache at the end", "l-2", need.kv_bytes),
    ];
    let mut from = 0.0;
    let bar = |(name, class, bytes): (&str, &str, Bytes)| {
        let start = from;
        from += bytes.get() as f64;
        Bar::new(from, class, format!("{name}: {bytes}")).starting(start)
    };
    let bars = parts.into_iter().filter(|(.., bytes)| bytes.get() > 0).map(bar).collect();
    let have = report.device.memory_bytes;
    let has = Bar::new(have.get() as f64, "c-base", format!("memory of the device: {have}"));
    let found = [
        Row { name: "needed".to_owned(), bars, figure: need.total_bytes.to_string() },
        Row { name: "on the device".to_owned(), bars: vec![has], figure: have.to_string() },
    ];
    let key = parts.map(|(name, class, bytes)| (class.to_owned(), format!("{name} {bytes}")));
    let words: fn(f64) -> String = |bytes| Bytes::new(bytes as u64).to_string();
    let drawn = Rows {
        title: "memory needed and there",
        rows: &found,
        axis: Some(("memory", words)),
        key: &key,
        ..Rows::default()
    };
    (need.total_bytes.get() > 0).then(|| drawn.draw())
}

/// `It fits: 7.24 GB of 151 GB. 2,284 sequences of 1,023 tokens fit ...`
fn fits(report: &AnalyticReport) -> String {
    let (need, have) = (&report.memory, report.device.memory_bytes);
    let verdict = if need.fits { "It fits" } else { "It does **not** fit" };
    let more = analytic::sequences(report).map(|more| format!(" {more}.")).unwrap_or_default();
    format!("{verdict}: {} of {have}.{more}", need.total_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::analytic::sample;

    #[test]
    fn the_page_of_a_model_has_its_pictures_and_nothing_gets_out_of_its_place() {
        let mut report = sample::report();
        report.model.model_id = "</title><script>alert(1)</script>".to_owned();
        let page = analytic_page(&report, None);
        assert!(page.contains("aria-label=\"roofline and forecast of each stage\""), "{page}");
        assert!(
            page.contains("aria-label=\"memory needed and there\"")
                && page.contains(">time of a request, logarithmic</text>"),
            "{page}"
        );
        assert_eq!(page.matches("<script>").count(), 1, "only our own");
        let drawn = page.split("<script>").next().unwrap();
        assert!(!drawn.contains("NaN") && !drawn.contains("inf\""), "{drawn}");
    }

    #[test]
    fn every_picture_says_what_is_seen_and_where_it_is_from() {
        let page = analytic_page(&sample::report(), None);
        let figures = page.matches("<figure").count();
        assert!(figures >= 3, "{page}");
        assert_eq!(page.matches("<p class=\"seen\">").count(), figures, "{page}");
        assert_eq!(page.matches("<p class=\"m source\">Source: ").count(), figures, "{page}");
        assert!(page.contains("<dt>Does it fit?</dt>") || page.contains("\">Does it fit?</a>"), "{page}");
    }

    #[test]
    fn a_model_that_does_nothing_has_a_page_too() {
        let page = analytic_page(&sample::empty(), None);
        assert!(page.starts_with("<!doctype html>") && page.contains("id=\"summary\""), "{page}");
    }
}
