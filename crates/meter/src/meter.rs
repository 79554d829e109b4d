//! The meter: a backend whose tensors are shapes and whose every operation has a price.

use std::cell::Cell;
use std::rc::Rc;

use network::{Backend, Blueprint, Module, NetworkError, Param, Routing, infer, seen};
use types::{AttentionKind, Bytes, DType, Op, Role, Shape, Spec};

use crate::arena::Arena;
use crate::layout::{Layout, Step, step};
use crate::message::{Collective, Message};
use crate::pass::{ModuleCall, OpRecord, Pass, TallyRow};
use crate::price::{Price, price, read};
use crate::shape_tensor::{ShapeTensor, pieces};
use crate::sharing::Sharing;
use crate::spread::Spread;
use crate::storage::Storage;
use crate::tally::{Layer, Tally};
use crate::term::{Quantity, Symbols, Term};

/// How a pass is metered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeterSettings {
    /// Element type of weights and activations.
    pub dtype: DType,
    /// How attention is computed where the network leaves the choice.
    pub attention: AttentionKind,
    /// Positions the cache holds before this pass.
    pub cached: u64,
    /// Positions of the source that an earlier pass has kept; zero without one.
    pub source: u64,
}

/// The backend.
#[derive(Debug)]
pub struct Meter<'a> {
    blueprint: &'a Blueprint,
    settings: MeterSettings,
    sharing: &'a Sharing,
    arena: Rc<Arena>,
    open: Vec<(Module, Bytes)>,
    spread: Option<Spread>,
    pass: Pass,
    /// Set where sums are wanted and not every operation.
    tally: Option<Tally<'a>>,
}

impl<'a> Meter<'a> {
    /// A meter for the network of `blueprint`, which lies on devices as `sharing` says.
    pub(crate) fn new(blueprint: &'a Blueprint, settings: MeterSettings, sharing: &'a Sharing) -> Self {
        let pass = Pass { modules: vec![None; blueprint.modules().len()], ..Pass::default() };
        Self { blueprint, settings, sharing, arena: Rc::default(), open: Vec::new(), spread: None, pass, tally: None }
    }

    /// A meter that keeps what adds up and runs one of several layers that are alike.
    pub(crate) fn tallying(
        blueprint: &'a Blueprint,
        settings: MeterSettings,
        sharing: &'a Sharing,
        tally: Tally<'a>,
    ) -> Self {
        let (arena, pass, tally) = (Rc::default(), Pass::default(), Some(tally));
        Self { blueprint, settings, sharing, arena, open: Vec::new(), spread: None, pass, tally }
    }

    /// An input of the network.
    pub(crate) fn input(&self, spec: Spec) -> ShapeTensor {
        let storage = Some(self.arena.allocate(spec.bytes()));
        ShapeTensor { spec, storage, layout: None, stored: None }
    }

    /// What was metered.
    pub(crate) fn finish(mut self) -> Pass {
        self.pass.peak_activations = self.arena.peak();
        self.pass.tallied = self.tally.map(Tally::finish).unwrap_or_default();
        self.pass
    }

    /// Positions the cache holds before this pass.
    pub(crate) fn cached(&self) -> u64 {
        self.settings.cached
    }

    /// Gathers what sampling needs of `logits [B, S, V]`, where devices have a part of the vocabulary each: those of the
    /// last position.
    pub(crate) fn gather_logits(&mut self, logits: &ShapeTensor) {
        let shape = logits.spec.shape;
        let ways = logits.layout().ways(shape.rank().saturating_sub(1));
        let sequences = shape.dims().first().copied().unwrap_or(1);
        let last = logits.spec.dtype.bytes_for(sequences.saturating_mul(shape.last()));
        self.send(Collective::AllGather, ways, last);
    }

    fn module(&self) -> Module {
        self.open.last().map_or_else(|| self.blueprint.root(), |(module, _)| *module)
    }

