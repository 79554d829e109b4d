//! Work of a recorded operator, from the shapes it was called with and nothing else: GEMMs, convolutions and attention.
//!
//! One multiply-add is two FLOPs. Bytes are the least: every input read and every output written once. Whatever the record
//! does not tell (a mask, a stride, lengths of packed sequences) makes the work unknown, never a guess.

use types::timeline::{OperatorSignature, Timeline};
use types::{Bytes, Count, DType, Flops};

use crate::attribution::Attribution;

/// Work of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordedWork {
    /// Matrix operations.
    pub(super) flops: Flops,
    /// Least traffic.
    pub(super) bytes: Bytes,
}

/// Where an attention operator keeps its query, whether heads stand before positions, and which argument tells of a mask.
struct AttentionForm {
    query: usize,
    heads_first: bool,
    causal: usize,
    window: Option<usize>,
    /// Matrix multiplications: two forward, five backward.
    products: u32,
}

/// Work of a call of the operator `name` on elements of that type; `None` where the name is none of these or the record does
/// not tell.
pub(super) fn work(name: &str, signature: &OperatorSignature, dtype: DType) -> Option<RecordedWork> {
    let call = Call { signature, size: element_bytes(dtype)? };
    match name {
        "aten::mm" | "aten::_scaled_mm" | "aten::_int_mm" => call.gemm(0, 1),
        "aten::addmm" | "aten::_addmm_activation" => call.gemm(1, 2),
        "aten::bmm" => call.batched(0, 1),
        "aten::baddbmm" => call.batched(1, 2),
        "aten::mv" => call.gemv(0),
        "aten::addmv" => call.gemv(1),
        "aten::linear" | "aiter::gemm_a16w16" | "vllm::rocm_unquantized_gemm" | "vllm::rocm_unquantized_gemm_impl" => {
            call.linear()
        }
        "aten::_grouped_mm" | "aten::_scaled_grouped_mm" => call.grouped(),
        "aten::conv1d" | "aten::conv2d" | "aten::conv3d" => call.convolution(3, 4, 5),
        "aten::convolution" | "aten::_convolution" if call.flag(6) == Some(false) => call.convolution(3, 4, 5),
        "aten::cudnn_convolution_relu" => call.convolution(3, 4, 5),
        "aten::cudnn_convolution" => call.convolution(3, 2, 4),
        "aten::miopen_convolution" | "aten::miopen_depthwise_convolution" => call.convolution(4, 3, 5),
        "aten::_conv_depthwise2d" => call.convolution(4, 5, 6),
        "aten::convolution_backward" => call.convolution_backward(),
        _ => call.attention(&attention_form(name)?),
    }
}

/// The element type of the first tensor that has one.
pub(super) fn dtype(signature: &OperatorSignature) -> Option<DType> {
    signature.types.iter().find_map(|name| match name.trim_start_matches("c10::").trim_start_matches("at::") {
        "BFloat16" => Some(DType::Bf16),
        "Half" => Some(DType::Fp16),
        "float" => Some(DType::Fp32),
        "double" => Some(DType::Fp64),
        "signed char" => Some(DType::Int8),
        name if name.starts_with("Float8") => Some(DType::Fp8),
        _ => None,
    })
}

/// Per work: whether the operator that launched it read tensors in half precision, whatever the name of the kernel says.
pub(crate) fn reads_half(timeline: &Timeline, attribution: &Attribution) -> Vec<bool> {
    let is_half: Vec<bool> = timeline
        .operators
        .iter()
        .map(|operator| {
            let signature = operator.signature.map(|signature| timeline.signatures.get(signature));
            signature.and_then(dtype).is_some_and(|dtype| matches!(dtype, DType::Bf16 | DType::Fp16))
        })
        .collect();
    attribution.operator.iter().map(|row| row.is_some_and(|row| is_half[row as usize])).collect()
}

