//! Names short enough to print: no namespaces, template arguments or parameters, but enough to tell kernels apart.
//!
//! Frameworks hide what a kernel does in its template arguments: PyTorch's hundreds of elementwise kernels share three
//! names. For those the functor is taken out and put behind the name: `elementwise: CUDAFunctor_add<bf16>`.

use super::element_type::element_type;
use super::spelling::{last_word, outside_brackets};

/// Kernels whose work is in their template arguments, and what to call them.
const CARRIERS: &[(&str, &str)] = &[
    ("elementwise_kernel", "elementwise"),
    ("vectorized_elementwise_kernel", "elementwise"),
    ("unrolled_elementwise_kernel", "elementwise"),
    ("elementwise_kernel_with_index", "elementwise"),
    ("index_elementwise_kernel", "index"),
    ("_scatter_gather_elementwise_kernel", "scatter_gather"),
    ("legacy_elementwise_kernel", "elementwise"),
    ("elementwise_kernel_manual_unroll", "elementwise"),
    ("reduce_kernel", "reduce"),
    ("multi_tensor_apply_kernel", "multi_tensor"),
    ("distribution_elementwise_grid_stride_kernel", "random"),
];

/// Wrappers around a functor that say nothing about it.
const WRAPPERS: &[&str] = &[
    "gpu_kernel_impl_nocast",
    "gpu_kernel_impl",
    "gpu_index_kernel",
    "opmath_gpu_kernel_with_scalars",
    "BinaryFunctor",
    "AUnaryFunctor",
    "BUnaryFunctor",
    "ReduceOp",
    "func_wrapper_t",
];

/// Most wrappers one in another; PyTorch has three. Each is as long as what it wraps, so that many would take quadratic time.
const DEEPEST: u32 = 16;

/// Nsight Compute takes namespaces out of the names on its pages, and of a lambda in a method the opening bracket with them.
const LOST_BRACKET: [&str; 2] = ["operator ()() lambda", "operator ()() const::[lambda"];

/// The name without namespaces, template arguments and parameters.
pub fn short_name(name: &str) -> String {
    let name = &name.replace(LOST_BRACKET[0], LOST_BRACKET[1]);
    let base = last_word(name);
    let segment = last_segment(base);
    let plain = identifier(segment);
    if plain.is_empty() {
        return name.to_owned();
    }
    if let Some((_, kind)) = CARRIERS.iter().find(|(carrier, _)| *carrier == plain) {
        let functor = template_arguments(segment).into_iter().find_map(|argument| functor(argument, DEEPEST));
        return functor.map_or_else(|| (*kind).to_owned(), |functor| format!("{kind}: {functor}"));
    }
    // CUTLASS wraps the kernel's real name in one of its own.
    if let ("Kernel2" | "Kernel" | "device_kernel", Some(inner)) = (plain, template_arguments(segment).first()) {
        return identifier(last_segment(admitted(inner))).to_owned();
    }
    // Composable Kernel enters every kernel by one function: `kentry<2, FmhaFwdKernel<...>, ...>`.
    if plain == "kentry"
        && let Some(inner) = template_arguments(segment)
            .into_iter()
            .map(|argument| identifier(last_segment(argument)))
            .find(|inner| inner.starts_with(char::is_alphabetic) && *inner != "int")
    {
        return inner.to_owned();
    }
    // A name that says nothing on its own keeps its namespace: `gemvx::kernel`.
    if plain == "kernel" || plain == "Kernel" {
        let mut parts = segments(base);
        parts.pop();
        if let Some(parent) = parts.pop().map(identifier).filter(|parent| !parent.is_empty()) {
            return format!("{parent}::{plain}");
        }
    }
    plain.to_owned()
}

/// What CUTLASS lets run on some architectures only: `FlashAttnFwdSm90<...>` of `enable_sm90_or_later<FlashAttnFwdSm90<...>>`.
fn admitted(kernel: &str) -> &str {
    let segment = last_segment(kernel);
    let is_guard = identifier(segment).starts_with("enable_sm");
    template_arguments(segment).first().filter(|_| is_guard).map_or(kernel, |inner| *inner)
}

