//! Kernel families.

types::named! {
    /// What kind of work a kernel does.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Family {
        /// Matrix times matrix (GEMM).
        Gemm = "gemm",
        /// Matrix times vector (GEMV), and dot products.
        Gemv = "gemv",
        /// Fused attention.
        Attention = "attention",
        /// Recurrences over the sequence: state-space models, linear attention, recurrent networks.
        Recurrence = "recurrence",
        /// Convolution.
        Convolution = "convolution",
        /// Routing and grouped GEMMs of a mixture of experts.
        Experts = "moe",
        /// One result per element: activations, sums, masks.
        Elementwise = "elementwise",
        /// Sums, means and extremes over an axis, pooling and losses among them.
        Reduction = "reduce",
        /// Softmax on its own.
        Softmax = "softmax",
        /// Layer, batch, group and root-mean-square norms.
        Normalisation = "norm",
        /// Copies by a kernel: layout, element type, concatenation.
        Copy = "copy",
        /// Embedding tables: lookup, its backward pass, and the tensors that carry the indices.
        Embedding = "embedding",
        /// Gather, scatter, index, caches of keys and values, masks that select.
        Index = "index",
        /// Sorting, top-k, scans.
        Sort = "sort",
        /// Random numbers, dropout, choice of tokens.
        Random = "random",
        /// Updates of parameters in training.
        Optimizer = "optimizer",
        /// Between devices, such as NCCL and RCCL.
        Communication = "communication",
        /// Made by a compiler (the PyTorch fuser, TensorRT) under a name that lists what was fused, not how.
        Compiled = "compiled",
        /// A whole CUDA graph that the source does not take apart.
        Graph = "graph",
        /// `memcpy`.
        MemoryCopy = "memcpy",
        /// `memset`.
        MemoryFill = "memset",
        /// No rule knows the name.
        Other = "other",
    }
}
