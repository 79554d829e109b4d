//! Which module of the model a recorded operator ran for, where the trace itself does not name modules.
//!
//! The model's forward pass and the recorded run apply the same weights in the same order (`anchor`), so the two
//! sequences are laid over each other (`sequence`); an operator that applies a weight then has that weight's module, and
//! what runs between two of them belongs to the innermost module around both. Work that this leaves open is reported as
//! such by those who sum it up.
//!
//! Operators are not all that tells (`placement`): ranges may be named after modules, also those in which a CUDA graph was
//! captured, kernels of a graph may repeat as often as the model has layers (`repetition`), and matrix kernels come in the
//! order of the model's products (`pairing`).

mod anchor;
mod layers;
mod pairing;
mod placement;
mod repetition;
mod sequence;

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use types::timeline::{OperatorKind, ThreadId, Timeline};
use types::{Cost, Nanos, Op, Stage};

use crate::attribution::Attribution;
use crate::time::Span;
use anchor::Anchor;

pub(crate) use pairing::{Key, Part, pair};
pub(crate) use placement::Placements;

/// One operation of the model and what it should cost in all instances of its stage together.
#[derive(Clone, Debug)]
pub struct ModelledOperator {
    /// Path of its module, as in the checkpoint.
    pub module: String,
    /// Class of that module.
    pub class: String,
    /// The innermost stage it belongs to.
    pub stage: Stage,
    /// What is done.
    pub op: Op,
    /// Shape of the weight it applies.
    pub weight: Option<Vec<u64>>,
    /// Whether it is inside experts, of which a run applies as many as its tokens choose.
    pub spread: bool,
    /// Operations and traffic.
    pub cost: Cost,
    /// Least time the device needs for that; absent when its rates are not known.
    pub least: Option<Nanos>,
}

/// A model's forward passes, operation by operation, in order.
#[derive(Clone, Debug, Default)]
pub struct ModelledRun {
    /// The prefill pass, vision included.
    pub prefill: Vec<ModelledOperator>,
    /// One decode step; costs are those of all steps.
    pub decode: Vec<ModelledOperator>,
    /// Classes by module path, for modules that have no operation of their own.
    pub classes: BTreeMap<String, String>,
}

/// The module of each recorded operator.
#[derive(Clone, Debug)]
pub struct Alignment<'a> {
    /// One entry for each row of [`Timeline::operators`]; absent where no module is known.
    pub module: Vec<Option<&'a str>>,
    /// Recorded operators that apply a weight, within stages.
    pub anchors: u64,
    /// How many of them found their partner in the model.
    pub paired: u64,
}

/// Where an operator stands on its thread.
#[derive(Clone, Copy)]
enum Stand {
    /// In the anchor of that number, or inside it.
    In(usize),
    /// Behind that many anchors.
    Behind(usize),
}

/// One recorded operator that applies a weight.
struct RecordedAnchor {
    start: Nanos,
    anchor: Anchor,
}

/// Lays `model` over a timeline.
pub fn align<'a>(timeline: &Timeline, attribution: &Attribution, model: &'a ModelledRun) -> Alignment<'a> {
    let mut alignment = Alignment { module: vec![None; timeline.operators.len()], anchors: 0, paired: 0 };
    let (prefill, decode) = (Pattern::new(&model.prefill), Pattern::new(&model.decode));
    let mut known: HashMap<Vec<Anchor>, Vec<Option<usize>>> = HashMap::new();
    for (thread, operators) in by_thread(timeline) {
        let (anchors, stands) = anchors(timeline, &operators);
        let mut windows: Vec<(Span, &Pattern<'a>)> = Vec::new();
        let of_thread = attribution.stages.iter().filter(|stage| stage.thread == thread);
        windows.extend(of_thread.clone().filter(|stage| stage.stage == Stage::Prefill).map(|one| (one.host, &prefill)));
        let decodes = |instance: u32| attribution.stages[instance as usize].thread == thread;
        let steps = attribution.steps.iter().filter(|step| step.instance.is_some_and(decodes));
        windows.extend(steps.map(|step| (step.host, &decode)));
        for (window, pattern) in windows {
            let first = anchors.partition_point(|anchor| anchor.start < window.start);
            let last = anchors.partition_point(|anchor| anchor.start < window.end);
            let recorded: Vec<_> = anchors[first..last].iter().map(|anchor| anchor.anchor).collect();
            // Decode steps are alike, so most of them are looked up.
            let key = [&[Anchor::Norm(pattern.operators.len() as u64)], &recorded[..]].concat();
            let partners = known.entry(key).or_insert_with(|| pattern.partners(&recorded));
            alignment.anchors += recorded.len() as u64;
            alignment.paired += partners.iter().flatten().count() as u64;
            let begin = operators.partition_point(|row| timeline.operators[*row as usize].start < window.start);
            let end = operators.partition_point(|row| timeline.operators[*row as usize].start < window.end);
            for place in begin..end {
                let row = operators[place] as usize;
                let name = timeline.name(timeline.operators[row].name);
                alignment.module[row] = pattern.module(partners, first, stands[place], name);
            }
        }
    }
    alignment
}

