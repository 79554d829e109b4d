//! A comparison of two sides.

use std::borrow::Cow;

use crate::{Change, Comparison};

/// A comparison.
#[derive(Clone, Debug)]
pub struct ComparisonView<'a> {
    /// The document.
    pub comparison: &'a Comparison,
    /// Stages.
    pub stages: ChangesView<'a>,
    /// Stages whose samples are noisy.
    pub noisy: Vec<NoisySamples<'a>>,
    /// Times of commands.
    pub commands: ChangesView<'a>,
    /// Memory.
    pub memory: ChangesView<'a>,
    /// Steps.
    pub steps: ChangesView<'a>,
    /// Parts of the devices' time.
    pub device_time: ChangesView<'a>,
    /// Operators.
    pub operators: ChangesView<'a>,
    /// Kernels.
    pub kernels: ChangesView<'a>,
    /// Modules.
    pub modules: ChangesView<'a>,
}

/// Changes of one kind of thing.
#[derive(Clone, Debug)]
pub struct ChangesView<'a> {
    /// Every change with a name short enough to print.
    pub rows: Vec<(Cow<'a, str>, &'a Change)>,
    /// Changes that the evidence supports.
    pub changed: Vec<&'a Change>,
    /// Whether any could be tested.
    pub tested: bool,
    /// Why some could not be tested, each reason with the names it is about; no names where it is about all of several.
    pub untested: Vec<(&'a str, Vec<&'a str>)>,
}

/// A stage with samples that stand apart from the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NoisySamples<'a> {
    /// The stage.
    pub name: &'a str,
    /// Samples of both sides.
    pub samples: u64,
    /// Outliers among them.
    pub outliers: u64,
    /// First samples that look like warm-up.
    pub warm_up: u64,
}
