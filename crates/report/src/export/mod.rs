//! Timelines in the formats of other tools: SQLite as Nsight Systems exports it, trace events for Perfetto and Chrome, and stacks
//! over time for speedscope, the Firefox profiler and flame graph scripts.

mod collapsed;
mod database;
mod firefox;
mod native;
mod nsys;
mod perfetto;
mod speedscope;
mod stacks;

pub use collapsed::collapsed_stacks;
pub use firefox::firefox_json;
pub use native::{TracedOperator, native_packed, native_unpacked};
pub use nsys::nsys_sqlite;
pub use perfetto::perfetto_json;
pub use speedscope::speedscope_json;
