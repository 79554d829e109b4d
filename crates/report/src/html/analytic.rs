//! The page of an analytic model: stages, modes and modules in pictures, then the Markdown page of it.

use types::{AnalyticReport, CaveatKind, ExecutionMode, Forecast, Nanos, RunManifest, Stage};

use super::masthead::{self, Notice};
use super::palette::Colour;
use super::rows::{Bar, Row, Rows};
use super::shell::{self, Section};
use crate::pages::analytic;
use crate::render::text::{code, prose};
use crate::words::caveat::READ_FIRST;
use crate::words::number::{milliseconds, percent, share};

/// Modules drawn.
const MODULES: usize = 12;

/// The page; the manifest is of the run that it is in.
pub fn analytic_page(report: &AnalyticReport, manifest: Option<&RunManifest>) -> String {
    let mut sections = Vec::new();
    let mut add = |id, title, drawn: Option<String>| {
        sections.extend(drawn.map(|svg| Section::new(id, title, shell::figure("", &svg))));
    };
    add("stages", "Roofline and forecast of each stage", stages(report));
    add("modes", "Forecast by execution mode", report.forecast.as_ref().and_then(modes));
    add("modules", "Modules by roofline time", modules(report));
    add("memory", "Memory", memory(report));
    let body = analytic::summary_page(report).html_below("summary", READ_FIRST);
    sections.push(Section::new("summary", "Figures", body));
    let mut notices = masthead::notices(&report.caveats);
    notices.extend(analytic::of_forecast(report).iter().map(|text| Notice::new(CaveatKind::AssumedDtype, text)));
    let title = format!("{} on {}", report.model.model_id, report.device.name);
    let top = masthead::banner(&notices) + &masthead::about(about(report, manifest)) + &verdict(report);
    shell::document(&title, &top, &sections, &[])
}

fn about(report: &AnalyticReport, manifest: Option<&RunManifest>) -> masthead::About {
    let is_measured = !report.measured_parts.is_empty() || report.measured_total_time_ms.is_some();
    let origin = if is_measured {
        "modelled from the configuration, but for what is marked as measured"
    } else {
        "modelled from the configuration; nothing was measured"
    };
    let mut rows = vec![
        ("model", Some(prose(&analytic::model(&report.model)))),
        ("workload", Some(prose(&analytic::workload(report)))),
        ("device", Some(prose(&report.device.name))),
        ("origin", Some(origin.to_owned())),
    ];
    rows.extend(masthead::of_manifest(manifest));
    rows.push(("run", manifest.map(|manifest| code(&manifest.run_id))));
    rows
}

fn verdict(report: &AnalyticReport) -> String {
    let number = |name: &str, value: String, origin: &str| {
        format!("<div><dt>{name}</dt><dd>{value}</dd><dd class=\"m\">{origin}</dd></div>\n")
    };
    let mut numbers = number("roofline time", milliseconds(report.predicted_total_time_ms), "modelled, at peak rates");
    if let Some(time) = report.forecast_total.forecast_ns {
        let range = report.forecast_total.forecast_low_ns.zip(report.forecast_total.forecast_high_ns);
        let range = range.map(|(low, high)| format!("eager; 90%: {low} to {high}")).unwrap_or_default();
        numbers += &number("likely time", time.to_string(), &range);
    }
    numbers += &number(
        "memory",
        report.memory.total_bytes.to_string(),
        if report.memory.fits { "fits" } else { "does not fit" },
    );
    if let Some(measured) = report.measured_total_time_ms {
        numbers += &number("measured", milliseconds(measured), "by the run beside it");
    }
    let said = crate::render::html_line(&analytic::paragraph(report));
    format!("<div class=\"verdict\"><p>{said}</p></div>\n<dl class=\"numbers\">\n{numbers}</dl>\n")
}

fn time(millis: f64) -> String {
    milliseconds(millis)
}

fn class(stage: &str) -> String {
    let known = Stage::ALL.into_iter().find(|one| stage.split('_').next() == Some(one.name()));
    known.map_or("f-other".to_owned(), |stage| Colour::Stage(stage).class())
}

/// Roofline time of each stage beside its forecast, on one scale.
fn stages(report: &AnalyticReport) -> Option<String> {
    let millis = |time: Option<Nanos>| time.map(|time| time.get() as f64 / 1e6);
    let row = |stage: &analytic::StageRow<'_>| {
        let (name, forecast) = (stage.name, &stage.cost.forecast);
        let roofline = Bar {
            to: stage.cost.time_ms,
            class: "c-least".to_owned(),
            hint: format!("{name}: roofline time {}", time(stage.cost.time_ms)),
            ..Bar::default()
        };
        let likely = millis(forecast.forecast_ns).map(|to| Bar {
            from: 0.0,
            to,
            class: class(name),
            hint: format!("{name}: forecast {}", time(to)),
            interval: millis(forecast.forecast_low_ns).zip(millis(forecast.forecast_high_ns)),
        });
        let said = likely.as_ref().map(|bar| format!(", likely {}", time(bar.to))).unwrap_or_default();
        let figure = format!("{}{said}", time(stage.cost.time_ms));
        let around = stage.around.last().map_or_else(String::new, |around| format!("{around} > "));
        Row { name: format!("{around}{name}"), bars: [Some(roofline), likely].into_iter().flatten().collect(), figure }
    };
    let rows: Vec<Row> = analytic::ordered(report).iter().map(row).collect();
    let key = [
        ("c-least".to_owned(), "roofline time".to_owned()),
        ("f-other".to_owned(), "forecast, with its 90% interval".to_owned()),
    ];
    let drawn = Rows {
        title: "roofline and forecast of each stage",
        rows: &rows,
        axis: Some(("time of a request", time)),
        key: &key,
        ..Rows::default()
    };
    (!rows.is_empty()).then(|| drawn.draw())
}