/// The name of the function alone, without return type, namespaces, template arguments and parameters: what Nsight
/// Compute calls its function base. The whole name where it has none.
pub fn function_name(name: &str) -> &str {
    let plain = identifier(last_segment(last_word(name)));
    if plain.is_empty() { name } else { plain }
}

/// `CUDAFunctor_add<bf16>` out of a template argument; `None` for numbers and types that carry no work, and where it is in more
/// wrappers than `deepest`.
fn functor(argument: &str, deepest: u32) -> Option<String> {
    let argument = last_word_of_type(argument);
    let path = segments(argument);
    // `direct_copy_kernel_cuda(...)::{lambda()#3}::operator()() const::{lambda(c10::BFloat16)#1}`: the function that
    // holds the lambda is the first segment with parameters or template arguments that is no namespace.
    let holder = path.iter().find(|part| {
        let plain = identifier(part);
        !plain.is_empty() && part.len() > plain.len() && part[plain.len()..].starts_with(['<', '('])
    })?;
    let plain = identifier(holder);
    if plain.parse::<i64>().is_ok() || plain.starts_with("OffsetCalculator") || plain.ends_with("Metadata") {
        return None;
    }
    let inner = template_arguments(holder);
    if WRAPPERS.contains(&plain) {
        // The functor inside is the last argument that is one: `BinaryFunctor<in, in, out, MulFunctor<float>>`.
        let deeper = deepest.checked_sub(1)?;
        let found = inner.iter().rev().find_map(|inner| functor(inner, deeper))?;
        return Some(match (element_type(argument), found.split_once('<')) {
            (Some(dtype), Some((name, _))) => format!("{name}<{dtype}>"),
            _ => found,
        });
    }
    // The last lambda's parameter is the type the work is done in.
    let arguments = &holder[plain.len()..holder.len() - after_templates(holder).len()];
    let typed = if arguments.is_empty() { path.last().copied().unwrap_or(holder) } else { arguments };
    Some(match element_type(typed) {
        Some(dtype) => format!("{plain}<{dtype}>"),
        None => plain.to_owned(),
    })
}

/// The identifier a segment starts with.
fn identifier(segment: &str) -> &str {
    let end = segment.find(|letter: char| !(letter.is_alphanumeric() || letter == '_' || letter == '$'));
    &segment[..end.unwrap_or(segment.len())]
}

/// As [`last_word`], for a template argument: `void f<...>(...)::[lambda]` in the spelling of nsys.
fn last_word_of_type(argument: &str) -> &str {
    let argument = argument.trim();
    argument.strip_prefix("void ").unwrap_or(argument)
}

/// Parts between `::` outside all brackets.
fn segments(name: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut from = 0;
    let mut skip = 0;
    for (at, letter) in outside_brackets(name) {
        if at < skip {
            continue;
        }
        if letter == ':' && name[at..].starts_with("::") {
            parts.push(&name[from..at]);
            from = at + 2;
            skip = from;
        }
    }
    parts.push(&name[from..]);
    parts
}

fn last_segment(name: &str) -> &str {
    segments(name).pop().unwrap_or(name)
}

