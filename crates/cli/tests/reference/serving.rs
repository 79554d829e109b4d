//! What traces of other people's serving engines are said to do.

use serde_json::Value;
use testkit::need::reference;

use crate::imported::{Imported, import, list};

fn imported(name: &str) -> Imported {
    import(&[reference("third-party/traces-2").join(name)], &[])
}

/// How many steps have a label.
fn labelled(metrics: &Value, label: &str) -> usize {
    list(&metrics["steps"], "list").iter().filter(|step| step["label"] == label).count()
}

pub(crate) fn prompts_of_a_draft_model_count_once() {
    let Imported { metrics, pages, terminal } = imported("sgl-eagle3-bs16-extend.json.gz");
    assert_eq!((labelled(&metrics, "prefill"), labelled(&metrics, "draft")), (4, 4));
    let stage = &metrics["stages"][0];
    assert_eq!((&stage["name"], &stage["instances"], &stage["tokens"]), (&"prefill".into(), &4.into(), &65_536.into()));
    for page in [&pages, &terminal] {
        assert!(page.contains("4 prefill steps with 16 prompts, 65,536 tokens"), "{page}");
        assert!(page.contains("4 draft steps of speculative decoding"), "{page}");
        assert!(!page.contains("131,072") && !page.contains("32 prompts"), "{page}");
    }
    // The same prompts without a draft model.
    let Imported { metrics, terminal, .. } = imported("sgl-plain-bs16-extend.json.gz");
    assert_eq!((labelled(&metrics, "prefill"), labelled(&metrics, "draft")), (4, 0));
    assert!(terminal.contains("4 prefill steps with 16 prompts, 65,536 tokens"), "{terminal}");
    assert!(!terminal.contains("speculative"), "{terminal}");
}

pub(crate) fn rounds_of_a_draft_and_its_target_are_speculative_decoding() {
    let Imported { metrics, pages, terminal } = imported("sgl-eagle3-bs16-decode.json.gz");
    assert_eq!(metrics["trace"]["kind"]["kind"], "serving");
    assert_eq!((labelled(&metrics, "verify"), labelled(&metrics, "draft")), (5, 5));
    let stage = &metrics["stages"][0];
    assert_eq!((&stage["name"], &stage["instances"], &stage["tokens"]), (&"decode".into(), &5.into(), &Value::Null));
    assert_eq!(metrics["throughput"]["decode_tokens_per_second"], Value::Null);
    for page in [&pages, &terminal] {
        assert!(page.contains("5 verification steps of speculative decoding"), "{page}");
        assert!(!page.contains("without generation") && !page.contains("tokens/s"), "{page}");
    }
}

pub(crate) fn a_replayed_decode_step_is_inference() {
    let Imported { metrics, pages, terminal } = imported("lightllm-static.json.gz");
    assert_eq!(metrics["trace"]["kind"]["kind"], "inference", "{}", metrics["trace"]["kind"]);
    for page in [&pages, &terminal] {
        assert!(page.contains("inference of a language model"), "{page}");
        assert!(!page.contains("without generation") && !page.contains("without a backward pass"), "{page}");
    }
    let Imported { metrics, pages, .. } = imported("tl-qwen1.5-h100.json.gz");
    assert_eq!(metrics["trace"]["kind"]["kind"], "forward");
    assert!(pages.contains("forward passes of an unknown kind"), "{pages}");
}

pub(crate) fn mixed_steps_are_why_work_is_in_no_stage() {
    let Imported { metrics, pages, .. } = import(&[reference("serving/llama-8b").join("trace.json.gz")], &[]);
    assert_eq!(
        (labelled(&metrics, "prefill"), labelled(&metrics, "decode"), labelled(&metrics, "mixed")),
        (1, 196, 23)
    );
    assert!(pages.contains("is in 23 steps with both prompts and decoding sequences"), "{pages}");
    assert!(pages.contains("2 empty steps.") && !pages.contains("launches per token"), "{pages}");
    let rules = list(&metrics, "findings").iter().map(|finding| &finding["rule"]);
    assert!(rules.into_iter().all(|rule| rule != "cold-first-iteration"));
}

/// Idle time of the first device by its cause.
fn idle(metrics: &Value, cause: &str) -> i64 {
    let causes = list(&metrics["device_time"][0], "idle").iter().filter(|idle| idle["cause"] == cause);
    causes.filter_map(|idle| idle["ns"].as_i64()).sum()
}

pub(crate) fn a_server_between_its_requests_has_no_work_and_loses_nothing() {
    // Three pauses of 45, 35 and 26 ms between calls; two of them lie between steps that are far enough apart.
    let Imported { metrics, pages, .. } = import(&[reference("serving/llama-1b").join("trace.json.gz")], &[]);
    let lulls = idle(&metrics, "no_work");
    assert!((70_000_000..106_000_000).contains(&lulls), "{lulls}");
    assert!(pages.contains("waiting for work"), "{pages}");
    let host: i64 = idle(&metrics, "host_work") + idle(&metrics, "host_unknown");
    assert!(host < 30_000_000, "{host}");
    assert!(list(&metrics, "lost_time").iter().all(|row| row["cause"] != "waiting for work"));
    let rules = list(&metrics, "findings").iter().map(|finding| &finding["rule"]);
    assert!(rules.into_iter().all(|rule| rule != "host-work"), "{}", metrics["findings"]);
    // One rate of decoding, in the sentence as in the table.
    let rate = metrics["throughput"]["decode_tokens_per_second"].as_f64().unwrap();
    assert!((rate - 1_339.0).abs() < 2.0 && pages.contains("(1,339 tokens/s of wall time)"), "{rate}: {pages}");
    assert!(!pages.contains("tokens/s of device time"), "{pages}");
}

pub(crate) fn steps_that_follow_each_other_leave_no_time_without_work() {
    let Imported { metrics, .. } = imported("sgl-eagle3-bs16-decode.json.gz");
    assert_eq!(idle(&metrics, "no_work"), 0);
    assert!(idle(&metrics, "host_work") > 0);
}
