//! What is said of the time of serving engines, whose kernels come from CUDA graphs and have no operator.

use serde_json::Value;
use testkit::need::reference;

use crate::imported::{self, Imported};

/// An imported trace: its metrics, and all that is said of it.
fn import(name: &str) -> (Value, String) {
    let Imported { metrics, pages, terminal } = imported::import(&[reference("third-party/traces-2").join(name)], &[]);
    (metrics, format!("{pages}\n{terminal}"))
}

fn rules(metrics: &Value) -> Vec<&str> {
    metrics["findings"].as_array().unwrap().iter().map(|finding| finding["rule"].as_str().unwrap()).collect()
}

pub(crate) fn accumulators_are_no_gemms_in_single_precision() {
    for name in ["lightllm-static.json.gz", "sgl-eagle3-bs16-decode.json.gz"] {
        let (metrics, said) = import(name);
        assert!(!rules(&metrics).contains(&"float32-gemms"), "{name}");
        assert!(!said.contains("GEMMs in FP32"), "{name}");
        assert!(!said.contains("gradient buckets"), "{name}: advice for training");
    }
    // Here they are.
    let (metrics, said) = import("param-resnet.json.gz");
    assert!(rules(&metrics).contains(&"float32-gemms") && said.contains("GEMMs in FP32"));
}

pub(crate) fn cost_centres_are_shares_of_all_device_work() {
    let (_, said) = import("lightllm-static.json.gz");
    assert!(said.contains("MoE kernels 50.7%"), "{said}");
    let centres = said.split("## Top cost centres").nth(1).unwrap().split("\n## ").next().unwrap();
    assert!(centres.contains("`grouped_matmul_kernel`") && centres.contains("47.3%"), "{centres}");
    assert!(!centres.contains("aten::copy_") && centres.contains("launched only 0.1% of the device work"), "{centres}");
}

pub(crate) fn little_time_outside_of_steps_makes_no_finding() {
    let (metrics, said) = import("sgl-plain-bs16-extend.json.gz");
    assert!(!rules(&metrics).contains(&"small-grids"), "{:?}", rules(&metrics));
    assert!(!said.contains("520 us of 636 us"), "a fifth of a percent of the run");
}

/// Milliseconds between kernels that had been launched: as the stages lost them, and as the devices have them.
fn delayed(metrics: &Value) -> [f64; 2] {
    let sum =
        |rows: &mut dyn Iterator<Item = &Value>, key| rows.map(|row| row[key].as_f64().unwrap()).sum::<f64>() / 1e6;
    let lost = metrics["lost_time"].as_array().unwrap().iter();
    let devices =
        metrics["device_time"].as_array().unwrap().iter().flat_map(|device| device["idle"].as_array().unwrap());
    [
        sum(&mut lost.filter(|row| row["cause"] == "gaps between kernels"), "lost_ns"),
        sum(&mut devices.filter(|idle| idle["cause"] == "between_kernels"), "ns"),
    ]
}

pub(crate) fn stages_are_not_idle_while_a_device_runs_the_work_of_others() {
    let (metrics, _) = import("sgl-plain-bs16-extend.json.gz");
    let [lost, idle] = delayed(&metrics);
    assert!(lost > 2.0 && lost <= idle, "{lost} of {idle} ms");
    // vLLM samples outside its annotated steps: that is no idle time, and still takes some.
    let folder = reference("serving/llama-8b");
    let metrics = imported::import(&[folder.join("trace.json.gz")], &[]).metrics;
    let [lost, idle] = delayed(&metrics);
    assert!(lost > 48.0 && lost <= idle, "{lost} of {idle} ms");
    let of = |rows: &Value, key: &str, name: &str, time: &str| -> i64 {
        let rows = rows.as_array().unwrap().iter().filter(|row| row[key] == name);
        rows.map(|row| row[time].as_i64().unwrap()).sum()
    };
    let others = of(&metrics["lost_time"], "cause", "GPU work outside the stage", "lost_ns");
    assert!((18_000_000..19_000_000).contains(&others), "{others}");
    // A step that was launched while a mixed one still ran begins behind it.
    let steps = of(&metrics["steps"]["list"], "label", "decode", "wall_ns");
    assert_eq!(of(&metrics["stages"], "name", "decode", "wall_ns"), steps);
}
