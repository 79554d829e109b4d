//! A forward pass over shapes alone, before any weight is loaded: does the engine support every operation of the network?

use network::{Backend, Blueprint, Model, Module, NetworkError, Param, Prompt, Routing, infer};
use types::{DType, Op, Role, Spec};

use crate::EngineError;
use crate::op;

/// Refuses a network of which some part can only be modelled.
pub fn rehearse(model: &Model) -> Result<(), EngineError> {
    let class = model.blueprint().module(model.blueprint().root()).class;
    let refused = |why: String| EngineError::NotComputed { class, why };
    if matches!(model, Model::VisionLanguage(_)) {
        return Err(refused("prompts with images are supported for DeepSeek-OCR only".to_owned()));
    }
    if matches!(model, Model::Encoder(_) | Model::ModernEncoder(_)) {
        return Err(refused("encoders can only be modelled".to_owned()));
    }
    let is_computed = match model {
        Model::Language(language) => language.is_computed(),
        Model::T5(_) => true,
        Model::EncoderDecoder(model) => model.hears(),
        _ => return Ok(()),
    };
    let mut rehearsal = Rehearsal { blueprint: model.blueprint(), refusals: Vec::new() };
    let input = Spec::activation([1, 1], DType::Int64);
    let source = model.source(1, model.prompt_length().unwrap_or(1), DType::Fp32);
    let prompt = Prompt { input, offset: 0, images: None, source, last_logits_only: true };
    model.forward(&mut rehearsal, &prompt)?;
    if !rehearsal.refusals.is_empty() {
        return Err(refused(rehearsal.refusals.join("; ")));
    }
    if is_computed {
        Ok(())
    } else {
        Err(refused("its logits have not been checked against transformers, so it can only be modelled".to_owned()))
    }
}

struct Rehearsal<'a> {
    blueprint: &'a Blueprint,
    /// Parts that can only be modelled, each once.
    refusals: Vec<String>,
}

impl Rehearsal<'_> {
    fn refuse(&mut self, why: String) {
        if !self.refusals.contains(&why) {
            self.refusals.push(why);
        }
    }
}

impl Backend for Rehearsal<'_> {
    type Tensor = Spec;

    fn spec(&self, tensor: &Spec) -> Spec {
        *tensor
    }

    fn param(&mut self, param: Param) -> Result<Spec, NetworkError> {
        Ok(Spec { shape: self.blueprint.param(param).shape, dtype: DType::Fp32, role: Role::Weight })
    }

    fn apply(&mut self, op: Op, inputs: &[&Spec]) -> Result<Spec, NetworkError> {
        if let Some(why) = op::refusal(&op) {
            self.refuse(why);
        }
        let inputs: Vec<Spec> = inputs.iter().map(|spec| **spec).collect();
        Ok(infer(op, &inputs)?)
    }

    fn enter(&mut self, _module: Module, _inputs: &[&Spec]) {}

    fn leave(&mut self, _module: Module, _output: &Spec) {}

    fn cache(
        &mut self,
        _layer: usize,
        keys: Spec,
        values: Spec,
        _window: Option<u64>,
    ) -> Result<(Spec, Spec), NetworkError> {
        Ok((keys, values))
    }

    fn cache_of(
        &mut self,
        _layer: usize,
        [batch, heads, length]: [u64; 3],
        widths: [u64; 2],
        _window: Option<u64>,
    ) -> Result<(Spec, Spec), NetworkError> {
        self.refuse("layers that share a KV cache can only be modelled".to_owned());
        let kept = |width| Spec { shape: [batch, heads, length, width].into(), dtype: DType::Fp32, role: Role::Cache };
        Ok((kept(widths[0]), kept(widths[1])))
    }

    fn keep_source(&mut self, _layer: usize, keys: Spec, values: Spec) -> Result<(Spec, Spec), NetworkError> {
        Ok((keys, values))
    }

    fn source(
        &mut self,
        _layer: usize,
        [batch, heads]: [u64; 2],
        widths: [u64; 2],
    ) -> Result<Option<(Spec, Spec)>, NetworkError> {
        let [keys, values] = widths.map(|width| {
            let shape = [batch, heads, 1, width].into();
            Spec { shape, dtype: DType::Fp32, role: Role::Cache }
        });
        Ok(Some((keys, values)))
    }

    fn experts(
        &mut self,
        routing: Routing,
        x: &Spec,
        _scores: &Spec,
        indices: &Spec,
        each: impl Fn(&mut Self, usize, Spec) -> Result<Spec, NetworkError>,
    ) -> Result<Spec, NetworkError> {
        let per_token = routing.per_token;
        let rows = self.apply(Op::Dispatch { per_token }, &[x])?;
        let outputs = each(self, 0, rows)?;
        self.apply(Op::Combine { per_token }, &[&outputs, indices])
    }
}
