//! Kernel families.

/// What kind of work a kernel does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// Matrix times matrix (GEMM).
    Gemm,
    /// Matrix times vector (GEMV), and dot products.
    Gemv,
    /// Fused attention.
    Attention,
    /// Recurrences over the sequence: state-space models, linear attention, recurrent networks.
    Recurrence,
    /// Convolution.
    Convolution,
    /// Routing and grouped GEMMs of a mixture of experts.
    Experts,
    /// One result per element: activations, sums, masks.
    Elementwise,
    /// Sums, means and extremes over an axis, pooling and losses among them.
    Reduction,
    /// Softmax on its own.
    Softmax,
    /// Layer, batch, group and root-mean-square norms.
    Normalisation,
    /// Copies by a kernel: layout, element type, concatenation.
    Copy,
    /// Embedding tables: lookup, its backward pass, and the tensors that carry the indices.
    Embedding,
    /// Gather, scatter, index, caches of keys and values, masks that select.
    Index,
    /// Sorting, top-k, scans.
    Sort,
    /// Random numbers, dropout, choice of tokens.
    Random,
    /// Updates of parameters in training.
    Optimizer,
    /// Between devices, such as NCCL and RCCL.
    Communication,
    /// Made by a compiler (the PyTorch fuser, TensorRT) under a name that lists what was fused, not how.
    Compiled,
    /// A whole CUDA graph that the source does not take apart.
    Graph,
    /// `memcpy`.
    MemoryCopy,
    /// `memset`.
    MemoryFill,
    /// No rule knows the name.
    Other,
}

impl Family {
    /// Every family.
    pub const ALL: [Self; 22] = [
        Self::Gemm,
        Self::Gemv,
        Self::Attention,
        Self::Recurrence,
        Self::Convolution,
        Self::Experts,
        Self::Elementwise,
        Self::Reduction,
        Self::Softmax,
        Self::Normalisation,
        Self::Copy,
        Self::Embedding,
        Self::Index,
        Self::Sort,
        Self::Random,
        Self::Optimizer,
        Self::Communication,
        Self::Compiled,
        Self::Graph,
        Self::MemoryCopy,
        Self::MemoryFill,
        Self::Other,
    ];

    /// The name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gemm => "gemm",
            Self::Gemv => "gemv",
            Self::Attention => "attention",
            Self::Recurrence => "recurrence",
            Self::Convolution => "convolution",
            Self::Experts => "moe",
            Self::Elementwise => "elementwise",
            Self::Reduction => "reduce",
            Self::Softmax => "softmax",
            Self::Normalisation => "norm",
            Self::Copy => "copy",
            Self::Embedding => "embedding",
            Self::Index => "index",
            Self::Sort => "sort",
            Self::Random => "random",
            Self::Optimizer => "optimizer",
            Self::Communication => "communication",
            Self::Compiled => "compiled",
            Self::Graph => "graph",
            Self::MemoryCopy => "memcpy",
            Self::MemoryFill => "memset",
            Self::Other => "other",
        }
    }
}
