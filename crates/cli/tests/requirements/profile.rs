//! Profiling a model: stages, operators, utilisation, reports.

use serde_json::Value;

use crate::Row;
use crate::bundles::{Bundles, has, keys, list, need};

pub(crate) const ROWS: &[Row] = &[
    Row {
        id: "S1.1",
        requirement: "a model is loaded once and runs many times",
        check: loaded_once,
        live: "h200_torch.sh",
    },
    Row {
        id: "S1.2",
        requirement: "inputs come from a folder, a pattern or a list; PNG and JPEG; a diverse set of pages ships with the program; `inputs.yaml` records them",
        check: inputs,
        live: "",
    },
    Row {
        id: "S1.3",
        requirement: "stages are marked as NVTX ranges in the domain `LLM`; their times add up to the measured time within 1%",
        check: stages,
        live: "h200_torch.sh",
    },
    Row {
        id: "S1.4",
        requirement: "operators by time and by memory, as many as configured",
        check: operators,
        live: "h200_torch.sh",
    },
    Row {
        id: "S1.5",
        requirement: "time and throughput per stage: tokens per second, time to first token, time per output token",
        check: throughput,
        live: "",
    },
    Row {
        id: "S1.6",
        requirement: "MFU and MBU of the model and of each stage, on dense peaks with a source; above 1 they are left out with a finding; an unknown device is an error",
        check: utilisation,
        live: "h200_torch.sh",
    },
    Row {
        id: "S1.7",
        requirement: "warm-up, repeats and epochs, with mean, deviation, median and spread; variance of repeats apart from that of inputs; raw samples",
        check: statistics,
        live: "h200_deep.sh",
    },
    Row { id: "S1.8", requirement: "the seven files of a run are there and valid", check: files, live: "" },
    Row {
        id: "S1.9",
        requirement: "a summary in plain words: three cost centres with their stage, and recommendations that follow from the run and say what they save",
        check: summary,
        live: "",
    },
    Row {
        id: "S1.10",
        requirement: "`env.json` describes machine, driver, tools, frameworks and clocks",
        check: environment,
        live: "h200_doctor.sh",
    },
    Row {
        id: "S1.11",
        requirement: "`assumptions.md` has what is needed to repeat a run, and `profile --from` repeats it",
        check: repeated,
        live: "",
    },
];

fn loaded_once(bundles: &Bundles) -> Result<(), String> {
    bundles.ended("native", 0)?;
    bundles.ended("torch", 0)?;
    let metrics = bundles.json("native/metrics.json");
    need(metrics["load_ns"].as_u64() > Some(0), "the time of loading, as one number")?;
    let prefills = list(&metrics["samples"]).iter().filter(|sample| sample["stage"] == "prefill");
    let inputs: Vec<&str> = prefills.filter_map(|sample| sample["input"].as_str()).collect();
    need(inputs == ["letter.png", "slide.jpg"], "two inputs in one run")?;
    let events = bundles.text("torch/logs/torch-events.jsonl");
    let count = |name: &str| events.lines().filter(|line| line.contains(&format!("\"event\": \"{name}\""))).count();
    need(count("loaded") == 1 && count("sample") > 10, "many samples after one load in PyTorch")
}

fn inputs(bundles: &Bundles) -> Result<(), String> {
    let inputs = bundles.json("native/inputs.yaml");
    keys(&inputs, &["dataset_root", "subset_filelist", "count"])?;
    let images = list(&inputs["images"]);
    need(inputs["count"] == 2 && images.len() == 2, "both files of a folder")?;
    for image in images {
        keys(image, &["width", "height", "bytes", "category", "used"])?;
        need(image["path"].as_str().is_some_and(|path| path.starts_with('/')), "absolute paths")?;
        need(image["sha256"].as_str().is_some_and(|hash| hash.len() == 64), "hashes")?;
    }
    for (run, name) in [("pattern-of-files", "slide.jpg"), ("list-of-files", "pages/letter.png")] {
        let inputs = bundles.json(&format!("{run}/inputs.yaml"));
        need(inputs["count"] == 1 && inputs["images"][0]["name"] == name, &format!("the input of `{run}`"))?;
    }
    let shipped = bundles.json("builtin/inputs.yaml");
    let shipped = list(&shipped["images"]);
    need((10..=20).contains(&shipped.len()), "10 to 20 pages that ship with the program")?;
    for category in ["text-heavy", "mixed-layout", "image-rich"] {
        need(shipped.iter().any(|page| page["category"] == category), &format!("{category} pages"))?;
    }
    let named =
        |ending: &str| shipped.iter().any(|page| page["name"].as_str().is_some_and(|name| name.ends_with(ending)));
    need(named(".png") && named(".jpg"), "PNG and JPEG")
}

