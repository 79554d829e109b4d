//! Which kernels a framework launches for an operation.
//!
//! Matrix work here, the rest in [`crate::eager`]. Compiled code fuses neighbouring elementwise kernels into one.

use types::{AttentionKind, ExecutionMode, Op};

use crate::attention;
use crate::call::Call;
use crate::eager::{Experts, eager};
use crate::shape::Kernels;
use crate::{Family, OpShape};

/// How a framework runs a model.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    pub(crate) mode: ExecutionMode,
    pub(crate) attention: AttentionKind,
    pub(crate) experts: Experts,
}

/// Whether compiled code fuses this operation with its neighbours.
pub(crate) fn fuses(op: &Op) -> bool {
    !matches!(
        op,
        Op::Linear
            | Op::MatMulTransposed
            | Op::Conv1d { .. }
            | Op::Conv2d { .. }
            | Op::Attention { .. }
            | Op::LatentAttention { .. }
            | Op::Embedding
            | Op::TopK { .. }
            | Op::Dispatch { .. }
            | Op::Combine { .. }
    )
}

/// Whether `op` lays out anew what `before` left laid out already: fused attention writes positions before heads.
pub(crate) fn is_laid_out(before: Option<&Op>, op: &Op, kind: AttentionKind) -> bool {
    matches!(op, Op::Copy) && before.is_some_and(|before| attention::is_fused(before, kind))
}

/// The kernels of `call`. `more` is how many keys its attention sees beyond those recorded; `fused` that compiled code
/// has put it into the kernel before.
pub(crate) fn kernels(
    call: &Call<'_>,
    more: u64,
    Style { attention: kind, mode, experts }: Style,
    fused: bool,
) -> Vec<Kernels> {
    let dtype = call.dtype;
    let one = |shape: OpShape| vec![Kernels { shape, count: 1.0 }];
    match call.op {
        Op::Linear | Op::MatMulTransposed => {
            let n = call.output.shape.last().max(1);
            let m = (call.output.shape.elements() / n).max(1);
            let k = call.inputs.first().map_or(1, |x| x.shape.last()).max(1);
            let grouped = mode == ExecutionMode::Compiled || experts == Experts::Grouped;
            match &call.spread {
                Some(_) => vec![spread(call, [m, n, k], grouped)],
                None => one(OpShape::gemm(dtype, [m, n, k])),
            }
        }
        Op::Conv1d { .. } | Op::Conv2d { .. } => {
            // As the GEMM it is computed by: outputs times channels times window.
            let channels = call.dim(1, 0);
            let m = (call.output.shape.elements() / channels).max(1);
            let taps = call.inputs.get(1).map_or(1, |weight| weight.shape.elements() / channels.max(1));
            one(OpShape::gemm(dtype, [m, channels, taps]))
        }
        Op::Attention { .. } | Op::LatentAttention { .. } => attention::attention(call, more, kind, mode),
        // Caches of a fixed size, which a graph needs, are written in place.
        Op::CacheAppend if mode == ExecutionMode::Graph => {
            vec![Kernels { shape: OpShape::elementwise(dtype, call.bytes / 2.0), count: 2.0 }]
        }
        _ if fused => Vec::new(),
        _ if mode == ExecutionMode::Compiled => one(OpShape::elementwise(dtype, call.bytes)),
        _ => eager(call, experts),
    }
}