    fn send(&mut self, collective: Collective, devices: u64, tensor: Bytes) {
        if devices > 1 {
            let module = self.module();
            self.pass.messages.push(Message { module, collective, devices, tensor, count: 1 });
        }
    }

    /// Hands the hidden states on where `module` is the first layer of a pipeline stage.
    fn hand_on(&mut self, module: Module, inputs: &[&ShapeTensor]) {
        if let Some(hidden) = inputs.first().filter(|_| self.sharing.begins_stage(module)) {
            self.send(Collective::PointToPoint, self.sharing.parallel().pipeline, hidden.spec.bytes());
        }
    }

    /// Exchanges what `op` needs of other devices, and says how its output lies.
    fn exchange(&mut self, op: &Op, inputs: &[&ShapeTensor], output: Shape) -> Layout {
        // Every exchange makes one input whole, so this ends.
        loop {
            let shapes: Vec<_> = inputs.iter().map(|tensor| (tensor.spec.shape, tensor.layout())).collect();
            match step(op, &shapes, output) {
                Step::Local(layout) => return layout,
                Step::Sum(index) => {
                    let tensor = inputs[index];
                    let layout = tensor.layout();
                    let bytes = tensor.spec.dtype.bytes_for(layout.local(tensor.spec.shape).elements());
                    self.send(Collective::AllReduce, layout.partial(), bytes);
                    tensor.settle(layout.summed());
                }
                Step::Gather(index) => {
                    let tensor = inputs[index];
                    self.send(Collective::AllGather, tensor.layout().pieces(), tensor.spec.bytes());
                    tensor.settle(Layout::WHOLE);
                }
            }
        }
    }

    /// Keys and values of these widths that the cache holds for `[batch, heads, positions]`.
    fn held(&self, [batch, heads, positions]: [u64; 3], widths: [u64; 2]) -> (ShapeTensor, ShapeTensor) {
        let parallel = self.sharing.parallel();
        let ways = (!parallel.is_single()).then(|| heads.min(parallel.tensor));
        let stored = self.sharing.quantisation().kv.map(Storage::plain);
        let [keys, values] = widths.map(|width| {
            let shape = [batch, heads, positions, width].into();
            let spec = Spec { shape, dtype: self.settings.dtype, role: Role::Cache };
            let layout = ways.map(|ways| Rc::new(Cell::new(Layout::cut(1, ways))));
            ShapeTensor { spec, storage: None, layout, stored }
        });
        (keys, values)
    }

    /// Terms of scales, and the peak that applies, where weights are quantised; the cache's own type where it has one.
    fn quantise(&self, op: &Op, price: &mut Price, inputs: &[&ShapeTensor], pieces: &[Spec]) {
        price.matrix_dtype = inputs.first().map_or(price.matrix_dtype, |tensor| tensor.spec.dtype);
        for (tensor, piece) in inputs.iter().zip(pieces).filter(|(tensor, _)| tensor.spec.role == Role::Weight) {
            let Some(stored) = tensor.stored else { continue };
            let Some((scales, weights)) = stored.scales else { continue };
            let elements = match op {
                // A row for each token, as many as there are.
                Op::Embedding => pieces[0].shape.elements().saturating_mul(piece.shape.last()),
                _ => piece.shape.elements(),
            };
            if scales > 0 {
                price.terms.push(Term {
                    quantity: Quantity::Weights,
                    // S bytes of scales for all W weights, of which this device reads N.
                    formula: "S * N / W",
                    symbols: Symbols::new([("S", scales.into()), ("N", elements.into()), ("W", weights.into())]),
                    value: stored.scale_bytes(elements).get().into(),
                });
            }
            if let Some(dtype) = stored.activations {
                price.matrix_dtype = dtype;
            }
        }
        if let (Op::CacheAppend, Some(dtype)) = (op, self.sharing.quantisation().kv) {
            price.terms.retain(|term| term.quantity != Quantity::KvWrite);
            let written = pieces.iter().map(|piece| Spec { dtype, ..*piece });
            price.terms.extend(written.map(|piece| Term { quantity: Quantity::KvWrite, ..read(&piece) }));
        }
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
        Ok(ShapeTensor {
            spec: Spec { shape: entry.shape, dtype, role: Role::Weight },
            storage: None,
            layout: self.sharing.layout(param).map(|layout| Rc::new(Cell::new(layout))),
            stored: self.sharing.stored(param),
        })
    }

