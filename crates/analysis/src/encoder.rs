//! Whether a trace is of an encoder: attention over all positions of its input at once, with nothing masked.
//!
//! What shows it: `scaled_dot_product_attention` that is called without a mask and not as causal, on queries as long as the keys; or
//! attention written out over just the patches that an image was cut into. Denoising models attend so too, but take in neither
//! tokens nor pixels; decoders mask. Both have to be absent, so almost all of the attention has to be of this kind.

use types::timeline::{OperatorKind, OperatorSignature, Timeline};
use types::{Count, Facts, Remark};

/// Share of attention scores that have to be of this kind.
const MOST: f64 = 0.9;
/// Tables with fewer rows hold positions, not tokens.
const FEWEST_TOKENS: u64 = 4096;
/// Channels of an image.
const CHANNELS: u64 = 3;
/// Smallest patch; smaller strides are those of ordinary convolutions.
const SMALLEST_PATCH: u64 = 4;
/// Positions that encoders add to the patches: for the class, for registers.
const EXTRA: u64 = 8;

/// What attention does that is no operator of its own.
const WRITTEN_OUT: &str = "aten::_softmax";

/// What an input consists of.
#[derive(Default)]
struct Input {
    has_tokens: bool,
    /// Pictures at once, and patches of each.
    patches: Vec<[u64; 2]>,
}

/// What shows an encoder; `None` where nothing does.
pub(crate) fn encoder(timeline: &Timeline) -> Option<Remark> {
    let calls = || {
        let operators = timeline.operators.iter().filter(|operator| operator.kind == OperatorKind::Framework);
        operators
            .filter_map(|operator| Some((timeline.name(operator.name), timeline.signatures.get(operator.signature?))))
    };
    let mut input = Input::default();
    for (name, called) in calls() {
        match name {
            "aten::embedding" => {
                input.has_tokens |=
                    called.shapes.first().and_then(|table| table.first()).is_some_and(|rows| *rows >= FEWEST_TOKENS)
            }
            "aten::conv2d" | "aten::conv3d" => input.patches.extend(patches(called)),
            _ => {}
        }
    }
    if !input.has_tokens && input.patches.is_empty() {
        return None;
    }
    let (mut all, mut open) = (0.0, 0.0);
    // Positions and scores of the attention that shows it, and whether it says that nothing is masked.
    let mut longest: Option<(u64, f64, bool)> = None;
    for (name, called) in calls() {
        let Some((scores, positions)) = attention(name, called, &input) else { continue };
        all += scores;
        if let Some(positions) = positions {
            open += scores;
            if longest.is_none_or(|(_, most, _)| scores > most) {
                longest = Some((positions, scores, name != WRITTEN_OUT));
            }
        }
    }
    let (positions, _, is_unmasked) = longest.filter(|_| open >= MOST * all)?;
    let facts = Facts::new().with("positions", positions);
    let facts = facts.with_if("patches", !input.patches.is_empty()).with_if("unmasked", is_unmasked);
    Some(Remark::new("run-kind.encoder", facts))
}

/// Scores of a call of attention, and its positions where it looks at all of them; `None` for another operator.
fn attention(name: &str, called: &OperatorSignature, input: &Input) -> Option<(f64, Option<u64>)> {
    let first = called.shapes.first()?;
    match name {
        "aten::scaled_dot_product_attention" => {
            let [queries, keys] = [first, called.shapes.get(1)?].map(|shape| shape.iter().rev().nth(1).copied());
            let (queries, keys) = (queries?, keys?);
            let batch: f64 = first.iter().rev().skip(2).map(|side| *side as f64).product();
            let is_unmasked = called.shapes.get(3).is_some_and(Vec::is_empty)
                && called.values.get(3).is_some_and(String::is_empty)
                && called.values.get(5).is_some_and(|causal| causal == "False");
            let all = is_unmasked && queries == keys && queries > 1;
            Some((batch * queries as f64 * keys as f64, all.then_some(queries)))
        }
        // Scores have a row for each head; what has fewer sides is a distribution over classes.
        WRITTEN_OUT if first.len() >= 3 => {
            let mut sides = first.iter().rev();
            let (keys, queries) = (*sides.next()?, *sides.next()?);
            let scores = first.iter().map(|side| *side as f64).product();
            Some((scores, (queries == keys && input.is_patches(queries)).then_some(queries)))
        }
        _ => None,
    }
}

