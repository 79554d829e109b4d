//! Operations that move data and compute nothing.

use super::{Call, Derivation, streamed};
use crate::term::Term;

pub(super) const COPY: Derivation = Derivation {
    definition: "the same values in another place, order or element type",
    text: "No FLOPs. The kept part is read once and the result is written once, including zero padding.",
    source: "counted from the definition",
};

pub(super) const VIEW: Derivation = Derivation {
    definition: "the same data seen under another shape or order",
    text: "Nothing moves and nothing is computed.",
    source: "counted from the definition",
};

pub(super) fn terms(call: &Call<'_>) -> Vec<Term> {
    streamed(call, [])
}

#[cfg(test)]
mod tests {
    use types::{Bytes, Cost, DType, Op};

    use crate::price::sample::{activation, cost};

    #[test]
    fn copies_move_bytes_and_views_move_none() {
        let x = activation([4, 8]);
        assert_eq!(cost(Op::Copy, &[x]).bytes.total(), Bytes::new(128));
        assert_eq!(cost(Op::Concat { dim: 0 }, &[x, x]).bytes.total(), Bytes::new(256));
        assert_eq!(cost(Op::Pad { dim: 0, after: 1 }, &[x]).bytes.activations_out, Bytes::new(80));
        assert_eq!(cost(Op::Cast(DType::Fp32), &[x]).bytes.activations_out, Bytes::new(128));
        assert_eq!(cost(Op::Permute([1, 0].into()), &[x]), Cost::ZERO);
    }
}
