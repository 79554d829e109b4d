//! Counters per NVTX region.

use serde_json::Value;

use crate::Row;
use crate::bundles::{Bundles, equal, keys, list, need};

const LIVE: &str = "h200_regions.sh";

pub(crate) const ROWS: &[Row] = &[
    Row {
        id: "S3.1",
        requirement: "a dummy network as a workload, chosen by overrides, on the CPU and on a GPU",
        check: dummy,
        live: "h200_torch.sh",
    },
    Row {
        id: "S3.2",
        requirement: "replay modes kernel, range, app-range and application; presets carry the default",
        check: modes,
        live: LIVE,
    },
    Row {
        id: "S3.3",
        requirement: "one section per marked region, nested ones too; inclusive and exclusive totals that reconcile within 1%; nothing from outside",
        check: nested,
        live: LIVE,
    },
    Row {
        id: "S3.4",
        requirement: "a report and a folder per region; names never collide and never leave the folder",
        check: folders,
        live: "",
    },
    Row {
        id: "S3.5",
        requirement: "kernels included and excluded, exactly or by pattern; exclusion wins; the choice is recorded",
        check: selection,
        live: LIVE,
    },
    Row {
        id: "S3.6",
        requirement: "the sections and metrics that are configured are reported, and only those",
        check: chosen,
        live: LIVE,
    },
    Row {
        id: "S3.7",
        requirement: "parts per process and device, and an aggregate that can be switched off",
        check: parts,
        live: "",
    },
    Row {
        id: "S3.8",
        requirement: "no matching range, an empty region, a pattern that matches nothing: the run succeeds and says so",
        check: nothing,
        live: LIVE,
    },
    Row {
        id: "S3.9",
        requirement: "a JSON Schema of the region report, and a command that checks it",
        check: schema,
        live: LIVE,
    },
];

fn report(bundles: &Bundles, run: &str) -> Value {
    bundles.json(&format!("{run}/ncu/regions/report.json"))
}

fn paths(report: &Value) -> Vec<&str> {
    list(&report["regions"]).iter().filter_map(|region| region["path"].as_str()).collect()
}

fn dummy(bundles: &Bundles) -> Result<(), String> {
    bundles.ended("resnet", 0)?;
    bundles.ended("regions-resnet", 0)?;
    for run in ["resnet", "regions-resnet"] {
        need(
            bundles.json(&format!("{run}/metrics.json"))["run"]["model"] == "dummy-shallow-resnet",
            "the model's name",
        )?;
    }
    let report = report(bundles, "regions-resnet");
    need(paths(&report) == ["prefill", "prefill::stem", "prefill::residual", "prefill::head"], "a region per module")?;
    // A convolution of 3 by 3 from 3 to 32 channels over 8 images of 64 by 64.
    need(report["regions"][1]["modelled"]["flops_matrix"] == 2 * 27 * 32 * 64 * 64 * 8, "modelled beside counted")
}

fn modes(bundles: &Bundles) -> Result<(), String> {
    for mode in ["kernel", "range", "app-range", "application"] {
        bundles.ended(mode, 0)?;
        need(report(bundles, mode)["replay_mode"] == mode, &format!("replay mode {mode}"))?;
        let typed = bundles.text(&format!("{mode}/logs/ncu-regions-1.argv"));
        need(typed.contains(&format!("--replay-mode {mode} ")), &format!("replay mode {mode} for ncu"))?;
    }
    let config = bundles.json("deep/config.yaml");
    need(config["pipeline"]["ncu"]["ncu_cli"]["replay_mode"] == "kernel", "the default in the preset")
}

fn nested(bundles: &Bundles) -> Result<(), String> {
    for mode in ["kernel", "range", "app-range", "application"] {
        let report = report(bundles, mode);
        need(paths(&report) == ["A", "A::A1", "B"], &format!("three regions in {mode} replay"))?;
        let bytes = |place: usize, of: &str| {
            report["regions"][place]["aggregate"]["metrics"]["dram__bytes.sum"][of].as_f64().unwrap_or(0.0)
        };
        let (whole, sum) = (bytes(0, "inclusive"), bytes(0, "exclusive") + bytes(1, "inclusive"));
        need(whole > 0.0 && (sum / whole - 1.0).abs() < 0.01, &format!("totals that reconcile in {mode} replay"))?;
        let counts: Vec<_> =
            list(&report["regions"]).iter().map(|one| one["aggregate"]["kernels_inclusive"].as_u64()).collect();
        need(counts == [Some(10), Some(4), Some(8)], &format!("the kernels of each region in {mode} replay"))?;
        need(report["outside"]["kernels"] == 8, &format!("kernels outside of regions in {mode} replay"))?;
    }
    Ok(())
}

