//! One row of a table, field by field.

use std::io::BufRead;

use types::Nanos;

use super::header::Header;
use super::sum::{MemorySize, NamedSum, RangeName, RangeProjection, RangeSum, TimeSum, TraceRow};
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
    pub(super) fn named(&mut self, name: &str) -> Option<NamedSum> {
        Some(NamedSum { name: self.text(name)?, time: self.sum("")? })
    }

    pub(super) fn range(&mut self) -> Option<RangeSum> {
        Some(RangeSum { range: self.range_name()?, time: self.sum("")? })
    }

    pub(super) fn projection(&mut self) -> Option<RangeProjection> {
        Some(RangeProjection {
            range: self.range_name()?,
            projected: self.sum("proj ")?,
            host_total: self.time("total range time")?,
            operations: self.count("total gpu ops")?,
            mean_level: self.number("avg range lvl"),
            mean_children: self.number("avg num child"),
        })
    }

    pub(super) fn memory_size(&mut self) -> Option<MemorySize> {
        Some(MemorySize {
            operation: self.text("operation")?,
            count: self.count("count")?,
            total_bytes: self.bytes("total")?,
            min_bytes: self.bytes("min"),
            max_bytes: self.bytes("max"),
        })
    }

    pub(super) fn trace(&mut self) -> Option<TraceRow> {
        let dimensions = |x, y, z| Some([self.small(x)?, self.small(y)?, self.small(z)?]);
        let (grid, block) = (dimensions("grdx", "grdy", "grdz"), dimensions("blkx", "blky", "blkz"));
        Some(TraceRow {
            name: self.text("name")?,
            start: self.time("start")?,
            duration: self.time("duration")?,
            correlation: self.count("corrid"),
            grid,
            block,
            registers: self.small("reg/trd"),
            bytes: self.bytes("bytes"),
            device: self.text("device").filter(|device| !device.is_empty()),
            context: self.small("ctx"),
            stream: self.small("strm"),
        })
    }

    /// Time of all of one name; `of` is what its columns begin with.
    fn sum(&mut self, of: &str) -> Option<TimeSum> {
        let counts = ["instances", "num calls", "count", "range instances"];
        Some(TimeSum {
            total: self.time(&format!("total {of}time"))?,
            count: counts.iter().find_map(|count| self.count(count))?,
            percent: self.number("time"),
            mean_ns: self.nanoseconds(&format!("{of}avg")),
            median_ns: self.nanoseconds(&format!("{of}med")),
            min: self.time(&format!("{of}min")),
            max: self.time(&format!("{of}max")),
            deviation_ns: self.nanoseconds(&format!("{of}stddev")),
        })
    }

    /// The range with its domain before the name, where the table prints it; that is settled when all rows are there.
    fn range_name(&self) -> Option<RangeName> {
        Some(RangeName { domain: None, name: self.text("range")?, style: self.text("style") })
    }

    fn text(&self, column: &str) -> Option<String> {
        Some(self.records.field(self.header.place(column)?)?.into_owned())
    }

    fn raw(&self, column: &str) -> Option<&[u8]> {
        self.records.raw(self.header.place(column)?)
    }

    fn count(&self, column: &str) -> Option<u64> {
        decimal::count(self.raw(column)?)
    }

    fn small(&self, column: &str) -> Option<u32> {
        u32::try_from(self.count(column)?).ok()
    }

    fn number(&self, column: &str) -> Option<f64> {
        decimal::number(self.raw(column)?, 0)
    }

    fn bytes(&self, column: &str) -> Option<f64> {
        let place = self.header.place(column)?;
        decimal::number(self.records.raw(place)?, self.header.size_power(place)?)
    }

    fn nanoseconds(&self, column: &str) -> Option<f64> {
        let place = self.header.place(column)?;
        decimal::number(self.records.raw(place)?, self.header.time_power(place)?)
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
