//! Which tables there are, and what their columns hold.

use std::fmt::Write as _;

/// The version of all tables together; a file names it in its metadata.
pub const SCHEMA: &str = "llm-perf/tables/1";

types::named! {
    /// How a column is stored.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ColumnKind {
        /// `INT32`.
        Integer = "int32",
        /// `INT64`.
        Long = "int64",
        /// `INT64` nanoseconds, delta encoded.
        Time = "int64, ns",
        /// UTF-8, dictionary encoded.
        Text = "text",
        /// `BOOLEAN`.
        Flag = "bool",
    }
}

/// A column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// How it is stored.
    pub kind: ColumnKind,
    /// Whether it may be unknown.
    pub optional: bool,
    /// What it holds.
    pub about: &'static str,
}

const fn column(name: &'static str, kind: ColumnKind, about: &'static str) -> Column {
    Column { name, kind, optional: false, about }
}

const fn maybe(name: &'static str, kind: ColumnKind, about: &'static str) -> Column {
    Column { name, kind, optional: true, about }
}

use ColumnKind::{Flag, Integer, Long, Text, Time};

const RANK: Column = maybe("rank", Integer, "rank in the job");
const DEVICE: Column = column("device", Integer, "ordinal of the device in its process");
const DEVICE_ID: Column = column("device", Text, "the device, such as `cuda:0`");
const STREAM: Column = maybe("stream", Integer, "stream");
const START: Column = column("start_ns", Time, "start time");
const DURATION: Column = column("duration_ns", Long, "duration");
const STAGE: Column = maybe("stage", Text, "innermost stage that launched it");
const STEP: Column = maybe("step", Integer, "step that launched it, as in `steps`");
const OPERATOR: Column = maybe("operator", Text, "innermost framework operator that launched it");
const PROCESS: Column = maybe("process", Integer, "process");
const THREAD: Column = maybe("thread", Long, "thread");
const NAME: Column = column("name", Text, "name");
const SHORT_NAME: Column = column("short_name", Text, "name without template arguments and parameters");
const FAMILY: Column = column("family", Text, "kernel family: `gemm`, `attention`, `communication`, ...");
const CORRELATION: Column = maybe("correlation", Long, "number that links a call to the work it launched");

/// Declares the tables: for each its variant, its name, what one of its rows is, and its columns in order.
macro_rules! tables {
    ($($variant:ident $name:literal $about:literal [$($column:expr),+ $(,)?])+) => {
        /// A table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Table {
            $(#[doc = $about] $variant,)+
        }

        impl Table {
            /// All of them, in the order in which the reference lists them.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// Its name, which is that of its file.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// What a row is.
            pub const fn about(self) -> &'static str {
                match self { $(Self::$variant => $about,)+ }
            }

            /// Its columns, in order.
            pub const fn columns(self) -> &'static [Column] {
                match self { $(Self::$variant => const { &[$($column),+] },)+ }
            }
        }
    };
}

