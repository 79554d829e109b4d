//! Costs, roofline times and memory by module and by kind of operator.

use types::{Bytes, Cost, ForecastTime, ModuleMetrics, OperatorShare, Seconds};

use super::Subject;
use super::modules::ModuleTree;
use super::timed_ops::{TimedOp, TimedOps};
use crate::{Category, Pass, Spread, shard};

/// What one kind of operator adds up to.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    calls: u64,
    cost: Cost,
    time: Seconds,
}

/// What one module adds up to, its parts included.
#[derive(Clone, Debug, Default)]
struct ModuleSum {
    by_category: [Sum; Category::ALL.len()],
    own_time: Seconds,
    weights: Bytes,
    cache: Bytes,
}

/// Sums of every module a report shows.
pub(super) struct Metrics {
    rows: Vec<ModuleMetrics>,
    /// What the root adds up to.
    whole: ModuleSum,
    /// Operations of the prediction, whichever module and kind they belong to.
    flops: f64,
    /// Roofline time of the prediction, likewise.
    time: Seconds,
}

impl Metrics {
    pub(super) fn new(subject: &Subject<'_>, tree: &ModuleTree<'_>, timed: &TimedOps) -> Self {
        let blueprint = subject.model.blueprint();
        let mut sums = vec![ModuleSum::default(); blueprint.modules().len()];
        for op in timed.all() {
            sums[tree.representative(op.module).index()].add_own(op);
        }
        for (param, entry) in blueprint.params() {
            let bytes = shard::param_bytes(blueprint, param, subject.workload);
            sums[tree.representative(entry.module).index()].weights += bytes;
        }
        let caching: Vec<_> = timed.prefill.iter().filter(|op| op.caches).map(|op| op.module).collect();
        let positions = subject.model.prefilled(subject.workload.seq_len).and(subject.workload.decode_steps);
        let layers = subject.model.cache().map(|cache| cache.layers.as_slice()).unwrap_or_default();
        for (module, layer) in caching.iter().zip(layers) {
            sums[module.index()].cache += subject.prediction.footprint.kv_of_layer(layer.elements_at(positions));
        }
        let shown: Vec<_> = tree.shown().collect();
        for (module, _) in shown.iter().rev() {
            if let Some(parent) = blueprint.module(*module).parent {
                let part = sums[module.index()].clone();
                sums[parent.index()].add_part(&part);
            }
        }
        let whole = sums.first().cloned().unwrap_or_default();
        let model_time = whole.time();
        let rows = shown.iter().map(|(module, id)| {
            let sum = &sums[module.index()];
            let expected = tree.stands_for_several(*module);
            let of_pass = |pass: &Pass| pass.modules[module.index()].as_ref().map_or(0, |call| call.calls);
            let is_root = blueprint.module(*module).parent.is_none();
            let calls = if is_root { 1 } else { calls(subject, of_pass, expected) };
            sum.row(subject, id, calls, peak(subject, *module), model_time)
        });
        let rows = rows.collect();
        let decode = subject.prediction.decode.as_ref().map_or(Cost::ZERO, crate::DecodePass::total);
        let flops = (subject.prediction.prefill.total() + decode).flops().as_f64();
        Self { rows, whole, flops, time: timed.all().map(|op| op.time.total).sum() }
    }

    pub(super) fn rows(&self) -> Vec<ModuleMetrics> {
        self.rows.clone()
    }

    pub(super) fn categories(&self) -> Vec<OperatorShare> {
        self.whole.breakdown()
    }

    /// Share of the prediction's operations that the report shows under a kind of operator.
    pub(super) fn named_flops(&self) -> f64 {
        share(self.whole.cost().flops().as_f64(), self.flops)
    }

    /// Share of its roofline time, likewise.
    pub(super) fn named_time(&self) -> f64 {
        share(self.whole.time().get(), self.time.get())
    }
}

