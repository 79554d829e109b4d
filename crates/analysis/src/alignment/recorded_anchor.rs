//! Recorded operators that apply a weight, and where all others stand among them.

use types::Nanos;
use types::timeline::Timeline;

use super::anchor::Anchor;

/// Where an operator stands on its thread.
#[derive(Clone, Copy)]
pub(super) enum Stand {
    /// In the anchor of that number, or inside it.
    In(usize),
    /// Behind that many anchors.
    Behind(usize),
}

/// One recorded operator that applies a weight.
pub(super) struct RecordedAnchor {
    pub(super) start: Nanos,
    pub(super) anchor: Anchor,
}

/// The outermost operators of a thread that apply a weight, and where every operator stands among them.
pub(super) fn anchors(timeline: &Timeline, operators: &[u32]) -> (Vec<RecordedAnchor>, Vec<Stand>) {
    let mut anchors: Vec<RecordedAnchor> = Vec::new();
    let mut stands = Vec::with_capacity(operators.len());
    let mut open_until = None;
    for row in operators {
        let operator = &timeline.operators[*row as usize];
        if open_until.is_some_and(|end| operator.start < end) {
            stands.push(Stand::In(anchors.len() - 1));
            continue;
        }
        let signature = operator.signature.map(|signature| timeline.signatures.get(signature));
        let found = signature.and_then(|signature| Anchor::of_record(timeline.name(operator.name), signature));
        match found {
            Some(anchor) => {
                stands.push(Stand::In(anchors.len()));
                anchors.push(RecordedAnchor { start: operator.start, anchor });
                open_until = Some(operator.end());
            }
            None => stands.push(Stand::Behind(anchors.len())),
        }
    }
    (anchors, stands)
}
