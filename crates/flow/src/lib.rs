//! What a verb does: gather evidence, make the metrics once, write.
//!
//! `verb` has one module per verb, none of which uses another; they stand on `runner`, which runs a model on its inputs,
//! and on `pipeline`, which has everything from a model's name to a run folder. Settings come in, documents go out; what is
//! printed, and how, is left to the command line.

mod pipeline;
mod runner;
mod verb;

pub use collect::open_file;
pub use collect::process::StopRequest;
pub use collect::run::{RunIndex, RunRequest};
pub use collect::spill::SpillingAllocator;
pub use collect::tool::inject;
pub use collect::{WrittenArguments, command_line, write_arguments};
pub use meter::WorkloadSettings;
pub use pipeline::device::{hardware, machine as environment};
pub use pipeline::folder::run::EndedRun;
pub use pipeline::{model, target};
pub use report::{ReportError, Table, csv_line, grouped, harmless, json_row, printable, rows_table, wrapped};
pub use verb::profile::{command, torch};
pub use verb::{
    analyze, attach, calibrate, capacity, compare, deep, doctor, export, fleet, import, pack, page, predict, profile,
    query, regions, runs, serve, show, sweep, unpack, validate, whatif, workload,
};