/// Arguments of the first template list of a segment.
fn template_arguments(segment: &str) -> Vec<&str> {
    let Some(open) = segment.find('<') else { return Vec::new() };
    let inner = &segment[open + 1..];
    let mut from = 0;
    let mut arguments = Vec::new();
    let mut depth = 0usize;
    for (at, letter) in inner.char_indices() {
        match letter {
            '<' | '(' | '{' | '[' => depth += 1,
            '>' | ')' | '}' | ']' if depth == 0 => {
                arguments.push(inner[from..at].trim());
                return arguments;
            }
            '>' | ')' | '}' | ']' => depth -= 1,
            ',' if depth == 0 => {
                arguments.push(inner[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    arguments.push(inner[from..].trim());
    arguments
}

/// What follows the first template list of a segment; all after its identifier where it has none.
fn after_templates(segment: &str) -> &str {
    let rest = &segment[identifier(segment).len()..];
    if !rest.starts_with('<') {
        return rest;
    }
    let mut depth = 0usize;
    for (at, letter) in rest.char_indices() {
        match letter {
            '<' => depth += 1,
            '>' if depth == 1 => return &rest[at + 1..],
            '>' => depth -= 1,
            _ => {}
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn namespaces_templates_and_parameters_go() {
        let cases = [
            ("nvjet_sm90_tst_8x64_64x16_4x1_v_bz_TNN", "nvjet_sm90_tst_8x64_64x16_4x1_v_bz_TNN"),
            ("void at::native::sbtopk::gatherTopK<float, unsigned int, 1, false>(int, bool)", "gatherTopK"),
            (
                "void at::native::(anonymous namespace)::CatArrayBatchedCopy<at::native::OpaqueType<2u>, 4>(x*)",
                "CatArrayBatchedCopy",
            ),
            (
                "void at::native::<unnamed>::CatArrayBatchedCopy<at::native::<unnamed>::OpaqueType<(unsigned int)2>>(T1 *)",
                "CatArrayBatchedCopy",
            ),
            (
                "void cutlass::Kernel2<cutlass_80_simt_sgemm_64x64_8x5_tn_align1>(cutlass_80_simt::Params)",
                "cutlass_80_simt_sgemm_64x64_8x5_tn_align1",
            ),
            (
                "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<flash::Mainloop<2>, \
                 flash::Epilogue<3>> > >(flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<x> >::Params)",
                "FlashAttnFwdSm90",
            ),
            (
                "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, float>(cublasGemvParamsEx<int>)",
                "gemvx::kernel",
            ),
            (
                "at::native::(anonymous namespace)::masked_scatter_size_check(long const*, bool const*, long)",
                "masked_scatter_size_check",
            ),
            (
                "void vectorized_elementwise_kernel<8, neg_kernel_cuda(TensorIteratorBase &)::[lambda() (instance 2)]::\
                 operator ()() lambda() (instance 9)]::operator ()() lambda(BFloat16) (instance 1)], array<char *, 2>>(int, T2, T3)",
                "elementwise: neg_kernel_cuda<bf16>",
            ),
            ("void ck_tile::kentry<(int)1, ck_tile::Rmsnorm2dFwd<ck_tile::Pipeline<float>>, T3>(T3)", "Rmsnorm2dFwd"),
            ("void ck_tile::kentry<2, ck_tile::FmhaFwdKernel<x> >(y)", "FmhaFwdKernel"),
            (
                "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::\
                 TensorListScalarListMetadata<float, 1>, at::native::(anonymous namespace)::BinaryOpScalarListFunctor<float, 1, 1, \
                 0>, std::divides<float> >(at::native::(anonymous namespace)::TensorListScalarListMetadata<float, 1>)",
                "multi_tensor: BinaryOpScalarListFunctor<fp32>",
            ),
            ("", ""),
            ("void ", "void"),
        ];
        for (name, short) in cases {
            assert_eq!(short_name(name), short, "{name}");
        }
    }

    #[test]
    fn the_function_is_found_in_the_spelling_of_every_tool() {
        let cases = [
            (
                "void at::native::elementwise_kernel<(int)128, (int)4, void at::native::gpu_kernel_impl_nocast<\
                 at::native::CUDAFunctor_add<c10::BFloat16>>(at::TensorIteratorBase &, const T1 &)::[lambda(int) \
                 (instance 1)]>(int, T3)",
                "elementwise_kernel",
            ),
            ("nvjet_sm90_tst_8x64_64x16_4x1_v_bz_TNN", "nvjet_sm90_tst_8x64_64x16_4x1_v_bz_TNN"),
            (
                "void unnamed>::distribution_elementwise_grid_stride_kernel<float, 4>(long)",
                "distribution_elementwise_grid_stride_kernel",
            ),
            ("void at::native::<unnamed>::softmax_warp_forward<float>(T1 *)", "softmax_warp_forward"),
            ("std::enable_if<!T7, void>::type internal::gemvx::kernel<int>(T13)", "kernel"),
            ("", ""),
        ];
        for (name, function) in cases {
            assert_eq!(function_name(name), function, "{name}");
        }
    }

    #[test]
    fn endless_wrappers_take_no_endless_time_and_no_stack() {
        let name = format!("void reduce_kernel<{}", "ReduceOp<".repeat(1_000_000));
        assert_eq!(short_name(&name), "reduce");
    }

    proptest! {
        #[test]
        fn no_text_breaks_it(name in "[ a-z:<>(){}\\[\\],#&*é]{0,60}") {
            let _ = short_name(&name);
        }
    }
}
