//! What goes across the verbs: keys, presets, contracts, validation, bounds.

use serde_json::{Value, json};

use crate::Row;
use crate::bundles::{Bundles, has, keys, list, need};

pub(crate) const ROWS: &[Row] = &[
    Row { id: "S5.1", requirement: "every operator has its stage", check: stages, live: "h200_defaults.sh" },
    Row {
        id: "S5.2",
        requirement: "`run.mode`, `run.top_n_kernels`, `artifacts.stage1_dir` and `artifacts.stage2_dir` act",
        check: runner,
        live: "",
    },
    Row { id: "S5.3", requirement: "overrides of Hydra's scripts are taken literally", check: literal, live: "" },
    Row {
        id: "S5.4",
        requirement: "a preset of ncu with its set for the roofline and the sections of SpeedOfLight by pattern",
        check: roofline,
        live: "h200_regions.sh",
    },
    Row {
        id: "S5.5",
        requirement: "`deep` replays ranges by configuration and reports their regions",
        check: ranges,
        live: "h200_deep_ranges.sh",
    },
    Row {
        id: "S5.6",
        requirement: "machine-readable contracts of a run and of a region report",
        check: contracts,
        live: "",
    },
    Row {
        id: "S5.7",
        requirement: "flat keys `gpu`, `cuda`, `torch` and `transformers` in `env.json`",
        check: flat,
        live: "h200_doctor.sh",
    },
    Row {
        id: "S5.8",
        requirement: "`validate` checks unique ids, references, trees, signs and shares",
        check: validators,
        live: "",
    },
    Row { id: "S5.9", requirement: "`sections.txt` for every region", check: sections, live: "h200_regions.sh" },
    Row {
        id: "S5.10",
        requirement: "a trace has a bound in size and time; past it the light mode is named",
        check: bounds,
        live: "",
    },
    Row {
        id: "S5.11",
        requirement: "a quickstart whose steps are run",
        check: quickstart,
        live: "h200_defaults.sh h200_regions.sh",
    },
];

fn stages(bundles: &Bundles) -> Result<(), String> {
    for run in ["native", "torch", "import", "deep"] {
        let metrics = bundles.json(&format!("{run}/metrics.json"));
        let rows = list(&metrics["operators"]);
        need(!rows.is_empty() && rows.iter().all(|row| row.get("stage").is_some()), &format!("`stage` in `{run}`"))?;
        // Calls, not times: those of a run on this machine are whatever else it does.
        let calls = |named: bool| -> u64 {
            let rows = rows.iter().filter(|row| !named || row["stage"].is_string());
            rows.filter_map(|row| row["calls"].as_u64()).sum()
        };
        need(calls(true) * 10 >= calls(false) * 9, &format!("the stage of 90% of the calls of operators in `{run}`"))?;
    }
    Ok(())
}

fn runner(bundles: &Bundles) -> Result<(), String> {
    bundles.ended("light", 0)?;
    bundles.ended("resnet", 0)?;
    bundles.files("light", &["kernels.json", "manifest.json"]).map_err(|_| "`artifacts.stage2_dir`".to_owned())?;
    bundles.files("resnet", &["metrics.json"]).map_err(|_| "`artifacts.stage1_dir`".to_owned())?;
    let plan = bundles.json("light/plan.json");
    need(plan["mode"] == "light", "`run.mode`")?;
    need(plan["top_kernels"] == 1, "`run.top_n_kernels`")
}

fn literal(bundles: &Bundles) -> Result<(), String> {
    bundles.ended("literal", 0)?;
    bundles.files("literal", &["manifest.json"]).map_err(|_| "`hydra.run.dir`".to_owned())?;
    let config = bundles.json("literal/config.yaml");
    need(config["run"]["mode"] == "light", "`+run.mode`")?;
    need(
        config["inputs"]["manifest"] == "list" && config["model"]["target"] == "tiny",
        "`+inputs.manifest`, `+model.target`",
    )?;
    need(
        bundles.json("literal/metrics.json")["run"]["model"] == "tiny",
        "the model of `+model.target` in the metrics",
    )?;
    need(config["pipeline"]["ncu"]["ncu_cli"]["nvtx"]["include"] == json!(["decode*"]), "one text for a list")
}

