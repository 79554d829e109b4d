//! Kernel families: one table, one line per rule, the first match wins.

use types::DType;
use types::timeline::WorkKind;

use super::traits::{element_type, tile};

/// What kind of work a kernel does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// Matrix times matrix.
    Gemm,
    /// Matrix times vector, and dot products.
    Gemv,
    /// Fused attention.
    Attention,
    /// Convolution.
    Convolution,
    /// Routing and grouped products of a mixture of experts.
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

/// Output rows, columns and depth that one block of threads computes at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tile {
    /// Rows.
    pub m: u32,
    /// Columns.
    pub n: u32,
    /// Depth, where the name has it.
    pub k: Option<u32>,
}

/// All that the name of a kernel tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelKind {
    /// What kind of work.
    pub family: Family,
    /// Who wrote it, such as `cublas`.
    pub library: Option<&'static str>,
    /// Element type of its inputs.
    pub dtype: Option<DType>,
    /// Tile of a matrix product or attention.
    pub tile: Option<Tile>,
}

/// Which names belong where. In a pattern `^` stands for the begin of the name (return type left out), `*` for any text;
/// without `^` it may stand anywhere. Case matters. Special cases stand above the general ones they would fall under.
const RULES: &[(&str, Family, Option<&str>)] = &[
    // Between devices.
    ("nccl", Family::Communication, Some("nccl")),
    ("cross_device_reduce", Family::Communication, None),
    ("^allreduce_", Family::Communication, None),
    ("multimem_", Family::Communication, None),
    ("nvshmem", Family::Communication, Some("nvshmem")),
    // Mixtures of experts. Above softmax, sort and matrix products, which they contain.
    ("fused_moe", Family::Experts, None),
    ("moe_align", Family::Experts, None),
    ("::moe::", Family::Experts, None),
    ("topkGating", Family::Experts, None),
    ("MoeFCGemm", Family::Experts, Some("cutlass")),
    ("grouped_gemm", Family::Experts, None),
    ("GroupProblemShape", Family::Experts, Some("cutlass")),
    // Attention. Above matrix products: flash attention is built from CUTLASS.
    ("flash_fwd", Family::Attention, Some("flash-attention")),
    ("flash_bwd", Family::Attention, Some("flash-attention")),
    ("FlashAttn", Family::Attention, Some("flash-attention")),
    ("flash::", Family::Attention, Some("flash-attention")),
    ("fmha_", Family::Attention, Some("cutlass")),
    ("_sdpa_", Family::Attention, Some("cudnn")),
    // Joins the parts that the keys were divided into; on an H200 it follows every decode step's attention.
    ("cudnn::fusion::lean_reduction", Family::Attention, Some("cudnn")),
    ("WithPagedKVCacheKernel", Family::Attention, Some("flashinfer")),
    ("WithRaggedKVCacheKernel", Family::Attention, Some("flashinfer")),
    ("paged_attention", Family::Attention, Some("vllm")),
    ("unified_attention", Family::Attention, Some("triton")),
    ("^_attn_fwd", Family::Attention, Some("triton")),
    ("^_fwd_kernel", Family::Attention, Some("triton")),
    ("_fwd_grouped_kernel_stage", Family::Attention, Some("triton")),
    ("attention_kernel", Family::Attention, None),
    ("FlashMLA", Family::Attention, None),
    // Convolutions. Above matrix products, whose names they carry.
    ("implicit_gemm", Family::Convolution, Some("cudnn")),
    ("implicit_convolve", Family::Convolution, Some("cudnn")),
    ("_fprop_", Family::Convolution, Some("cudnn")),
    ("_dgrad_", Family::Convolution, Some("cudnn")),
    ("_wgrad_", Family::Convolution, Some("cudnn")),
    ("winograd", Family::Convolution, Some("cudnn")),
    ("nchwToNhwc", Family::Copy, Some("cudnn")),
    ("nhwcToNchw", Family::Copy, Some("cudnn")),
    ("conv_depthwise", Family::Convolution, Some("aten")),
    ("^conv1d_", Family::Convolution, Some("candle")),
    ("^conv2d_", Family::Convolution, Some("candle")),
    ("im2col", Family::Convolution, None),
    ("_cudnn", Family::Convolution, Some("cudnn")),
    ("causal_conv1d", Family::Convolution, None),
    // Matrix and vector products.
    ("gemvNSP", Family::Gemv, Some("cublas")),
    ("gemvx", Family::Gemv, Some("cublas")),
    ("gemv", Family::Gemv, None),
    ("^dot_kernel<", Family::Gemv, Some("cublas")),
    ("^reduce_1Block_kernel<", Family::Gemv, Some("cublas")),
    ("^nvjet_", Family::Gemm, Some("cublas")),
    ("splitKreduce", Family::Gemm, Some("cublas")),
    ("cublas", Family::Gemm, Some("cublas")),
    ("_xmma_gemm", Family::Gemm, Some("cublas")),
    ("^ampere_*gemm", Family::Gemm, Some("cublas")),
    ("^turing_*gemm", Family::Gemm, Some("cublas")),
    ("^volta_*gemm", Family::Gemm, Some("cublas")),
    ("^maxwell_*gemm", Family::Gemm, Some("cublas")),
    ("^gemmSN_", Family::Gemm, Some("cublas")),
    ("^gemmk1_", Family::Gemm, Some("cublas")),
    ("cutlass*gemm", Family::Gemm, Some("cutlass")),
    ("cutlass*Gemm", Family::Gemm, Some("cutlass")),
    ("deep_gemm", Family::Gemm, Some("deepgemm")),
    ("marlin", Family::Gemm, Some("marlin")),
    ("Marlin", Family::Gemm, Some("marlin")),
    ("_matmul_kernel", Family::Gemm, Some("triton")),
    ("mul_mat", Family::Gemm, None),
    ("gemm", Family::Gemm, None),
    ("Gemm", Family::Gemm, None),
    // Norms and softmax. Above reductions, which they contain.
    ("softmax", Family::Softmax, None),
    ("SoftMax", Family::Softmax, None),
    ("Softmax", Family::Softmax, None),
    ("layer_norm", Family::Normalisation, None),
    ("LayerNorm", Family::Normalisation, None),
    ("layernorm", Family::Normalisation, None),
    ("rms_norm", Family::Normalisation, None),
    ("RMSNorm", Family::Normalisation, None),
    ("rmsnorm", Family::Normalisation, None),
    ("group_norm", Family::Normalisation, None),
    ("GroupNorm", Family::Normalisation, None),
    ("batch_norm", Family::Normalisation, None),
    ("RowwiseMoments", Family::Normalisation, Some("aten")),
    // Above selecting: `rotary_embedding` looks nothing up.
    ("rotary", Family::Elementwise, None),
    // Selecting. Above elementwise kernels, which carry the work in their template arguments.
    ("index_elementwise_kernel", Family::Index, Some("aten")),
    ("indexSelect", Family::Index, Some("aten")),
    ("indexFunc", Family::Index, Some("aten")),
    ("indexing_backward", Family::Index, Some("aten")),
    ("gather_kernel", Family::Index, Some("aten")),
    ("scatter_gather", Family::Index, Some("aten")),
    ("masked_scatter", Family::Index, Some("aten")),
    ("embedding_", Family::Index, None),
    ("EmbeddingBag", Family::Index, Some("aten")),
    ("reshape_and_cache", Family::Index, Some("vllm")),
    ("flip_kernel", Family::Index, Some("aten")),
    ("roll_cuda_kernel", Family::Index, Some("aten")),
    ("triu_tril", Family::Index, Some("aten")),
    ("upsample", Family::Elementwise, Some("aten")),
    ("write_indices", Family::Index, Some("aten")),
    ("DeviceSelect", Family::Index, Some("cub")),
    ("^gather_", Family::Index, Some("candle")),
    ("^is_", Family::Index, Some("candle")),
    ("^ia_", Family::Index, Some("candle")),
    // Order.
    ("TopK", Family::Sort, Some("aten")),
    ("topk", Family::Sort, None),
    ("Sort", Family::Sort, None),
    ("sort", Family::Sort, None),
    ("Scan", Family::Sort, Some("cub")),
    ("scan", Family::Sort, None),
    ("RunLengthEncode", Family::Sort, Some("cub")),
    ("histogram", Family::Sort, None),
    ("Histogram", Family::Sort, None),
    // Random numbers.
    ("distribution_elementwise", Family::Random, Some("aten")),
    ("dropout", Family::Random, None),
    ("philox", Family::Random, None),
    ("Sampling", Family::Random, None),
    // Copies that are elementwise kernels in form.
    ("direct_copy_kernel", Family::Copy, Some("aten")),
    ("float16_copy_kernel", Family::Copy, Some("aten")),
    ("float8_copy_kernel", Family::Copy, Some("aten")),
    ("CatArrayBatchedCopy", Family::Copy, Some("aten")),
    ("copy_device_to_device", Family::Copy, Some("aten")),
    ("transpose", Family::Copy, None),
    ("^ucopy_", Family::Copy, Some("candle")),
    ("^copy2d_", Family::Copy, Some("candle")),
    ("^cast_", Family::Copy, Some("candle")),
    // Made by a compiler. Above elementwise and reductions: the names list what was fused, not how.
    ("^triton_", Family::Compiled, Some("triton")),
    ("^fused_", Family::Compiled, Some("pytorch")),
    // The rest of the framework.
    ("reduce_kernel", Family::Reduction, Some("aten")),
    ("DeviceReduce", Family::Reduction, Some("cub")),
    ("DeviceSegmentedReduce", Family::Reduction, Some("cub")),
    ("^fast_", Family::Reduction, Some("candle")),
    ("multi_tensor_apply", Family::Elementwise, Some("aten")),
    ("elementwise_kernel", Family::Elementwise, Some("aten")),
    ("^rope_", Family::Elementwise, Some("candle")),
    ("act_and_mul", Family::Elementwise, Some("vllm")),
    ("FillFunctor", Family::Elementwise, Some("aten")),
    ("^affine_", Family::Elementwise, Some("candle")),
    ("^where_", Family::Elementwise, Some("candle")),
    ("^const_set_", Family::Elementwise, Some("candle")),
    ("^badd_", Family::Elementwise, Some("candle")),
    ("^bsub_", Family::Elementwise, Some("candle")),
    ("^bmul_", Family::Elementwise, Some("candle")),
    ("^bdiv_", Family::Elementwise, Some("candle")),
    ("^bmaximum_", Family::Elementwise, Some("candle")),
    ("^bminimum_", Family::Elementwise, Some("candle")),
    ("^usilu_", Family::Elementwise, Some("candle")),
    ("^ugelu_", Family::Elementwise, Some("candle")),
    ("^usqr_", Family::Elementwise, Some("candle")),
    ("^usqrt_", Family::Elementwise, Some("candle")),
    ("^uexp_", Family::Elementwise, Some("candle")),
    ("^uneg_", Family::Elementwise, Some("candle")),
    ("^urecip_", Family::Elementwise, Some("candle")),
    ("^usigmoid_", Family::Elementwise, Some("candle")),
    ("^usin_", Family::Elementwise, Some("candle")),
    ("^ucos_", Family::Elementwise, Some("candle")),
    // Words that tell enough where nothing above does.
    ("silu", Family::Elementwise, None),
    ("gelu", Family::Elementwise, None),
    ("fill", Family::Elementwise, None),
    ("reduce", Family::Reduction, None),
    ("Reduce", Family::Reduction, None),
    ("copy", Family::Copy, None),
    ("Copy", Family::Copy, None),
];

