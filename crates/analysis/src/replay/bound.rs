//! Two ends of what a change may bring.

/// One end of what a change may bring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    /// The least.
    Low,
    /// The most.
    High,
}

impl Bound {
    /// One of two.
    pub(super) fn pick<T>(self, low: T, high: T) -> T {
        match self {
            Self::Low => low,
            Self::High => high,
        }
    }
}
