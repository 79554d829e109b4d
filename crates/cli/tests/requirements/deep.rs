//! Deep profiling with Nsight Systems and Nsight Compute.

use serde_json::Value;

use crate::Row;
use crate::bundles::{Bundles, equal, has, keys, list, need, part, rows, shown, sum};

pub(crate) const ROWS: &[Row] = &[
    Row {
        id: "S2.1",
        requirement: "one command records the whole run with Nsight Systems, then counts the kernels that take most with Nsight Compute; less than 30 minutes",
        check: one_command,
        live: "h200_defaults.sh h200_deep.sh",
    },
    Row {
        id: "S2.2",
        requirement: "command lines of nsys and ncu follow from the configuration",
        check: command_lines,
        live: "h200_deep.sh h200_regions.sh",
    },
    Row { id: "S2.3", requirement: "SQLite and CSV of nsys, raw CSV of ncu", check: exports, live: "h200_deep.sh" },
    Row {
        id: "S2.4",
        requirement: "kernels with device, total, calls, mean, share and stage; totals are the tool's to the nanosecond",
        check: kernels,
        live: "h200_deep.sh",
    },
    Row {
        id: "S2.5",
        requirement: "a tool that is missing, old or not permitted is found before the run or leaves a run that says it is partial; nothing is made up",
        check: troubles,
        live: "h200_doctor.sh",
    },
    Row {
        id: "S2.6",
        requirement: "six tables and a narrative in every summary",
        check: tables,
        live: "h200_defaults.sh",
    },
    Row {
        id: "S2.7",
        requirement: "modes `deep` and `light`; overhead against a run without a profiler, at most 25% by default",
        check: overhead,
        live: "h200_deep.sh inject_overhead.py",
    },
    Row {
        id: "S2.8",
        requirement: "other model families by configuration alone, named in every output",
        check: families,
        live: "h200_deep.sh h200_torch.sh",
    },
    Row {
        id: "S2.9",
        requirement: "environment, configuration, inputs, command lines and the tools' messages are kept",
        check: provenance,
        live: "h200_defaults.sh",
    },
    Row { id: "S2.10", requirement: "presets of nsys and ncu as configuration groups", check: presets, live: "" },
];

fn one_command(bundles: &Bundles) -> Result<(), String> {
    bundles.ended("deep", 0)?;
    let manifest = bundles.json("deep/manifest.json");
    let steps: Vec<&str> = list(&manifest["steps"]).iter().filter_map(|step| step["name"].as_str()).collect();
    let place = |name: &str| steps.iter().position(|step| *step == name);
    need(
        place("timeline").is_some() && place("timeline") < place("counters-prefill"),
        "a timeline before the counters",
    )?;
    let kernels = bundles.json("deep/kernels.json");
    for stage in ["prefill", "decode"] {
        let rows = list(&kernels["kernels"]).iter().filter(|row| row["stage"] == stage);
        let most = rows.max_by_key(|row| row["total_ns"].as_u64()).map(|row| &row["name"]);
        let counted = list(&kernels["sampled"]).iter().find(|row| row["stage"] == stage).map(|row| &row["name"]);
        need(most.is_some() && most == counted, &format!("counters of the kernel that takes most of {stage}"))?;
    }
    Ok(())
}

fn command_lines(bundles: &Bundles) -> Result<(), String> {
    bundles.ended("plan", 0)?;
    let plan = &bundles.said("plan").stdout;
    let nsys = ["--trace=cuda,nvtx,osrt", "--capture-range=nvtx", "--nvtx-capture=prefill@LLM"];
    need(has(plan, &nsys), "options of nsys")?;
    let ncu = ["--target-processes all", "--nvtx-include", "--set roofline", "--section", "--metrics dram__bytes.sum"];
    need(has(plan, &ncu), "options of ncu")?;
    need(
        has(plan, &["--replay-mode kernel", "--kernel-name", "--launch-skip 2", "--launch-count"]),
        "choice of kernels",
    )?;
    // What is kept is what the tool was given.
    let kept = bundles.text("deep/logs/timeline-nsys.argv");
    let (_, kept) = kept.split_once("/nsys ").unwrap_or_default();
    need(!kept.is_empty() && bundles.text("tools.log").contains(kept.trim()), "the command line of nsys as it ran")
}

fn exports(bundles: &Bundles) -> Result<(), String> {
    bundles.files(
        "deep",
        &["nsys/timeline.sqlite", "nsys/stats_cuda_gpu_kern_sum.csv", "ncu/prefill.csv", "ncu/decode.csv"],
    )?;
    let kernels = bundles.json("deep/kernels.json");
    for stage in ["prefill", "decode"] {
        // Behind two lines of names and units each line is a launch.
        let launches =
            bundles.text(&format!("deep/ncu/{stage}.csv")).lines().filter(|line| line.starts_with('"')).count() - 2;
        let counted = list(&kernels["sampled"]).iter().filter(|row| row["stage"] == stage);
        let counted: f64 = counted.filter_map(|row| row["counted"]["launches"].as_f64()).sum();
        need(launches as f64 == counted, &format!("{launches} launches in the page of {stage}, {counted} counted"))?;
    }
    Ok(())
}

