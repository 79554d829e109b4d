//! The meter: a backend whose tensors are shapes and whose every operation has a price.

use std::rc::Rc;

use network::{Backend, Blueprint, Module, NetworkError, Param, Routing, infer, seen};
use types::{AttentionKind, Bytes, Cost, DType, Op, Role, Spec};

use crate::arena::{Allocation, Arena};
use crate::price::{Price, price};
use crate::tally::{Layer, Tally, TallyRow};

/// How a pass is metered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeterSettings {
    /// Element type of weights and activations.
    pub dtype: DType,
    /// How attention is computed where the network leaves the choice.
    pub attention: AttentionKind,
    /// Positions the cache holds before this pass.
    pub cached: u64,
}

/// How many tokens were spread over how many experts: what weight traffic inside experts is expected from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// Experts to choose from.
    pub experts: u64,
    /// Experts each token goes to.
    pub per_token: u64,
    /// Tokens.
    pub tokens: u64,
}

/// One priced operation.
#[derive(Clone, Debug, PartialEq)]
pub struct OpRecord {
    /// Module whose forward pass it is in.
    pub module: Module,
    /// What was done.
    pub op: Op,
    /// On what.
    pub inputs: Vec<Spec>,
    /// To what.
    pub output: Spec,
    /// Price of one expert's worth where the work is spread over experts.
    pub price: Price,
    /// Set inside experts, where weights are read once for each expert touched.
    pub spread: Option<Spread>,
    /// Operations and traffic, the spread included.
    pub cost: Cost,
}

/// What a module was given and gave, at its first call.
#[derive(Clone, Debug, PartialEq)]
pub struct ModuleCall {
    /// Times it was called in the pass.
    pub calls: u64,
    /// Inputs of the first call.
    pub inputs: Vec<Spec>,
    /// Output of the first call; absent while the module is open.
    pub output: Option<Spec>,
    /// Most activation bytes live while it ran.
    pub peak: Bytes,
}

/// One metered forward pass.
#[derive(Clone, Debug, Default)]
pub struct Pass {
    /// Operations in order; views are left out.
    pub ops: Vec<OpRecord>,
    /// By module index; absent for modules that were not called.
    pub modules: Vec<Option<ModuleCall>>,
    /// Most activation bytes live at once.
    pub peak_activations: Bytes,
    /// Sums in place of operations and modules, where only those were wanted.
    pub(crate) tallied: Vec<TallyRow>,
}

/// A shape, and the storage it would live in.
#[derive(Clone, Debug)]
pub struct ShapeTensor {
    spec: Spec,
    /// Kept so that the arena sees when the forward code lets go of it.
    storage: Option<Rc<Allocation>>,
}

/// The backend.
#[derive(Debug)]
pub struct Meter<'a> {
    blueprint: &'a Blueprint,
    settings: MeterSettings,
    arena: Rc<Arena>,
    open: Vec<(Module, Bytes)>,
    spread: Option<Spread>,
    pass: Pass,
    /// Set where sums are wanted and not every operation.
    tally: Option<Tally<'a>>,
}

impl Spread {
    /// Distinct experts expected to be touched when each token chooses `k` of `E` independently and evenly:
    /// `E * (1 - (1 - k / E)^T)`. One token touches exactly `k`.
    pub fn distinct(&self) -> f64 {
        let (experts, per_token) = (self.experts as f64, self.per_token as f64);
        let missed = (1.0 - per_token / experts).powf(self.tokens as f64);
        experts * (1.0 - missed)
    }

    /// Weight traffic of all experts touched, given that of one.
    pub fn weights(&self, of_one: Bytes) -> Bytes {
        Bytes::new((of_one.as_f64() * self.distinct()).round() as u64)
    }
}

impl<'a> Meter<'a> {
    /// A meter for the network of `blueprint`.
    pub fn new(blueprint: &'a Blueprint, settings: MeterSettings) -> Self {
        let pass = Pass { modules: vec![None; blueprint.modules().len()], ..Pass::default() };
        Self { blueprint, settings, arena: Rc::default(), open: Vec::new(), spread: None, pass, tally: None }
    }

    /// A meter that keeps what adds up and runs one of several layers that are alike.
    pub(crate) fn tallying(blueprint: &'a Blueprint, settings: MeterSettings, tally: Tally<'a>) -> Self {
        let pass = Pass::default();
        Self { blueprint, settings, arena: Rc::default(), open: Vec::new(), spread: None, pass, tally: Some(tally) }
    }

    /// An input of the network.
    pub fn input(&self, spec: Spec) -> ShapeTensor {
        ShapeTensor { spec, storage: Some(self.arena.allocate(spec.bytes())) }
    }

    /// What was metered.
    pub fn finish(mut self) -> Pass {
        self.pass.peak_activations = self.arena.peak();
        self.pass.tallied = self.tally.map(Tally::finish).unwrap_or_default();
        self.pass
    }

    /// Positions the cache holds before this pass.
    pub(crate) fn cached(&self) -> u64 {
        self.settings.cached
    }

    fn module(&self) -> Module {
        self.open.last().map_or_else(|| self.blueprint.root(), |(module, _)| *module)
    }
}

