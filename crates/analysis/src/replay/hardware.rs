//! Kernels on another device.

use types::{DType, Hardware};

use super::bound::Bound;
use super::setting::Setting;
use crate::kernel::Family;

/// The share of its time that a kernel takes on another device: the ratio of what limits it. Where the trace does not tell what
/// that is, the bound decides.
pub(super) fn share(setting: &Setting<'_>, row: usize, from: &Hardware, to: &Hardware, bound: Bound) -> f64 {
    let memory = from.bytes_per_second.get() / to.bytes_per_second.get();
    let family = setting.family(row);
    if family == Family::Communication {
        return 1.0;
    }
    let is_matrix = matches!(
        family,
        Family::Gemm | Family::Gemv | Family::Attention | Family::Convolution | Family::Experts | Family::Compiled
    );
    let compute = compute(from, to, setting.kind(row).dtype);
    let compute_bound = setting.roofline[row].map(|roofline| roofline.compute);
    match (is_matrix, compute_bound, compute) {
        (true, Some(true), Some(compute)) => compute,
        (true, None, Some(compute)) => bound.pick(compute.max(memory), compute.min(memory)),
        // Without a rate for its element type, nothing is known of what limits it.
        (true, None | Some(true), None) => bound.pick(memory.max(1.0), memory),
        _ => memory,
    }
}

/// The ratio of matrix peaks; of half precision where the name of the kernel does not tell.
fn compute(from: &Hardware, to: &Hardware, dtype: Option<DType>) -> Option<f64> {
    let dtype = dtype.unwrap_or(DType::Bf16);
    Some(from.matrix_peak(dtype)?.flops.get() / to.matrix_peak(dtype)?.flops.get())
}
