//! Forms of rotary positions: which elements turn, by which position, and how angles are stretched.
//!
//! Only what an operation is; the angles themselves are computed by whoever runs it.

/// Which elements are rotated against each other, and by which position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RotaryLayout {
    /// The first half against the second, by the position in the sequence.
    #[default]
    Halves,
    /// Even against odd elements, by the position in the sequence; halves come out.
    Interleaved,
    /// Halves; some angles follow time, some the row and some the column of an image token.
    Sections,
    /// Halves; half of the angles follow the row and half the column of a patch.
    Grid,
}

/// How angles are stretched for sequences longer than those trained on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum RotaryScaling {
    /// Not at all.
    #[default]
    None,
    /// All by one factor.
    Linear {
        /// The factor.
        factor: f64,
    },
    /// Slow angles by a factor, fast ones not, those between blended, as Llama 3.1 does.
    Llama3 {
        /// The factor.
        factor: f64,
        /// Turns in the original context below which an angle is slow.
        low: f64,
        /// And from which on it is fast.
        high: f64,
        /// Positions trained on.
        original: f64,
    },
    /// YaRN: the same with a ramp over the dimensions, and larger rotated vectors.
    Yarn {
        /// The factor.
        factor: f64,
        /// Turns from which on an angle is fast.
        fast: f64,
        /// Turns below which it is slow.
        slow: f64,
        /// Positions trained on.
        original: f64,
        /// Factor on the rotated vectors.
        magnitude: f64,
        /// Whether the ends of the ramp are whole dimensions.
        truncate: bool,
    },
    /// Another published way, by name; its cost is the same, its angles are not known here.
    Other(&'static str),
}

/// The form of a rotation, apart from its base.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RotaryForm {
    /// Which elements.
    pub layout: RotaryLayout,
    /// How far.
    pub scaling: RotaryScaling,
}
