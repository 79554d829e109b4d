//! Timelines in the formats of other tools: SQLite as Nsight Systems exports it, and JSON as Perfetto and Chrome open it.

mod database;
mod native;
mod nsys;
mod perfetto;

pub use native::{TracedOperator, native_packed, native_unpacked};
pub use nsys::nsys_sqlite;
pub use perfetto::perfetto_json;