impl Backend for Meter<'_> {
    type Tensor = ShapeTensor;

    fn spec(&self, tensor: &ShapeTensor) -> Spec {
        tensor.spec
    }

    fn param(&mut self, param: Param) -> Result<ShapeTensor, NetworkError> {
        let entry = self.blueprint.param(param);
        let dtype = entry.dtype.unwrap_or(self.settings.dtype);
        Ok(ShapeTensor { spec: Spec { shape: entry.shape, dtype, role: Role::Weight }, storage: None })
    }

    fn apply(&mut self, op: Op, inputs: &[&ShapeTensor]) -> Result<ShapeTensor, NetworkError> {
        let specs: Vec<Spec> = inputs.iter().map(|tensor| tensor.spec).collect();
        let output = infer(op, &specs)?;
        if op.is_view() {
            return Ok(ShapeTensor { spec: output, storage: inputs[0].storage.clone() });
        }
        let price = price(op, &specs, output, self.settings.attention);
        let mut cost = price.cost();
        if let Some(spread) = self.spread {
            cost.bytes.weights = spread.weights(cost.bytes.weights);
        }
        self.arena.touch((output.bytes() + Bytes::new(price.scratch())).get());
        match &mut self.tally {
            Some(tally) => tally.add(op, cost, price.matrix_dtype),
            None => {
                let module = self.module();
                self.pass.ops.push(OpRecord { module, op, inputs: specs, output, price, spread: self.spread, cost });
            }
        }
        let storage = match output.role {
            Role::Activation => Some(self.arena.allocate(output.bytes())),
            Role::Weight | Role::Cache => None,
        };
        Ok(ShapeTensor { spec: output, storage })
    }

    fn known(&mut self, module: Module, inputs: &[&ShapeTensor]) -> Option<ShapeTensor> {
        let tally = self.tally.as_mut()?;
        let layer = tally.again(module, inputs.iter().map(|tensor| tensor.spec))?;
        self.arena.touch(layer.scratch.get());
        let storage = match layer.shares {
            Some(input) => inputs[input].storage.clone(),
            None => layer.stored.map(|bytes| self.arena.allocate(bytes)),
        };
        Some(ShapeTensor { spec: layer.output, storage })
    }

    fn enter(&mut self, module: Module, inputs: &[&ShapeTensor]) {
        self.open.push((module, self.arena.mark()));
        if let Some(tally) = &mut self.tally {
            let storages = inputs.iter().map(|tensor| tensor.storage.as_ref().map(Rc::as_ptr)).collect();
            return tally.enter(module, inputs.iter().map(|tensor| tensor.spec), storages, self.arena.live());
        }
        let call = self.pass.modules[module.index()].get_or_insert_with(|| ModuleCall {
            calls: 0,
            inputs: inputs.iter().map(|tensor| tensor.spec).collect(),
            output: None,
            peak: Bytes::ZERO,
        });
        call.calls += 1;
    }

    fn leave(&mut self, module: Module, output: &ShapeTensor) {
        let peak = self.arena.peak();
        if let Some(tally) = &mut self.tally {
            let storage = output.storage.as_ref();
            tally.leave(module, |open| Layer {
                output: output.spec,
                shares: storage.and_then(|storage| open.shared(Rc::as_ptr(storage))),
                stored: storage.map(|storage| storage.bytes()),
                scratch: peak.checked_sub(open.live).unwrap_or_default(),
            });
        } else if let Some(call) = &mut self.pass.modules[module.index()] {
            call.output.get_or_insert(output.spec);
            call.peak = call.peak.max(peak);
        }
        if let Some((_, outer)) = self.open.pop() {
            self.arena.restore(outer);
        }
    }

    fn cache(
        &mut self,
        _layer: usize,
        keys: ShapeTensor,
        values: ShapeTensor,
        window: Option<u64>,
    ) -> Result<(ShapeTensor, ShapeTensor), NetworkError> {
        self.apply(Op::CacheAppend, &[&keys, &values])?;
        let cached = self.settings.cached;
        let grown = |spec: Spec| {
            let dims = spec.shape.dims();
            let shape = [dims[0], dims[1], seen(dims[2] + cached, dims[2], window), dims[3]].into();
            ShapeTensor { spec: Spec { shape, role: Role::Cache, ..spec }, storage: None }
        };
        Ok((grown(keys.spec), grown(values.spec)))
    }

    fn attention(&self) -> AttentionKind {
        self.settings.attention
    }

    fn experts(
        &mut self,
        routing: Routing,
        x: &ShapeTensor,
        _scores: &ShapeTensor,
        indices: &ShapeTensor,
        each: impl Fn(&mut Self, usize, ShapeTensor) -> Result<ShapeTensor, NetworkError>,
    ) -> Result<ShapeTensor, NetworkError> {
        let Routing { experts, per_token, .. } = routing;
        let tokens = x.spec.shape.dims().first().copied().unwrap_or(0);
        let rows = self.apply(Op::Dispatch { per_token }, &[x])?;
        let outer = self.spread.replace(Spread { experts, per_token, tokens });
        // Every row goes through exactly one expert and all experts are alike, so one call with all rows has the FLOPs
        // and the activations of all of them; only the weights are read once for each expert touched.
        let outputs = each(self, 0, rows);
        self.spread = outer;
        self.apply(Op::Combine { per_token }, &[&outputs?, indices])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_token_touches_exactly_its_own_experts() {
        let spread = Spread { experts: 64, per_token: 6, tokens: 1 };
        assert!((spread.distinct() - 6.0).abs() < 1e-12);
        assert_eq!(spread.weights(Bytes::new(1000)), Bytes::new(6000));
    }

    #[test]
    fn many_tokens_touch_every_expert_and_never_more() {
        let spread = Spread { experts: 64, per_token: 6, tokens: 10_000 };
        assert!(spread.distinct() <= 64.0 && spread.distinct() > 63.999);
        // Two tokens: 64 * (1 - (58 / 64)^2) = 11.4375, worked by hand.
        let two = Spread { tokens: 2, ..spread };
        assert!((two.distinct() - 11.4375).abs() < 1e-12);
    }
}