/// The forecast of each mode.
fn modes(forecast: &Forecast) -> Option<String> {
    let row = |mode: &types::ModeForecast| {
        let millis = |time: Nanos| time.get() as f64 / 1e6;
        let (low, high) = (mode.total.forecast_low_ns.map(millis), mode.total.forecast_high_ns.map(millis));
        let to = millis(mode.total.forecast_ns?);
        let name = match mode.mode {
            ExecutionMode::Eager => "eager",
            ExecutionMode::Compiled => "compiled",
            ExecutionMode::Graph => "CUDA graph",
        };
        let bar = Bar {
            to,
            class: "c-predicted".to_owned(),
            hint: format!("{name}: {}", time(to)),
            interval: low.zip(high),
            ..Bar::default()
        };
        let range = low.zip(high).map(|(low, high)| format!(" ({} to {})", time(low), time(high))).unwrap_or_default();
        Some(Row { name: name.to_owned(), bars: vec![bar], figure: format!("{}{range}", time(to)) })
    };
    let rows: Vec<Row> = forecast.modes.iter().filter_map(row).collect();
    let drawn = Rows {
        title: "forecast by execution mode",
        rows: &rows,
        axis: Some(("time of a request", time)),
        ..Rows::default()
    };
    (rows.len() > 1).then(|| drawn.draw())
}

/// The modules with most roofline time.
fn modules(report: &AnalyticReport) -> Option<String> {
    let row = |role: &analytic::ModuleRole| Row {
        name: role.name.clone(),
        bars: vec![Bar {
            to: role.time_ms,
            class: "c-least".to_owned(),
            hint: format!("{}: {}, {} and {}", role.name, time(role.time_ms), role.flops, role.bytes),
            ..Bar::default()
        }],
        figure: format!("{} ({})", time(role.time_ms), percent(share(role.time_ms, report.predicted_total_time_ms))),
    };
    let rows: Vec<Row> = analytic::by_time(report, MODULES).iter().map(row).collect();
    let drawn = Rows {
        title: "modules by roofline time",
        rows: &rows,
        axis: Some(("roofline time of a request", time)),
        ..Rows::default()
    };
    (!rows.is_empty()).then(|| drawn.draw())
}

/// What takes memory, against what there is.
fn memory(report: &AnalyticReport) -> Option<String> {
    let need = &report.memory;
    let parts = [
        ("weights", "f-gemm", need.weights_bytes),
        ("activations, peak", "f-elementwise", need.activations_peak_bytes),
        ("KV cache at the end", "f-attention", need.kv_bytes),
    ];
    let mut from = 0.0;
    let bar = |(name, class, bytes): (&str, &str, types::Bytes)| {
        let start = from;
        from += bytes.get() as f64;
        Bar { from: start, to: from, class: class.to_owned(), hint: format!("{name}: {bytes}"), interval: None }
    };
    let bars = parts.map(bar).into_iter().filter(|bar| bar.to > bar.from).collect();
    let have = report.device.memory_bytes;
    let has = Bar {
        to: have.get() as f64,
        class: "c-base".to_owned(),
        hint: format!("memory of the device: {have}"),
        ..Bar::default()
    };
    let rows = [
        Row { name: "needed".to_owned(), bars, figure: need.total_bytes.to_string() },
        Row { name: "on the device".to_owned(), bars: vec![has], figure: have.to_string() },
    ];
    let key = parts.map(|(name, class, bytes)| (class.to_owned(), format!("{name} {bytes}")));
    let words: fn(f64) -> String = |bytes| types::Bytes::new(bytes as u64).to_string();
    let drawn = Rows {
        title: "memory needed and there",
        rows: &rows,
        axis: Some(("memory", words)),
        key: &key,
        ..Rows::default()
    };
    (need.total_bytes.get() > 0).then(|| drawn.draw())
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
            page.contains("aria-label=\"memory needed and there\"") && page.contains(">time of a request</text>"),
            "{page}"
        );
        assert_eq!(page.matches("<script>").count(), 1, "only our own");
        let drawn = page.split("<script>").next().unwrap();
        assert!(!drawn.contains("NaN") && !drawn.contains("inf\""), "{drawn}");
    }

    #[test]
    fn a_model_that_does_nothing_has_a_page_too() {
        let page = analytic_page(&sample::empty(), None);
        assert!(page.starts_with("<!doctype html>") && page.contains("id=\"summary\""), "{page}");
    }
}
