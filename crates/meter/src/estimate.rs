//! What a workload costs, in sums only: the quick reading of a network that sweeps are made of.
//!
//! Gives the stage times and the memory of [`crate::predict`] without its records, modules and pages: layers that are
//! alike are metered once, and decode steps are summed in closed form.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, RwLock};

use network::Model;
use types::{AttentionKind, Cost, DType, Parallel, Quantisation, Workload};

use crate::affine::AffineCost;
use crate::layer_kinds::LayerKinds;
use crate::memory::Footprint;
use crate::message::Message;
use crate::meter::{Meter, MeterSettings};
use crate::pass::{Pass, TallyRow};
use crate::predict::{decode_step, lines, prefill, settings};
use crate::sharing::{Sharing, SharingKey};
use crate::tally::Tally;
use crate::{MeterError, Roofline, Times, shard};

/// Positions behind which layers are compared: more than any window in use, so that windowed layers differ.
const FAR: u64 = 1 << 24;

/// Decode laws that are kept; a sweep over more batches than that works some out again.
const MOST_LAWS: usize = 1024;

/// Estimates workloads of one model.
#[derive(Debug)]
pub struct Estimator<'a> {
    model: &'a Model,
    kinds: LayerKinds,
    sharings: RwLock<HashMap<SharingKey, Arc<Sharing>>>,
    laws: RwLock<HashMap<LawKey, Arc<DecodeLaw>>>,
}

/// What of a workload a decode step depends on, apart from the cached positions: how the model lies, the batch, the kind of
/// attention, and positions of the source.
type LawKey = (SharingKey, u64, AttentionKind, u64);

/// What a decode step costs behind any number of positions.
#[derive(Debug)]
struct DecodeLaw {
    /// Step `n` is behind `n + 1` positions.
    rows: Vec<DecodeRow>,
    /// Operations of the first of them.
    first: Vec<TallyRow>,
    messages: Vec<Message>,
}

/// Sums of one workload; which device runs it is still open.
#[derive(Clone, Debug)]
pub struct Estimate {
    /// Operations of prefill; those of one layer follow each other and have its count.
    pub prefill: Vec<TallyRow>,
    decode: Option<Vec<DecodeRow>>,
    law: Option<Arc<DecodeLaw>>,
    /// Decode steps.
    pub steps: u64,
    /// Positions of a sequence that its cache holds behind prefill.
    pub prefilled: u64,
    /// What each device sends during prefill.
    pub prefill_messages: Vec<Message>,
    /// What it sends in one decode step; all send the same.
    pub step_messages: Vec<Message>,
    footprint: Footprint,
}

/// Operations of one decode step that cost the same.
#[derive(Clone, Copy, Debug)]
struct DecodeRow {
    cost: AffineCost,
    dtype: DType,
    count: u64,
}

/// Roofline times on one device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StageTimes {
    /// The prefill pass.
    pub prefill: Times,
    /// All decode steps; absent without decode.
    pub decode: Option<Times>,
}

impl<'a> Estimator<'a> {
    /// An estimator for `model`; `workload` is any that it can run.
    pub fn new(model: &'a Model, workload: &Workload) -> Result<Self, MeterError> {
        // Layers that are alike on one device are alike on many.
        let workload =
            &Workload { quantisation: Quantisation::default(), parallel: Parallel::default(), ..workload.clone() };
        let sharing = Sharing::new(model, workload)?;
        let full = |settings: MeterSettings| Meter::new(model.blueprint(), settings, &sharing);
        let near = prefill(model, workload, full(settings(model, workload, 0)))?;
        let far = match model.cache() {
            Some(_) => decode_step(model, workload, full(settings(model, workload, FAR)))?,
            None => Pass::default(),
        };
        let kinds = LayerKinds::new(model.blueprint(), &[&near, &far]);
        Ok(Self { model, kinds, sharings: RwLock::default(), laws: RwLock::default() })
    }

    /// How the model lies for `workload`; worked out once for all workloads that do not differ in that.
    fn sharing(&self, workload: &Workload) -> Result<Arc<Sharing>, MeterError> {
        let key = SharingKey::new(workload);
        let known = |sharings: &HashMap<SharingKey, Arc<Sharing>>| sharings.get(&key).map(Arc::clone);
        if let Some(sharing) = self.sharings.read().ok().and_then(|sharings| known(&sharings)) {
            // Only the batch can still be wrong for it.
            shard::check_batch(workload)?;
            return Ok(sharing);
        }
        let sharing = Arc::new(Sharing::new(self.model, workload)?);
        if let Ok(mut sharings) = self.sharings.write() {
            sharings.insert(key, Arc::clone(&sharing));
        }
        Ok(sharing)
    }

    /// The decode law of `workload`; worked out once for all prompts and lengths.
    fn law(&self, workload: &Workload, sharing: &Sharing) -> Result<Arc<DecodeLaw>, MeterError> {
        let source = self.model.prefilled(workload.seq_len).source;
        let key = (SharingKey::new(workload), workload.batch, workload.attention, source);
        if let Some(law) = self.laws.read().ok().and_then(|laws| laws.get(&key).map(Arc::clone)) {
            return Ok(law);
        }
        let step = |cached: u64| {
            let (blueprint, settings) = (self.model.blueprint(), settings(self.model, workload, cached));
            decode_step(self.model, workload, Meter::tallying(blueprint, settings, sharing, Tally::new(&self.kinds)))
        };
        let (first, second, last) = (step(1)?, step(2)?, step(FAR)?);
        let rows = rows(&first, &second, &last, FAR)?;
        let law = Arc::new(DecodeLaw { rows, first: first.tallied, messages: first.messages });
        if let Ok(mut laws) = self.laws.write() {
            if laws.len() >= MOST_LAWS {
                laws.clear();
            }
            laws.insert(key, Arc::clone(&law));
        }
        Ok(law)
    }

