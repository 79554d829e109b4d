//! Where the numbers of a picture or a table come from: the keys of the document, how they were got, and where there is more.

/// A document, a section of its page, keys of the document, how they were got, and the table that prints them: the first of these
/// anchors that the page has.
type Origin = (&'static str, &'static str, &'static [&'static str], &'static str, &'static [&'static str]);

const RUN: &str = "metrics.json";
const MODEL: &str = "static_analysis/analytic_model/report.json";
const SWEEP: &str = "sweep.json";
const CAPACITY: &str = "capacity.json";
const LAYOUTS: &str = "capacity-sweep.json";
const COMPARISON: &str = "llm-perf compare --json";
const FLEET: &str = "fleet.json";
const CLIENT: &str = "measured by the client and in the trace; which steps processed a request is derived";
const WORK: &str = "modelled work over measured time; work of kernels and regions is counted";
const FORECAST: &[&str] = &["forecast_ns", "predicted_total_time_ms", "measured_total_time_ms"];
const SIMULATED: &str = "simulated";
const BOTH: &str = "measured on both sides";

const ORIGINS: [Origin; 46] = [
    ("ncu/regions/report.json", "time-of-regions", &["regions"], "counted while kernels were replayed", &["regions"]),
    ("inputs.yaml", "inputs", &["images"], "as given", &["report-inputs"]),
    (RUN, "requests", &["requests", "serving", "steps"], CLIENT, &["report-requests"]),
    (RUN, "latencies", &["requests", "serving"], "measured by the client", &["report-requests"]),
    (RUN, "stages", &["stages"], "measured", &["report-per-stage-timings"]),
    (RUN, "repeats", &["aggregates", "samples"], "measured", &["report-aggregates"]),
    (RUN, "device-time", &["device_time"], "measured", &["report-device-time"]),
    (RUN, "shares", &["modules", "kernels"], "measured", &["kernels", "report-modules", "operators"]),
    (RUN, "lost-time", &["stages", "lost_time"], "measured; the roofline time is modelled", &["report-lost-time"]),
    (
        RUN,
        "roofline",
        &["peaks", "work_per_stage", "modules", "operator_groups"],
        WORK,
        &["report-mfu-and-mbu", "operators"],
    ),
    (RUN, "critical-path", &["critical_path"], "measured times, replayed", &["report-critical-path"]),
    (RUN, "tries", &["tries"], "measured; predictions are replayed", &["report-remedies-tried"]),
    (RUN, "steps", &["steps"], "measured", &["report-steps"]),
    (RUN, "memory", &["device_memory"], "counted by the allocator", &["report-device-memory", "report-memory"]),
    (RUN, "ranks", &["ranks", "rank_arrivals"], "measured", &["report-ranks"]),
    (RUN, "flame", &["modules", "regions"], "measured", &["report-modules", "report"]),
    (RUN, "callers", &["modules", "regions"], "measured", &["report-modules", "report"]),
    (RUN, "timeline", &["device_time"], "measured", &["report-device-time"]),
    (RUN, "stacks", &["kernels"], "measured", &["kernels"]),
    (RUN, "launchers", &["kernels"], "measured", &["kernels"]),
    (MODEL, "forecast", FORECAST, "modelled beside measured", &["report-per-stage-timings"]),
    (MODEL, "stages", &["stages"], "modelled", &["summary-stages"]),
    (MODEL, "modes", &["forecast"], "modelled", &["summary-forecast"]),
    (MODEL, "modules", &["modules"], "modelled", &["summary-modules-by-time"]),
    (MODEL, "memory", &["memory", "device"], "modelled", &["summary-memory"]),
    (SWEEP, "chart", &["points"], "modelled", &["points"]),
    (CAPACITY, "first-token", &["ttft_ms", "queue_ms"], SIMULATED, &["capacity"]),
    (CAPACITY, "per-token", &["tpot_ms", "itl_ms"], SIMULATED, &["capacity"]),
    (CAPACITY, "end-to-end", &["e2el_ms"], SIMULATED, &["capacity"]),
    (CAPACITY, "measured", &["measured"], "simulated beside measured", &["capacity"]),
    (CAPACITY, "sequences", &["over_time"], SIMULATED, &["capacity"]),
    (CAPACITY, "kv-cache", &["over_time"], SIMULATED, &["capacity"]),
    (LAYOUTS, "frontier", &["points"], SIMULATED, &["layouts"]),
    (COMPARISON, "requests", &["requests"], BOTH, &["comparison-requests"]),
    (COMPARISON, "request-parts", &["request_parts"], BOTH, &["comparison"]),
    (COMPARISON, "stages", &["stages"], BOTH, &["comparison-stages"]),
    (COMPARISON, "steps", &["steps"], BOTH, &["comparison-steps"]),
    (COMPARISON, "device-time", &["device_time"], BOTH, &["comparison-device-time"]),
    (COMPARISON, "modules", &["modules"], BOTH, &["comparison-modules"]),
    (COMPARISON, "operators", &["operators"], BOTH, &["comparison-operators"]),
    (COMPARISON, "kernels", &["kernels"], BOTH, &["comparison-kernels"]),
    (COMPARISON, "difference", &["modules"], BOTH, &["comparison-modules"]),
    (FLEET, "device-time", &["jobs"], "measured", &["fleet-ranks"]),
    (FLEET, "waiting", &["jobs"], "measured", &["fleet-ranks"]),
    (FLEET, "ranks", &["jobs"], "measured; clocks are aligned on the ends of collectives", &["fleet-collectives"]),
    (FLEET, "trends", &["trends"], "measured", &["fleet-runs-over-time"]),
];

/// A table that numbers of the first screen lead to: its anchor, the keys that it prints, and how they were got.
const TABLES: [(&str, &[&str], &str); 13] = [
    ("report-aggregates", &["throughput", "aggregates", "samples"], "measured"),
    ("report-per-stage-timings", &["stages", "aggregates"], "measured"),
    ("report-mfu-and-mbu", MODELLED, "modelled work over measured time, relative to peak"),
    ("report-device-time", &["device_time"], "measured"),
    ("report-requests", &["serving", "requests"], "measured by the client; parts of latencies are derived from steps"),
    ("report-steps", &["steps"], "measured"),
    ("report-top-kernels", &["kernels"], "measured"),
    ("report-lost-time", &["lost_time"], "measured time minus modelled roofline time"),
    ("report-critical-path", &["critical_path", "replay"], "measured times, replayed"),
    ("report-findings", &["findings"], "derived; savings are replayed"),
    ("report-ranks", &["ranks", "rank_arrivals"], "measured"),
    ("report-runs", &["command"], "measured"),
    ("kernels-by-time", &["kernels"], "measured"),
];
const MODELLED: &[&str] = &["mfu_model_level", "mbu_model_level", "mfu_per_stage", "work_per_stage", "peak"];

/// What a run was made from: files that were read, or inputs that were run.
const MADE_FROM: [(&str, &str); 2] = [("report-sources", "Files"), ("report-inputs", "Inputs")];

/// A page with a line below the heading of each table that the first screen leads to.
pub(super) fn with_sources(body: &str, find: impl Fn(&[&'static str]) -> Option<&'static str>) -> String {
    let more = MADE_FROM.iter().find_map(|(anchor, what)| find(&[*anchor]).map(|anchor| (anchor, what)));
    let more = more.map(|(anchor, what)| format!(" <a href=\"#{anchor}\">{what}</a>")).unwrap_or_default();
    let mut text = String::with_capacity(body.len());
    for line in body.split_inclusive('\n') {
        text += line;
        let anchor = line.strip_prefix("<h3 id=\"").and_then(|rest| rest.split('"').next());
        if let Some((_, keys, how)) = TABLES.iter().find(|(table, ..)| anchor == Some(table)) {
            text += &format!(
                "<p class=\"m source\">Source: {} of <code>metrics.json</code>, {how}.{more}</p>\n",
                codes(keys)
            );
        }
    }
    text
}

fn codes(keys: &[&str]) -> String {
    keys.iter().map(|key| format!("<code>{key}</code>")).collect::<Vec<_>>().join(", ")
}

/// The line below the pictures of a section of a document's page; empty where they have no row.
pub(super) fn html(document: &str, section: &str, find: impl Fn(&[&'static str]) -> Option<&'static str>) -> String {
    // The page of a run has pictures of other documents too.
    let is_of = |file: &str| {
        file == document || (document == RUN && ["forecast", "inputs", "time-of-regions"].contains(&section))
    };
    let found = ORIGINS.iter().find(|(file, of, ..)| *of == section && is_of(file));
    let Some((file, _, keys, how, table)) = found else { return String::new() };
    let table = find(table).map(|anchor| format!(" <a href=\"#{anchor}\">Table</a>")).unwrap_or_default();
    format!("<p class=\"m source\">Source: {} of <code>{file}</code>, {how}.{table}</p>\n", codes(keys))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, to_value};

    use super::*;
    use crate::pages::{analytic, capacity, compare, run, sweep};

    #[test]
    fn keys_are_keys_of_their_document() {
        let documents: [(&str, Value); 5] = [
            (RUN, to_value(run::sample::metrics()).unwrap()),
            (MODEL, to_value(analytic::sample::report()).unwrap()),
            (SWEEP, to_value(sweep::sample::sweep()).unwrap()),
            (CAPACITY, to_value(capacity::sample::capacity()).unwrap()),
            (COMPARISON, to_value(compare::sample::runs()).unwrap()),
        ];
        let mut checked = 0;
        for (file, section, keys, ..) in &ORIGINS {
            let Some((_, document)) = documents.iter().find(|(of, _)| of == file) else { continue };
            for key in *keys {
                // A list that is empty may be left out of the document.
                let known = *key == "device_memory" || document.get(key).is_some();
                assert!(known, "{file}, {section}: {key}");
                checked += 1;
            }
        }
        assert!(checked > 50, "{checked}");
    }

    #[test]
    fn a_table_says_where_it_comes_from_and_leads_on() {
        let metrics = serde_json::to_value(crate::pages::run::sample::metrics()).unwrap();
        let keys = TABLES.iter().flat_map(|(_, keys, _)| *keys);
        let unknown: Vec<_> = keys.filter(|key| metrics.get(**key).is_none()).collect();
        assert_eq!(unknown, Vec::<&&str>::new());
        let body = "<h3 id=\"report-steps\">Steps (measured)</h3>\n<p>x</p>\n<h3 id=\"report-else\">Else</h3>\n";
        let text = with_sources(body, |anchors| anchors.first().copied());
        assert_eq!(text.matches("class=\"m source\"").count(), 1, "{text}");
        assert!(text.contains("</h3>\n<p class=\"m source\">Source: <code>steps</code> of"), "{text}");
        assert!(text.contains("<a href=\"#report-sources\">Files</a>"), "{text}");
    }

    #[test]
    fn a_picture_leads_to_the_table_that_the_page_has() {
        let line = html(RUN, "stages", |anchors| anchors.first().copied());
        assert!(line.contains("<code>stages</code> of <code>metrics.json</code>, measured."), "{line}");
        assert!(line.contains("href=\"#report-per-stage-timings\""), "{line}");
        assert!(!html(RUN, "stages", |_| None).contains("href"));
        assert_eq!(html(RUN, "assumptions", |_| None), "");
    }
}