fn roofline(bundles: &Bundles) -> Result<(), String> {
    bundles.ended("plan", 0)?;
    need(has(&bundles.said("plan").stdout, &["--set roofline --section 'regex:SpeedOfLight.*'"]), "set and pattern")
}

fn ranges(bundles: &Bundles) -> Result<(), String> {
    bundles.ended("deep-range", 0)?;
    need(bundles.text("deep-range/logs/counters-prefill.argv").contains("--replay-mode range"), "the mode")?;
    let argv = bundles.text("deep-range/logs/counters-prefill.argv");
    need(!argv.contains("--kernel-name ") && !argv.contains("--launch-count"), "whole ranges, whatever their kernels")?;
    let metrics = bundles.json("deep-range/metrics.json");
    let counted = |region: &Value| region["metrics"].as_object().is_some_and(|metrics| !metrics.is_empty());
    need(list(&metrics["regions"]).iter().any(counted), "counters per region")?;
    let report = bundles.json("deep-range/ncu/regions/report.json");
    let folder = report["regions"][0]["folder"].as_str().ok_or("a region in ncu/regions/report.json")?;
    let files = ["report.md", "sections.txt", "kernels.csv"].map(|name| format!("ncu/regions/{folder}/{name}"));
    bundles.files("deep-range", &files.each_ref().map(String::as_str))?;
    need(
        bundles.text("deep-range/report.html").contains(report["regions"][0]["path"].as_str().unwrap_or("?")),
        "its page",
    )
}

fn contracts(bundles: &Bundles) -> Result<(), String> {
    let schemas = &bundles.said("schemas").stdout;
    let names =
        ["llm-perf/run/1", "llm-perf/runs/1", "llm-perf/metrics/1", "llm-perf/regions/1", "llm-perf/deep-plan/1"];
    need(has(schemas, &names), "schemas of a run and of its reports")?;
    let page = include_str!("../../../../docs/reference/contracts.md");
    need(has(page, &["POST /profile/run", "region report", "config_fingerprint"]), "the mapping page")?;
    let documents = bundles.printed("schemas");
    let known = |name: &str| list(&documents["documents"]).iter().any(|one| one["name"] == name);
    let mapped = page.split('`').filter(|name| name.starts_with("llm-perf/"));
    mapped.into_iter().try_for_each(|name| need(known(name), &format!("the schema `{name}` of the mapping page")))?;
    for file in [
        "deep/manifest.json",
        "deep/metrics.json",
        "deep/kernels.json",
        "deep/plan.json",
        "deep/env.json",
        "deep/inputs.yaml",
        "kernel/ncu/regions/report.json",
        "analyze/static_analysis/analytic_model/report.json",
    ] {
        let schema = bundles.json(file)["schema"].clone();
        need(schema.as_str().is_some_and(known), &format!("a schema for {file}"))?;
    }
    Ok(())
}

fn flat(bundles: &Bundles) -> Result<(), String> {
    let machine = bundles.json("deep/env.json");
    keys(&machine, &["gpu", "cuda", "cuda_driver", "torch", "transformers"])?;
    need(machine["gpu"] == "NVIDIA H200" && machine["torch"] == "2.11.0", "their values")?;
    let versions = |flat: &str, nested: &str| machine[flat] == *machine.pointer(nested).unwrap_or(&Value::Null);
    need(versions("cuda", "/frameworks/torch_cuda") && machine["cuda"] == "13.0", "the CUDA version of PyTorch")?;
    need(versions("cuda_driver", "/tools/cuda_driver"), "the CUDA version of the driver")
}

