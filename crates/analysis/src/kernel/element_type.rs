//! Element type of a kernel, where its name tells.

use types::DType;

/// Spellings of element types in names. The one that stands first in the name wins.
const SPELLINGS: &[(&str, DType)] = &[
    ("BFloat16", DType::Bf16),
    ("bfloat16", DType::Bf16),
    ("bf16", DType::Bf16),
    ("c10::Half", DType::Fp16),
    ("<Half", DType::Fp16),
    ("(Half", DType::Fp16),
    (" Half", DType::Fp16),
    ("__half", DType::Fp16),
    ("half_t", DType::Fp16),
    ("fp16", DType::Fp16),
    ("f16f16", DType::Fp16),
    ("h16816gemm", DType::Fp16),
    ("e4m3", DType::Fp8),
    ("e5m2", DType::Fp8),
    ("Float8_", DType::Fp8),
    ("fp8", DType::Fp8),
    ("tf32", DType::Tf32),
    ("i8816gemm", DType::Int8),
    ("<float", DType::Fp32),
    ("(float", DType::Fp32),
    (" float", DType::Fp32),
    ("<double", DType::Fp64),
    ("(double", DType::Fp64),
    (" double", DType::Fp64),
    ("<long", DType::Int64),
    ("(long", DType::Int64),
    ("<bool", DType::Bool),
    ("lambda(bool", DType::Bool),
];

/// What the name of the algorithm implies where no type is spelled out: BLAS letters, and the endings of candle.
const IMPLIED: &[(&str, DType)] =
    &[("f32f32", DType::Fp32), ("sgemm", DType::Fp32), ("dgemm", DType::Fp64), ("hgemm", DType::Fp16)];
const ENDINGS: &[(&str, DType)] = &[
    ("_f16", DType::Fp16),
    ("_f32", DType::Fp32),
    ("_f64", DType::Fp64),
    ("_i64", DType::Int64),
    ("_u8", DType::Uint8),
];

/// Element type of the inputs. `name` is without its return type.
pub(super) fn element_type(name: &str) -> Option<DType> {
    if let Some(rest) = name.strip_prefix("nvjet_") {
        return nvjet_type(rest);
    }
    if let Some((_, contraction)) = name.split_once("Cijk_") {
        return tensile_type(contraction);
    }
    // A copy that converts is named after what it makes; what it reads is in its lambda.
    let name = name.split_once("float16_copy_kernel_cuda").map_or(name, |(_, rest)| rest);
    // Index lists are no inputs of this kind, whatever their type.
    let at = |text: &str| name.match_indices(text).map(|(at, _)| at).find(|at| !name[..*at].ends_with("ArrayRef"));
    let spelled = SPELLINGS.iter().filter_map(|(text, dtype)| Some((at(text)?, *dtype)));
    let spelled = spelled.min_by_key(|(at, _)| *at).map(|(_, dtype)| dtype);
    let implied = || IMPLIED.iter().find(|(text, _)| name.contains(text)).map(|(_, dtype)| *dtype);
    let ending = || ENDINGS.iter().find(|(text, _)| name.ends_with(text)).map(|(_, dtype)| *dtype);
    spelled.or_else(implied).or_else(ending)
}

/// `nvjet_sm90_tst_...`: input, accumulator and output, one letter each; `t` is brain float, `h` half, `q` eight bits.
fn nvjet_type(rest: &str) -> Option<DType> {
    let letters = rest.split('_').find(|part| !part.starts_with("sm"))?;
    match letters.chars().next()? {
        't' => Some(DType::Bf16),
        'h' => Some(DType::Fp16),
        'q' => Some(DType::Fp8),
        _ => None,
    }
}

/// `Cijk_Alik_Bljk_BBS_...`: the index names of the contraction, then the types of the inputs, the output and the sums in
/// the letters of BLAS, `B` for brain float and `F8`, `B8`, `I8` for eight bits.
fn tensile_type(contraction: &str) -> Option<DType> {
    let letters =
        contraction.split('_').find(|part| !part.starts_with("Ai") && !part.starts_with("Al") && !is_b_index(part))?;
    match letters.as_bytes() {
        [b'F' | b'B', b'8', ..] => Some(DType::Fp8),
        [b'I', b'8', ..] => Some(DType::Int8),
        [b'B', ..] => Some(DType::Bf16),
        [b'H', ..] => Some(DType::Fp16),
        [b'S', ..] => Some(DType::Fp32),
        [b'D', ..] => Some(DType::Fp64),
        _ => None,
    }
}

/// Whether this names the indices of the second operand, such as `Bljk`.
fn is_b_index(part: &str) -> bool {
    part.len() > 2 && part.starts_with('B') && part[1..].bytes().all(|letter| letter.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn element_types_of_the_libraries_are_read() {
        assert_eq!(element_type("nvjet_sm90_tst_8x64_64x16_4x1_v_bz_TNN"), Some(DType::Bf16));
        assert_eq!(element_type("nvjet_hsh_8x64_64x16_4x1_v_bz_TNN"), Some(DType::Fp16));
        assert_eq!(element_type("nvjet_sm90_sss_8x64_64x16_4x1_v_bz_TNN"), None);
        assert_eq!(element_type("cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_tn_align1>"), Some(DType::Fp32));
        let multiply = "at::native::vectorized_elementwise_kernel<8, at::native::BinaryFunctor<c10::BFloat16, \
                        c10::BFloat16, c10::BFloat16, at::native::binary_internal::MulFunctor<float> > >";
        assert_eq!(element_type(multiply), Some(DType::Bf16));
        assert_eq!(
            element_type("at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, x> >"),
            Some(DType::Fp32)
        );
        assert_eq!(element_type("my_kernel"), None);
        assert_eq!(element_type("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x32x64"), Some(DType::Bf16));
        assert_eq!(element_type("Cijk_Ailk_Bljk_S_B_Bias_HA_S_SAV_UserArgs_MT16x16x128"), Some(DType::Fp32));
        assert_eq!(element_type("Cijk_Alik_Bljk_F8BS_BH_Bias_HA_S_SAB_SCD_UserArgs_MT256x256x128"), Some(DType::Fp8));
    }
}
