//! Timelines in the formats of other tools: trace events for Perfetto and Chrome, and stacks for flame graph tools.

mod collapsed;
mod native;
mod perfetto;
mod stacks;

pub use collapsed::collapsed_stacks;
pub(crate) use native::native_lanes;
pub use native::{TracedOperator, native_packed, native_unpacked};
pub use perfetto::perfetto_json;
pub(crate) use stacks::Stacks;
