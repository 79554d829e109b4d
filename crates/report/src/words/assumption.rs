//! What a replay with each change assumes: clauses behind "assumes", one row a change.

use types::Remark;

use super::cause::family;
use super::template::{first, lines};

/// Every change: the first clause that can be said. `{kernels}` is what people call a family of kernels.
pub(crate) const ASSUMPTIONS: &[(&str, &[&str])] = &[
    (
        "assumes.cuda-graphs",
        &[
            "each step or stage repeats with the same shapes, its launches between two host waits become one graph, and kernel times, \
           host waits and host work of 1 ms or more stay unchanged",
        ],
    ),
    (
        "assumes.fused-elementwise",
        &["up to eight elementwise kernels that follow each other take as long as the longest of them"],
    ),
    ("assumes.kernels", &["{kernels} run {times:exact} times as fast"]),
    (
        "assumes.kernels-roofline",
        &[
            "{kernels} run in the roofline time of the operator that launched them; kernels without recorded shapes stay unchanged",
        ],
    ),
    ("assumes.copies-hidden", &["copies between host and GPU overlap with kernels, and nothing waits for them"]),
    ("assumes.copies-removed", &["copies between host and GPU are not made"]),
    (
        "assumes.hidden-communication",
        &[
            "communication overlaps with compute at the same rate, neither slows the other down, and nothing waits for it",
        ],
    ),
    ("assumes.host", &["the host runs {times:exact} times as fast, between calls and in them"]),
    (
        "assumes.hardware",
        &[
            "kernels scale from {from} to {to} with the rate that limits them (bandwidth, or the peak of their element type; the \
           interval covers both where neither is known), and host, copies and communication stay unchanged",
        ],
    ),
    ("assumes.data-loading", &["the next batch is always ready when it is needed"]),
    ("assumes.host-work", &["the host work runs elsewhere, or while the GPU is busy"]),
    ("assumes.no-synchronisation", &["the host no longer waits for the GPU and needs none of its results"]),
    (
        "assumes.grouped",
        &[
            "?experts expert GEMMs need {share:bare} of their launches and of the host time before them, with unchanged run times",
            "these kernels need {share:bare} of their launches and of the host time before them, with unchanged run times",
        ],
    ),
    (
        "assumes.share",
        &[
            "?all kernels take {share:bare} of their time",
            "?fp32 GEMMs and convolutions in FP32 take {share:bare} of their time",
            "?few_blocks GEMMs with fewer blocks than multiprocessors take the share of multiprocessors that they use",
            "?head kernels of the LM head take {share:bare} of their time",
            "?softmax softmax kernels over attention scores take {share:bare} of their time",
            "?experts expert GEMMs take {share:bare} of their time",
            "?dequantisation kernels that dequantise for a GEMM take {share:bare} of their time",
            "kernels that only copy take {share:bare} of their time",
        ],
    ),
    (
        "assumes.removed",
        &[
            "?fp32 GEMMs and convolutions in FP32 do not run",
            "?few_blocks GEMMs with fewer blocks than multiprocessors do not run",
            "?head kernels of the LM head do not run",
            "?softmax softmax kernels over attention scores do not run",
            "?experts expert GEMMs do not run",
            "?dequantisation kernels that dequantise for a GEMM do not run, and the GEMMs take as long",
            "kernels that only copy do not run",
        ],
    ),
];

/// What the recording adds to any of them.
const RECORDING: &[&str] = &[
    "the host is as slow as recorded; if it ran ahead of the GPU, this would save at most {at_most}",
    "?may_have_waited the trace does not show when the host waits for the GPU, so the lower bound is zero",
    "?waits_unknown the trace does not show when the host waits for the GPU, so the upper bound covers all of that work",
];

/// An assumption in words; absent where the remark is none.
pub(crate) fn said(remark: &Remark) -> Option<String> {
    let (_, templates) = ASSUMPTIONS.iter().find(|(id, _)| *id == remark.id)?;
    let facts = remark.facts.clone().with_known("kernels", remark.facts.name("family").map(family));
    let mut clauses = vec![first(templates, &facts)?];
    clauses.extend(lines(RECORDING, &facts));
    Some(clauses.join("; "))
}

#[cfg(test)]
mod tests {
    use types::{Base, Facts};

    use super::*;
    use crate::words::cause::tests::ids;

    #[test]
    fn every_change_has_its_row_and_every_row_a_change() {
        let mut rows: Vec<_> = ASSUMPTIONS.iter().map(|(id, _)| (*id).to_owned()).collect();
        rows.sort();
        assert_eq!(ids(&["replay/change.rs"], &["assumes."]), rows);
    }

    #[test]
    fn an_assumption_is_one_clause_and_says_what_the_trace_does_not_show() {
        let said = |id: &str, facts: Facts| said(&Remark::new(id, facts)).unwrap();
        let head = Facts::new().with_if("head", true).with_share("share", 0.1, Base::Itself);
        assert_eq!(said("assumes.share", head.clone()), "kernels of the LM head take 10.0% of their time");
        let copies = Facts::new().with_if("copies", true).with_share("share", 0.0, Base::Itself);
        let expected = "kernels that only copy do not run; the trace does not show when the host waits for the GPU, so the upper \
                        bound covers all of that work";
        assert_eq!(said("assumes.removed", copies.with_if("waits_unknown", true)), expected);
        let faster = Facts::new().with("family", "gemm").with("times", 1.25);
        assert_eq!(said("assumes.kernels", faster), "GEMM kernels run 1.25 times as fast");
    }
}