/// Signatures of the operators of PyTorch, FlashAttention and aiter.
fn attention_form(name: &str) -> Option<AttentionForm> {
    let form = |heads_first, causal, window| AttentionForm { query: 0, heads_first, causal, window, products: 2 };
    Some(match name {
        "aten::_flash_attention_forward" => form(false, 8, Some(11)),
        "aten::_scaled_dot_product_flash_attention" => form(true, 4, None),
        "aten::_cudnn_attention_forward" => form(true, 10, None),
        "aten::_scaled_dot_product_cudnn_attention" | "aten::_scaled_dot_product_efficient_attention" => {
            form(true, 6, None)
        }
        "aten::_efficient_attention_forward" => form(false, 9, None),
        "flash_attn::_flash_attn_forward" | "aiter::_flash_attn_forward" => form(false, 5, Some(6)),
        "aten::_flash_attention_backward" => {
            AttentionForm { query: 1, heads_first: false, causal: 11, window: None, products: 5 }
        }
        "flash_attn::_flash_attn_backward" => {
            AttentionForm { query: 1, heads_first: false, causal: 11, window: Some(12), products: 5 }
        }
        _ => return None,
    })
}

fn element_bytes(dtype: DType) -> Option<u128> {
    let bits = dtype.bits();
    (bits >= 8).then(|| u128::from(bits) / 8)
}

/// A call, and the bytes of an element.
struct Call<'a> {
    signature: &'a OperatorSignature,
    size: u128,
}

impl Call<'_> {
    fn shape(&self, argument: usize) -> Option<Vec<Count>> {
        let shape = self.signature.shapes.get(argument)?;
        (!shape.is_empty()).then(|| shape.iter().map(Count::from).collect())
    }

    /// Multiply-adds and elements as work.
    fn done(&self, multiply_adds: Count, elements: Count) -> Option<RecordedWork> {
        let bytes = u64::try_from((elements * self.size).exact()?).ok()?;
        Some(RecordedWork { flops: Flops::new((multiply_adds * 2u32).exact()?), bytes: Bytes::new(bytes) })
    }

    /// `[m, k] x [k, n]`.
    fn gemm(&self, left: usize, right: usize) -> Option<RecordedWork> {
        let ([m, k], [depth, n]) = (sides(&self.shape(left)?)?, sides(&self.shape(right)?)?);
        (k == depth).then(|| self.done(m * k * n, m * k + k * n + m * n)).flatten()
    }

    /// `[b, m, k] x [b, k, n]`.
    fn batched(&self, left: usize, right: usize) -> Option<RecordedWork> {
        let ([b, m, k], [others, depth, n]) = (sides(&self.shape(left)?)?, sides(&self.shape(right)?)?);
        (b == others && k == depth).then(|| self.done(b * m * k * n, b * (m * k + k * n + m * n))).flatten()
    }

    /// `[m, k] x [k]`.
    fn gemv(&self, matrix: usize) -> Option<RecordedWork> {
        let [m, k] = sides(&self.shape(matrix)?)?;
        self.done(m * k, m * k + k + m)
    }

    /// `[..., k]` by a weight of `[n, k]`.
    fn linear(&self) -> Option<RecordedWork> {
        let (input, [n, depth]) = (self.shape(0)?, sides(&self.shape(1)?)?);
        let (&k, rows) = input.split_last()?;
        let m: Count = rows.iter().product();
        (k == depth).then(|| self.done(m * k * n, m * k + k * n + m * n)).flatten()
    }

    /// `[tokens, k]` by a weight of `[experts, k, n]`: each token meets one expert's weight.
    fn grouped(&self) -> Option<RecordedWork> {
        let ([tokens, k], [experts, depth, n]) = (sides(&self.shape(0)?)?, sides(&self.shape(1)?)?);
        let touched = experts.min(tokens);
        (k == depth).then(|| self.done(tokens * k * n, tokens * k + touched * k * n + tokens * n)).flatten()
    }

    /// Input `[n, c, ...]` and weight `[k, c / groups, ...]`; output sides follow from strides, padding and dilation.
    fn convolution(&self, strides: usize, padding: usize, dilation: usize) -> Option<RecordedWork> {
        let (input, weight) = (self.shape(0)?, self.shape(1)?);
        let (kernel, places) = (weight.get(2..)?, input.get(2..)?);
        if kernel.len() != places.len() || kernel.is_empty() {
            return None;
        }
        let list = |argument| self.list(argument, kernel.len());
        let (strides, padding, dilation) = (list(strides)?, list(padding)?, list(dilation)?);
        let mut output = input[0] * weight[0];
        for axis in 0..kernel.len() {
            let gaps = Count::from(kernel[axis].exact()?.checked_sub(1)?);
            let covered = (gaps * dilation[axis] + 1u32).exact()?;
            let room = (places[axis] + Count::from(padding[axis]) * 2u32).exact()?.checked_sub(covered)?;
            output = output * (Count::from(room.checked_div(strides[axis])?) + 1u32);
        }
        let taps: Count = weight[1..].iter().product();
        self.done(output * taps, input.iter().product::<Count>() + weight.iter().product::<Count>() + output)
    }

    /// `convolution_backward(grad_output, input, weight, ..., output_mask)`: one pass for each gradient that is asked for.
    fn convolution_backward(&self) -> Option<RecordedWork> {
        let (output, input, weight) = (self.shape(0)?, self.shape(1)?, self.shape(2)?);
        if self.flag(7)? {
            return None;
        }
        let mask = self.signature.values.get(10)?;
        let mut wanted = mask.trim_matches(['[', ']']).split(',').map(|flag| flag.trim() == "True");
        let passes = u32::from(wanted.next()?) + u32::from(wanted.next()?);
        let (places, taps): (Count, Count) = (output.iter().product(), weight[1..].iter().product());
        let elements = input.iter().product::<Count>() + weight.iter().product::<Count>() + places;
        self.done(places * taps * passes, elements * passes)
    }

    fn attention(&self, form: &AttentionForm) -> Option<RecordedWork> {
        let [query, key, value] = [0, 1, 2].map(|place| self.shape(form.query + place));
        let ([b, q1, q2, d], [_, k1, k2, _], [_, _, _, width]) = (sides(&query?)?, sides(&key?)?, sides(&value?)?);
        let (heads, queries, kv_heads, keys) = if form.heads_first { (q1, q2, k1, k2) } else { (q2, q1, k2, k1) };
        // A window of -1 is none.
        let windowed =
            |argument: usize| self.signature.values.get(argument).is_some_and(|text| text.parse::<u64>().is_ok());
        if form.window.is_some_and(|argument| windowed(argument) || windowed(argument + 1)) {
            return None;
        }
        let pairs = match self.flag(form.causal)? {
            false => queries * keys,
            // With fewer queries than keys it depends on the version where the mask starts.
            true if queries == keys => Count::from((queries * (queries + 1u32)).exact()? / 2),
            true => return None,
        };
        let per_pair = match form.products {
            2 => d + width,
            _ => d * 3u32 + width * 2u32,
        };
        let elements = b * (heads * queries * (d + width) + kv_heads * keys * (d + width));
        self.done(b * heads * pairs * per_pair, if form.products == 2 { elements } else { elements * 2u32 })
    }

    /// A truth value, or a kind of mask in which 0 is none.
    fn flag(&self, argument: usize) -> Option<bool> {
        match self.signature.values.get(argument)?.as_str() {
            "True" | "1" | "2" => Some(true),
            "False" | "0" => Some(false),
            _ => None,
        }
    }

    /// Numbers of one argument, one for each axis.
    fn list(&self, argument: usize, axes: usize) -> Option<Vec<u128>> {
        let text = self.signature.values.get(argument)?.trim_matches(['[', ']']);
        let numbers: Vec<u128> = text.split(',').map(|number| number.trim().parse().ok()).collect::<Option<_>>()?;
        match numbers.as_slice() {
            [one] => Some(vec![*one; axes]),
            all if all.len() == axes => Some(numbers),
            _ => None,
        }
    }
}

