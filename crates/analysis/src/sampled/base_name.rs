//! The function of a kernel in the spellings of two tools. Each demangles in its own way: nsys writes
//! `at::native::f<(int)4, c10::Half>` where ncu writes `f<4, Half>`, and ncu cuts unnamed namespaces to `unnamed>::`.
//!
//! `kernel::function_name` reads balanced names and serves the profiler's filters; this one takes whatever a tool has cut.

/// What tools write for a namespace without a name.
const UNNAMED: [&str; 5] =
    ["<unnamed>::", "(anonymous namespace)::", "unnamed>::", "_GLOBAL__N__::", "(anonymous_namespace)::"];

/// The function's own name, without return type, namespaces, template arguments and parameters.
pub(super) fn base_name(name: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampled::spelled::{NCU, NSYS};

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
}
