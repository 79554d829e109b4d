//! Rotary positions of one layer, on all or part of a head.

use types::Op;

use crate::config::decoder::RotaryConfig;
use crate::{Backend, Builder, Module, NetworkError, Ops};

#[derive(Clone, Debug)]
pub(crate) struct Rotary {
    /// Where the published model has a module for it in every layer.
    module: Option<Module>,
    config: RotaryConfig,
}

impl Rotary {
    pub(crate) fn new(builder: &mut Builder, class: Option<&'static str>, config: RotaryConfig) -> Self {
        let module = class.map(|class| {
            builder.module("rotary_emb", class, |builder, module| {
                builder.setting("dim", config.width);
                builder.setting("base", config.theta);
                module
            })
        });
        Self { module, config }
    }

    /// Rotates `x [B, H, S, D]`, whose first position is `offset`; what is past the rotated width passes.
    pub(crate) fn forward<B: Backend>(&self, b: &mut B, x: &B::Tensor, offset: u64) -> Result<B::Tensor, NetworkError> {
        let RotaryConfig { theta, width, form } = self.config;
        let op = Op::Rotary { theta, offset, form };
        let whole = b.shape(x).last();
        let rotate = |b: &mut B| {
            if width == whole {
                return b.apply(op, &[x]);
            }
            let turned = b.slice(x, 3, 0, width)?;
            let turned = b.apply(op, &[&turned])?;
            let passed = b.slice(x, 3, width, whole - width)?;
            b.concat(3, &[&turned, &passed])
        };
        match self.module {
            None => rotate(b),
            Some(module) => b.scope(module, &[x], rotate),
        }
    }
}
