//! The header of a page: which column says what was profiled, and which are left for counters.

use std::collections::HashMap;
use std::io::BufRead;
use std::sync::Arc;

use types::counter::{OpenRange, ProfiledKind, ProfiledWork};

use super::nvtx;
use super::texts::Texts;
use super::value::is_absent;
use crate::csv::Records;
use crate::decimal;

const PUSHED: &str = "thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg";
const STARTED: &str = "Id:Domain:Start/Stop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg";
/// Columns that describe a work and count nothing. The name of the host stays out of our records.
const DESCRIBING: [&str; 14] = [
    "ID",
    "Process ID",
    "Process Name",
    "Host Name",
    PUSHED,
    STARTED,
    "Kernel Name",
    "Kernel Time",
    "Context",
    "Stream",
    "Block Size",
    "Grid Size",
    "Device",
    "CC",
];

/// Names of the columns, and where those that describe a work are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) names: Vec<String>,
    places: HashMap<&'static str, usize>,
    /// Whether names stand in quotes, as the tool writes them.
    pub(super) is_quoted: bool,
}

impl Header {
    /// The header on the current line, where it is one.
    pub(super) fn recognise<R: BufRead>(records: &mut Records<'_, R>) -> Option<Self> {
        // Asked of every line, so the first column is looked at before anything is split.
        const FIRST: [&[u8]; 4] = [b"\"ID\",", b"ID,", b"\"Process ID\",", b"Process ID,"];
        if !FIRST.iter().any(|first| records.text().starts_with(first)) {
            return None;
        }
        records.split_line();
        let names: Vec<String> =
            (0..records.len()).filter_map(|index| Some(records.field(index)?.into_owned())).collect();
        if !names.iter().any(|name| name == "Kernel Name") {
            return None;
        }
        let place = |name: &&'static str| Some((*name, names.iter().position(|other| other == name)?));
        let places = DESCRIBING.iter().filter_map(place).collect();
        let is_quoted = records.text().starts_with(b"\"");
        Some(Self { names, places, is_quoted })
    }

    /// Whether there is a column of that name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.place(name).is_some()
    }

    /// The column of that name.
    pub(super) fn place(&self, name: &str) -> Option<usize> {
        self.places.get(name).copied().or_else(|| self.names.iter().position(|other| other == name))
    }

    /// Columns that hold counters, with their names.
    pub(super) fn counters(&self) -> impl Iterator<Item = (usize, &str)> {
        let is_counter = |(_, name): &(usize, &String)| !DESCRIBING.contains(&name.as_str());
        self.names.iter().enumerate().filter(is_counter).map(|(place, name)| (place, name.as_str()))
    }

    /// Number and process of the work of a row, which together are its identity.
    pub(super) fn key<R: BufRead>(&self, records: &Records<'_, R>) -> Option<(u64, Option<u32>)> {
        let id = decimal::count(records.raw(*self.places.get("ID")?)?)?;
        Some((id, self.number(records, "Process ID")))
    }

    /// What the current row describes; `None` where it has no number.
    pub(super) fn work<R: BufRead>(&self, records: &Records<'_, R>, texts: &mut Texts) -> Option<ProfiledWork> {
        let (id, process) = self.key(records)?;
        let text = |column| self.places.get(column).and_then(|place| records.field(*place)).unwrap_or_default();
        let (grid, block) = (dimensions(&text("Grid Size")), dimensions(&text("Block Size")));
        let name = text("Kernel Name");
        let kind = match (grid, block) {
            (Some(_), Some(_)) => ProfiledKind::Kernel,
            (None, None) if name == "range" => ProfiledKind::Range,
            _ => ProfiledKind::Other,
        };
        let process_name = text("Process Name");
        let process_name = process_name.rsplit(['/', '\\']).next().filter(|name| !is_absent(name));
        let capability = text("CC");
        let capability =
            capability.split_once('.').and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
        Some(ProfiledWork {
            id,
            kind,
            process,
            process_name: process_name.map(|name| texts.share(name)),
            device: self.number(records, "Device"),
            compute_capability: capability,
            context: self.number(records, "Context"),
            stream: self.number(records, "Stream"),
            grid,
            block,
            pushed: shared(nvtx::pushed(&text(PUSHED), texts)),
            started: shared(nvtx::started(&text(STARTED), texts)),
            name: texts.share(&name),
        })
    }

    fn number<R: BufRead>(&self, records: &Records<'_, R>, column: &str) -> Option<u32> {
        let cell = records.raw(*self.places.get(column)?)?;
        u32::try_from(decimal::count(cell)?).ok()
    }
}

fn shared(ranges: Vec<OpenRange>) -> Arc<[OpenRange]> {
    Arc::from(ranges)
}

/// `(1568, 1, 8)`.
fn dimensions(cell: &str) -> Option<[u32; 3]> {
    let mut numbers = cell.strip_prefix('(')?.strip_suffix(')')?.split(',').map(|number| number.trim().parse().ok());
    let dimensions = [numbers.next()??, numbers.next()??, numbers.next()??];
    numbers.next().is_none().then_some(dimensions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_are_three_whole_numbers() {
        assert_eq!(dimensions("(1568, 1, 8)"), Some([1568, 1, 8]));
        for wrong in ["", "n/a", "(1, 2)", "(1, 2, 3, 4)", "(1, 2, -3)", "1, 2, 3", "(1, 2, 3"] {
            assert_eq!(dimensions(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_line_of_a_log_is_no_header() {
        for line in ["==PROF== Profiling \"Kernel Name\"", "\"ID\",\"Name\"", "Kernel Name,ID", ""] {
            let mut records = Records::new(line.as_bytes(), "x.csv");
            if records.next_line().unwrap() {
                assert_eq!(Header::recognise(&mut records), None, "{line}");
            }
        }
    }
}
