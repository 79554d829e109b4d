//! Forward passes: what inference looks for.

use types::Remark;
use types::timeline::ThreadId;

use crate::time::Span;

/// What a forward pass does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Many positions of the prompt at once.
    Prefill,
    /// One token.
    Decode,
}

/// One forward pass.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Forward {
    pub(super) kind: Kind,
    /// When its work was launched.
    pub(super) span: Span,
}

/// Forward passes of a trace, in order and without overlap.
#[derive(Clone, Debug)]
pub(super) struct Forwards {
    pub(super) forwards: Vec<Forward>,
    /// The thread that launched them.
    pub(super) thread: ThreadId,
    /// What they were found by, in words.
    pub(super) evidence: Remark,
}

/// Names of operators and kernels that choose the next token: a forward pass ends with one.
const SAMPLING: &[&str] = &["argmax", "ArgMax", "multinomial", "sampling", "Sampling", "sampler"];

/// Sampling of pixels, which is something else.
const RESAMPLING: &[&str] = &["grid_sampl", "upsampl", "downsampl"];

/// Whether an operator or kernel chooses the next token.
pub(crate) fn is_sampling(name: &str) -> bool {
    SAMPLING.iter().any(|sign| name.contains(sign)) && !RESAMPLING.iter().any(|sign| name.contains(sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choosing_a_token_is_not_sampling_an_image() {
        assert!(is_sampling("aten::argmax") && is_sampling("void flashinfer::sampling::TopKSamplingFromProbKernel<x>"));
        assert!(!is_sampling("aten::grid_sampler_2d") && !is_sampling("aten::mm"));
    }
}
