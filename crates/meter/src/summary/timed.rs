//! Every operation of a prediction with its least time on one device.

use std::collections::HashMap;

use network::Module;
use types::{Cost, DType, Op, Seconds};

use crate::affine::AffineCost;
use crate::{Bound, Category, Prediction, Roofline};

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

/// Least time, and what it is bound by.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Times {
    pub(super) total: Seconds,
    pub(super) compute_bound: Seconds,
    pub(super) memory_bound: Seconds,
}

/// All operations.
pub(super) struct Timed {
    pub(super) prefill: Vec<TimedOp>,
    pub(super) decode: Vec<TimedOp>,
}

impl Timed {
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
        Self { prefill: prefill.collect(), decode }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &TimedOp> {
        self.prefill.iter().chain(&self.decode)
    }
}

impl Times {
    pub(super) fn of(cost: &Cost, dtype: DType, roofline: &Roofline<'_>) -> Self {
        // Whoever summarises makes the roofline for every matrix type of the prediction, so a time is always there.
        let time = roofline.time(cost, dtype);
        debug_assert!(time.is_some(), "the roofline was not made for {dtype}");
        let Some(time) = time else { return Self::default() };
        let total = time.total();
        match time.bound() {
            Bound::Compute => Self { total, compute_bound: total, memory_bound: Seconds::ZERO },
            Bound::Memory => Self { total, compute_bound: Seconds::ZERO, memory_bound: total },
            Bound::Launch => Self { total, ..Self::default() },
        }
    }

    fn of_steps(cost: &AffineCost, steps: u64, dtype: DType, roofline: &Roofline<'_>) -> Self {
        if cost.is_constant() {
            let once = Self::of(&cost.first, dtype, roofline);
            return once.times(steps as f64);
        }
        let mut sum = Self::default();
        for step in 0..steps {
            sum += Self::of(&cost.at(step), dtype, roofline);
        }
        sum
    }

    fn times(self, factor: f64) -> Self {
        Self {
            total: self.total * factor,
            compute_bound: self.compute_bound * factor,
            memory_bound: self.memory_bound * factor,
        }
    }

    /// What most of the time is bound by.
    pub(super) fn bound(&self) -> Bound {
        let launch = Seconds::new(self.total.get() - self.compute_bound.get() - self.memory_bound.get());
        if launch > self.compute_bound.max(self.memory_bound) {
            Bound::Launch
        } else if self.compute_bound > self.memory_bound {
            Bound::Compute
        } else {
            Bound::Memory
        }
    }
}

impl std::ops::AddAssign for Times {
    fn add_assign(&mut self, other: Self) {
        self.total += other.total;
        self.compute_bound += other.compute_bound;
        self.memory_bound += other.memory_bound;
    }
}
