//! What runs of the profiler gave.

use types::counter::{CounterTable, DetailedWork};

/// What one run of the profiler gave.
#[derive(Clone, Copy, Debug)]
pub struct RegionCapture<'a> {
    /// The raw page.
    pub table: &'a CounterTable,
    /// The details page of the same run; empty where no section was asked for.
    pub details: &'a [DetailedWork],
    /// What the profiler was told to include; empty for everything.
    pub include: &'a [String],
}

/// Everything that was captured.
#[derive(Clone, Debug)]
pub struct RegionInputs<'a> {
    /// Runs with the counters that were asked for.
    pub captures: Vec<RegionCapture<'a>>,
    /// A run that saw every kernel of the program; absent where there was none.
    pub survey: Option<&'a CounterTable>,
}