/// Rows of framework operators by thread, in order of their begin, outer before inner.
fn by_thread(timeline: &Timeline) -> Vec<(ThreadId, Vec<u32>)> {
    let mut threads: Vec<(ThreadId, Vec<u32>)> =
        (0..timeline.threads.len() as u32).map(|thread| (ThreadId(thread), Vec::new())).collect();
    for (row, operator) in timeline.operators.iter().enumerate() {
        if operator.kind == OperatorKind::Framework
            && let Some((_, rows)) = threads.get_mut(operator.thread.0 as usize)
        {
            rows.push(row as u32);
        }
    }
    for (_, rows) in &mut threads {
        rows.sort_by_key(|row| {
            let operator = &timeline.operators[*row as usize];
            (operator.start, std::cmp::Reverse(operator.duration))
        });
    }
    threads
}

/// The outermost operators of a thread that apply a weight, and where every operator stands among them.
fn anchors(timeline: &Timeline, operators: &[u32]) -> (Vec<RecordedAnchor>, Vec<Stand>) {
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

/// A forward pass as a sequence of anchors.
struct Pattern<'a> {
    operators: &'a [ModelledOperator],
    anchors: Vec<Anchor>,
    /// The operation of each anchor.
    rows: Vec<usize>,
    /// Experts: parts that may be walked several times.
    again: Vec<Range<usize>>,
}

impl<'a> Pattern<'a> {
    fn new(operators: &'a [ModelledOperator]) -> Self {
        let mut pattern = Self { operators, anchors: Vec::new(), rows: Vec::new(), again: Vec::new() };
        for (row, operator) in operators.iter().enumerate() {
            let Some(anchor) = operator.weight.as_deref().and_then(|weight| Anchor::of_model(operator.op, weight))
            else {
                continue;
            };
            let place = pattern.anchors.len();
            if operator.spread {
                match pattern.again.last_mut().filter(|part| part.end == place) {
                    Some(part) => part.end += 1,
                    None => pattern.again.push(place..place + 1),
                }
            }
            pattern.anchors.push(anchor);
            pattern.rows.push(row);
        }
        pattern
    }

    /// The operation that each recorded anchor is.
    fn partners(&self, recorded: &[Anchor]) -> Vec<Option<usize>> {
        let found = sequence::align(&self.anchors, &self.again, recorded);
        found.unwrap_or_else(|| vec![None; recorded.len()])
    }

    /// The module of an operator; `first` is the number of the window's first anchor.
    fn module(&self, partners: &[Option<usize>], first: usize, stand: Stand, name: &str) -> Option<&'a str> {
        let path = |partner: usize| self.operators[self.rows[partner]].module.as_str();
        let behind = match stand {
            Stand::In(anchor) => match partners.get(anchor.checked_sub(first)?).copied().flatten() {
                Some(partner) => return Some(path(partner)),
                None => anchor - first,
            },
            Stand::Behind(anchors) => anchors.checked_sub(first)?,
        };
        let before = partners[..behind.min(partners.len())].iter().rev().flatten().next();
        let after = partners.get(behind..).and_then(|rest| rest.iter().flatten().next());
        match (before, after) {
            // A norm written out begins long before its weight is applied.
            (_, Some(after)) if matches!(self.anchors[*after], Anchor::Norm(_)) && NORM_STEPS.contains(&name) => {
                Some(path(*after))
            }
            (Some(before), Some(after)) => Some(common(path(*before), path(*after))).filter(|path| !path.is_empty()),
            _ => None,
        }
    }
}

/// Operators a norm consists of and nothing else between two weights does.
const NORM_STEPS: [&str; 3] = ["aten::pow", "aten::mean", "aten::rsqrt"];

/// The path of the innermost module around both.
fn common<'a>(one: &'a str, other: &str) -> &'a str {
    let mut end = 0;
    for (part, same) in one.split('.').zip(other.split('.')) {
        if part != same {
            break;
        }
        end += part.len() + 1;
    }
    &one[..end.saturating_sub(1).min(one.len())]
}

#[cfg(test)]
mod tests {
    use types::timeline::{HostOperator, HostThread, OperatorSignature, TraceFormat};
    use types::{Clock, ClockId, ClockKind};

    use super::*;
    use crate::attribution::{AttributionSettings, attribute};

