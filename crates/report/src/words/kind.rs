//! What people call the kinds of things that documents name by a word.

use types::{RunKindName, StepBasis};

/// Something with a name for people.
pub(crate) trait Phrase {
    /// In words.
    fn phrase(self) -> &'static str;
}

/// Behind "the run is".
impl Phrase for RunKindName {
    fn phrase(self) -> &'static str {
        match self {
            Self::Training => "training",
            Self::Serving => "a serving engine",
            Self::Generation => "token-by-token generation",
            Self::Inference => "inference of a language model",
            Self::GraphCapture => "a graph capture",
            Self::Diffusion => "a diffusion pipeline",
            Self::Encoder => "an encoder",
            Self::Forward => "forward passes of an unknown kind",
            Self::Program => "a program",
        }
    }
}

/// Behind "steps from".
impl Phrase for StepBasis {
    fn phrase(self) -> &'static str {
        match self {
            Self::EngineAnnotations => "the serving engine's annotations",
            Self::ProfilerSteps => "the profiler's step markers",
            Self::DecodeSteps => "decode steps",
            Self::CountedRanges => "ranges of the program that differ only in a number",
            Self::TokenChoices => "kernels that choose a token (argmax, sampling), each of which ends a pass",
            Self::Repetition => "kernels that repeat in exactly the same order; the start of a step is not recorded",
        }
    }
}