tables! {
    Runs "runs" "One rank of a job, and where its rows come from." [
        RANK,
        column("job", Text, "name of the job, as in the folder"),
        maybe("run_id", Text, "run that wrote the rows"),
        maybe("world_size", Integer, "number of ranks in the job, according to the trace"),
        maybe("kind", Text, "kind of run: `training`, `serving`, ..."),
        maybe("model", Text, "model, if it was given"),
        maybe("device_name", Text, "name of the first device"),
        column("devices", Integer, "devices with recorded work"),
        column("devices_described", Integer, "devices of the machine that the trace describes"),
        maybe("tool", Text, "tool that wrote the trace"),
        column("format", Text, "format of the trace"),
        column("source", Text, "the trace, as given"),
        // A reader of earlier tables finds the column by this name.
        maybe("sha256", Text, "`blake3:` and the BLAKE3 of the trace as stored, or its SHA-256 alone in tables of earlier versions; null if it has several files"),
        column("clock", Text, "`unix`: times are since 1970; `trace`: they are relative to the trace"),
        maybe("first_ns", Time, "start of the first device work"),
        maybe("last_ns", Time, "end of the last device work"),
        column("program", Text, "version of llm-perf"),
        column("lost_records", Long, "records that were dropped or could not be read"),
    ]
    DeviceTime "device_time" "Breakdown of the time of a device: `busy_ns` + `idle_ns` = `span_ns`, and `compute_ns` + \
        `communication_exposed_ns` + `copies_exposed_ns` = `busy_ns`." [
        RANK, DEVICE_ID,
        column("span_ns", Long, "from the start of its first work to the end of its last"),
        column("busy_ns", Long, "at least one kernel, copy or memset ran"),
        column("idle_ns", Long, "nothing ran"),
        column("compute_ns", Long, "at least one kernel ran that is not communication"),
        column("communication_ns", Long, "at least one communication kernel ran"),
        column("communication_exposed_ns", Long, "communication ran and no other kernel did"),
        column("communication_awaited_ns", Long,
            "communication ran beside kernels that wait for it, launched early behind it on its stream"),
        column("copies_exposed_ns", Long, "a copy or memset ran and no kernel did"),
    ]
    Idle "idle" "Idle time of a device by cause; the causes add up to `idle_ns`." [
        RANK, DEVICE_ID,
        column("cause", Text, "activity of the host: `launching`, `synchronising`, `data_loading`, ..."),
        column("ns", Long, "total time"),
        column("longest_ns", Long, "longest part within one gap"),
    ]
    Steps "steps" "A step, as in `metrics.json`." [
        RANK,
        column("step", Integer, "number, from zero"),
        NAME,
        maybe("label", Text, "`prefill`, `decode`, `mixed`, `verify` or `draft`, if the engine says so"),
        START,
        column("host_ns", Long, "time on the host"),
        column("wall_ns", Long, "from its start, or the end of the previous step, to the end of its device work"),
        column("device_ns", Long, "time the device was busy with its work"),
        column("kernels", Long, "kernels"),
    ]
    Stages "stages" "One instance of a stage in the trace." [
        RANK,
        column("stage", Text, "stage"),
        column("instance", Integer, "number, from zero, over all stages"),
        START,
        column("wall_ns", Long, "from its start to the end of its device work"),
        column("inferred", Flag, "inferred from the trace; otherwise marked by a range"),
    ]
    Samples "samples" "One measured time of a stage, without a profiler." [
        RANK,
        column("stage", Text, "stage"),
        maybe("input", Text, "input"),
        column("epoch", Integer, "pass over the inputs, from zero"),
        column("repeat", Integer, "repetition of the input within it, from zero"),
        column("wall_ns", Long, "time"),
        column("warmup", Flag, "a warm-up pass, excluded from statistics"),
    ]
    Kernels "kernels" "A kernel that ran, sorted by device and start." [
        RANK, DEVICE, STREAM, START, DURATION, NAME, SHORT_NAME, FAMILY, STAGE, STEP, OPERATOR, CORRELATION,
        column("set_aside", Flag, "launched during loading or warm-up"),
    ]
    KernelSums "kernel_sums" "All launches of one kernel on one device, excluding loading and warm-up." [
        RANK, DEVICE, NAME, SHORT_NAME, FAMILY,
        column("calls", Long, "launches"),
        column("total_ns", Long, "total time of all launches"),
        column("min_ns", Long, "shortest launch"),
        column("median_ns", Long, "median launch"),
        column("max_ns", Long, "longest launch"),
    ]
    Copies "copies" "A copy or memset that ran, sorted by device and start." [
        RANK, DEVICE, STREAM, START, DURATION,
        column("kind", Text, "`HtoD`, `DtoH`, `DtoD`, `PtoP`, `HtoH`, `unknown` or `memset`"),
        maybe("bytes", Long, "bytes"),
        STAGE, STEP, OPERATOR,
        column("set_aside", Flag, "launched during loading or warm-up"),
    ]
    Collectives "collectives" "A collective kernel, sorted by device and start." [
        RANK, DEVICE, STREAM, START, DURATION,
        column("name", Text, "the framework's name for it, otherwise the short name of its kernel"),
        maybe("dtype", Text, "element type"),
        maybe("bytes", Long, "bytes of the message"),
        maybe("process_group", Text, "purpose of the group, as the program describes it"),
        maybe("group_size", Integer, "number of participating ranks"),
        maybe("group_ranks", Text, "participating ranks, as listed in the trace, such as `[0, 1]`"),
        column("number", Integer, "index among the collectives of the rank with that group, from zero"),
        column("exposed_ns", Long, "no other kernel ran on the device"),
        column("kernel", Text, "short name of the kernel"),
    ]
    HostOps "host_ops" "A framework operator, a Python function or a CUDA call on the host, sorted by start." [
        RANK, PROCESS, THREAD, START, DURATION,
        column("kind", Text, "`operator`, `python` or `call`"),
        NAME, CORRELATION,
    ]
    Ranges "ranges" "An NVTX range or annotation, sorted by start." [
        RANK, PROCESS, THREAD, START,
        maybe("end_ns", Time, "end time; null if it was still open at the end"),
        NAME,
        maybe("domain", Text, "NVTX domain"),
    ]
    Memory "memory" "An allocation or release of the framework's allocator, in order." [
        RANK,
        maybe("device", Integer, "ordinal of the device; null for host memory"),
        column("time_ns", Time, "when"),
        column("bytes", Long, "bytes allocated; negative for a release"),
        maybe("allocated", Long, "total bytes allocated afterwards"),
        maybe("reserved", Long, "total bytes reserved afterwards"),
    ]
    Modules "modules" "A module of the model in a stage." [
        RANK,
        column("module", Text, "path, as in the checkpoint"),
        column("class", Text, "class of the published code"),
        column("stage", Text, "stage"),
        maybe("measured_ns", Long, "measured time, submodules included"),
        maybe("roofline_ns", Long, "roofline time"),
        maybe("lost_ns", Long, "measured minus roofline time"),
    ]
    Findings "findings" "A finding, the most important first." [
        RANK,
        column("place", Integer, "position in the report, from zero"),
        column("rule", Text, "rule, such as `launch-bound`"),
        column("severity", Text, "how important it is"),
        maybe("stage", Text, "stage it concerns"),
        maybe("saves_ns", Long, "estimated saving of acting on it"),
        column("advice", Text, "recommended action"),
    ]
}

impl Table {
    /// Name of its file.
    pub fn file_name(self) -> String {
        format!("{}.parquet", self.name())
    }
}

/// All tables and their columns, in Markdown.
pub fn reference() -> String {
    let mut page = String::new();
    for table in Table::ALL {
        let _ =
            write!(page, "## `{}`\n\n{}\n\n| column | type | holds |\n|---|---|---|\n", table.name(), table.about());
        for column in table.columns() {
            let optional = if column.optional { ", may be null" } else { "" };
            let _ = writeln!(page, "| `{}` | {}{optional} | {} |", column.name, column.kind.name(), column.about);
        }
        page.push('\n');
    }
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}
