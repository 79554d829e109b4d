//! Element type of a kernel, where its name tells.

use types::DType;

use super::spelling::Spelling;

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
const IMPLIED: &[(&str, DType)] = &[
    ("f32f32", DType::Fp32),
    ("sgemm", DType::Fp32),
    ("scudnn", DType::Fp32),
    ("dgemm", DType::Fp64),
    ("hgemm", DType::Fp16),
];
const ENDINGS: &[(&str, DType)] = &[
    ("_f16", DType::Fp16),
    ("_f32", DType::Fp32),
    ("_f64", DType::Fp64),
    ("_i64", DType::Int64),
    ("_u8", DType::Uint8),
];

/// Libraries whose template arguments start with the types of the operands; elsewhere a `float` may as well be the accumulator.
const STATE_OPERANDS: &[&str] = &["cublas", "cudnn", "aten"];

/// Narrow operands that have no element type of their own here: four and eight bits, loaded as vectors of integers.
const NARROW: &[&str] = &["int4", "int8", "signed char", "unsigned char", "subbyte", "e2m1", "tfloat32"];

/// Steps of a GEMM that read accumulators, not operands: the sum of split-K, and what is done to the result.
const AFTER_PRODUCTS: &[&str] = &["reduce", "epilogue"];

/// Element type of the inputs. `name` is without its return type.
pub(super) fn element_type(name: &str) -> Option<DType> {
    if let Some(rest) = name.strip_prefix("nvjet_") {
        return nvjet_type(rest);
    }
    if let Some((_, contraction)) = name.split_once("Cijk_") {
        return tensile_type(contraction);
    }
    first_spelled(name, |_| true).or_else(|| implied(name))
}

/// Element type of the operands of a GEMM or a convolution of this library.
///
/// Those of any precision sum up in single precision. So `float` in a name tells the operands only where the name of the
/// algorithm says so, or where the library states them and no narrower type is in the name.
pub(super) fn operand_type(name: &str, library: Option<&str>) -> Option<DType> {
    let found = element_type(name)?;
    let spelling = Spelling::of(name);
    if is_after_products(&spelling) {
        return None;
    }
    if !is_accumulator(found) || first_spelled(name, |_| true).is_none() {
        return Some(found);
    }
    if first_spelled(name, |dtype| !is_accumulator(dtype)).is_some() {
        return None;
    }
    let states = library.is_some_and(|library| STATE_OPERANDS.contains(&library))
        && !NARROW.iter().any(|narrow| name.contains(narrow));
    implied(name).or_else(|| Some(found).filter(|dtype| states && states_type(&spelling.arguments, *dtype)))
}

/// Whether a kernel of a GEMM library reads accumulators, and multiplies nothing itself.
pub fn sums_up_products(name: &str) -> bool {
    is_after_products(&Spelling::of(name))
}

fn is_after_products(spelling: &Spelling) -> bool {
    AFTER_PRODUCTS.iter().any(|step| spelling.path.contains(step))
}

/// What the name of the algorithm implies.
fn implied(name: &str) -> Option<DType> {
    let implied = IMPLIED.iter().find(|(text, _)| name.contains(text));
    implied.or_else(|| ENDINGS.iter().find(|(text, _)| name.ends_with(text))).map(|(_, dtype)| *dtype)
}

/// The element type that is spelled first among those asked for.
fn first_spelled(name: &str, which: fn(DType) -> bool) -> Option<DType> {
    // A copy that converts is named after what it makes; what it reads is in its lambda.
    let name = name.split_once("float16_copy_kernel_cuda").map_or(name, |(_, rest)| rest);
    // Index lists are no inputs of this kind, whatever their type.
    let at = |text: &str| name.match_indices(text).map(|(at, _)| at).find(|at| !name[..*at].ends_with("ArrayRef"));
    let spelled =
        SPELLINGS.iter().filter(|(_, dtype)| which(*dtype)).filter_map(|(text, dtype)| Some((at(text)?, *dtype)));
    spelled.min_by_key(|(at, _)| *at).map(|(_, dtype)| dtype)
}

/// Whether GEMMs of narrower operands have arguments of this type too: sums, scales and indices.
const fn is_accumulator(dtype: DType) -> bool {
    matches!(dtype, DType::Fp32 | DType::Fp64 | DType::Int64 | DType::Bool)
}

/// Whether the template arguments, and not only the parameters, name this type.
fn states_type(arguments: &str, dtype: DType) -> bool {
    let word = match dtype {
        DType::Fp32 => "float",
        DType::Fp64 => "double",
        _ => return false,
    };
    arguments.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').any(|part| part == word)
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

    fn element_type(name: &str) -> Option<DType> {
        crate::kernel::classify(name).dtype
    }

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

    #[test]
    fn an_accumulator_is_no_operand() {
        let split = "void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16, float, __nv_bfloat16, true, false, \
                     false>(cublasLt::cublasSplitKParams<float>, float const*, __nv_bfloat16 const*)";
        let unknown = [
            split,
            "void cublasLt::splitKreduce_kernel<32, 16, int, float, float, float, float, true>(float const*)",
            "void marlin::Marlin<1125899906909960l, 256, 1, 8, 8, 4, 8, false>(int4 const*, int4*, float const*)",
            "void marlin::Marlin<(int)256, (int)1, float>(const int4 *, float *)",
            "void mul_mat_q<(ggml_type)12, 64, 8, true>(char const*, int const*, float*)",
            "void gemm_kernel<Traits, float>(Params)",
            "void dot_kernel<float, 128, 0, cublasDotParams<cublasGemvTensor<__half const>, cublasGemvTensor<float> > >(int)",
            "void cublasLt::epilogue::impl::globalKernel<8, 32, float, float, float>(int)",
            "bmm_Bfloat16_MxE2m1MxE4m3_Fp32_bA32_bB32_t128x16x256_s5_rgTma_clmp_dynB_sm100f",
        ];
        unknown.iter().for_each(|name| assert_eq!(element_type(name), None, "{name}"));
        let half =
            "void gemv2T_kernel_val<int, int, __half, __half, __half, float, 128, 16, 4, 4, false>(P, float, float)";
        assert_eq!(element_type(half), Some(DType::Fp16));
    }

    #[test]
    fn operands_that_a_name_states_are_believed() {
        let single = [
            "volta_sgemm_64x64_nt",
            "volta_scudnn_128x64_relu_interior_nn_v1",
            "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize32x32x8_stage3_warpsize1x2x1_ffma_kernel__5x_cublas",
            "void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 4, 4, false, false>(P)",
            "void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>(WinogradDataParams<float, float>)",
            "void implicit_convolve_sgemm<float, float, 1024, 5, 5, 3, 3, 3, 1, true>(int, float const*)",
        ];
        single.iter().for_each(|name| assert_eq!(element_type(name), Some(DType::Fp32), "{name}"));
        let tf32 = "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize64x64x32_stage4_warpsize2x2x1_tensor16x8x8_kernel__5x_cublas";
        assert_eq!(element_type(tf32), Some(DType::Tf32));
    }
}
