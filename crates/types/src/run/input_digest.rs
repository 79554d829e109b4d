//! What tells the content of one input from another, by the algorithm that it was made with.
//!
//! Inputs are gigabytes, and a processor without instructions for SHA-256 takes longer to hash a trace by it than to read it.

use std::fmt;

/// A digest, in lowercase hexadecimal; shown as `blake3:DIGITS`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputDigest {
    /// Of runs that are written now.
    Blake3(String),
    /// Of earlier ones.
    Sha256(String),
}

impl InputDigest {
    /// The one that a document has.
    pub(crate) fn of(blake3: Option<&String>, sha256: Option<&String>) -> Option<Self> {
        blake3.cloned().map(Self::Blake3).or_else(|| sha256.cloned().map(Self::Sha256))
    }

    /// Its digits.
    pub fn digits(&self) -> &str {
        let (Self::Blake3(digits) | Self::Sha256(digits)) = self;
        digits
    }
}

impl fmt::Display for InputDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Blake3(_) => "blake3",
            Self::Sha256(_) => "sha256",
        };
        write!(f, "{name}:{}", self.digits())
    }
}
