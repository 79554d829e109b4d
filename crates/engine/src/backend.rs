//! The backend: values are tensors, and every operation runs.

use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use network::{Backend, Blueprint, Module, NetworkError, Param, Routing, infer};
use types::{Bytes, DType, Nanos, Op, Role, Spec};

use crate::cache::Cache;
use crate::nvtx;
use crate::op;
use crate::recurrence::{States, keeps_state};
use crate::trace::{OpTrace, RangeTime, Trace, since};
use crate::{ComputeError, EngineError, Tensor, Weights};

/// A tensor and what it is.
#[derive(Clone, Debug)]
pub struct Value {
    tensor: Tensor,
    spec: Spec,
}

/// Runs networks over one set of weights.
#[derive(Debug)]
pub struct Engine<'a> {
    blueprint: &'a Blueprint,
    weights: &'a Weights,
    cache: Cache,
    states: States,
    tracing: bool,
    zero: Instant,
    open: Vec<(Module, Option<(Nanos, nvtx::Range)>)>,
    trace: Trace,
    /// How many rows each expert got, by expert, for every module with experts.
    routed: BTreeMap<Module, Vec<u64>>,
    /// Outputs of modules somebody wants to see.
    watched: HashMap<Module, Vec<Tensor>>,
}

impl Value {
    /// A tensor of that type and role. The shape is the tensor's own.
    pub(crate) fn new(tensor: Tensor, dtype: DType, role: Role) -> Result<Self, EngineError> {
        let dims: Vec<u64> = tensor.dims().iter().map(|size| *size as u64).collect();
        let shape = types::Shape::try_new(&dims).ok_or(EngineError::Compute {
            op: "value",
            source: ComputeError::new(format!("{dims:?} has too many dimensions")),
        })?;
        Ok(Self { tensor, spec: Spec { shape, dtype, role } })
    }

    /// The tensor.
    pub fn tensor(&self) -> &Tensor {
        &self.tensor
    }

    /// What it is.
    pub fn spec(&self) -> Spec {
        self.spec
    }
}

impl<'a> Engine<'a> {
    /// An engine with an empty cache for `capacity` positions; `zero` is what its times count from.
    pub fn new(blueprint: &'a Blueprint, weights: &'a Weights, capacity: usize, zero: Instant) -> Self {
        Self {
            blueprint,
            weights,
            cache: Cache::new(capacity),
            states: States::default(),
            tracing: false,
            zero,
            open: Vec::new(),
            trace: Trace::default(),
            routed: BTreeMap::new(),
            watched: HashMap::new(),
        }
    }

    /// Whether operations are recorded from now on.
    pub fn set_tracing(&mut self, on: bool) {
        self.tracing = on;
    }

    /// Positions in the cache.
    pub fn cached(&self) -> usize {
        self.cache.length()
    }

    /// Counts positions that a forward pass has put into the cache.
    pub fn advance(&mut self, positions: usize) {
        self.cache.advance(positions);
    }

    /// What was recorded since the last call.
    pub fn take_trace(&mut self) -> Trace {
        std::mem::take(&mut self.trace)
    }

    /// Rows each expert got since the last call, by the module that holds the experts.
    pub fn take_routed(&mut self) -> BTreeMap<Module, Vec<u64>> {
        std::mem::take(&mut self.routed)
    }

    /// Keeps the outputs of the module at `path` from now on; false when there is none.
    pub fn watch(&mut self, path: &str) -> bool {
        let module = self.blueprint.find(path);
        if let Some(module) = module {
            self.watched.entry(module).or_default();
        }
        module.is_some()
    }

    /// Outputs of the watched module since the last call, in order.
    pub fn watched(&mut self, path: &str) -> Vec<Tensor> {
        let module = self.blueprint.find(path);
        module.and_then(|module| self.watched.get_mut(&module)).map(std::mem::take).unwrap_or_default()
    }

    fn module(&self) -> Module {
        self.open.last().map_or_else(|| self.blueprint.root(), |(module, _)| *module)
    }

    fn record(&mut self, op: Op, inputs: Vec<Spec>, output: Spec, start: Nanos) {
        let allocated = if op.is_view() || output.role != Role::Activation { Bytes::ZERO } else { output.bytes() };
        let record =
            OpTrace { module: self.module(), op, inputs, output, start, duration: since(self.zero) - start, allocated };
        self.trace.ops.push(record);
    }
}

/// What an operation made is single precision, also where the weights it followed from are stored in fewer bytes.
fn computed(spec: Spec) -> Spec {
    if spec.role == Role::Activation && spec.dtype == DType::Bf16 { Spec { dtype: DType::Fp32, ..spec } } else { spec }
}

