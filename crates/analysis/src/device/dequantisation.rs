//! Kernels that widen quantised tensors for the GEMM behind them.

use types::timeline::{OperatorSignature, QueueId, Timeline, WorkKind};

use crate::attribution::Attribution;
use crate::kernel::{self, Family};

/// Most kernels between a quantised tensor and its GEMM: cast, zero point, scale, a cast back.
const LONGEST: usize = 4;

/// Signs of a cast in names of copies.
const CASTS: [&str; 6] = ["withcast", "cast_", "_cast", "convert", "tofloat", "float16_copy"];

/// What is known of a tensor that is cast for a GEMM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Cast {
    /// It was quantised.
    Quantised,
    /// Its type is not recorded: it was quantised, or an operand of another type.
    Unknown,
}

/// What a kernel does on the way from a quantised tensor to a GEMM.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Casts a tensor.
    Casts(Cast),
    /// Scales, shifts or copies what was widened.
    Scales,
    /// Multiplies matrices.
    Product,
    /// Anything else.
    Other,
}

/// Which rows of the work cast a tensor for the GEMM that follows in their queue. What was cast is known by the recorded types of a
/// copy, or by the name of the kernel.
pub(super) fn rows(timeline: &Timeline, attribution: &Attribution) -> Vec<Option<Cast>> {
    let steps: Vec<Step> = timeline.names.iter().map(|(_, name)| step(name)).collect();
    let mut order: Vec<usize> = (0..timeline.work.len()).collect();
    order.sort_by_key(|row| (timeline.work[*row].queue, timeline.work[*row].start));
    let mut found = vec![None; timeline.work.len()];
    let mut open: Vec<usize> = Vec::new();
    let mut cast = None;
    let mut queue: Option<QueueId> = None;
    for row in order {
        let work = &timeline.work[row];
        if queue.replace(work.queue) != Some(work.queue) {
            open.clear();
        }
        let step = match steps[work.name.index()] {
            _ if work.kind != WorkKind::Kernel => Step::Other,
            step @ (Step::Scales | Step::Casts(Cast::Unknown)) => recorded(timeline, attribution, row).unwrap_or(step),
            step => step,
        };
        match step {
            Step::Casts(kind) => {
                cast = if open.is_empty() { Some(kind) } else { cast.min(Some(kind)) };
                open.push(row);
            }
            Step::Scales if !open.is_empty() && open.len() < LONGEST => open.push(row),
            Step::Product => open.drain(..).for_each(|row| found[row] = cast),
            Step::Scales | Step::Other => open.clear(),
        }
    }
    found
}

fn step(name: &str) -> Step {
    let lower = name.to_ascii_lowercase();
    match kernel::family(name) {
        Family::Gemm | Family::Gemv | Family::Experts => Step::Product,
        _ if lower.contains("dequant") => Step::Casts(Cast::Quantised),
        Family::Copy if CASTS.iter().any(|sign| lower.contains(sign)) => Step::Casts(Cast::Unknown),
        Family::Copy => Step::Scales,
        Family::Elementwise if ["mul", "sub"].iter().any(|sign| lower.contains(sign)) => Step::Scales,
        _ => Step::Other,
    }
}

/// What the recorded types of a copy tell; absent where there are none.
fn recorded(timeline: &Timeline, attribution: &Attribution, row: usize) -> Option<Step> {
    let operator = attribution.operator[row].map(|row| &timeline.operators[row as usize])?;
    let signature = timeline.signatures.get(operator.signature?);
    let is_copy = timeline.name(operator.name) == "aten::copy_" && !signature.types.is_empty();
    is_copy.then(|| if widens(signature) { Step::Casts(Cast::Quantised) } else { Step::Scales })
}