fn stages(bundles: &Bundles) -> Result<(), String> {
    let native = bundles.json("native/metrics.json");
    let wall = |metrics: &Value, name: &str| {
        list(&metrics["stages"]).iter().find(|stage| stage["name"] == name).and_then(|stage| stage["wall_ns"].as_i64())
    };
    for stage in ["prefill", "decode", "sam", "clip", "projector"] {
        need(wall(&native, stage).is_some(), &format!("the stage {stage}"))?;
    }
    let vision: Option<i64> = ["sam", "clip", "projector"].iter().map(|part| wall(&native, part)).sum();
    need(vision == wall(&native, "vision") && vision <= wall(&native, "prefill"), "vision as a part of prefill")?;
    for run in ["torch", "import"] {
        let metrics = bundles.json(&format!("{run}/metrics.json"));
        let whole = metrics["totals"]["wall_ns"].as_f64().unwrap_or(0.0);
        let sum = wall(&metrics, "prefill").zip(wall(&metrics, "decode")).map_or(0.0, |(one, two)| (one + two) as f64);
        need(whole > 0.0 && (sum / whole - 1.0).abs() < 0.01, &format!("stage times of `{run}` that add up"))?;
    }
    let driver = bundles.text("torch/logs/torch-driver.py");
    need(has(&driver, &["get_domain(\"LLM\")", "\"decode_all\"", "\"prefill\"", "synchronize"]), "ranges in PyTorch")?;
    let metrics = bundles.json("import/metrics.json");
    need(list(&metrics["regions"]).iter().any(|region| region["path"] == "prefill::sam"), "nested ranges read back")
}

fn operators(bundles: &Bundles) -> Result<(), String> {
    for run in ["native", "torch", "deep"] {
        let page = bundles.text(&format!("{run}/operators.md"));
        need(has(&page, &["time\n", "## By memory", "mean", "share", "calls"]), &format!("tables of `{run}`"))?;
        let metrics = bundles.json(&format!("{run}/metrics.json"));
        let first = &metrics["operators"][0];
        keys(first, &["name", "stage", "calls", "total_ns", "self_ns", "device_ns", "bytes_allocated"])
            .map_err(|key| format!("{key} of an operator of `{run}`"))?;
        need(list(&metrics["operators"]).iter().any(|row| row["bytes_allocated"].as_i64() > Some(0)), "memory")?;
    }
    let page = bundles.text("deep/operators.md");
    let (_, table) = page.split_once("time\n").unwrap_or_default();
    let rows = table.split("\n## ").next().unwrap_or_default().lines().filter(|line| line.starts_with("| `"));
    need(rows.count() == 5, "as many rows as `torch_profiler.top_k` says")
}

fn throughput(bundles: &Bundles) -> Result<(), String> {
    for run in ["native", "torch", "import"] {
        let metrics = bundles.json(&format!("{run}/metrics.json"));
        let rates = &metrics["throughput"];
        for key in ["ttft_ns", "time_per_output_token_ns", "decode_tokens_per_second", "prefill_tokens_per_second"] {
            need(rates[key].as_f64() > Some(0.0), &format!("`{key}` of `{run}`"))?;
        }
    }
    for run in ["native", "torch"] {
        let page = bundles.text(&format!("{run}/report.md"));
        need(has(&page, &["## Per-Stage Timings", "tokens/s"]), &format!("`report.md` of `{run}`"))?;
    }
    Ok(())
}

fn utilisation(bundles: &Bundles) -> Result<(), String> {
    let metrics = bundles.json("import/metrics.json");
    for stage in ["vision", "prefill", "decode"] {
        let used = metrics["mfu_per_stage"][stage].as_f64();
        need(used.is_some_and(|used| used > 0.0 && used < 1.0), &format!("MFU of {stage}"))?;
    }
    need(metrics["mfu_model_level"].is_f64() && metrics["mbu_model_level"].is_f64(), "MFU and MBU of the model")?;
    // A dense rate of the published table; the sparse one is twice that.
    need(
        metrics["peak"]["flops"] == 989.5e12 && metrics["peak"]["source"].is_string(),
        "a dense peak with its source",
    )?;
    let above = bundles.json("above/metrics.json");
    need(above["mfu_per_stage"]["prefill"].is_null(), "MFU above 1 is shown")?;
    let found = list(&above["findings"]).iter().any(|finding| finding["rule"] == "utilisation-above-one");
    need(found, "the finding of MFU above 1")?;
    bundles.ended("unknown", 2)?;
    need(bundles.said("unknown").stderr.contains("To add this one, write"), "the way to add a device")
}

