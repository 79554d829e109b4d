//! Stages: the user-visible parts of one inference.

use serde::{Deserialize, Serialize};

use crate::{JsonSchema, Named};

crate::named! {
    /// A part of one inference.
    ///
    /// `Prefill` and `Decode` follow each other and add up to the whole; the vision stages are nested inside `Prefill` and
    /// are never added to it. Reading files and tokenising belong to no stage.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum Stage {
        /// First forward pass, from prepared inputs to the first logits.
        Prefill = "prefill",
        /// Everything that turns pixels into embeddings: `Sam` + `Clip` + `Projector`, or a model's own tower.
        Vision = "vision",
        /// The SAM image encoder.
        Sam = "sam",
        /// The CLIP encoder.
        Clip = "clip",
        /// The projection from vision features to the decoder's width.
        Projector = "projector",
        /// The token-by-token loop.
        Decode = "decode",
    }
}

impl Stage {
    /// The stage this one is nested in.
    pub const fn parent(self) -> Option<Self> {
        match self {
            Self::Prefill | Self::Decode => None,
            Self::Vision => Some(Self::Prefill),
            Self::Sam | Self::Clip | Self::Projector => Some(Self::Vision),
        }
    }

    /// The outermost stage around this one.
    pub fn top(self) -> Self {
        self.parent().map_or(self, Self::top)
    }

    /// Whether this is `around` or nested in it.
    pub fn is_within(self, around: Self) -> bool {
        self == around || self.parent().is_some_and(|parent| parent.is_within(around))
    }

    /// The innermost stage that holds this one and `other`; this one's top where they share none.
    pub fn common(self, other: Self) -> Self {
        match self.parent() {
            _ if other.is_within(self) => self,
            Some(parent) => parent.common(other),
            None => self,
        }
    }

    /// The stage an NVTX range stands for: our own domain `LLM`, or no domain at all. `decode_step` is a step of
    /// decode, not a stage.
    pub fn from_range(domain: Option<&str>, name: &str) -> Option<Self> {
        if !matches!(domain, None | Some("" | "LLM")) {
            return None;
        }
        match name {
            "decode_all" => Some(Self::Decode),
            _ => Self::find(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_prefill_and_decode_stand_at_the_top() {
        let top: Vec<_> = Stage::ALL.into_iter().filter(|stage| stage.parent().is_none()).collect();
        assert_eq!(top, [Stage::Prefill, Stage::Decode]);
    }

    #[test]
    fn ranges_of_other_domains_are_no_stages() {
        assert_eq!(Stage::from_range(Some("LLM"), "decode_all"), Some(Stage::Decode));
        assert_eq!(Stage::from_range(None, "decode"), Some(Stage::Decode));
        assert_eq!(Stage::from_range(Some("NCCL"), "decode"), None);
        assert_eq!(Stage::from_range(Some("LLM"), "decode_step"), None);
    }
}
