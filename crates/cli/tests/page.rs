//! `report` and `show`: the page as a file, and the same run in a terminal. What a browser makes of it is in the suite `browser`.

#[path = "support/scratch.rs"]
#[allow(dead_code, reason = "an import needs less of it than a profile")]
mod scratch;
mod support;

use scratch::{Output, Scratch, capture};
use serde_json::Value;

#[test]
fn a_page_made_again_is_the_page_of_the_run() {
    let scratch = Scratch::imported(&capture("torch/small.json"));
    let again = std::fs::read_to_string(scratch.page(&["run"])).unwrap();
    assert_eq!(again, scratch.text("run", "report.html"));
    let verified = Output::of(scratch.command(&["runs", "./run", "--verify"]));
    assert_eq!(verified.code, 0, "the run stays as it is: {}", verified.stdout);
}

#[test]
fn the_page_of_a_run_of_our_own_has_its_forecast_at_once() {
    let scratch = Scratch::new();
    let small = ["infer.base_size=64", "infer.image_size=64", "infer.max_tiles=2", "infer.max_new_tokens=4"];
    let smoke = "dataset/sampling@dataset.sampling=sampling.smoke";
    let output = scratch.profile(&[&[smoke], &small[..]].concat(), &["--out", "run"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let written = scratch.text("run", "report.html");
    assert!(written.contains("<section id=\"forecast\"") && written.contains("<section id=\"shares\""));
    assert!(written.contains(" of the roof, "), "points of the roofline say what they are");
    assert!(
        written.contains("self time of modules by stage, the longest modules first, in the profiled pass, which took "),
        "and of which pass times are"
    );
    let charts = ["charts/stages.svg", "charts/roofline.svg"];
    let report = scratch.text("run", "report.md");
    for chart in charts {
        assert!(report.contains(&format!("({chart})")), "{chart}: {report}");
        assert!(scratch.text("run", chart).starts_with("<svg "), "{chart}");
    }
    assert_eq!(std::fs::read_to_string(scratch.page(&["run"])).unwrap(), written);
}

#[test]
fn a_page_shows_its_inputs_and_a_redacted_run_does_not() {
    let scratch = Scratch::new();
    let small = ["infer.base_size=64", "infer.image_size=64", "infer.max_tiles=2", "infer.max_new_tokens=2"];
    let smoke = "dataset/sampling@dataset.sampling=sampling.smoke";
    let output = scratch.profile(&[&[smoke], &small[..]].concat(), &["--out", "run"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let written = scratch.text("run", "report.html");
    let pictures = written.matches("<img src=\"data:image/jpeg;base64,").count();
    assert!(pictures > 0 && written.contains("img-src data:;"), "{pictures}");
    let kept = std::fs::read_dir(scratch.path("run/thumbnails")).unwrap().count();
    assert_eq!(kept, pictures);
    assert!(written.len() < 1_000_000, "{} bytes", written.len());
    for arguments in [
        &["pack", "./run", "--redact", "--out", "bundle.llmperf"][..],
        &["unpack", "bundle.llmperf", "--out", "shared"],
        &["report", "./shared", "--out", "page.html"],
    ] {
        let output = Output::of(scratch.command(arguments));
        assert_eq!(output.code, 0, "{arguments:?}: {}", output.stderr);
    }
    assert!(!scratch.path("shared/thumbnails").exists());
    let page = std::fs::read_to_string(scratch.path("page.html")).unwrap();
    assert!(!page.contains("<img") && !page.contains("img-src"), "{page}");
    assert!(scratch.text("shared", "charts/stages.svg").starts_with("<svg "), "pictures of numbers stay");
}

#[test]
fn a_run_whose_trace_is_gone_has_a_page_without_timeline_that_says_so() {
    let scratch = Scratch::new();
    std::fs::copy(capture("torch/small.json"), scratch.path("trace.json")).unwrap();
    let output = Output::of(scratch.command(&["import", "trace.json", "--out", "run"]));
    assert_eq!(output.code, 0, "{}", output.stderr);
    std::fs::remove_file(scratch.path("trace.json")).unwrap();
    let output = Output::of(scratch.command(&["report", "run", "--out", "page.html"]));
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(
        output.stderr.contains("the page has no timeline: trace.json was moved or deleted since"),
        "{}",
        output.stderr
    );
    let page = std::fs::read_to_string(scratch.path("page.html")).unwrap();
    assert!(page.contains("This page has no timeline: trace.json was moved or deleted since"), "{page}");
    assert!(!page.contains("id=\"timeline\""), "{page}");
}

#[test]
fn a_page_that_cannot_be_written_says_where() {
    let scratch = Scratch::imported(&capture("torch/small.json"));
    let output = Output::of(scratch.command(&["report", "run", "--out", "nowhere/page.html"]));
    assert_eq!(output.code, 1);
    assert!(output.stderr.contains("cannot write nowhere/page.html"), "{}", output.stderr);
    let output = Output::of(scratch.command(&["report", "no-such-run"]));
    assert_eq!(output.code, 2, "{}", output.stderr);
}

#[test]
fn a_run_is_shown_in_the_width_of_the_terminal() {
    let scratch = Scratch::imported(&capture("torch/dsocr-h200.json.gz"));
    for columns in ["60", "100", "160"] {
        let mut command = scratch.command(&["show", "run", "--stage", "decode", "--top", "20"]);
        let output = Output::of({
            command.env("COLUMNS", columns);
            command
        });
        assert_eq!(output.code, 0, "{}", output.stderr);
        let widest = output.stdout.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= columns.parse().unwrap(), "{widest} of {columns}:\n{}", output.stdout);
        assert!(output.stdout.contains('█') && !output.stdout.contains('\u{1b}'), "{}", output.stdout);
    }
    let wrong = Output::of(scratch.command(&["show", "run", "--stage", "middle"]));
    assert!(wrong.code == 2 && wrong.stderr.contains("prefill, vision"), "{}", wrong.stderr);
    let json = Output::of(scratch.command(&["show", "run", "--json"]));
    let metrics: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(metrics, scratch.json("run", "metrics.json"));
}

#[test]
fn perfetto_shows_what_work_takes_beyond_the_roofline_of_its_operator() {
    let scratch = Scratch::imported(&capture("torch/dsocr-h200.json.gz"));
    let output = Output::of(scratch.command(&["export", "./run", "--format", "perfetto", "--out", "trace.json"]));
    assert_eq!(output.code, 0, "{}", output.stderr);
    let metrics: Value = serde_json::from_str(&scratch.text("run", "metrics.json")).unwrap();
    let groups = metrics["operator_groups"]["by_shape"].as_array().unwrap();
    let alike = |group: &Value| {
        groups.iter().filter(|other| (&other["name"], &other["shapes"]) == (&group["name"], &group["shapes"])).count()
    };
    let known = groups.iter().filter(|group| group["roofline_ns"].is_i64() && alike(group) == 1);
    let time = |group: &Value, key: &str| group[key].as_i64().unwrap();
    let expected: i64 = known.map(|group| time(group, "device_ns") - time(group, "roofline_ns")).sum();
    let trace: Value = serde_json::from_str(&scratch.text(".", "trace.json")).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let lost: Vec<_> = events.iter().filter(|event| event["cat"] == "lost").collect();
    let sum: f64 = lost.iter().map(|event| event["dur"].as_f64().unwrap() * 1e3).sum();
    assert!(expected > 1_000_000 && lost.len() > 1_000, "{expected} {}", lost.len());
    // Each is rounded to a nanosecond.
    assert!((sum - expected as f64).abs() <= lost.len() as f64, "{sum} {expected}");
    let said = events.iter().filter(|event| event["args"]["beyond roofline"].is_string()).count();
    assert_eq!(said, lost.len(), "each says it as an argument too");
}
