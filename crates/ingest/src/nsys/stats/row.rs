//! One row of a table, field by field.

use std::io::BufRead;

use types::Nanos;

use super::header::Header;
use super::sum::KernelSum;
use crate::csv::Records;
use crate::decimal;

/// The current row and the header that explains it.
pub(super) struct Row<'a, 'f, R> {
    pub(super) header: &'a Header,
    pub(super) records: &'a Records<'f, R>,
    /// Times that are no whole nanoseconds, because the tool rounded them in a larger unit.
    pub(super) rounded: u64,
}

impl<R: BufRead> Row<'_, '_, R> {
    /// The row of a kernel; absent where a field it needs cannot be read, or says what cannot be.
    pub(super) fn kernel(&mut self) -> Option<KernelSum> {
        let kernel = self.fields()?;
        let times = [Some(kernel.total), kernel.min, kernel.max];
        times.into_iter().flatten().all(|time| time >= Nanos::ZERO).then_some(kernel)
    }

    fn fields(&mut self) -> Option<KernelSum> {
        Some(KernelSum {
            name: self.records.field(self.header.place("name")?)?.into_owned(),
            total: self.time("total time")?,
            count: decimal::count(self.records.raw(self.header.place("instances")?)?)?,
            min: self.time("min"),
            max: self.time("max"),
        })
    }

    fn time(&mut self, column: &str) -> Option<Nanos> {
        let place = self.header.place(column)?;
        let (cell, power) = (self.records.raw(place)?, self.header.time_power(place)?);
        if let Some(whole) = decimal::whole(cell, power) {
            return Some(Nanos::new(whole));
        }
        let rounded = decimal::number(cell, power).filter(|time| time.abs() < 9e18)?;
        self.rounded += 1;
        Some(Nanos::new(rounded.round() as i64))
    }
}
