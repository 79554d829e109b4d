//! Profiling a model: stages, operators, utilisation, reports.

use serde_json::Value;

use crate::Row;
use crate::bundles::{Bundles, equal, has, keys, list, need, part, rows, shown, sum};

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
    let torch = bundles.json("torch/metrics.json");
    let kept = list(&torch["samples"]).iter().filter(|sample| sample["stage"] == "prefill").count();
    // One more inference is that of the operators' pass.
    need(count("loaded") == 1 && count("sample") == kept + 1 && kept > 10, "the samples of one load in PyTorch")
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
        let file = std::fs::read(image["path"].as_str().unwrap_or_default()).unwrap_or_default();
        equal(&image["bytes"], file.len() as f64, "bytes of an image")?;
        if image["name"] == "letter.png" {
            // The sizes stand behind the signature and the head of the first chunk.
            let size = |at: usize| f64::from(u32::from_be_bytes([0, 1, 2, 3].map(|byte| file[at + byte])));
            equal(&image["width"], size(16), "the width of an image")?;
            equal(&image["height"], size(20), "the height of an image")?;
        }
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
        let metrics = bundles.json(&format!("{run}/metrics.json"));
        let all = list(&metrics["operators"]);
        for one in all {
            keys(one, &["name", "stage", "device_ns", "bytes_allocated"])
                .map_err(|key| format!("{key} of an operator of `{run}`"))?;
            let [total, own, calls] = ["total_ns", "self_ns", "calls"].map(|key| one[key].as_f64().unwrap_or_default());
            let mean = one["mean_ns"].as_f64().unwrap_or_default();
            need((mean - total / calls).abs() < 1.0, &format!("the mean of an operator of `{run}`"))?;
            equal(&one["share"], own / sum(all, "self_ns"), &format!("the share of an operator of `{run}`"))?;
        }
        let page = bundles.text(&format!("{run}/operators.md"));
        let most = all.iter().max_by_key(|row| row["bytes_allocated"].as_u64()).map_or(&Value::Null, |row| row);
        let table = rows(part(&page, "By memory allocated"));
        let first =
            table.first().filter(|cells| cells[0] == format!("`{}`", most["name"].as_str().unwrap_or_default()));
        let cells = first.ok_or_else(|| format!("the operator of `{run}` that allocates most is not the first"))?;
        let [bytes, calls] = ["bytes_allocated", "calls"].map(|key| most[key].as_f64().unwrap_or_default());
        shown(cells[2], bytes, &format!("memory of an operator of `{run}`"))?;
        shown(cells[3], bytes / sum(all, "bytes_allocated"), &format!("share of memory in `{run}`"))?;
        shown(cells[5], bytes / calls, &format!("memory per call in `{run}`"))?;
    }
    let page = bundles.text("deep/operators.md");
    let (_, table) = page.split_once("time\n").unwrap_or_default();
    need(rows(table).len() == 5, "as many rows as `torch_profiler.top_k` says")
}

/// The time of a stage of one inference in nanoseconds: the median of its samples, of all inputs together.
fn wall(metrics: &Value, stage: &str) -> f64 {
    let samples = list(&metrics["samples"]).iter().filter(|one| one["stage"] == stage && one["warmup"] == false);
    let mut inputs: std::collections::BTreeMap<&str, Vec<f64>> = std::collections::BTreeMap::new();
    for sample in samples {
        let times = inputs.entry(sample["input"].as_str().unwrap_or_default()).or_default();
        times.extend(sample["wall_ns"].as_f64());
    }
    inputs.into_values().map(median).sum()
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    let middle = times.len() / 2;
    if times.len().is_multiple_of(2) { (times[middle - 1] + times[middle]) / 2.0 } else { times[middle] }
}

