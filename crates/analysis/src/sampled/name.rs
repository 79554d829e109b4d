//! When two tools mean the same kernel. Each demangles in its own way: nsys writes `at::native::f<(int)4, c10::Half>`
//! where ncu writes `f<4, Half>`, and ncu cuts unnamed namespaces to `unnamed>::`.

use std::collections::BTreeSet;

/// What tools write for a namespace without a name.
const UNNAMED: [&str; 5] =
    ["<unnamed>::", "(anonymous namespace)::", "unnamed>::", "_GLOBAL__N__::", "(anonymous_namespace)::"];

/// The function's own name, without return type, namespaces, template arguments and parameters.
pub fn base_name(name: &str) -> String {
    let mut text = name.trim().to_owned();
    for unnamed in UNNAMED {
        text = text.replace(unnamed, "");
    }
    // cuBLAS hides a return type behind a condition.
    if let Some((_, rest)) = text.split_once("::type ").filter(|(condition, _)| condition.contains("enable_if<")) {
        text = rest.to_owned();
    }
    let end = text.find(['<', '(']).unwrap_or(text.len());
    let head = text[..end].trim_end();
    let word = head.rsplit([' ', ':', '*', '&']).next().unwrap_or(head);
    if word.is_empty() { name.to_owned() } else { word.to_owned() }
}

/// Words that every spelling has, or only some.
const NOISE: [&str; 12] =
    ["void", "const", "int", "unsigned", "long", "bool", "lambda", "instance", "operator", "unnamed", "char", "signed"];

/// How alike two spellings are, from 0 to 1: the words both have over the words either has. Namespaces do not count.
pub(super) fn likeness(one: &str, other: &str) -> f64 {
    let (one, other) = (words(one), words(other));
    let either = one.union(&other).count();
    if either == 0 { 1.0 } else { one.intersection(&other).count() as f64 / either as f64 }
}

fn words(name: &str) -> BTreeSet<&str> {
    let mut words = BTreeSet::new();
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut rest = name;
    while let Some(start) = rest.find(is_word) {
        let tail = &rest[start..];
        let end = tail.find(|letter| !is_word(letter)).unwrap_or(tail.len());
        let (word, after) = tail.split_at(end);
        if !after.starts_with("::") && !NOISE.contains(&word) {
            words.insert(word);
        }
        rest = after;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    const NSYS: &str = "void at::native::elementwise_kernel<(int)128, (int)4, void at::native::gpu_kernel_impl_nocast<\
        at::native::CUDAFunctor_add<c10::BFloat16>>(at::TensorIteratorBase &, const T1 &)::[lambda(int) (instance 1)]>(int, T3)";
    const NCU: &str = "void elementwise_kernel<128, 4, void gpu_kernel_impl_nocast<CUDAFunctor_add<BFloat16>>(\
        TensorIteratorBase &, const T1 &)::[lambda(int) (instance 1)]>(int, T3)";

    #[test]
    fn the_function_is_found_in_every_spelling() {
        assert_eq!(base_name(NSYS), "elementwise_kernel");
        assert_eq!(base_name(NCU), "elementwise_kernel");
        assert_eq!(base_name("nvjet_sm90_tst_8x64_64x16_4x1_v_bz_TNN"), "nvjet_sm90_tst_8x64_64x16_4x1_v_bz_TNN");
        assert_eq!(
            base_name("void unnamed>::distribution_elementwise_grid_stride_kernel<float, 4>(long)"),
            "distribution_elementwise_grid_stride_kernel"
        );
        assert_eq!(base_name("void at::native::<unnamed>::softmax_warp_forward<float>(T1 *)"), "softmax_warp_forward");
        assert_eq!(base_name("std::enable_if<!T7, void>::type internal::gemvx::kernel<int>(T13)"), "kernel");
        assert_eq!(base_name(""), "");
    }

    #[test]
    fn spellings_of_one_kernel_are_nearer_than_two_kernels_of_one_name() {
        let other = NCU.replace("CUDAFunctor_add", "CUDAFunctor_mul");
        assert!(likeness(NSYS, NCU) > 0.99, "{}", likeness(NSYS, NCU));
        assert!(likeness(NSYS, &other) < likeness(NSYS, NCU));
    }
}