/// An image cut into patches: a convolution of pixels that moves by its own size.
fn patches(called: &OperatorSignature) -> Option<[u64; 2]> {
    let (pixels, weight) = (called.shapes.first()?, called.shapes.get(1)?);
    let size = weight.get(2..)?;
    let stride: Vec<u64> =
        called.values.get(3)?.trim_matches(['[', ']']).split(',').filter_map(|side| side.trim().parse().ok()).collect();
    let is_patch = weight.get(1) == Some(&CHANNELS)
        && size.last().is_some_and(|side| *side >= SMALLEST_PATCH)
        && stride.iter().eq(size.iter());
    let counts = pixels.get(2..)?.iter().zip(size).map(|(pixels, side)| pixels.checked_div(*side).unwrap_or(0));
    is_patch.then(|| [pixels[0], counts.product::<Count>().get()])
}

impl Input {
    /// Whether so many positions are the patches of an image, or of several that belong together, and little more.
    fn is_patches(&self, positions: u64) -> bool {
        self.patches.iter().any(|[pictures, patches]| {
            let together = positions / (*patches).max(1);
            together >= 1 && pictures.is_multiple_of(together) && positions - together * patches <= EXTRA
        })
    }
}

#[cfg(test)]
mod tests {
    use types::timeline::{HostOperator, HostThread, ThreadId, TraceFormat};
    use types::{Clock, ClockId, ClockKind, Nanos};

    use super::*;

    /// Calls as name, shapes and values.
    /// Name, shapes and values of a call.
    type Call<'a> = (&'a str, &'a [&'a [u64]], &'a [&'a str]);

    fn found(calls: &[Call<'_>]) -> Option<Facts> {
        let clock = Clock { id: ClockId(0), kind: ClockKind::Trace, unix_ns_at_zero: None, uncertainty_ns: None };
        let mut timeline = Timeline::new(TraceFormat::TorchProfiler, clock);
        timeline.threads.push(HostThread { process: None, rank: None, thread: None });
        for (name, shapes, values) in calls {
            let signature = OperatorSignature {
                shapes: shapes.iter().map(|shape| shape.to_vec()).collect(),
                values: values.iter().map(|value| (*value).to_owned()).collect(),
                ..OperatorSignature::default()
            };
            let signature = Some(timeline.signatures.place_owned(signature));
            let name = timeline.names.place(*name);
            timeline.operators.push(HostOperator {
                kind: OperatorKind::Framework,
                name,
                thread: ThreadId(0),
                signature,
                start: Nanos::ZERO,
                duration: Nanos::ZERO,
                call: None,
            });
        }
        encoder(&timeline).map(|remark| remark.facts)
    }

    const TOKENS: (&str, &[&[u64]], &[&str]) = ("aten::embedding", &[&[30_522, 512], &[1, 141]], &[]);
    const PATCHES: (&str, &[&[u64]], &[&str]) =
        ("aten::conv2d", &[&[128, 3, 224, 224], &[768, 3, 16, 16], &[768]], &["", "", "", "[16, 16]"]);
    const SCORES: &str = "aten::scaled_dot_product_attention";
    const ONE: &[u64] = &[1, 8, 141, 64];

    #[test]
    fn attention_over_all_tokens_or_patches_is_an_encoder() {
        let open = (SCORES, &[ONE, ONE, ONE, &[]][..], &["", "", "", "", "0.", "False"][..]);
        let of_tokens = Facts::new().with("positions", 141_u64).with_if("unmasked", true);
        assert_eq!(found(&[TOKENS, open]), Some(of_tokens));
        // 16 frames of 196 patches and one more.
        let written_out = ("aten::_softmax", &[&[8, 12, 3137, 3137][..]][..], &[][..]);
        let of_patches = Facts::new().with("positions", 3137_u64).with_if("patches", true);
        assert_eq!(found(&[PATCHES, written_out]), Some(of_patches));
    }

    #[test]
    fn decoders_denoisers_and_written_out_attention_over_tokens_are_not() {
        let causal = (SCORES, &[ONE, ONE, ONE, &[]][..], &["", "", "", "", "0.", "True"][..]);
        assert_eq!(found(&[TOKENS, causal]), None);
        let masked = (SCORES, &[ONE, ONE, ONE, &[1, 1, 141, 141]][..], &["", "", "", "", "0.", "False"][..]);
        assert_eq!(found(&[TOKENS, masked]), None);
        let open = (SCORES, &[ONE, ONE, ONE, &[]][..], &["", "", "", "", "0.", "False"][..]);
        assert_eq!(found(&[open]), None, "takes in neither tokens nor pixels");
        assert_eq!(found(&[PATCHES, ("aten::_softmax", &[&[1, 12, 700, 700]], &[])]), None);
    }
}
