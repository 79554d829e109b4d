//! The tables of an export and the columns read from each: all that depends on the version of nsys is here.
//!
//! Columns are found by name, so their order does not matter and a version may add any number. What has changed so far:
//!
//! - the kernel table got `graphNodeId`, `mangledName` and `greenContextId`; what a version lacks is null;
//! - `TARGET_INFO_GPU` was `TARGET_INFO_CUDA_GPU` until 2021, with `deviceId` where there is `id` now;
//! - driver calls have long been in the runtime table; a driver table is read where there is one;
//! - tables are made with their first row, so a table that is not there is an empty one.
//!
//! Seen: schema 3.20.2 and 3.20.3 (nsys 2025.3). NVIDIA counts the first number up when old readers would go wrong.

use crate::IngestError;
use crate::nsys::database::{Database, Layout, StoredTable};

/// The newest schema this reader understands, by its first number.
pub(crate) const NEWEST_MAJOR: u32 = 3;
/// The same, as messages say it.
pub(crate) const NEWEST: &str = "3.x";

/// One column to be read, under any of its names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    names: &'static [&'static str],
    /// Whether the table is of no use without it.
    required: bool,
}

/// One table to be read, under any of its names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableShape<const N: usize> {
    pub(crate) names: &'static [&'static str],
    columns: [Column; N],
}

const fn required(names: &'static [&'static str]) -> Column {
    Column { names, required: true }
}

const fn optional(names: &'static [&'static str]) -> Column {
    Column { names, required: false }
}

/// Texts by number.
pub(crate) const STRINGS: TableShape<2> =
    TableShape { names: &["StringIds"], columns: [required(&["id"]), required(&["value"])] };

/// The columns that every table of device work starts with, and those of its own.
macro_rules! work_columns {
    [$($own:expr),* $(,)?] => {
        [
            required(&["start"]),
            required(&["end"]),
            required(&["deviceId"]),
            optional(&["contextId"]),
            optional(&["streamId"]),
            optional(&["globalPid"]),
            optional(&["correlationId"]),
            $($own),*
        ]
    };
}

/// Kernels that ran.
pub(crate) const KERNELS: TableShape<20> = TableShape {
    names: &["CUPTI_ACTIVITY_KIND_KERNEL"],
    columns: work_columns![
        optional(&["graphNodeId"]),
        required(&["demangledName"]),
        optional(&["shortName"]),
        optional(&["mangledName"]),
        optional(&["registersPerThread"]),
        optional(&["gridX"]),
        optional(&["gridY"]),
        optional(&["gridZ"]),
        optional(&["blockX"]),
        optional(&["blockY"]),
        optional(&["blockZ"]),
        optional(&["staticSharedMemory"]),
        optional(&["dynamicSharedMemory"]),
    ],
};

/// Copies to, from and between devices.
pub(crate) const COPIES: TableShape<10> = TableShape {
    names: &["CUPTI_ACTIVITY_KIND_MEMCPY"],
    columns: work_columns![optional(&["graphNodeId"]), optional(&["bytes"]), required(&["copyKind"])],
};

/// Memsets of device memory.
pub(crate) const MEMSETS: TableShape<9> = TableShape {
    names: &["CUPTI_ACTIVITY_KIND_MEMSET"],
    columns: work_columns![optional(&["graphNodeId"]), optional(&["bytes"])],
};

/// Whole graphs that ran, recorded in place of their nodes.
pub(crate) const GRAPHS: TableShape<8> =
    TableShape { names: &["CUPTI_ACTIVITY_KIND_GRAPH_TRACE"], columns: work_columns![optional(&["graphId"])] };

/// Calls of the CUDA runtime, and with it of the driver.
pub(crate) const RUNTIME_CALLS: TableShape<5> = calls(&["CUPTI_ACTIVITY_KIND_RUNTIME"]);
/// Calls of the driver where they have a table of their own.
pub(crate) const DRIVER_CALLS: TableShape<5> = calls(&["CUPTI_ACTIVITY_KIND_DRIVER"]);