fn kernels(bundles: &Bundles) -> Result<(), String> {
    let rows = bundles.json("deep/kernels.json");
    let of_rows: u64 = list(&rows["kernels"]).iter().filter_map(|row| row["total_ns"].as_u64()).sum();
    let table = bundles.text("deep/nsys/stats_cuda_gpu_kern_sum.csv");
    let of_tool: u64 = table.lines().skip(1).filter_map(|line| line.split(',').nth(1)?.parse::<u64>().ok()).sum();
    need(of_tool > 0 && of_rows == of_tool, "totals equal to those of nsys")?;
    let page = bundles.text("deep/kernels.md");
    let head = page.lines().find(|line| line.starts_with("| kernel ")).unwrap_or_default();
    need(has(head, &["stage", "device", "total ms", "share", "calls", "mean ms"]), "columns of `kernels.md`")?;
    for row in list(&rows["kernels"]) {
        let [total, calls] = ["total_ns", "calls"].map(|key| row[key].as_f64().unwrap_or_default());
        equal(&row["mean_ns"], (total / calls).floor(), "the mean of a kernel")?;
        equal(&row["share"], total / of_rows as f64, "the share of a kernel")?;
    }
    let totals: Vec<u64> = list(&rows["kernels"]).iter().filter_map(|row| row["total_ns"].as_u64()).collect();
    need(totals.is_sorted_by(|one, two| one >= two), "the order by total time")
}

fn troubles(bundles: &Bundles) -> Result<(), String> {
    for (run, words) in [("no-gpu", "no NVIDIA GPU to profile"), ("old", "hint: install Nsight Systems")] {
        bundles.ended(run, 1)?;
        need(bundles.said(run).stderr.contains(words), &format!("what to do in `{run}`"))?;
        need(!bundles.path(run).exists(), &format!("`{run}` leaves a folder"))?;
    }
    bundles.ended("forbidden", 3)?;
    need(bundles.said("forbidden").stderr.contains("NVreg_RestrictProfilingToAdminUsers=0"), "how to permit counters")?;
    need(bundles.json("forbidden/manifest.json")["status"] == "partial", "a partial run that says so")?;
    let kernels = bundles.json("forbidden/kernels.json");
    need(kernels["counters"]["origin"] == "modelled", "counters marked as modelled")?;
    need(list(&kernels["sampled"]).iter().all(|row| row["counted"].is_null()), "a counter that nothing counted")?;
    need(!bundles.path("forbidden/ncu/prefill.csv").exists(), "a page that was not counted is there")?;
    for front in ["report.md", "stakeholder_summary.md", "report.html"] {
        let text = bundles.text(&format!("forbidden/{front}"));
        need(text.contains("This run is partial: "), &format!("that the run is partial, in {front}"))?;
    }
    need(!list(&bundles.printed("doctor")["checks"]).is_empty(), "checks of `doctor`")
}

fn tables(bundles: &Bundles) -> Result<(), String> {
    for run in ["native", "torch", "import", "deep", "light", "forbidden"] {
        let page = bundles.text(&format!("{run}/stakeholder_summary.md"));
        for heading in ["Environment", "Aggregates", "Per-Stage Timings", "MFU", "Top Operators", "Top Kernels"] {
            need(page.contains(&format!("\n## {heading}\n")), &format!("{heading} of `{run}`"))?;
        }
        need(has(&page, &["**The problem.**", "**What to do.**"]), &format!("a narrative of `{run}`"))?;
        let metrics = bundles.json(&format!("{run}/metrics.json"));
        for cells in rows(part(&page, "Per-Stage Timings")) {
            let stage = cells[0].rsplit(" > ").next().unwrap_or_default();
            let times = &metrics["aggregates"]["stage_ms"][stage];
            for (cell, key) in [(cells[1], "median"), (cells[2], "mean")] {
                let nanoseconds = times[key].as_f64().unwrap_or_default() * 1e6;
                shown(cell, nanoseconds, &format!("the {key} of {stage} in `{run}`"))?;
            }
        }
        for cells in rows(part(&page, "MFU")) {
            let of_stage = &metrics["mfu_per_stage"][cells[0]];
            let used = if cells[0] == "model" { &metrics["mfu_model_level"] } else { of_stage };
            let Some(used) = used.as_f64() else { continue };
            shown(cells[1], used, &format!("MFU of {} in `{run}`", cells[0]))?;
        }
        for cells in rows(part(&page, "Top Kernels")) {
            // Long names are cut in the middle.
            let (start, end) = cells[0].trim_matches('`').split_once("..").unwrap_or((cells[0].trim_matches('`'), ""));
            let named = |name: &str| name.starts_with(start) && name.ends_with(end);
            let is = |row: &&Value| row["short_name"].as_str().is_some_and(named) && cells[2] == row["stage"];
            let kernel = list(&metrics["kernels"]).iter().find(is);
            let kernel = kernel.ok_or_else(|| format!("the kernel {} in `{run}`", cells[0]))?;
            let total = kernel["total_ns"].as_f64().unwrap_or_default();
            shown(cells[4], total / 1e6, &format!("the time of {} in `{run}`", cells[0]))?;
            shown(cells[5], total / sum(list(&metrics["kernels"]), "total_ns"), &format!("the share of {}", cells[0]))?;
        }
    }
    let page = bundles.text("deep/stakeholder_summary.md");
    need(rows(part(&page, "Per-Stage Timings")).len() == 2 && rows(part(&page, "MFU")).len() == 3, "rows of stages")?;
    need(has(&page, &["`aten::mm`", "nvjet_sm90"]), "operators and kernels of a deep run")
}

