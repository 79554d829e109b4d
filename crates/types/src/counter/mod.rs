//! Hardware counters: what a profiler counted for each kernel or range it replayed.
//!
//! Readers fill these records and nothing here is joined or judged. Numbers are in base units (bytes, nanoseconds,
//! hertz, percent), turned once while reading; what the tool wrote beside them is kept as `tool_unit`. A counter that the
//! chip lacks is absent, never zero.

mod details;
mod table;
mod unit;
mod value;
mod work;

pub use details::{CounterSection, DetailedWork, EstimatedSpeedup, RuleKind, RuleResult, SectionMetric, SpeedupScope};
pub use table::{CounterColumn, CounterTable};
pub use unit::CounterUnit;
pub use value::{CounterInstance, CounterInstances, CounterValue};
pub use work::{OpenRange, ProfiledKind, ProfiledWork};
