//! Every operation of a prediction with its roofline time on one device.

use std::collections::HashMap;

use network::Module;
use types::{Bytes, Cost, Op};

use crate::{Category, Message, Pass, Prediction, Roofline, Times};

/// One operation of prefill, or of all decode steps together.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimedOp {
    pub(super) module: Module,
    pub(super) category: Category,
    /// Times it is executed.
    pub(super) count: u64,
    pub(super) cost: Cost,
    pub(super) time: Times,
    /// Whether it writes to the cache.
    pub(super) caches: bool,
}

/// All operations.
pub(super) struct TimedOps {
    pub(super) prefill: Vec<TimedOp>,
    pub(super) decode: Vec<TimedOp>,
    /// Waits for other devices, and bytes sent to them, at prefill.
    pub(super) prefill_waits: (Times, Bytes),
    /// The same in all decode steps.
    pub(super) decode_waits: (Times, Bytes),
}

impl TimedOps {
    pub(super) fn new(prediction: &Prediction, roofline: &Roofline<'_>) -> Self {
        let prefill = prediction.prefill.ops.iter().map(|record| TimedOp {
            module: record.module,
            category: record.price.category,
            count: 1,
            cost: record.cost,
            time: Times::of(&record.cost, record.price.matrix_dtype, roofline),
            caches: record.op == Op::CacheAppend,
        });
        let mut seen = HashMap::new();
        let decode = prediction
            .decode
            .iter()
            .flat_map(|decode| decode.ops.iter().map(|op| (decode.steps, op)).collect::<Vec<_>>());
        let decode = decode.map(|(steps, op)| {
            let dtype = op.record.price.matrix_dtype;
            // Layers are alike, so the same costs come again and again; steps are summed once for each.
            let time =
                *seen.entry((op.cost, dtype)).or_insert_with(|| Times::of_steps(&op.cost, steps, dtype, roofline));
            TimedOp {
                module: op.record.module,
                category: op.record.price.category,
                count: steps,
                cost: op.cost.total(steps),
                time,
                caches: op.record.op == Op::CacheAppend,
            }
        });
        let decode = decode.collect();
        let waits = |pass: &Pass, times: u64| {
            let sent: Bytes = pass.messages.iter().map(Message::sent).sum();
            (Times::waiting(&pass.messages, roofline).times(times as f64), sent * times)
        };
        let steps = prediction.decode.as_ref();
        Self {
            prefill: prefill.collect(),
            decode,
            prefill_waits: waits(&prediction.prefill, 1),
            decode_waits: steps.map(|decode| waits(&decode.first, decode.steps)).unwrap_or_default(),
        }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &TimedOp> {
        self.prefill.iter().chain(&self.decode)
    }
}
