//! `Embedding`: rows of a table.

use types::Op;

use crate::{Backend, Builder, Module, NetworkError, Ops, Param};

#[derive(Clone, Debug)]
pub(crate) struct Embedding {
    module: Module,
    weight: Param,
    scale: Option<f64>,
}

impl Embedding {
    pub(crate) fn new(builder: &mut Builder, name: &str, rows: u64, width: u64) -> Self {
        Self::scaled(builder, name, "Embedding", [rows, width], None)
    }

    /// A table whose rows are multiplied with a constant on the way out.
    pub(crate) fn scaled(
        builder: &mut Builder,
        name: &str,
        class: &'static str,
        [rows, width]: [u64; 2],
        scale: Option<f64>,
    ) -> Self {
        builder.module(name, class, |builder, module| {
            builder.setting("num_embeddings", rows);
            builder.setting("embedding_dim", width);
            if let Some(scale) = scale {
                builder.setting("embed_scale", scale);
            }
            Self { module, weight: builder.param("weight", [rows, width]), scale }
        })
    }

    /// The whole table, for positions that are all used in order.
    pub(crate) fn table<B: Backend>(&self, b: &mut B) -> Result<B::Tensor, NetworkError> {
        b.param(self.weight)
    }

    /// What `op` makes of the whole table.
    pub(crate) fn applied<B: Backend>(&self, b: &mut B, op: Op) -> Result<B::Tensor, NetworkError> {
        b.scope(self.module, &[], |b| {
            let table = b.param(self.weight)?;
            b.apply(op, &[&table])
        })
    }

    pub(crate) fn forward<B: Backend>(&self, b: &mut B, ids: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        b.scope(self.module, &[ids], |b| {
            let table = b.param(self.weight)?;
            let rows = b.apply(Op::Embedding, &[ids, &table])?;
            match self.scale {
                None => Ok(rows),
                Some(factor) => b.apply(Op::Scale { factor }, &[&rows]),
            }
        })
    }
}