fn throughput(bundles: &Bundles) -> Result<(), String> {
    for run in ["native", "torch", "import"] {
        let metrics = bundles.json(&format!("{run}/metrics.json"));
        let (rates, of) = (&metrics["throughput"], |key: &str| format!("`{key}` of `{run}`"));
        let stage = |name: &str| list(&metrics["stages"]).iter().find(|stage| stage["name"] == name);
        let tokens = |name: &str| {
            let stage = stage(name).ok_or_else(|| of(name))?;
            Ok::<_, String>(stage["tokens"].as_f64().zip(stage["instances"].as_f64()).map_or(0.0, |(all, n)| all / n))
        };
        let inputs = list(&metrics["samples"]).iter().filter_map(|one| one["input"].as_str());
        let inputs = inputs.collect::<std::collections::BTreeSet<_>>().len().max(1) as f64;
        let [first, decode] = ["prefill", "decode"].map(|stage| wall(&metrics, stage) / inputs);
        let made = [
            ("ttft_ns", first.floor(), 1.0),
            ("prefill_tokens_per_second", tokens("prefill")? * 1e9 / first, 1e-3),
            ("time_per_output_token_ns", decode / tokens("decode")?, 1e-3),
            ("decode_tokens_per_second", 1e9 * tokens("decode")? / decode, 1e-3),
        ];
        for (key, made, _) in made {
            let found = rates[key].as_f64().unwrap_or_default();
            need((found - made).abs() <= 1e-5 * made, &format!("{}: {found}, {made} by its samples", of(key)))?;
        }
        let page = bundles.text(&format!("{run}/report.md"));
        need(has(&page, &["## Per-Stage Timings", "tokens/s"]), &format!("`report.md` of `{run}`"))?;
    }
    Ok(())
}

fn utilisation(bundles: &Bundles) -> Result<(), String> {
    let metrics = bundles.json("import/metrics.json");
    for run in ["native", "torch", "import"] {
        let metrics = bundles.json(&format!("{run}/metrics.json"));
        for stage in if run == "torch" { &["prefill", "decode"][..] } else { &["vision", "prefill", "decode"] } {
            let work = metrics["work_per_stage"][stage]["flops_matrix"].as_f64().unwrap_or_default();
            let peak = metrics["peak"]["flops"].as_f64().unwrap_or_default();
            let used = work / (wall(&metrics, stage) * 1e-9 * peak);
            // A calibration on a machine that was busy makes a peak that is passed.
            if used < 1.0 {
                equal(&metrics["mfu_per_stage"][stage], used, &format!("MFU of {stage} of `{run}`"))?;
            }
        }
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
    let kept = list(&metrics["samples"]).iter().filter(|one| one["stage"] == "prefill" && one["warmup"] == false);
    let times: Vec<f64> = kept.filter_map(|one| Some(one["wall_ns"].as_f64()? / 1e6)).collect();
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    let squares: f64 = times.iter().map(|time| (time - mean).powi(2)).sum();
    let deviation = (squares / (times.len() - 1) as f64).sqrt();
    for (key, made) in [("mean", mean), ("std", deviation), ("median", median(times.clone()))] {
        equal(&prefill[key], made, &format!("the {key} of prefill"))?;
    }
    equal(
        &prefill["mad"],
        median(times.iter().map(|time| (time - median(times.clone())).abs()).collect()),
        "the spread",
    )?;
    let varies = deviation / median(times.clone());
    equal(&metrics["variance"]["repeat_cv_per_stage"]["prefill"], varies, "the variance of repeats")?;
    let samples = list(&metrics["samples"]);
    let count =
        |warmup: bool| samples.iter().filter(|one| one["stage"] == "prefill" && one["warmup"] == warmup).count();
    need((count(false), count(true)) == (10, 1), "raw samples, those of the warm-up marked")?;
    keys(&metrics["settings"], &["repeats", "epochs", "warmup_rounds"])?;
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
        let manifest = bundles.json(&format!("{run}/manifest.json"));
        for name in names {
            let kept = list(&manifest["files"]).iter().find(|file| file["path"] == name);
            let kept = kept.ok_or_else(|| format!("`{name}` of `{run}` in its manifest"))?;
            equal(&kept["bytes"], bundles.text(&format!("{run}/{name}")).len() as f64, &format!("bytes of `{name}`"))?;
        }
    }
    Ok(())
}

/// The shares that the advice of a run saves, the largest first: of findings that call for the same, together.
fn savings(metrics: &Value) -> Vec<f64> {
    let mut all: Vec<(String, f64)> = Vec::new();
    for finding in list(&metrics["findings"]) {
        let Some(share) = finding["saves_share"].as_f64() else { continue };
        let text = |key: &str| finding[key].as_str().unwrap_or_default();
        let action = format!("{}: {}", text("rule"), text("advice").split(". ").next().unwrap_or_default());
        match all.iter_mut().find(|(known, _)| *known == action) {
            Some((_, sum)) => *sum += share,
            None => all.push((action, share)),
        }
    }
    let mut shares: Vec<f64> = all.into_iter().map(|(_, share)| share).filter(|share| *share >= 0.01).collect();
    shares.sort_by(|one, other| other.total_cmp(one));
    shares.into_iter().take(3).map(|share| share.min(1.0)).collect()
}