    fn modelled(module: &str, op: Op, weight: &[u64], spread: bool) -> ModelledOperator {
        let weight = Some(weight.to_vec());
        let (module, class) = (module.to_owned(), String::new());
        ModelledOperator { module, class, stage: Stage::Prefill, op, weight, spread, cost: Cost::ZERO, least: None }
    }

    /// A timeline of one prefill that calls the operators one after the other, ten nanoseconds each.
    fn recorded(operators: &[(&str, &[&[u64]])]) -> Timeline {
        let clock = Clock { id: ClockId(0), kind: ClockKind::Trace, unix_ns_at_zero: None, uncertainty_ns: None };
        let mut timeline = Timeline::new(TraceFormat::TorchProfiler, clock);
        timeline.threads.push(HostThread { process: Some(1), rank: None, thread: Some(1) });
        let prefill = timeline.names.place("prefill");
        timeline.ranges.push(types::timeline::Range {
            style: types::timeline::RangeStyle::PushPop,
            name: prefill,
            domain: None,
            thread: ThreadId(0),
            start: Nanos::new(0),
            end: Some(Nanos::new(10 * operators.len() as i64)),
        });
        for (place, (name, shapes)) in operators.iter().enumerate() {
            let shapes = shapes.iter().map(|shape| shape.to_vec()).collect();
            let signature = OperatorSignature { shapes, ..OperatorSignature::default() };
            let (name, signature) = (timeline.names.place(name), Some(timeline.signatures.place_owned(signature)));
            timeline.operators.push(HostOperator {
                kind: OperatorKind::Framework,
                name,
                thread: ThreadId(0),
                signature,
                start: Nanos::new(10 * place as i64),
                duration: Nanos::new(10),
                call: None,
            });
        }
        timeline
    }

    #[test]
    fn operators_between_two_weights_belong_to_the_module_around_both() {
        let model = ModelledRun {
            prefill: vec![
                modelled("layer.attention.q", Op::Linear, &[8, 8], false),
                modelled("layer.attention.o", Op::Linear, &[8, 8], false),
                modelled("layer.norm", Op::RmsNorm { epsilon: 1e-6, unit_offset: false }, &[8], false),
                modelled("layer.experts.gate", Op::Linear, &[4, 8], true),
                modelled("layer.experts.down", Op::Linear, &[8, 4], true),
                modelled("head", Op::Linear, &[99, 8], false),
            ],
            ..ModelledRun::default()
        };
        let (gate, down): (&[&[u64]], &[&[u64]]) = (&[&[1, 8], &[4, 8]], &[&[1, 4], &[8, 4]]);
        let timeline = recorded(&[
            ("aten::linear", &[&[1, 8], &[8, 8]]),
            ("aten::softmax", &[&[1, 1]]),
            ("aten::linear", &[&[1, 8], &[8, 8]]),
            ("aten::add", &[&[1, 8], &[1, 8]]),
            ("aten::rsqrt", &[&[1, 1]]),
            ("aten::mul", &[&[8], &[1, 8]]),
            ("aten::linear", gate),
            ("aten::silu", &[&[1, 4]]),
            ("aten::linear", down),
            ("aten::linear", gate),
            ("aten::linear", down),
            ("aten::linear", &[&[1, 8], &[99, 8]]),
            ("aten::argmax", &[&[1, 99]]),
        ]);
        let attribution = attribute(&timeline, &AttributionSettings::default());
        let found = align(&timeline, &attribution, &model);
        let expected = [
            Some("layer.attention.q"),
            Some("layer.attention"),
            Some("layer.attention.o"),
            Some("layer"),
            Some("layer.norm"),
            Some("layer.norm"),
            Some("layer.experts.gate"),
            Some("layer.experts"),
            Some("layer.experts.down"),
            Some("layer.experts.gate"),
            Some("layer.experts.down"),
            Some("head"),
            None,
        ];
        assert_eq!(found.module, expected);
        assert_eq!((found.anchors, found.paired), (8, 8));
    }

    #[test]
    fn without_stages_nothing_is_claimed() {
        let mut timeline = recorded(&[("aten::linear", &[&[1, 8], &[8, 8]])]);
        timeline.ranges.clear();
        let prefill = vec![modelled("q", Op::Linear, &[8, 8], false)];
        let model = ModelledRun { prefill, ..ModelledRun::default() };
        let attribution = attribute(&timeline, &AttributionSettings { infer: false, ..AttributionSettings::default() });
        assert_eq!(align(&timeline, &attribution, &model).module, [None]);
    }

    #[test]
    fn paths_share_whole_names_only() {
        assert_eq!(common("a.bc.d", "a.bd.d"), "a");
        assert_eq!(common("a.b", "a.b"), "a.b");
        assert_eq!(common("a", "b"), "");
    }
}
