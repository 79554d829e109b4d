//! Where the numbers of a picture come from: the keys of the document, how they were got, and the table with all of them.

/// A picture's keys in `metrics.json`, how they were got, and the table that prints them: the first of these anchors that the
/// page has.
struct Origin {
    section: &'static str,
    keys: &'static [&'static str],
    how: &'static str,
    table: &'static [&'static str],
}

const ORIGINS: [Origin; 13] = [
    Origin { section: "inputs", keys: &["images"], how: "as they were given", table: &["report-inputs"] },
    Origin { section: "stages", keys: &["stages"], how: "measured", table: &["report-per-stage-timings"] },
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
    Origin {
        section: "forecast",
        keys: &["forecast_total", "predicted_total_time_ms", "measured_total_time_ms"],
        how: "modelled beside measured",
        table: &["report-per-stage-timings"],
    },
];

/// The line below a picture; empty where the section has no row.
pub(super) fn html(section: &str, find: impl Fn(&[&'static str]) -> Option<&'static str>) -> String {
    let Some(origin) = ORIGINS.iter().find(|origin| origin.section == section) else { return String::new() };
    let keys: Vec<String> = origin.keys.iter().map(|key| format!("<code>{key}</code>")).collect();
    let file = match section {
        "forecast" => "static_analysis/analytic_model/report.json",
        _ => "metrics.json",
    };
    let how = origin.how.replace('`', "");
    let table = find(origin.table).map(|anchor| format!(" <a href=\"#{anchor}\">Table</a>")).unwrap_or_default();
    format!("<p class=\"m source\">Source: {} of <code>{file}</code>, {how}.{table}</p>\n", keys.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_keys_of_the_document() {
        let metrics = serde_json::to_value(crate::profile::sample::metrics()).unwrap();
        for origin in ORIGINS.iter().filter(|origin| !["forecast", "inputs"].contains(&origin.section)) {
            for key in origin.keys {
                // A list that is empty may be left out of the document.
                let known = ["device_memory"].contains(key) || metrics.get(key).is_some();
                assert!(known, "{}: {key}", origin.section);
            }
        }
    }

    #[test]
    fn a_picture_leads_to_the_table_that_the_page_has() {
        let line = html("stages", |anchors| anchors.first().copied());
        assert!(line.contains("<code>stages</code> of <code>metrics.json</code>, measured."), "{line}");
        assert!(line.contains("href=\"#report-per-stage-timings\""), "{line}");
        assert!(!html("stages", |_| None).contains("href"));
        assert_eq!(html("timeline", |_| None), "");
    }
}
        "inputs" => "inputs.yaml",
