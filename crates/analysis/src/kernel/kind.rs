//! All that the name of a kernel tells.

use std::cell::RefCell;
use std::collections::HashMap;

use types::DType;
use types::timeline::WorkKind;

use super::element_type::{element_type, operand_type};
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

/// Most bytes of names that are remembered: those of PyTorch have a kilobyte.
const MOST_BYTES: usize = 16 << 20;

thread_local! {
    /// What names tell that were asked for before, and the bytes of these names: a run asks for each kernel, and the rules are many.
    static KNOWN: RefCell<(HashMap<Box<str>, KernelKind>, usize)> = RefCell::default();
}

/// All that the name of a kernel tells.
pub fn classify(name: &str) -> KernelKind {
    if let Some(kind) = KNOWN.with_borrow(|(known, _)| known.get(name).copied()) {
        return kind;
    }
    let kind = classify_anew(name);
    KNOWN.with_borrow_mut(|(known, bytes)| {
        if *bytes + name.len() <= MOST_BYTES {
            *bytes += name.len();
            known.insert(name.into(), kind);
        }
    });
    kind
}

fn classify_anew(name: &str) -> KernelKind {
    let plain = name.strip_prefix("void ").unwrap_or(name);
    let (family, library) = rule::find(name).unwrap_or((Family::Other, None));
    let tiled = matches!(family, Family::Gemm | Family::Attention | Family::Convolution);
    let dtype = match family {
        Family::Gemm | Family::Gemv | Family::Convolution | Family::Experts => operand_type(plain, library),
        _ => element_type(plain),
    };
    KernelKind { family, library, dtype, tile: tiled.then(|| tile(plain)).flatten() }
}

/// The family of a kernel.
pub fn family(name: &str) -> Family {
    classify(name).family
}

/// Compilers whose elementwise kernels already do the work of several.
const FUSING: &[&str] = &["triton", "xla", "nvfuser", "tensorrt"];

/// Whether a kernel does one elementwise operation, so that it could be fused with its neighbours.
pub fn is_unfused_elementwise(name: &str) -> bool {
    let kind = classify(name);
    kind.family == Family::Elementwise && !kind.library.is_some_and(|library| FUSING.contains(&library))
}

/// Whether an elementwise kernel reads nothing that another wrote, so that no chain goes on with it: it fills, or counts up.
pub fn reads_nothing(name: &str) -> bool {
    ["FillFunctor", "elementwise_kernel_with_index"].iter().any(|sign| name.contains(sign))
}

/// Whether a copy moves pages of unified memory, which the driver does on its own.
pub fn is_migration(kind: WorkKind, name: &str) -> bool {
    matches!(kind, WorkKind::Copy(_)) && name.contains("Unified")
}

/// Whether a GEMM divides its inner dimension among blocks.
pub fn is_split_k(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["splitk", "split_k", "streamk", "stream_k"].iter().any(|sign| name.contains(sign))
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
    fn what_a_compiler_fused_is_not_called_unfused() {
        let add = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int)";
        assert!(is_unfused_elementwise(add) && !is_unfused_elementwise("triton_poi_fused_add_mul_3"));
    }

    #[test]
    fn a_fill_reads_nothing() {
        let fill = "void at::native::vectorized_elementwise_kernel<8, at::native::FillFunctor<c10::BFloat16>, std::array<char*, 1ul> >(int)";
        assert!(is_unfused_elementwise(fill) && reads_nothing(fill));
        assert!(!reads_nothing(
            "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int)"
        ));
    }

    #[test]
    fn grouped_gemms_are_of_experts_and_others_are_not() {
        let experts = [
            "grouped_matmul_kernel",
            "fused_moe_kernel",
            "bmm_Bfloat16_MxE2m1MxE4m3_Fp32_bA32_bB32_t128x16x256_s5_schPd2x1x2x3_biasFp32M_bN_rgTma_clmp_dynB_sm100f",
            "void deep_gemm::sm90_fp8_gemm_1d2d_impl<0u, 4096u, 7168u, 8u, true, (deep_gemm::GemmType)1>(float*, int*)",
        ];
        experts.iter().for_each(|name| assert_eq!(family(name), Family::Experts, "{name}"));
        let single = [
            "bmm_Bfloat16_E4m3E4m3_Fp32_t128x8x128_s6_et64x8_m64x8x32_cga1x1x1_16dp256b_TN_transOut_sm100f",
            "void deep_gemm::sm90_fp8_gemm_1d2d_impl<0u, 4096u, 7168u, 1u, true, (deep_gemm::GemmType)0>(float*, int*)",
        ];
        single.iter().for_each(|name| assert_eq!(family(name), Family::Gemm, "{name}"));
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
