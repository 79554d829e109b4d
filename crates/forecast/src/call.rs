//! An operation and what it is done on, of a metered pass or of its sums.

use meter::{OpRecord, Spread, TallyRow};
use types::{DType, Op, Spec};

/// One operation.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) op: &'a Op,
    pub(crate) inputs: &'a [Spec],
    pub(crate) output: Spec,
    /// Element type of matrix work.
    pub(crate) dtype: DType,
    /// Set inside experts.
    pub(crate) spread: Option<Spread>,
    /// All traffic.
    pub(crate) bytes: f64,
}

impl<'a> From<&'a OpRecord> for Call<'a> {
    fn from(record: &'a OpRecord) -> Self {
        Self {
            op: &record.op,
            inputs: &record.inputs,
            output: record.output,
            dtype: record.price.matrix_dtype,
            spread: record.spread,
            bytes: record.cost.bytes.total().as_f64(),
        }
    }
}

impl<'a> From<&'a TallyRow> for Call<'a> {
    fn from(row: &'a TallyRow) -> Self {
        Self {
            op: &row.op,
            inputs: &row.inputs,
            output: row.output,
            dtype: row.dtype,
            spread: row.spread,
            bytes: row.cost.bytes.total().as_f64(),
        }
    }
}

impl Call<'_> {
    /// Experts of one device that have rows; one outside experts.
    pub(crate) fn touched(&self) -> f64 {
        self.spread.map_or(1.0, |spread| spread.distinct() / spread.devices.max(1) as f64).max(1.0).round()
    }

    /// A size of an input, at least one.
    pub(crate) fn dim(&self, input: usize, index: usize) -> u64 {
        self.inputs.get(input).and_then(|spec| spec.shape.dims().get(index).copied()).unwrap_or(1).max(1)
    }
}