fn sides<const N: usize>(shape: &[Count]) -> Option<[Count; N]> {
    shape.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signature(shapes: &[&[u64]], dtype: &str, values: &[&str]) -> OperatorSignature {
        OperatorSignature {
            shapes: shapes.iter().map(|shape| shape.to_vec()).collect(),
            types: shapes.iter().map(|_| dtype.to_owned()).collect(),
            strides: Vec::new(),
            values: values.iter().map(|text| (*text).to_owned()).collect(),
            collective: None,
        }
    }

    fn flops(name: &str, shapes: &[&[u64]], values: &[&str]) -> Option<u128> {
        work(name, &signature(shapes, "c10::BFloat16", values), DType::Bf16).map(|work| work.flops.get())
    }

    #[test]
    fn gemms_are_priced_by_their_sides() {
        let found = work("aten::mm", &signature(&[&[2, 3], &[3, 5]], "float", &[]), DType::Fp32).unwrap();
        // 2 x 3 x 5 multiply-adds; 6 + 15 + 10 elements of four bytes.
        assert_eq!(found, RecordedWork { flops: Flops::new(60), bytes: Bytes::new(124) });
        assert_eq!(flops("aten::addmm", &[&[5], &[2, 3], &[3, 5]], &[]), Some(60));
        assert_eq!(flops("aten::bmm", &[&[7, 2, 3], &[7, 3, 5]], &[]), Some(420));
        assert_eq!(flops("aten::linear", &[&[4, 2, 3], &[5, 3]], &[]), Some(240));
        assert_eq!(flops("aten::_grouped_mm", &[&[10, 3], &[4, 3, 5]], &[]), Some(300));
        assert_eq!(flops("aten::mm", &[&[2, 3], &[4, 5]], &[]), None, "the depths differ");
        assert_eq!(flops("aten::mm", &[&[2, 3]], &[]), None);
        assert_eq!(flops("aten::add", &[&[2, 3], &[2, 3]], &[]), None);
    }

    #[test]
    fn sides_past_any_count_are_no_work_and_no_panic() {
        const MOST: u64 = u64::MAX;
        for (name, shapes) in [
            ("aten::mm", &[&[MOST, MOST][..], &[MOST, MOST]][..]),
            ("aten::bmm", &[&[MOST, MOST, MOST], &[MOST, MOST, MOST]]),
            ("aten::linear", &[&[MOST, MOST, MOST], &[MOST, MOST]]),
            ("aten::_grouped_mm", &[&[MOST, MOST], &[MOST, MOST, MOST]]),
            ("aten::cudnn_convolution", &[&[MOST, MOST, MOST, MOST], &[MOST, MOST, MOST, MOST]]),
            ("aten::_flash_attention_forward", &[&[MOST; 4], &[MOST; 4], &[MOST; 4]]),
        ] {
            let most = MOST.to_string();
            let values = ["", "", &most, &most, &most, "", "", "", "True"];
            assert_eq!(flops(name, shapes, &values), None, "{name}");
        }
    }

    #[test]
    fn convolutions_need_their_strides_and_have_the_published_work() {
        // The first layer of ResNet-50: 118,013,952 multiply-adds for an image of 224 pixels.
        let shapes: &[&[u64]] = &[&[1, 3, 224, 224], &[64, 3, 7, 7]];
        let values = ["", "", "[3, 3]", "[2, 2]", "[1, 1]", "1"];
        assert_eq!(flops("aten::cudnn_convolution", shapes, &values), Some(2 * 118_013_952));
        assert_eq!(flops("aten::cudnn_convolution", shapes, &[]), None);
        let miopen = ["", "", "", "[3, 3]", "[2, 2]", "[1, 1]", "1"];
        assert_eq!(flops("aten::miopen_convolution", shapes, &miopen), Some(2 * 118_013_952));
        let shapes: &[&[u64]] = &[&[1, 64, 112, 112], &[1, 3, 224, 224], &[64, 3, 7, 7]];
        let backward = |mask| ["", "", "", "[0]", "[2, 2]", "[3, 3]", "[1, 1]", "False", "[0, 0]", "1", mask];
        let name = "aten::convolution_backward";
        assert_eq!(flops(name, shapes, &backward("[True, True, False]")), Some(4 * 118_013_952));
        assert_eq!(flops(name, shapes, &backward("[False, True, False]")), Some(2 * 118_013_952));
    }

    #[test]
    fn attention_is_priced_where_its_mask_is_known() {
        let shapes: &[&[u64]] = &[&[1, 4, 2, 8], &[1, 4, 2, 8], &[1, 4, 2, 8]];
        let values = |causal| ["", "", "", "", "", "4", "4", "0.", causal, "False", "", "", ""];
        let name = "aten::_flash_attention_forward";
        // Two heads, 16 pairs of positions, 8 wide, two multiplications.
        assert_eq!(flops(name, shapes, &values("False")), Some(2 * 2 * 16 * 16));
        assert_eq!(flops(name, shapes, &values("True")), Some(2 * 2 * 10 * 16));
        assert_eq!(flops(name, shapes, &[]), None, "nothing tells of the mask");
        let decode: &[&[u64]] = &[&[1, 1, 2, 8], &[1, 4, 2, 8], &[1, 4, 2, 8]];
        assert_eq!(flops(name, decode, &values("True")), None);
        let packed: &[&[u64]] = &[&[4, 2, 8], &[4, 2, 8], &[4, 2, 8]];
        assert_eq!(flops(name, packed, &values("False")), None, "lengths of packed sequences are not recorded");
    }
}