fn summary(bundles: &Bundles) -> Result<(), String> {
    let mut advice = Vec::new();
    for run in ["native", "torch", "import"] {
        let page = bundles.text(&format!("{run}/stakeholder_summary.md"));
        let metrics = bundles.json(&format!("{run}/metrics.json"));
        for heading in ["Environment", "Aggregates", "Stage takeaways"] {
            need(!part(&page, heading).trim().is_empty(), &format!("{heading} of `{run}`"))?;
        }
        let centres = rows(part(&page, "Top cost centres"));
        need(centres.len() >= 3, &format!("three cost centres of `{run}`"))?;
        // Parts of the network, or operators where the recording does not name those.
        let parts = list(&metrics["cost_centres"]);
        let (parts, name, time) = if parts.is_empty() {
            (list(&metrics["operators"]), "name", "device_ns")
        } else {
            (parts, "module", "total_ns")
        };
        for cells in centres.iter().take(3) {
            let is = |one: &&Value| cells[1].trim_matches('`') == one[name] && cells[2] == one["stage"];
            let centre = parts.iter().find(is).ok_or_else(|| format!("a cost centre of `{run}` and its stage"))?;
            let own = centre[time].as_f64().unwrap_or_default();
            let share = centre["share"].as_f64().filter(|_| name == "module").unwrap_or(own / sum(parts, time));
            shown(cells[3], share, &format!("a cost centre of `{run}`"))?;
        }
        let (half_page, _) = page.split_once("\n## Appendix\n").unwrap_or_default();
        need(!half_page.is_empty() && half_page.split_whitespace().count() <= 350, &format!("half a page on `{run}`"))?;
        let (_, rest) = half_page.split_once("**What to do.**").unwrap_or_default();
        let (advised, _) = rest.split_once("**What limits this.**").unwrap_or_default();
        let steps: Vec<&str> =
            advised.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_digit())).collect();
        let made = savings(&metrics);
        need(steps.len() == made.len(), &format!("{} pieces of advice in `{run}`, not {}", made.len(), steps.len()))?;
        for (step, share) in steps.iter().zip(&made) {
            let (_, saves) = step.rsplit_once(": ").unwrap_or_default();
            let cell = saves.split(' ').find(|word| word.ends_with('%')).unwrap_or_default();
            shown(cell, *share, &format!("what the advice for `{run}` saves"))?;
        }
        let none = advised.contains("No change with a worthwhile saving is known.");
        need(none == made.is_empty(), &format!("that nothing is worth it in `{run}`, where nothing is"))?;
        advice.push(advised.to_owned());
    }
    // Both are recorded: what they advise does not depend on this machine.
    need(advice[1].contains(": saves ") && advice[2].contains(": saves "), "advice that says what it saves")?;
    need(advice[1] != advice[2], "recommendations that differ between runs")
}

fn environment(bundles: &Bundles) -> Result<(), String> {
    let machine = bundles.json("deep/env.json");
    keys(&machine, &["gpus", "tools", "frameworks", "cpu", "memory", "operating_system", "git", "variables"])?;
    let gpu = &machine["gpus"][0];
    need(gpu["name"] == "NVIDIA H200" && gpu.to_string().contains("1980"), "the device and its clocks")?;
    let threads = std::thread::available_parallelism().map_err(|error| error.to_string())?;
    equal(&machine["cpu"]["threads_available"], threads.get() as f64, "the threads of this machine")?;
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
    let config = bundles.json("native/config.yaml");
    let settings = rows(part(&page, "Decoding"));
    let most = settings.iter().find(|cells| cells[0] == "maximum tokens").map_or("", |cells| cells[1]);
    shown(most, config["infer"]["max_new_tokens"].as_f64().unwrap_or_default(), "the most tokens")?;
    let samples = |run: &str| list(&bundles.json(&format!("{run}/metrics.json"))["samples"]).len();
    need(samples("native") == samples("again"), "as many samples")
}
