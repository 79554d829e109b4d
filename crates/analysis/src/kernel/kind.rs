//! All that the name of a kernel tells.

use types::DType;
use types::timeline::WorkKind;

use super::element_type::element_type;
use super::family::Family;
use super::rule;
use super::tile::{Tile, tile};

/// All that the name of a kernel tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelKind {
    /// What kind of work.
    pub family: Family,
    /// Who wrote it, such as `cublas`.
    pub library: Option<&'static str>,
    /// Element type of its inputs.
    pub dtype: Option<DType>,
    /// Tile of a GEMM, a convolution or attention.
    pub tile: Option<Tile>,
}

/// All that the name of a kernel tells.
pub fn classify(name: &str) -> KernelKind {
    let plain = name.strip_prefix("void ").unwrap_or(name);
    let (family, library) = rule::find(plain).unwrap_or((Family::Other, None));
    let tiled = matches!(family, Family::Gemm | Family::Attention | Family::Convolution);
    KernelKind { family, library, dtype: element_type(plain), tile: tiled.then(|| tile(plain)).flatten() }
}

/// The family of a kernel.
pub fn family(name: &str) -> Family {
    classify(name).family
}

/// The family of any device work: copies and memsets have theirs whatever the name.
pub fn family_of_work(kind: WorkKind, name: &str) -> Family {
    match kind {
        WorkKind::Kernel => family(name),
        WorkKind::Copy(_) => Family::MemoryCopy,
        WorkKind::Fill => Family::MemoryFill,
        WorkKind::Graph => Family::Graph,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn copies_and_memsets_are_told_by_their_kind() {
        use types::timeline::CopyDirection;
        let copy = WorkKind::Copy(CopyDirection::HostToDevice);
        assert_eq!(family_of_work(copy, "gemm"), Family::MemoryCopy);
        assert_eq!(family_of_work(WorkKind::Fill, ""), Family::MemoryFill);
        assert_eq!(family_of_work(WorkKind::Kernel, "my_kernel"), Family::Other);
    }
}
