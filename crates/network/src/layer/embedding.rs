//! `Embedding`: rows of a table.

use types::Op;

use crate::{Backend, Builder, Module, NetworkError, Ops, Param};

#[derive(Clone, Debug)]
pub(crate) struct Embedding {
    module: Module,
    weight: Param,
}

impl Embedding {
    pub(crate) fn new(builder: &mut Builder, name: &str, rows: u64, width: u64) -> Self {
        builder.module(name, "Embedding", |builder, module| {
            builder.setting("num_embeddings", rows);
            builder.setting("embedding_dim", width);
            Self { module, weight: builder.param("weight", [rows, width]) }
        })
    }

    /// The whole table, for positions that are all used in order.
    pub(crate) fn table<B: Backend>(&self, b: &mut B) -> Result<B::Tensor, NetworkError> {
        b.param(self.weight)
    }

    pub(crate) fn forward<B: Backend>(&self, b: &mut B, ids: &B::Tensor) -> Result<B::Tensor, NetworkError> {
        b.scope(self.module, &[ids], |b| {
            let table = b.param(self.weight)?;
            b.apply(Op::Embedding, &[ids, &table])
        })
    }
}