    fn apply(&mut self, op: Op, inputs: &[&ShapeTensor]) -> Result<ShapeTensor, NetworkError> {
        let specs: Vec<Spec> = inputs.iter().map(|tensor| tensor.spec).collect();
        let output = infer(op, &specs)?;
        let mut layout =
            if self.sharing.parallel().is_single() { Layout::WHOLE } else { self.exchange(&op, inputs, output.shape) };
        let shared = |layout: Layout| (!layout.is_whole()).then(|| Rc::new(Cell::new(layout)));
        if op.is_view() {
            let (storage, stored) = (inputs[0].storage.clone(), inputs[0].stored);
            return Ok(ShapeTensor { spec: output, storage, layout: shared(layout), stored });
        }
        if let Op::Dispatch { .. } = op {
            layout = layout.with(0, self.sharing.row_ways());
        }
        let (priced, pieces, local) = pieces(&op, inputs, output, layout, self.sharing.parallel().is_single());
        let mut price = price(priced, &pieces, local, self.settings.attention);
        self.quantise(&op, &mut price, inputs, &pieces);
        let mut cost = price.cost();
        if let Some(spread) = self.spread {
            cost.bytes.weights = spread.weights(cost.bytes.weights);
        }
        self.arena.touch((local.bytes() + Bytes::new(price.scratch())).get());
        match &mut self.tally {
            Some(tally) => {
                let (spread, dtype) = (self.spread, price.matrix_dtype);
                tally.add(TallyRow { op, inputs: pieces, output: local, spread, cost, dtype, count: 1 });
            }
            None => {
                let (module, spread) = (self.module(), self.spread);
                self.pass.ops.push(OpRecord { module, op, inputs: pieces, output: local, price, spread, cost });
            }
        }
        let storage = match output.role {
            Role::Activation => {
                let local = Spec { shape: layout.local(output.shape), ..output };
                Some(self.arena.allocate(local.bytes()))
            }
            Role::Weight | Role::Cache => None,
        };
        let made = ShapeTensor { spec: output, storage, layout: shared(layout), stored: None };
        if op == Op::Embedding && layout.partial() > 1 {
            // Added up at once: every layer begins with whole hidden states.
            self.send(Collective::AllReduce, layout.partial(), local.bytes());
            made.settle(Layout::WHOLE);
        }
        Ok(made)
    }

    fn known(&mut self, module: Module, inputs: &[&ShapeTensor]) -> Option<ShapeTensor> {
        let tally = self.tally.as_mut()?;
        if inputs.iter().any(|tensor| !tensor.layout().is_whole()) {
            return None;
        }
        let layer = tally.again(module, inputs.iter().map(|tensor| tensor.spec))?;
        self.arena.touch(layer.scratch.get());
        for message in &mut self.pass.messages[layer.messages.0..layer.messages.1] {
            message.count += 1;
        }
        self.hand_on(module, inputs);
        let storage = match layer.shares {
            Some(input) => inputs[input].storage.clone(),
            None => layer.stored.map(|bytes| self.arena.allocate(bytes)),
        };
        Some(ShapeTensor { spec: layer.output, storage, layout: None, stored: None })
    }