impl Backend for Engine<'_> {
    type Tensor = Value;

    fn spec(&self, value: &Value) -> Spec {
        value.spec
    }

    fn param(&mut self, param: Param) -> Result<Value, NetworkError> {
        let (tensor, dtype) = self.weights.get(param);
        let shape = self.blueprint.param(param).shape;
        Ok(Value { tensor: tensor.clone(), spec: Spec { shape, dtype, role: Role::Weight } })
    }

    fn apply(&mut self, op: Op, inputs: &[&Value]) -> Result<Value, NetworkError> {
        let specs: Vec<Spec> = inputs.iter().map(|value| value.spec).collect();
        let spec = computed(infer(op, &specs)?);
        let start = self.tracing.then(|| since(self.zero));
        let tensors: Vec<&Tensor> = inputs.iter().map(|value| &value.tensor).collect();
        let made = if keeps_state(&op) {
            let module = self.module();
            self.states.compute(module, &op, &tensors)
        } else {
            op::compute(op, &tensors, spec)
        };
        let tensor = made.map_err(|source| NetworkError::from(EngineError::Compute { op: op.name(), source }))?;
        debug_assert_eq!(
            tensor.dims().iter().map(|size| *size as u64).collect::<Vec<_>>(),
            spec.shape.dims(),
            "{} produced a shape other than the inferred one",
            op.name()
        );
        if let Some(start) = start
            && !op.is_view()
        {
            self.record(op, specs, spec, start);
        }
        Ok(Value { tensor, spec })
    }

    fn enter(&mut self, module: Module, _inputs: &[&Value]) {
        let range = self.blueprint.module(module).range.map(|name| (since(self.zero), nvtx::Range::push(name)));
        self.open.push((module, range));
    }

    fn leave(&mut self, module: Module, output: &Value) {
        if let Some(outputs) = self.watched.get_mut(&module) {
            outputs.push(output.tensor.clone());
        }
        if let Some((module, Some((start, range)))) = self.open.pop()
            && let Some(name) = self.blueprint.module(module).range
        {
            drop(range);
            self.trace.ranges.push(RangeTime { name, start, duration: since(self.zero) - start });
        }
    }

    fn cache(
        &mut self,
        layer: usize,
        keys: Value,
        values: Value,
        window: Option<u64>,
    ) -> Result<(Value, Value), NetworkError> {
        let start = self.tracing.then(|| since(self.zero));
        let [all_keys, all_values] = self.cache.append(layer, &keys.tensor, &values.tensor, window)?;
        if let Some(start) = start {
            let spec = Spec { role: Role::Cache, ..keys.spec };
            self.record(Op::CacheAppend, vec![keys.spec, values.spec], spec, start);
        }
        let all_keys = Value::new(all_keys, keys.spec.dtype, Role::Cache)?;
        let all_values = Value::new(all_values, values.spec.dtype, Role::Cache)?;
        Ok((all_keys, all_values))
    }

    fn keep_source(&mut self, layer: usize, keys: Value, values: Value) -> Result<(Value, Value), NetworkError> {
        let start = self.tracing.then(|| since(self.zero));
        let laid_out = |value: &Value| Value::new(value.tensor.contiguous(), value.spec.dtype, Role::Cache);
        let (kept_keys, kept_values) = (laid_out(&keys)?, laid_out(&values)?);
        self.cache.keep_source(layer, [kept_keys.tensor.clone(), kept_values.tensor.clone()]);
        if let Some(start) = start {
            self.record(Op::CacheAppend, vec![keys.spec, values.spec], kept_keys.spec, start);
        }
        Ok((kept_keys, kept_values))
    }

    fn source(
        &mut self,
        layer: usize,
        _each: [u64; 2],
        _widths: [u64; 2],
    ) -> Result<Option<(Value, Value)>, NetworkError> {
        let Some([keys, values]) = self.cache.source(layer) else { return Ok(None) };
        let kept = |tensor: &Tensor| Value::new(tensor.clone(), DType::Fp32, Role::Cache);
        Ok(Some((kept(keys)?, kept(values)?)))
    }

    fn experts(
        &mut self,
        routing: Routing,
        x: &Value,
        scores: &Value,
        indices: &Value,
        each: impl Fn(&mut Self, usize, Value) -> Result<Value, NetworkError>,
    ) -> Result<Value, NetworkError> {
        let failed = |source| NetworkError::from(EngineError::Compute { op: "experts", source });
        let per_token = routing.per_token;
        let plan = op::routing::Plan::new(routing, &scores.tensor, &indices.tensor).map_err(failed)?;
        let module = self.module();
        let routed = self.routed.entry(module).or_insert_with(|| vec![0; routing.experts as usize]);
        for group in plan.groups() {
            routed[group.expert] += group.rows as u64;
        }
        let start = self.tracing.then(|| since(self.zero));
        let rows = plan.dispatch(&x.tensor).map_err(failed)?;
        let rows = Value::new(rows, x.spec.dtype, Role::Activation)?;
        if let Some(start) = start {
            self.record(Op::Dispatch { per_token }, vec![x.spec], rows.spec, start);
        }
        let mut outputs = Vec::with_capacity(plan.groups().len());
        for group in plan.groups() {
            let part = rows.tensor.slice(0, group.start, group.rows).map_err(failed)?;
            let part = Value::new(part, x.spec.dtype, Role::Activation)?;
            outputs.push(each(self, group.expert, part)?.tensor);
        }
        let start = self.tracing.then(|| since(self.zero));
        let combined = plan.combine(&outputs).map_err(failed)?;
        let combined = Value::new(combined, x.spec.dtype, Role::Activation)?;
        if let Some(start) = start {
            let width = combined.spec.shape.last();
            let joined = Spec { shape: [rows.spec.shape.dims()[0], width].into(), ..rows.spec };
            self.record(Op::Combine { per_token }, vec![joined, indices.spec], combined.spec, start);
        }
        Ok(combined)
    }
}