fn statistics(bundles: &Bundles) -> Result<(), String> {
    let metrics = bundles.json("torch/metrics.json");
    let prefill = &metrics["aggregates"]["stage_ms"]["prefill"];
    keys(prefill, &["mean", "std", "median", "mad", "min", "max", "n"])?;
    need(prefill["n"] == 10, "ten repeats")?;
    let samples = list(&metrics["samples"]);
    let count =
        |warmup: bool| samples.iter().filter(|one| one["stage"] == "prefill" && one["warmup"] == warmup).count();
    need((count(false), count(true)) == (10, 1), "raw samples, those of the warm-up marked")?;
    keys(&metrics["settings"], &["repeats", "epochs", "warmup_rounds"])?;
    need(metrics["variance"]["repeat_cv_per_stage"]["prefill"].is_f64(), "variance of repeats")?;
    let native = bundles.json("native/metrics.json");
    need(native["variance"]["input_cv_per_stage"]["prefill"].is_f64(), "variance of inputs")
}

fn files(bundles: &Bundles) -> Result<(), String> {
    let names = [
        "report.md",
        "operators.md",
        "metrics.json",
        "stakeholder_summary.md",
        "inputs.yaml",
        "env.json",
        "assumptions.md",
    ];
    for run in ["native", "torch", "moe", "import", "deep"] {
        bundles.ended(run, 0)?;
        bundles.files(run, &names)?;
        let documents = ["metrics.json", "inputs.yaml", "env.json"].map(|name| format!("{run}/{name}"));
        bundles.valid(&documents.each_ref().map(String::as_str))?;
    }
    Ok(())
}

fn summary(bundles: &Bundles) -> Result<(), String> {
    let mut advice = Vec::new();
    for run in ["native", "torch", "import"] {
        let page = bundles.text(&format!("{run}/stakeholder_summary.md"));
        let part = |heading: &str| {
            let (_, rest) = page.split_once(&format!("\n## {heading}\n")).unwrap_or_default();
            rest.split("\n## ").next().unwrap_or_default().to_owned()
        };
        for heading in ["Environment", "Aggregates", "Per-Stage Timings", "MFU", "Stage takeaways"] {
            need(!part(heading).trim().is_empty(), &format!("{heading} of `{run}`"))?;
        }
        let centres = part("Top cost centres");
        let ranked = (1..=3).all(|rank| centres.lines().any(|line| line.starts_with(&format!("|    {rank} |"))));
        need(ranked && centres.contains("stage"), &format!("three cost centres of `{run}`"))?;
        let (half_page, _) = page.split_once("\n## Appendix\n").unwrap_or_default();
        need(!half_page.is_empty() && half_page.split_whitespace().count() <= 350, &format!("half a page on `{run}`"))?;
        let (_, rest) = half_page.split_once("**What to do.**").unwrap_or_default();
        let (advised, _) = rest.split_once("**What limits this.**").unwrap_or_default();
        need(advised.contains(": saves "), &format!("what the advice for `{run}` saves"))?;
        advice.push(advised.to_owned());
    }
    need(advice[0] != advice[1] && advice[1] != advice[2], "recommendations that differ between runs")
}

fn environment(bundles: &Bundles) -> Result<(), String> {
    let machine = bundles.json("deep/env.json");
    keys(&machine, &["gpus", "tools", "frameworks", "cpu", "memory", "operating_system", "git", "variables"])?;
    let gpu = &machine["gpus"][0];
    need(gpu["name"] == "NVIDIA H200" && gpu.to_string().contains("1980"), "the device and its clocks")?;
    for tool in ["driver", "cuda_driver", "nsys", "ncu"] {
        need(!machine["tools"][tool].is_null(), &format!("the release of {tool}"))?;
    }
    need(!machine["frameworks"]["torch"].is_null(), "the release of torch")?;
    let home = std::env::var("HOME").unwrap_or_default();
    need(home.len() < 2 || !machine.to_string().contains(&format!("{home}/")), "the home folder is not left out")
}

fn repeated(bundles: &Bundles) -> Result<(), String> {
    let page = bundles.text("native/assumptions.md");
    let headings = [
        "Device",
        "Repeats",
        "Batch",
        "Model and weights",
        "Decoding",
        "Preprocessing",
        "Profiling settings",
        "Data selection",
    ];
    for heading in headings {
        need(page.contains(&format!("\n## {heading}\n")), &format!("{heading} in `assumptions.md`"))?;
    }
    bundles.ended("again", 0)?;
    need(bundles.text("native/config.yaml") == bundles.text("again/config.yaml"), "the same configuration")?;
    let samples = |run: &str| list(&bundles.json(&format!("{run}/metrics.json"))["samples"]).len();
    need(samples("native") == samples("again"), "as many samples")
}
