//! What traces of other people's serving engines are said to do.

use serde_json::Value;
use testkit::need::reference;

use crate::conclusions::{Imported, import, list};

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