/// `copy_` takes the destination first.
fn widens(signature: &OperatorSignature) -> bool {
    let is_wide = |kind: &str| matches!(kind, "c10::BFloat16" | "c10::Half" | "float");
    let is_narrow = |kind: &str| matches!(kind, "signed char" | "unsigned char") || kind.starts_with("c10::Float8_");
    matches!(&signature.types[..], [wide, narrow, ..] if is_wide(wide) && is_narrow(narrow))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribution::{AttributionSettings, attribute};
    use crate::device::sample::{Launch, timeline};

    const CAST: &str = "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)>(int)";
    const SCALE: &str = "void at::native::vectorized_elementwise_kernel<8, at::native::BinaryFunctor<c10::BFloat16, \
                         c10::BFloat16, c10::BFloat16, at::native::binary_internal::MulFunctor<float> > >(int)";
    const GEMM: &str = "nvjet_sm90_tst_64x8_64x16_4x1_v_bz_TNT";
    const NORM: &str = "rms_norm_kernel";

    /// The rows found where `copy_` reads elements of this type.
    fn found(source: &str, names: &[&'static str]) -> Vec<bool> {
        let launch = |(place, name): (usize, &&'static str)| {
            let start = place as i64 * 20;
            let operator = (*name == CAST).then_some("aten::copy_");
            Launch { operator, ..Launch::new(start, start + 10, 8).named(name) }
        };
        let launches: Vec<Launch> = names.iter().enumerate().map(launch).collect();
        let mut timeline = timeline(1_000, &launches);
        let types = vec!["c10::BFloat16".to_owned(), source.to_owned()];
        let signature = timeline.signatures.place_owned(OperatorSignature { types, ..OperatorSignature::default() });
        timeline.operators.iter_mut().for_each(|operator| operator.signature = Some(signature));
        let attribution = attribute(&timeline, &AttributionSettings::default());
        rows(&timeline, &attribution).iter().map(|cast| *cast == Some(Cast::Quantised)).collect()
    }

    #[test]
    fn a_cast_of_unknown_type_before_a_gemm_is_a_cast_and_no_copy_of_a_layout() {
        const UNKNOWN: &str = "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&), \
                               at::native::memory::LoadWithCast<1>, at::native::memory::StoreWithCast<1> >(int)";
        let of = |names: [&'static str; 3]| {
            let launch = |(place, name): (usize, &&'static str)| {
                Launch::new(place as i64 * 20, place as i64 * 20 + 10, 8).named(name)
            };
            let timeline = timeline(1_000, &names.iter().enumerate().map(launch).collect::<Vec<_>>());
            rows(&timeline, &attribute(&timeline, &AttributionSettings::default()))
        };
        assert_eq!(of([UNKNOWN, SCALE, GEMM]), [Some(Cast::Unknown), Some(Cast::Unknown), None]);
        assert_eq!(of([CAST, SCALE, GEMM]), [None; 3], "a copy that casts nothing");
        assert_eq!(of([UNKNOWN, NORM, GEMM]), [None; 3], "no GEMM reads it");
    }

    #[test]
    fn a_cast_of_eight_bits_and_its_scale_before_a_gemm_are_found() {
        for source in ["signed char", "unsigned char", "c10::Float8_e4m3fn"] {
            assert_eq!(found(source, &[CAST, SCALE, GEMM, SCALE]), [true, true, false, false], "{source}");
        }
        assert_eq!(found("float", &["kDequantizeBlockwise<__nv_bfloat16>", GEMM]), [true, false]);
    }

    #[test]
    fn other_casts_and_casts_for_other_kernels_are_not() {
        assert_eq!(found("float", &[CAST, SCALE, GEMM]), [false; 3], "wide already");
        assert_eq!(found("long", &[CAST, GEMM]), [false; 2], "indices");
        assert_eq!(found("signed char", &[CAST, NORM, GEMM]), [false; 3], "no GEMM reads it");
        assert_eq!(found("signed char", &[SCALE, GEMM]), [false; 2], "nothing is widened");
    }
}