    /// What `workload` costs.
    pub fn estimate(&self, workload: &Workload) -> Result<Estimate, MeterError> {
        let sharing = self.sharing(workload)?;
        let meter = |cached: u64| {
            let settings = settings(self.model, workload, cached);
            Meter::tallying(self.model.blueprint(), settings, &sharing, Tally::new(&self.kinds))
        };
        let first = prefill(self.model, workload, meter(0))?;
        let prefilled = self.model.prefilled(workload.seq_len).own;
        let mut activations = first.peak_activations;
        let mut step_messages = Vec::new();
        let mut used = None;
        let decode = match self.model.cache() {
            Some(_) if workload.decode_steps > 0 => {
                let law = self.law(workload, &sharing)?;
                let last = decode_step(self.model, workload, meter(prefilled + workload.decode_steps - 1))?;
                // What is live grows with what is cached.
                activations = activations.max(last.peak_activations);
                step_messages.clone_from(&law.messages);
                let behind = prefilled.saturating_sub(1);
                let rows = law.rows.iter().map(|row| DecodeRow { cost: row.cost.after(behind), ..*row }).collect();
                used = Some(law);
                Some(rows)
            }
            _ => None,
        };
        let estimate = Estimate {
            prefill: first.tallied,
            decode,
            law: used,
            steps: workload.decode_steps,
            prefilled,
            prefill_messages: first.messages,
            step_messages,
            footprint: Footprint::new(self.model, workload, &sharing, activations),
        };
        estimate.check()?;
        Ok(estimate)
    }
}

impl Estimate {
    /// Memory.
    pub fn footprint(&self) -> &Footprint {
        &self.footprint
    }

    /// Operations and traffic of prefill.
    pub fn prefill_cost(&self) -> Cost {
        self.prefill.iter().map(|row| row.cost * row.count).sum()
    }

    /// Operations and traffic of all decode steps.
    pub fn decode_cost(&self) -> Cost {
        self.decode.iter().flatten().map(|row| row.cost.total(self.steps) * row.count).sum()
    }

    /// Operations of a decode step behind one position, and what each costs at the first step of this workload.
    pub fn step_rows(&self) -> impl Iterator<Item = (&TallyRow, Cost)> {
        let rows = self.law.iter().flat_map(|law| &law.first);
        rows.zip(self.decode.iter().flatten()).map(|(row, at)| (row, at.cost.first))
    }

    /// Element types in which matrix work is done.
    pub fn matrix_dtypes(&self) -> Vec<DType> {
        let prefill = self.prefill.iter().map(|row| (row.cost, row.dtype));
        let decode = self.decode.iter().flatten().map(|row| (row.cost.first, row.dtype));
        let matrix = prefill.chain(decode).filter(|(cost, _)| cost.flops_matrix.get() > 0);
        matrix.map(|(_, dtype)| dtype).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Roofline times on a device whose roofline was made for [`Estimate::matrix_dtypes`].
    pub fn times(&self, roofline: &Roofline<'_>) -> StageTimes {
        let mut prefill = Times::default();
        for row in &self.prefill {
            prefill += Times::of(&row.cost, row.dtype, roofline).times(row.count as f64);
        }
        prefill += Times::waiting(&self.prefill_messages, roofline);
        let decode = self.decode.as_ref().map(|rows| {
            let mut sum = Times::waiting(&self.step_messages, roofline).times(self.steps as f64);
            for row in rows {
                sum += Times::of_steps(&row.cost, self.steps, row.dtype, roofline).times(row.count as f64);
            }
            sum
        });
        StageTimes { prefill, decode }
    }

    /// Refuses what 64 bits do not count.
    fn check(&self) -> Result<(), MeterError> {
        let whole = |pass: &'static str, cost: Cost| {
            if cost.bytes.total().is_saturated() { Err(MeterError::TooLarge { pass }) } else { Ok(()) }
        };
        whole("prefill", self.prefill_cost())?;
        whole("decode", self.decode_cost())?;
        if self.footprint.total().is_saturated() { Err(MeterError::TooLarge { pass: "prefill" }) } else { Ok(()) }
    }
}

/// Rows of all steps from those of the first, the second and the last.
fn rows(one: &Pass, two: &Pass, last: &Pass, steps: u64) -> Result<Vec<DecodeRow>, MeterError> {
    let costs = |pass: &Pass| pass.tallied.iter().map(|row| (row.op.name(), row.cost)).collect::<Vec<_>>();
    let lines = lines([costs(one), costs(two), costs(last)], steps)?;
    let rows = one.tallied.iter().zip(lines);
    Ok(rows.map(|(row, cost)| DecodeRow { cost, dtype: row.dtype, count: row.count }).collect())
}
