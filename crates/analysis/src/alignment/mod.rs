//! A model laid over a timeline: which module each recorded operator, kernel, copy and memset belongs to.
//!
//! In come a timeline, its attribution and a [`ModelledRun`]; out go an [`Alignment`] of operators and the placements of
//! device work. Both sides apply the same weights in the same order, so operators that apply a weight are paired by kind and
//! shape (`anchor`): `recorded_anchor` lists them, `pattern` holds those of the model, `sequence` pairs the two. What runs
//! between two of them belongs to the innermost module around both (`path`). Work that this leaves open is reported as such
//! by those who sum it up.
//!
//! Operators are not all that tells (`placement`): ranges may be named after modules (`range_module`), also those in which
//! a CUDA graph was captured; kernels of a graph may repeat as often as the model has `layers` (`repetition`); and matrix
//! kernels (`kernel_sequence`) come in the order of the model's GEMMs (`pairing`, in each way of `expansion`).

mod anchor;
mod expansion;
mod kernel_sequence;
mod layers;
mod modelled_run;
mod pairing;
mod path;
mod pattern;
mod placement;
mod range_module;
mod recorded_anchor;
mod repetition;
mod sequence;

use std::collections::HashMap;

use types::Stage;
use types::timeline::{OperatorKind, ThreadId, Timeline};
use types::view::WorkModules;

use crate::attribution::Attribution;
use crate::time::Span;
use anchor::Anchor;
use pattern::Pattern;
use recorded_anchor::anchors;

pub(crate) use expansion::Part;
pub(crate) use kernel_sequence::Key;
pub use modelled_run::{ModelledOperator, ModelledRun};
pub(crate) use pairing::pair;
pub(crate) use placement::Placements;

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
            let start = operators.partition_point(|row| timeline.operators[*row as usize].start < window.start);
            let end = operators.partition_point(|row| timeline.operators[*row as usize].start < window.end);
            for place in start..end {
                let row = operators[place] as usize;
                let name = timeline.name(timeline.operators[row].name);
                alignment.module[row] = pattern.module(partners, first, stands[place], name);
            }
        }
    }
    alignment
}

/// The module of each kernel, copy and memset.
pub fn modules(timeline: &Timeline, attribution: &Attribution, model: &ModelledRun) -> WorkModules {
    let alignment = align(timeline, attribution, model);
    let placements = Placements::new(timeline, attribution, model, &alignment);
    WorkModules::new(placements.module.iter().map(|module| module.map(|(path, _)| path)))
}

/// Rows of framework operators by thread, in order of their start, outer before inner.
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

#[cfg(test)]
mod tests {
    use types::timeline::{HostOperator, HostThread, OperatorSignature, TraceFormat};
    use types::{Clock, ClockId, ClockKind, Cost, Nanos, Op};

    use super::*;
    use crate::attribution::{AttributionSettings, attribute};

    fn modelled(module: &str, op: Op, weight: &[u64], spread: bool) -> ModelledOperator {
        let weight = Some(weight.to_vec());
        let (module, class) = (module.to_owned(), String::new());
        ModelledOperator { module, class, stage: Stage::Prefill, op, weight, spread, cost: Cost::ZERO, roofline: None }
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
}