fn overhead(bundles: &Bundles) -> Result<(), String> {
    let metrics = bundles.json("deep/metrics.json");
    keys(&metrics["overhead"], &["baseline_ns", "profiled_ns", "share", "baseline_spread"])?;
    let [baseline, profiled] =
        ["baseline_ns", "profiled_ns"].map(|key| metrics["overhead"][key].as_f64().unwrap_or_default());
    equal(&metrics["overhead"]["share"], profiled / baseline - 1.0, "the share of the overhead")?;
    need(bundles.said("deep").stdout.contains("overhead"), "the overhead is not printed")?;
    bundles.ended("light", 0)?;
    let typed = bundles.text("light/logs/counters-decode.argv");
    need(typed.contains("--launch-count 1 "), "fewer launches in light mode")
}

fn families(bundles: &Bundles) -> Result<(), String> {
    for (run, class) in [("torch", "LlamaForCausalLM"), ("moe", "Qwen2MoeForCausalLM")] {
        bundles.ended(run, 0)?;
        let report = bundles.json(&format!("{run}/static_analysis/analytic_model/report.json"));
        need(report["model"]["model_variant"] == class, &format!("the family of `{run}`"))?;
        let named = |file: &str, pointer: &str| {
            bundles.json(&format!("{run}/{file}")).pointer(pointer).is_some_and(Value::is_string)
        };
        need(named("metrics.json", "/run/model") && named("manifest.json", "/model"), "the model in every document")?;
        let metrics = bundles.json(&format!("{run}/metrics.json"));
        for check in list(&metrics["flop_checks"]) {
            let [modelled, counted] =
                ["flops_modelled", "flops_counted"].map(|key| check[key].as_f64().unwrap_or_default());
            equal(&check["difference"], modelled / counted - 1.0, "the difference of FLOPs")?;
            need((modelled / counted - 1.0).abs() < 1e-3, &format!("FLOPs of `{run}` as counted by torch"))?;
        }
        need(!list(&metrics["flop_checks"]).is_empty(), &format!("FLOPs of `{run}` counted by torch"))?;
    }
    Ok(())
}

fn provenance(bundles: &Bundles) -> Result<(), String> {
    for run in ["native", "torch", "import", "deep", "kernel", "names"] {
        bundles.files(run, &["env.json", "config.yaml", "inputs.yaml"])?;
        need(bundles.json(&format!("{run}/inputs.yaml"))["count"].as_u64() > Some(0), &format!("inputs of `{run}`"))?;
        let manifest = bundles.json(&format!("{run}/manifest.json"));
        let typed: Vec<&str> = list(&manifest["command"]).iter().filter_map(Value::as_str).collect();
        let out = typed.iter().position(|word| *word == "--out").and_then(|at| typed.get(at + 1));
        need(manifest["verb"] == typed[1] && out == Some(&run), &format!("the command line of `{run}`"))?;
    }
    bundles
        .files("deep", &["logs/timeline-nsys.argv", "logs/counters-prefill.argv", "logs/counters-prefill.stdout"])?;
    need(bundles.path("deep/logs/timeline-nsys.stderr").is_file(), "what nsys said")
}

fn presets(bundles: &Bundles) -> Result<(), String> {
    let groups = bundles.printed("groups");
    let names = groups.to_string();
    let presets = [
        "nsys.default",
        "ncu.default",
        "ncu.high",
        "ncu.light",
        "ncu.rtx3090",
        "ncu.rtx3090.compute",
        "ncu.rtx3090.memory",
    ];
    presets.iter().try_for_each(|name| need(names.contains(&format!("\"name\":\"{name}\"")), &format!("`{name}`")))?;
    for tool in ["nsys", "ncu"] {
        let folder = format!("{}/../../conf/profiling/{tool}", env!("CARGO_MANIFEST_DIR"));
        let files = std::fs::read_dir(folder).map_err(|error| error.to_string())?.count();
        let group = list(&groups).iter().find(|group| group["group"] == format!("profiling/{tool}"));
        let listed = group.map_or(0, |group| list(&group["options"]).len());
        need(listed == files, &format!("{listed} presets of {tool} for {files} files"))?;
    }
    Ok(())
}