    fn enter(&mut self, module: Module, inputs: &[&ShapeTensor]) {
        self.hand_on(module, inputs);
        self.open.push((module, self.arena.mark()));
        if let Some(tally) = &mut self.tally {
            let storages = inputs.iter().map(|tensor| tensor.storage.as_ref().map(Rc::as_ptr)).collect();
            let (live, messages) = (self.arena.live(), self.pass.messages.len());
            return tally.enter(module, inputs.iter().map(|tensor| tensor.spec), storages, live, messages);
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
            let messages = self.pass.messages.len();
            tally.leave(module, output.layout().is_whole(), |open| Layer {
                output: output.spec,
                shares: storage.and_then(|storage| open.shared(Rc::as_ptr(storage))),
                stored: storage.map(|storage| storage.bytes()),
                scratch: peak.checked_sub(open.live).unwrap_or_default(),
                messages: (open.messages, messages),
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
        let stored = self.sharing.quantisation().kv.map(Storage::plain);
        let grown = |tensor: ShapeTensor| {
            let spec = tensor.spec;
            let dims = spec.shape.dims();
            let shape = [dims[0], dims[1], seen(dims[2] + cached, dims[2], window), dims[3]].into();
            let spec = Spec { shape, role: Role::Cache, ..spec };
            ShapeTensor { spec, storage: None, layout: tensor.layout, stored }
        };
        Ok((grown(keys), grown(values)))
    }

    fn cache_of(
        &mut self,
        _layer: usize,
        [batch, heads, length]: [u64; 3],
        widths: [u64; 2],
        window: Option<u64>,
    ) -> Result<(ShapeTensor, ShapeTensor), NetworkError> {
        let positions = seen(length + self.settings.cached, length, window);
        Ok(self.held([batch, heads, positions], widths))
    }

    fn keep_source(
        &mut self,
        _layer: usize,
        keys: ShapeTensor,
        values: ShapeTensor,
    ) -> Result<(ShapeTensor, ShapeTensor), NetworkError> {
        self.apply(Op::CacheAppend, &[&keys, &values])?;
        let stored = self.sharing.quantisation().kv.map(Storage::plain);
        let kept = |tensor: ShapeTensor| {
            let spec = Spec { role: Role::Cache, ..tensor.spec };
            ShapeTensor { spec, storage: None, layout: tensor.layout, stored }
        };
        Ok((kept(keys), kept(values)))
    }

    fn source(
        &mut self,
        _layer: usize,
        [batch, heads]: [u64; 2],
        widths: [u64; 2],
    ) -> Result<Option<(ShapeTensor, ShapeTensor)>, NetworkError> {
        let positions = self.settings.source;
        Ok((positions > 0).then(|| self.held([batch, heads, positions], widths)))
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
        let parallel = *self.sharing.parallel();
        let tokens = x.spec.shape.dims().first().copied().unwrap_or(0);
        let rows = self.apply(Op::Dispatch { per_token }, &[x])?;
        // Where groups have tokens of their own, rows travel to their experts and back; the devices of a group share
        // the sending.
        let travels = parallel.data() > 1;
        let width = rows.spec.shape.last();
        let sent = tokens.saturating_mul(per_token).div_ceil(parallel.tensor).saturating_mul(width);
        let sent = rows.spec.dtype.bytes_for(sent);
        let devices = parallel.expert;
        if travels {
            self.send(Collective::AllToAll, devices, sent);
        }
        let tokens_of_all = tokens * parallel.data();
        let outer = self.spread.replace(Spread { experts, per_token, tokens: tokens_of_all, devices });
        // Every row goes through exactly one expert and all experts are alike, so one call with all rows has the FLOPs
        // and the activations of all of them; only the weights are read once for each expert touched.
        let outputs = each(self, 0, rows);
        self.spread = outer;
        let outputs = outputs?;
        if travels {
            self.send(Collective::AllToAll, devices, sent);
        }
        let combined = self.apply(Op::Combine { per_token }, &[&outputs, indices])?;
        if travels {
            self.send(Collective::AllGather, parallel.tensor, combined.spec.bytes());
            combined.settle(Layout::WHOLE);
        }
        Ok(combined)
    }
}