/// All that the name of a kernel tells.
pub fn classify(name: &str) -> KernelKind {
    let plain = without_return_type(name);
    let rule = RULES.iter().find(|(pattern, ..)| matches(pattern, plain));
    let (family, library) = rule.map_or((Family::Other, None), |(_, family, library)| (*family, *library));
    let tiled = matches!(family, Family::Gemm | Family::Attention | Family::Convolution);
    KernelKind { family, library, dtype: element_type(plain), tile: tiled.then(|| tile(plain)).flatten() }
}

/// The family of a kernel.
pub fn family(name: &str) -> Family {
    classify(name).family
}

/// The family of any piece of device work: copies and fills have theirs whatever the name.
pub fn family_of_work(kind: WorkKind, name: &str) -> Family {
    match kind {
        WorkKind::Kernel => family(name),
        WorkKind::Copy(_) => Family::MemoryCopy,
        WorkKind::Fill => Family::MemoryFill,
        WorkKind::Graph => Family::Graph,
    }
}

fn without_return_type(name: &str) -> &str {
    name.strip_prefix("void ").unwrap_or(name)
}

fn matches(pattern: &str, name: &str) -> bool {
    let (anchored, pattern) = match pattern.strip_prefix('^') {
        Some(rest) => (true, rest),
        None => (false, pattern),
    };
    let mut rest = name;
    for (place, part) in pattern.split('*').enumerate() {
        let found = if anchored && place == 0 { rest.starts_with(part).then_some(0) } else { rest.find(part) };
        match found {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_anchor_and_skip() {
        assert!(matches("^ampere_*gemm", "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn"));
        assert!(!matches("^ampere_*gemm", "my_ampere_gemm"));
        assert!(matches("gemm", "my_gemm_kernel") && !matches("gemm", "my_kernel"));
    }

    #[test]
    fn no_rule_is_hidden_by_one_above_it() {
        for (place, (pattern, ..)) in RULES.iter().enumerate() {
            let example = pattern.replace(['^', '*'], "");
            let first = RULES.iter().position(|(pattern, ..)| matches(pattern, &example));
            assert_eq!(first, Some(place), "`{pattern}` never matches: `{}` comes first", RULES[first.unwrap_or(0)].0);
        }
    }

    #[test]
    fn kernels_of_serving_engines_are_known() {
        let cases = [
            ("void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*)", Family::Elementwise),
            ("void vllm::act_and_mul_kernel<c10::BFloat16, &vllm::silu_kernel>(c10::BFloat16*)", Family::Elementwise),
            ("void vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*)", Family::Normalisation),
            ("void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16>(__nv_bfloat16 const*)", Family::Index),
            ("void vllm::moe::topkGatingSoftmax<8, 64, 4, 16>(float const*)", Family::Experts),
            ("fused_moe_kernel", Family::Experts),
            ("kernel_unified_attention_2d", Family::Attention),
            (
                "void cudnn::fusion::lean_reduction_kernel<(bool)0, (bool)0, (bool)0>(void *, float *)",
                Family::Attention,
            ),
            (
                "void cutlass::device_kernel<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90> >",
                Family::Attention,
            ),
            ("void flashinfer::BatchPrefillWithPagedKVCacheKernel<x>(y)", Family::Attention),
            ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", Family::Communication),
            ("triton_red_fused_add_mean_mul_pow_rsqrt_3", Family::Compiled),
            ("void marlin::Marlin<__nv_bfloat16, 256, 1, 8, 8>(int4 const*)", Family::Gemm),
            ("ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn", Family::Gemm),
            ("volta_sgemm_128x64_tn", Family::Gemm),
        ];
        for (name, expected) in cases {
            assert_eq!(family(name), expected, "{name}");
        }
    }

    #[test]
    fn copies_and_fills_are_told_by_their_kind() {
        use types::timeline::CopyDirection;
        let copy = WorkKind::Copy(CopyDirection::HostToDevice);
        assert_eq!(family_of_work(copy, "gemm"), Family::MemoryCopy);
        assert_eq!(family_of_work(WorkKind::Fill, ""), Family::MemoryFill);
        assert_eq!(family_of_work(WorkKind::Kernel, "my_kernel"), Family::Other);
    }
}
