//! Vision stages of known models, from the shapes of their operators.

use types::timeline::{HostOperator, OperatorKind, ThreadId, Timeline};
use types::{Nanos, Stage};

use super::forward::{Forward, Kind};
use crate::time::Span;

/// A call of an operator, by name and the dimensions of one argument; 0 stands for any size.
struct Sign {
    operator: &'static str,
    argument: usize,
    dimensions: &'static [u64],
}

/// One part of a vision tower.
struct PartRule {
    stage: Stage,
    /// What it starts with; absent where it starts as the part before it ends.
    first: Option<Sign>,
    /// What it ends with: the last such call before the next part starts.
    last: Sign,
}

/// Vision towers of a model family, its parts in the order they run; all of them run once per batch of views.
struct Tower {
    /// A model is of the family when its name contains this, in small letters.
    model: &'static str,
    parts: &'static [PartRule],
}

const TOWERS: &[Tower] = &[Tower {
    model: "deepseek-ocr",
    parts: &[
        // Patches of 16 by 16 pixels into width 768; the last convolution of the neck gives width 1024.
        PartRule {
            stage: Stage::Sam,
            first: Some(Sign { operator: "aten::conv2d", argument: 1, dimensions: &[768, 3, 16, 16] }),
            last: Sign { operator: "aten::conv2d", argument: 1, dimensions: &[1024, 512, 3, 3] },
        },
        // Takes SAM's features as they are; every block ends with the addition of its residual.
        PartRule {
            stage: Stage::Clip,
            first: None,
            last: Sign { operator: "aten::add", argument: 0, dimensions: &[0, 0, 1024] },
        },
        PartRule {
            stage: Stage::Projector,
            first: Some(Sign { operator: "aten::linear", argument: 1, dimensions: &[1280, 2048] }),
            last: Sign { operator: "aten::linear", argument: 1, dimensions: &[1280, 2048] },
        },
    ],
}];

/// A run of one part of a vision tower.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Part {
    pub(super) stage: Stage,
    pub(super) span: Span,
}

/// Runs of the parts of a model's vision tower on a thread, in order; none for a model that has no table.
pub(super) fn parts(timeline: &Timeline, thread: ThreadId, model: &str) -> Vec<Part> {
    let model = model.to_ascii_lowercase().replace('_', "-");
    let Some(tower) = TOWERS.iter().find(|tower| model.contains(tower.model)) else { return Vec::new() };
    let matches = |row: &HostOperator, sign: &Sign| {
        let shapes = row.signature.map(|signature| &timeline.signatures.get(signature).shapes);
        let fits = |shape: &Vec<u64>| {
            let same = |(found, wanted): (&u64, &u64)| *wanted == 0 || found == wanted;
            shape.len() == sign.dimensions.len() && shape.iter().zip(sign.dimensions).all(same)
        };
        timeline.name(row.name) == sign.operator
            && shapes.and_then(|shapes| shapes.get(sign.argument)).is_some_and(fits)
    };
    let of_thread = timeline.operators.iter().filter(|row| row.thread == thread && row.kind == OperatorKind::Framework);
    let mut rows: Vec<&HostOperator> = of_thread.collect();
    rows.sort_by_key(|row| row.start);

    let mut parts: Vec<Part> = Vec::new();
    // The rule whose part is open or was last, the open part's start, and its end as far as it is known.
    let (mut rule, mut open, mut end): (usize, Option<Nanos>, Option<Nanos>) = (0, None, None);
    for row in rows {
        let after = (rule + 1) % tower.parts.len();
        let next = if open.is_some() { after } else { rule };
        if tower.parts[next].first.as_ref().is_some_and(|sign| matches(row, sign)) {
            if let (Some(start), Some(end)) = (open, end) {
                parts.push(Part { stage: tower.parts[rule].stage, span: Span::new(start, end) });
            }
            (rule, open, end) = (next, Some(row.start), None);
        }
        if open.is_some() && matches(row, &tower.parts[rule].last) {
            end = Some(row.end());
            // A part that starts where this one ends starts now.
            let after = (rule + 1) % tower.parts.len();
            if tower.parts[after].first.is_none() {
                parts.extend(
                    open.map(|start| Part { stage: tower.parts[rule].stage, span: Span::new(start, row.end()) }),
                );
                (rule, open, end) = (after, Some(row.end()), None);
            }
        }
    }
    if let (Some(start), Some(end)) = (open, end) {
        parts.push(Part { stage: tower.parts[rule].stage, span: Span::new(start, end) });
    }
    parts
}

/// Lets a prefill start with its vision tower where that runs before the look-up of embeddings.
pub(super) fn stretch(forwards: &mut [Forward], parts: &[Part]) {
    let mut free = Nanos::new(i64::MIN);
    for forward in forwards {
        if forward.kind == Kind::Prefill {
            let before = parts.iter().find(|part| part.span.start >= free && part.span.start < forward.span.start);
            if let Some(part) = before {
                forward.span.start = part.span.start;
            }
        }
        free = forward.span.end;
    }
}
