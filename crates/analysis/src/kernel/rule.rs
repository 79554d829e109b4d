//! Which family and library a kernel's name belongs to: one table, one line per rule, the first match wins.

use super::family::Family;

/// A pattern, the family of the names it fits, and the library they come from.
type Rule = (&'static str, Family, Option<&'static str>);

/// Which names belong where. In a pattern `^` stands for the start of the name (return type left out), `*` for any text;
/// without `^` it may stand anywhere. Case matters. Special cases stand above the general ones they would fall under.
const RULES: &[Rule] = &[
    // Between devices.
    ("nccl", Family::Communication, Some("nccl")),
    ("cross_device_reduce", Family::Communication, None),
    ("^allreduce_", Family::Communication, None),
    ("multimem_", Family::Communication, None),
    ("nvshmem", Family::Communication, Some("nvshmem")),
    // Mixtures of experts. Above softmax, sort and GEMM, which they contain.
    ("fused_moe", Family::Experts, None),
    ("moe_align", Family::Experts, None),
    ("::moe::", Family::Experts, None),
    ("topkGating", Family::Experts, None),
    ("MoeFCGemm", Family::Experts, Some("cutlass")),
    ("grouped_gemm", Family::Experts, None),
    ("GroupProblemShape", Family::Experts, Some("cutlass")),
    // Attention. Above GEMM: flash attention is built from CUTLASS.
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
    // Convolutions. Above GEMM, whose names they carry.
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
    // GEMM and GEMV.
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

/// The first rule that a name, without its return type, fits.
pub(super) fn find(name: &str) -> Option<(Family, Option<&'static str>)> {
    RULES.iter().find(|(pattern, ..)| matches(pattern, name)).map(|(_, family, library)| (*family, *library))
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
}