fn validators(bundles: &Bundles) -> Result<(), String> {
    let regions = bundles.json("kernel/ncu/regions/report.json");
    let model = bundles.json("analyze/static_analysis/analytic_model/report.json");
    let metrics = bundles.json("deep/metrics.json");
    need(bundles.validate(&metrics) == 0, "valid metrics are refused")?;
    need(bundles.validate(&regions) == 0 && bundles.validate(&model) == 0, "a valid document is refused")?;
    let changes: [(&Value, &str, Value, &str); 11] = [
        (&metrics, "/mfu_per_stage/decode", 1.5.into(), "an MFU above 1"),
        (&metrics, "/kernels/0/device", "cuda:9".into(), "a device that is not there"),
        (&metrics, "/kernels/1", metrics["kernels"][0].clone(), "a kernel twice"),
        (&model, "/layer_docs_dir", "../layers".into(), "a folder of layers outside"),
        (&regions, "/regions/0/folder", "../../B".into(), "a folder of a region outside"),
        (&model, "/modules/2/module_id", model["modules"][1]["module_id"].clone(), "an id twice"),
        (&model, "/modules/3/parent_id", "nowhere".into(), "a parent that is not there"),
        (&model, "/modules/1/parent_id", model["modules"][3]["module_id"].clone(), "a cycle"),
        (&model, "/module_metrics/3/total_time_ms", (-1.0).into(), "a negative time"),
        (&model, "/module_metrics/3/share_of_model_time", 1.5.into(), "a share above 1"),
        (&regions, "/regions/0/parent", regions["regions"][1]["path"].clone(), "a region inside of itself"),
    ];
    for (document, place, value, what) in changes {
        let mut changed = document.clone();
        *changed.pointer_mut(place).ok_or_else(|| format!("the key {place}"))? = value;
        need(bundles.validate(&changed) == 1, &format!("{what} is taken as valid"))?;
    }
    Ok(())
}

fn sections(bundles: &Bundles) -> Result<(), String> {
    bundles.files("sections", &["ncu/regions/A+A1/sections.txt", "ncu/regions/B/sections.txt"])?;
    let text = bundles.text("sections/ncu/regions/B/sections.txt");
    let report = bundles.json("sections/ncu/regions/report.json");
    let region = list(&report["regions"]).iter().find(|region| region["path"] == "B").ok_or("the region `B`")?;
    let mut compared = 0;
    for section in list(&region["aggregate"]["sections"]) {
        let id = section["id"].as_str().unwrap_or_default();
        need(text.contains(&format!("[{id}]")), &format!("the section {id}"))?;
        for metric in list(&section["metrics"]).iter().filter(|metric| metric["unit"] == "%") {
            let name = metric["name"].as_str().unwrap_or_default();
            let (_, rest) = text.split_once(&format!("\n  {name} ")).ok_or_else(|| format!("`{name}`"))?;
            let cell = rest.split_whitespace().next().unwrap_or_default().trim_end_matches('%');
            let made = metric["value"].as_f64().unwrap_or_default();
            need(
                cell.parse::<f64>().is_ok_and(|found| (found - made).abs() < 0.0051),
                &format!("{made}% of `{name}`"),
            )?;
            compared += 1;
        }
    }
    need(compared > 4, "numbers of the sections")
}

fn bounds(bundles: &Bundles) -> Result<(), String> {
    bundles.ended("endless", 1)?;
    let said = &bundles.said("endless").stderr;
    need(has(said, &["the limit is 5.00 MB", "--mode light"]), "the bound in size, and the light mode")?;
    bundles.ended("slow", 1)?;
    let said = &bundles.said("slow").stderr;
    need(has(said, &["took longer than 2 s and was stopped"]), "the bound in time")?;
    need(said.contains("--mode light"), "the light mode is not named where a pass takes too long")
}

fn quickstart(bundles: &Bundles) -> Result<(), String> {
    let steps = bundles.steps();
    need(!steps.is_empty(), "`docs/quickstart.md`")?;
    for (command, output, expected) in steps {
        need(output.code == 0, &format!("`{command}` fails: {}", output.stderr.lines().last().unwrap_or_default()))?;
        need(!expected.is_empty(), &format!("what to look for after `{command}`"))?;
        let shown = format!("{}{}", output.stdout, output.stderr);
        for text in expected {
            need(shown.contains(text.as_str()), &format!("`{command}` does not show `{text}`"))?;
        }
    }
    Ok(())
}
