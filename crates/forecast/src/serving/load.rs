//! A load: when requests are sent, and what they ask for.

use super::scheduler::Asked;

/// When requests are sent; microseconds.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrivals {
    /// At these times, in order.
    Due(Vec<f64>),
    /// As soon as one of so many is answered.
    Slots(usize),
}

/// A load.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// When its requests are sent.
    pub arrivals: Arrivals,
    /// What they ask for.
    pub asked: Vec<Asked>,
    /// Whether the server loads matrix kernels as they are first used.
    pub started: Started,
}

/// What a server did before a load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Started {
    /// It ran long enough to have used every kernel.
    #[default]
    Long,
    /// It has just started.
    Just,
    /// Nobody knows: anything between the two, another in every simulation.
    Unknown,
}