const fn calls(names: &'static [&'static str]) -> TableShape<5> {
    TableShape {
        names,
        columns: [
            required(&["start"]),
            required(&["end"]),
            required(&["globalTid"]),
            optional(&["correlationId"]),
            required(&["nameId"]),
        ],
    }
}

/// NVTX ranges, marks and domains, told apart by the type of event.
pub(crate) const NVTX: TableShape<7> = TableShape {
    names: &["NVTX_EVENTS"],
    columns: [
        required(&["start"]),
        required(&["end"]),
        required(&["eventType"]),
        required(&["text"]),
        required(&["globalTid"]),
        optional(&["textId"]),
        optional(&["domainId"]),
    ],
};

// What follows is good to have: a version that calls a column otherwise is read without it.

/// Devices of the machine.
pub(crate) const DEVICES: TableShape<4> = TableShape {
    names: &["TARGET_INFO_GPU", "TARGET_INFO_CUDA_GPU"],
    columns: [optional(&["id", "deviceId"]), optional(&["name"]), optional(&["totalMemory"]), optional(&["uuid"])],
};

/// Which device of the machine a process knows under which number.
pub(crate) const DEVICE_NUMBERS: TableShape<3> = TableShape {
    names: &["TARGET_INFO_CUDA_DEVICE"],
    columns: [optional(&["gpuId"]), optional(&["cudaId"]), optional(&["pid"])],
};

/// When the recording started.
pub(crate) const SESSION: TableShape<1> =
    TableShape { names: &["TARGET_INFO_SESSION_START_TIME"], columns: [optional(&["utcEpochNs"])] };

/// Which part of the recording was kept.
pub(crate) const ANALYSIS: TableShape<1> =
    TableShape { names: &["ANALYSIS_DETAILS"], columns: [optional(&["startTime"])] };

/// What the tool had to say about the recording.
pub(crate) const DIAGNOSTICS: TableShape<1> =
    TableShape { names: &["DIAGNOSTIC_EVENT"], columns: [optional(&["severity"])] };

/// Versions, among much else that concerns nobody.
pub(crate) const EXPORT: TableShape<2> = TableShape {
    names: &["META_DATA_EXPORT", "EXPORT_META_DATA"],
    columns: [optional(&["name"]), optional(&["value"])],
};

/// Tables of which a trace has at least one.
pub(crate) const EVENTS: [&str; 6] =
    [KERNELS.names[0], COPIES.names[0], MEMSETS.names[0], GRAPHS.names[0], RUNTIME_CALLS.names[0], NVTX.names[0]];

impl<const N: usize> TableShape<N> {
    /// The table in a database and where its columns are; `None` where the database has no such table.
    pub(crate) fn find<'d>(
        &self,
        file: &str,
        database: &'d Database<'_>,
    ) -> Result<Option<(&'d StoredTable, Layout<N>)>, IngestError> {
        let Some(table) = self.names.iter().find_map(|name| database.table(name)) else { return Ok(None) };
        let mut places = [None; N];
        for (place, column) in places.iter_mut().zip(&self.columns) {
            *place = column.names.iter().find_map(|name| table.columns.place(name));
            if place.is_none() && column.required {
                return Err(IngestError::MissingColumn {
                    file: file.to_owned(),
                    table: shown(&table.name),
                    column: column.names[0],
                    found: list(table.columns.names.iter().map(String::as_str)),
                });
            }
        }
        Ok(Some((table, Layout::new(places, table.columns.row_number))))
    }
}

/// The first names of many.
pub(crate) fn list<'n>(names: impl ExactSizeIterator<Item = &'n str>) -> String {
    const MOST: usize = 24;
    let count = names.len();
    let mut text = names.take(MOST).map(shown).collect::<Vec<_>>().join(", ");
    if count > MOST {
        text.push_str(&format!(" and {} more", count - MOST));
    }
    if count == 0 { "none".to_owned() } else { text }
}

/// A name out of a file, cut to what a message can take.
fn shown(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(48).collect()
}
