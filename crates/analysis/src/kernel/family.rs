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
    /// Convolution.
    Convolution,
    /// Routing and grouped GEMMs of a mixture of experts.
    Experts,
    /// One result per element: activations, sums, masks.
    Elementwise,
    /// Sums, means and extremes over an axis.
    Reduction,
    /// Softmax on its own.
    Softmax,
    /// Layer, group and root-mean-square norms.
    Normalisation,
    /// Copies by a kernel: layout, element type, concatenation.
    Copy,
    /// Gather, scatter, index, embedding, masks that select.
    Index,
    /// Sorting, top-k, scans.
    Sort,
    /// Random numbers.
    Random,
    /// Between devices, such as NCCL.
    Communication,
    /// Made by a compiler (Triton, the PyTorch fuser) with no more telling name.
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
    /// The name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gemm => "gemm",
            Self::Gemv => "gemv",
            Self::Attention => "attention",
            Self::Convolution => "convolution",
            Self::Experts => "moe",
            Self::Elementwise => "elementwise",
            Self::Reduction => "reduce",
            Self::Softmax => "softmax",
            Self::Normalisation => "norm",
            Self::Copy => "copy",
            Self::Index => "index",
            Self::Sort => "sort",
            Self::Random => "random",
            Self::Communication => "communication",
            Self::Compiled => "compiled",
            Self::Graph => "graph",
            Self::MemoryCopy => "memcpy",
            Self::MemoryFill => "memset",
            Self::Other => "other",
        }
    }
}
