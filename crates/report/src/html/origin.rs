//! Where the numbers of a picture or a table come from: the keys of the document, how they were got, and where there is more.

/// A picture's keys in `metrics.json`, how they were got, and the table that prints them: the first of these anchors that the
/// page has.
struct Origin {
    section: &'static str,
    keys: &'static [&'static str],
    how: &'static str,
    table: &'static [&'static str],
}

const ORIGINS: [Origin; 20] = [
    Origin { section: "inputs", keys: &["images"], how: "as given", table: &["report-inputs"] },
    Origin {
        section: "requests",
        keys: &["requests", "serving", "steps"],
        how: "measured by the client and in the trace; which steps processed a request is derived",
        table: &["report-requests"],
    },
    Origin {
        section: "latencies",
        keys: &["requests", "serving"],
        how: "measured by the client",
        table: &["report-requests"],
    },
    Origin { section: "stages", keys: &["stages"], how: "measured", table: &["report-per-stage-timings"] },
    Origin { section: "repeats", keys: &["aggregates", "samples"], how: "measured", table: &["report-aggregates"] },
    Origin { section: "device-time", keys: &["device_time"], how: "measured", table: &["report-device-time"] },
    Origin {
        section: "treemap",
        keys: &["modules", "kernels"],
        how: "measured",
        table: &["kernels", "report-modules", "operators"],
    },
    Origin {
        section: "lost-time",
        keys: &["stages", "lost_time"],
        how: "measured; the roofline time is modelled",
        table: &["report-lost-time"],
    },
    Origin {
        section: "roofline",
        keys: &["peaks", "work_per_stage", "modules", "operator_groups"],
        how: "modelled work over measured time; work of kernels and regions is counted",
        table: &["report-mfu-and-mbu", "operators"],
    },
    Origin {
        section: "critical-path",
        keys: &["critical_path"],
        how: "measured times, replayed",
        table: &["report-critical-path"],
    },
    Origin {
        section: "tries",
        keys: &["tries"],
        how: "measured; predictions are replayed",
        table: &["report-remedies-tried"],
    },
    Origin { section: "steps", keys: &["steps"], how: "measured", table: &["report-steps"] },
    Origin {
        section: "memory",
        keys: &["device_memory"],
        how: "counted by the allocator",
        table: &["report-device-memory", "report-memory"],
    },
    Origin {
        section: "ranks",
        keys: &["ranks", "rank_arrivals", "device_time"],
        how: "measured",
        table: &["report-ranks", "report-device-time"],
    },
    Origin { section: "flame", keys: &["modules", "regions"], how: "measured", table: &["report-modules", "report"] },
    Origin { section: "callers", keys: &["modules", "regions"], how: "measured", table: &["report-modules", "report"] },
    Origin { section: "timeline", keys: &["device_time"], how: "measured", table: &["report-device-time"] },
    Origin { section: "stacks", keys: &["kernels"], how: "measured", table: &["kernels"] },
    Origin { section: "launchers", keys: &["kernels"], how: "measured", table: &["kernels"] },
    Origin {
        section: "forecast",
        keys: &["forecast_total", "predicted_total_time_ms", "measured_total_time_ms"],
        how: "modelled beside measured",
        table: &["report-per-stage-timings"],
    },
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

/// The line below a picture; empty where the section has no row.
pub(super) fn html(section: &str, find: impl Fn(&[&'static str]) -> Option<&'static str>) -> String {
    let Some(origin) = ORIGINS.iter().find(|origin| origin.section == section) else { return String::new() };
    let file = match section {
        "forecast" => "static_analysis/analytic_model/report.json",
        "inputs" => "inputs.yaml",
        _ => "metrics.json",
    };
    let how = origin.how.replace('`', "");
    let table = find(origin.table).map(|anchor| format!(" <a href=\"#{anchor}\">Table</a>")).unwrap_or_default();
    format!("<p class=\"m source\">Source: {} of <code>{file}</code>, {how}.{table}</p>\n", codes(origin.keys))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_keys_of_the_document() {
        let metrics = serde_json::to_value(crate::pages::run::sample::metrics()).unwrap();
        for origin in ORIGINS.iter().filter(|origin| !["forecast", "inputs"].contains(&origin.section)) {
            for key in origin.keys {
                // A list that is empty may be left out of the document.
                let known = ["device_memory"].contains(key) || metrics.get(key).is_some();
                assert!(known, "{}: {key}", origin.section);
            }
        }
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
        let line = html("stages", |anchors| anchors.first().copied());
        assert!(line.contains("<code>stages</code> of <code>metrics.json</code>, measured."), "{line}");
        assert!(line.contains("href=\"#report-per-stage-timings\""), "{line}");
        assert!(!html("stages", |_| None).contains("href"));
        assert_eq!(html("assumptions", |_| None), "");
    }
}