fn folders(bundles: &Bundles) -> Result<(), String> {
    bundles.ended("names", 0)?;
    bundles.files("names", &["ncu/regions/report.md", "ncu/regions/report.json"])?;
    let report = report(bundles, "names");
    need(["../x", "A_A1", "A::A1"].iter().all(|path| paths(&report).contains(path)), "every name as it was given")?;
    let root = bundles.path("names/ncu/regions").canonicalize().map_err(|error| error.to_string())?;
    let mut folders: Vec<_> = std::fs::read_dir(&root)
        .map_err(|error| error.to_string())?
        .filter_map(|entry| Some(entry.ok()?.path()).filter(|path| path.is_dir()))
        .collect();
    folders.sort();
    folders.dedup();
    need(folders.len() == list(&report["regions"]).len(), "a folder for each region")?;
    let whole =
        |folder: &std::path::PathBuf| folder.join("report.md").is_file() && folder.join("kernels.csv").is_file();
    need(folders.iter().all(whole), "the files of each region")?;
    need(!bundles.path("names/ncu/x").exists() && !bundles.path("names/x").exists(), "a folder is outside")
}

fn selection(bundles: &Bundles) -> Result<(), String> {
    // 32 changes of layout, by their exact name, and 12 normalisations, by a pattern.
    for (run, left_out, pattern) in [("exact", 32, "nchwToNhwcKernel"), ("pattern", 12, "regex:^bn_")] {
        bundles.ended(run, 0)?;
        let report = report(bundles, run);
        need(report["selection"]["kernels_left_out"] == left_out, &format!("kernels left out in `{run}`"))?;
        let selection = &report["regions"][0]["selection"];
        keys(selection, &["include_patterns", "exclude_patterns"])?;
        need(selection["exclude_patterns"].to_string().contains(pattern), "the choice per region")?;
        need(report["regions"][0]["aggregate"]["kernels_inclusive"] == 114 - left_out, "the kernels that are left")?;
    }
    Ok(())
}

fn chosen(bundles: &Bundles) -> Result<(), String> {
    bundles.ended("sections", 0)?;
    let with_sections = report(bundles, "sections");
    for region in list(&with_sections["regions"]) {
        let ids: Vec<_> = list(&region["aggregate"]["sections"]).iter().filter_map(|one| one["id"].as_str()).collect();
        need(ids == ["SpeedOfLight", "Occupancy"], "exactly the sections that are asked for")?;
        need(region["aggregate"]["metrics"].as_object().is_some_and(|map| map.is_empty()), "metrics nobody asked for")?;
    }
    let with_metrics = report(bundles, "kernel");
    for region in list(&with_metrics["regions"]) {
        let named: Vec<_> =
            region["aggregate"]["metrics"].as_object().into_iter().flatten().map(|(name, _)| name).collect();
        need(named == ["dram__bytes.sum"], "exactly the metrics that are asked for")?;
        need(list(&region["aggregate"]["sections"]).is_empty(), "sections nobody asked for")?;
    }
    need(!list(&with_sections["regions"]).is_empty() && !list(&with_metrics["regions"]).is_empty(), "regions")
}

fn parts(bundles: &Bundles) -> Result<(), String> {
    bundles.ended("parts", 0)?;
    let off = report(bundles, "parts");
    need(off["regions"][0]["aggregate"].is_null(), "an aggregate that is switched off")?;
    let part = &off["regions"][0]["parts"][0];
    keys(part, &["process", "device", "totals"])?;
    need(part["totals"]["kernels_inclusive"] == 114, "totals of a process and device")?;
    for region in list(&report(bundles, "kernel")["regions"]) {
        let parts = list(&region["parts"]).iter();
        let sum: f64 = parts.filter_map(|part| part["totals"]["total_ns_inclusive"].as_f64()).sum();
        equal(&region["aggregate"]["total_ns_inclusive"], sum, "the aggregate of all parts")?;
    }
    Ok(())
}

fn nothing(bundles: &Bundles) -> Result<(), String> {
    bundles.ended("unmatched", 0)?;
    let notes = report(bundles, "unmatched")["notes"].to_string();
    need(notes.contains("no matching regions for `decode*`"), "what is said of a range that matches nothing")?;
    need(list(&report(bundles, "unmatched")["regions"]).is_empty(), "a region that was not there")?;
    bundles.ended("nothing", 0)?;
    let notes = report(bundles, "nothing")["notes"].to_string();
    need(notes.contains("no kernel in `A` passes the kernel filter"), "what is said of an empty region")
}

fn schema(bundles: &Bundles) -> Result<(), String> {
    need(bundles.said("schemas").stdout.contains("llm-perf/regions/1"), "the schema")?;
    for run in ["kernel", "range", "sections", "names", "parts", "unmatched"] {
        bundles.valid(&[&format!("{run}/ncu/regions/report.json")])?;
    }
    let mut wrong = report(bundles, "kernel");
    keys(&wrong, &["scope", "totals", "generated_at", "config_fingerprint"])?;
    wrong["regions"][0]["parent"] = wrong["regions"][1]["path"].clone();
    need(bundles.validate(&wrong) == 1, "a region inside of itself is taken as valid")
}
