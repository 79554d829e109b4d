//! Headers of `nsys stats`: which report a table is, and the unit of each column.
//!
//! A name may carry a unit in brackets, and versions spell names differently: `Avg (ns)`, `Average (ns)`, `Average`.

use std::io::BufRead;

use crate::csv::{Records, Shape};

/// Reports that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StatsKind {
    /// Kernels by name.
    Kernels,
    /// Calls by function.
    Calls,
    /// Copies and memsets by kind: times.
    MemoryTimes,
    /// Copies and memsets by kind: sizes.
    MemorySizes,
    /// Ranges by name, on the host.
    Ranges,
    /// Ranges by name, projected onto the device.
    RangeProjections,
    /// Device work one by one.
    Trace,
}

/// One column: its name in the newest spelling, and the unit in brackets.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Column {
    name: String,
    unit: Option<String>,
}

/// A recognised header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: StatsKind,
    columns: Vec<Column>,
}

impl Header {
    /// The header on the current line, where it is one that is known.
    pub(super) fn recognise<R: BufRead>(records: &mut Records<'_, R>) -> Option<Self> {
        const FIRST: [&[u8]; 4] = [b"Time", b"Range", b"Start", b"Total"];
        let text = records.text();
        let text = text.strip_prefix(b"\"").unwrap_or(text);
        if !FIRST.iter().any(|first| text.starts_with(first)) || records.split_line() != Shape::Whole {
            return None;
        }
        let columns: Vec<Column> = (0..records.len()).filter_map(|at| Some(column(&records.field(at)?))).collect();
        let has = |name: &str| columns.iter().any(|column| column.name == name);
        let kind = if has("start") && has("duration") && has("corrid") && has("name") {
            StatsKind::Trace
        } else if has("range") && has("total proj time") && has("total range time") {
            StatsKind::RangeProjections
        } else if has("range") && has("total time") && has("instances") {
            StatsKind::Ranges
        } else if has("category") {
            // `cuda_gpu_sum` mixes kernels with copies.
            return None;
        } else if has("operation") && has("total time") && has("count") {
            StatsKind::MemoryTimes
        } else if has("operation") && has("total") && has("count") {
            StatsKind::MemorySizes
        } else if has("name") && has("total time") && has("num calls") {
            StatsKind::Calls
        } else if has("name") && has("total time") && has("instances") {
            StatsKind::Kernels
        } else {
            return None;
        };
        Some(Self { kind, columns })
    }

    /// Number of columns.
    pub(super) fn len(&self) -> usize {
        self.columns.len()
    }

    /// Place of a column.
    pub(super) fn place(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// By which power of ten a time of that column is multiplied to be in nanoseconds. `None` for a unit that is no time.
    pub(super) fn time_power(&self, place: usize) -> Option<i32> {
        // Before 2021 only the total had its unit, and all were in that one. Without any it is the tool's default.
        let total = || self.columns.iter().find(|column| column.name.starts_with("total"))?.unit.as_deref();
        match self.columns.get(place)?.unit.as_deref().or_else(total).unwrap_or("ns") {
            "ns" | "nsec" => Some(0),
            "us" | "usec" | "\u{3bc}s" => Some(3),
            "ms" | "msec" => Some(6),
            "s" | "sec" => Some(9),
            _ => None,
        }
    }
}

fn column(text: &str) -> Column {
    let text = text.trim();
    let (name, unit) = match text.strip_suffix(')').and_then(|text| text.rsplit_once('(')) {
        Some((name, unit)) => (name.trim(), Some(unit.trim().to_owned())),
        None => (text, None),
    };
    let name = name.to_lowercase();
    let (prefix, last) = name.rsplit_once(' ').map_or(("", name.as_str()), |(prefix, last)| (prefix, last));
    let last = match last {
        "average" => "avg",
        "median" => "med",
        "minimum" => "min",
        "maximum" => "max",
        "calls" if prefix.is_empty() => "num calls",
        "operations" => "count",
        other => other,
    };
    let name = if prefix.is_empty() { last.to_owned() } else { format!("{prefix} {last}") };
    Column { name, unit }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(line: &str) -> Option<StatsKind> {
        let mut records = Records::new(line.as_bytes(), "x.csv");
        assert!(records.next_line().unwrap());
        Header::recognise(&mut records).map(|header| header.kind)
    }

    #[test]
    fn reports_are_known_by_their_columns_in_every_spelling() {
        let times = "Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns)";
        let cases = [
            (format!("Time (%),Total Time (ns),Instances,{times},Name"), Some(StatsKind::Kernels)),
            ("Time(%),Total Time (ns),Instances,Average,Minimum,Maximum,Name".to_owned(), Some(StatsKind::Kernels)),
            ("\"Time(%)\",\"Total Time\",\"Calls\",\"Average\",\"Name\"".to_owned(), Some(StatsKind::Calls)),
            (format!("Time (%),Total Time (ns),Num Calls,{times},Name"), Some(StatsKind::Calls)),
            (format!("Time (%),Total Time (ns),Instances,{times},Style,Range"), Some(StatsKind::Ranges)),
            (format!("Time (%),Total Time (ns),Count,{times},Operation"), Some(StatsKind::MemoryTimes)),
            ("Time(%),Total Time (ns),Operations,Average,Operation".to_owned(), Some(StatsKind::MemoryTimes)),
            (
                "Total (MB),Count,Avg (MB),Med (MB),Min (MB),Max (MB),StdDev (MB),Operation".to_owned(),
                Some(StatsKind::MemorySizes),
            ),
            (format!("Time (%),Total Time (ns),Instances,{times},Category,Operation"), None),
            ("Time,Speed,Name".to_owned(), None),
            ("Processing [x.sqlite]".to_owned(), None),
        ];
        for (line, expected) in cases {
            assert_eq!(kind(&line), expected, "{line}");
        }
    }

    #[test]
    fn a_column_without_a_unit_is_in_that_of_the_total() {
        let mut records = Records::new(&b"Time(%),Total Time (us),Instances,Average,Name"[..], "x.csv");
        assert!(records.next_line().unwrap());
        let header = Header::recognise(&mut records).unwrap();
        assert_eq!(header.place("avg").and_then(|place| header.time_power(place)), Some(3));
    }
}