/// A GEMM spread over experts: one for each where code loops over them, a grouped one otherwise.
pub(crate) fn spread(call: &Call<'_>, [m, n, k]: [u64; 3], grouped: bool) -> Kernels {
    let touched = call.touched();
    if grouped {
        let sizes = vec![m as f64, n as f64, k as f64, touched.min(m as f64)];
        return Kernels { shape: OpShape { family: Family::GroupedGemm, dtype: call.dtype, sizes }, count: 1.0 };
    }
    let rows = ((m as f64 / touched).round() as u64).max(1);
    Kernels { shape: OpShape::gemm(call.dtype, [rows, n, k]), count: touched }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use meter::{WorkloadSettings, predict};
    use network::{Model, Preset};
    use types::{DType, LogitsKind, PageKind, Parallel, Quantisation, RoutingKind};

    use super::*;

    /// Kernels of the first decode step behind a prompt, by operation and family.
    fn step(preset: &str, prompt: u64, style: Style) -> BTreeMap<(String, &'static str), f64> {
        let model = Model::new(&Preset::find(preset).unwrap().config().unwrap());
        let settings = WorkloadSettings {
            profile_id: "test".into(),
            description: String::new(),
            doc_kind: PageKind::Synthetic,
            num_pages: 1,
            batch: 8,
            dtype: Some("bf16".into()),
            attention: style.attention,
            logits: LogitsKind::Last,
            routing: RoutingKind::Balanced,
            base_size: None,
            image_size: None,
            crop_mode: None,
            crop_grid: None,
            image_pixels: None,
            text_tokens: Some(prompt),
            seq_len: None,
            max_new_tokens: None,
            decode_steps: Some(1),
            quantisation: Quantisation::default(),
            parallel: Parallel::default(),
        };
        let workload = settings.resolve(&model, DType::Bf16).unwrap();
        let decode = predict(&model, &workload).unwrap().decode.unwrap();
        let mut counts = BTreeMap::new();
        let mut before = None;
        for op in &decode.ops {
            let call = Call::from(&op.record);
            if is_laid_out(before.replace(call.op), call.op, style.attention) {
                continue;
            }
            for kernels in kernels(&call, 0, style, false) {
                *counts.entry((call.op.name().to_owned(), kernels.shape.family.name())).or_default() += kernels.count;
            }
        }
        counts
    }

    fn eager(experts: Experts) -> Style {
        Style { mode: ExecutionMode::Eager, attention: AttentionKind::Flash, experts }
    }

    #[test]
    fn a_step_of_llama_has_the_kernels_of_its_trace() {
        // transformers 5.17 on an H200, batch 8, 32 layers: 65 norms of eight kernels, rotations of queries and keys of five,
        // two joins of the cache, one attention and no copy behind it.
        let found = step("llama-3-8b", 1024, eager(Experts::Grouped));
        let of = |op: &str| found.iter().filter(|((name, _), _)| name == op).map(|(_, count)| count).sum::<f64>();
        assert_eq!(of("rms_norm"), 65.0 * 8.0);
        assert_eq!(of("rotary"), 64.0 * 5.0);
        assert_eq!(of("linear"), 7.0 * 32.0 + 1.0);
        assert_eq!(found[&("attention".to_owned(), "concatenate")], 64.0);
        assert_eq!(found[&("attention".to_owned(), "generation_attention")], 32.0);
        assert_eq!(of("copy") + of("cache_append"), 0.0);
        assert_eq!(found[&("rms_norm".to_owned(), "reduce")], 65.0);
    }

    #[test]
    fn a_full_window_is_a_mask_and_an_empty_one_is_not() {
        // Gemma 3 1B has 26 layers, 22 of them with a window of 512; its norms add one to their weights.
        let long = step("gemma-3-1b", 1024, eager(Experts::Grouped));
        assert_eq!(long[&("attention".to_owned(), "masked_attention")], 22.0);
        assert_eq!(long[&("attention".to_owned(), "generation_attention")], 4.0);
        assert_eq!(long[&("attention".to_owned(), "concatenate_strided")], 44.0);
        let norms = long.iter().filter(|((name, _), _)| name == "rms_norm").map(|(_, count)| count).sum::<f64>();
        assert_eq!(norms, 157.0 * 10.0);
        let short = step("gemma-3-1b", 128, eager(Experts::Grouped));
        assert_eq!(short.get(&("attention".to_owned(), "masked_attention")), None);
        assert_eq!(short[&("attention".to_owned(), "generation_attention")], 26.0);
    }

    #[test]
    fn experts_are_one_grouped_gemm_or_one_each() {
        let grouped = step("qwen1.5-moe-a2.7b", 128, eager(Experts::Grouped));
        assert_eq!(grouped[&("linear".to_owned(), "grouped_gemm")], 3.0 * 24.0);
        let looped = step("qwen1.5-moe-a2.7b", 128, eager(Experts::Looped));
        // Eight tokens that choose four of sixty each touch 25.
        assert_eq!(looped.get(&("linear".to_owned(), "grouped_gemm")), None);
        assert!(looped[&("linear".to_owned(), "gemm")] > 24.0 * 3.0 * 25.0);
    }
}