impl ModuleSum {
    fn add_own(&mut self, op: &TimedOp) {
        let sum = &mut self.by_category[op.category as usize];
        sum.calls += op.count;
        sum.cost += op.cost;
        sum.time += op.time.total;
        self.own_time += op.time.total;
    }

    fn add_part(&mut self, part: &Self) {
        for (sum, more) in self.by_category.iter_mut().zip(&part.by_category) {
            sum.calls += more.calls;
            sum.cost += more.cost;
            sum.time += more.time;
        }
        self.weights += part.weights;
        self.cache += part.cache;
    }

    fn cost(&self) -> Cost {
        self.by_category.iter().map(|sum| sum.cost).sum()
    }

    fn time(&self) -> Seconds {
        self.by_category.iter().map(|sum| sum.time).sum()
    }

    fn breakdown(&self) -> Vec<OperatorShare> {
        let flops = self.cost().flops().as_f64();
        let used = Category::ALL.into_iter().zip(&self.by_category).filter(|(_, sum)| sum.calls > 0);
        used.map(|(category, sum)| OperatorShare {
            category_id: category.name().to_owned(),
            calls: sum.calls,
            flops_tflops: sum.cost.flops().as_f64() / 1e12,
            io_tb: sum.cost.bytes.total().as_f64() / 1e12,
            time_ms: sum.time.as_millis(),
            share_of_module_flops: share(sum.cost.flops().as_f64(), flops),
        })
        .collect()
    }

    fn row(&self, subject: &Subject<'_>, id: &str, calls: u64, peak: Bytes, model_time: Seconds) -> ModuleMetrics {
        let (cost, time) = (self.cost(), self.time());
        ModuleMetrics {
            module_id: id.to_owned(),
            profile_id: subject.workload.profile_id.clone(),
            calls,
            total_time_ms: time.as_millis(),
            self_time_ms: self.own_time.as_millis(),
            total_flops_tflops: cost.flops().as_f64() / 1e12,
            total_io_tb: cost.bytes.total().as_f64() / 1e12,
            flops_matrix: cost.flops_matrix,
            flops_vector: cost.flops_vector,
            bytes: cost.bytes,
            memory_weights_gb: self.weights.as_f64() / 1e9,
            memory_activations_gb: peak.as_f64() / 1e9,
            memory_kvcache_gb: self.cache.as_f64() / 1e9,
            share_of_model_time: share(time.get(), model_time.get()),
            operator_breakdown: self.breakdown(),
            forecast: ForecastTime::default(),
        }
    }
}

/// Calls in all passes; a stand-in for several counts the experts expected to be touched.
fn calls(subject: &Subject<'_>, of: impl Fn(&Pass) -> u64, expected: bool) -> u64 {
    // Only where there are experts, and then the first operation of one tells: asked of every module, this must not walk over
    // all operations.
    let pass = |pass: &Pass| {
        let spread = expected.then(|| pass.ops.iter().find_map(|op| op.spread)).flatten();
        of(pass) as f64 * spread.as_ref().map_or(1.0, Spread::distinct)
    };
    let prediction = subject.prediction;
    let decode = prediction.decode.as_ref().map_or(0.0, |decode| pass(&decode.first) * decode.steps as f64);
    (pass(&prediction.prefill) + decode).round() as u64
}

/// Most activation bytes live while `module` runs, in any pass; the root's is the model's.
fn peak(subject: &Subject<'_>, module: network::Module) -> Bytes {
    let prediction = subject.prediction;
    let of = |pass: &Pass| pass.modules[module.index()].as_ref().map_or(Bytes::ZERO, |call| call.peak);
    if subject.model.blueprint().module(module).parent.is_none() {
        return prediction.footprint.activations;
    }
    let decode = prediction.decode.as_ref().map_or(Bytes::ZERO, |decode| of(&decode.first));
    of(&prediction.prefill).max(decode)
}

/// A part of a whole, between zero and one whatever rounding does; zero of nothing.
fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { (part / whole).clamp(0.0, 1.0) } else { 0.0 }
}
