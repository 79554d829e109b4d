//! What the records of a run mean: statistics, stages, utilisation, operators, findings.
//!
//! Records come in, a document goes out; nothing is opened, started or timed here. What cannot be told from the records
//! is absent, never zero.

pub mod alignment;
mod arrivals;
pub mod attribution;
mod caveats;
mod compare;
mod counted_ranges;
mod counter;
mod device;
mod device_memory;
mod device_time;
mod disturbed;
mod encoder;
mod evidence;
mod finding;
mod fit;
pub mod fleet;
pub mod kernel;
mod key_value_cache;
mod loss;
mod metrics;
mod module_path;
mod modules;
mod numbered;
mod observed;
mod operators;
mod overhead;
mod padding;
mod prediction;
mod pressure;
mod python;
mod quality;
mod ranges;
mod ranks;
pub mod region;
mod repetition;
pub mod replay;
mod run_kind;
#[cfg(test)]
mod sample;
pub mod sampled;
mod scope;
mod serving;
mod stages;
pub mod statistics;
mod steps;
mod subject;
pub mod time;
mod timings;
mod tries;
mod utilisation;
pub mod view;

pub use arrivals::rank_clock;
pub use compare::{GateLimits, RunRecords, Sides, compare, try_sides};
pub use counter::{LaunchCounters, ListedKernel, PageOverlap, USED_COUNTERS};
pub use device::Mark;
pub use device_time::{device_times, idle_stretches};
pub use disturbed::verdict as disturbed;
pub use evidence::{
    Apart, CommandRuns, Evidence, JoinedRequests, OperatorPass, PlacedTimeline, PlainRuns, PricedOperator, RankRuns,
    Trace, TryRuns,
};
pub use fit::{Fit, ModelWeights, fit};
pub use metrics::{command_overhead, metrics};
pub use observed::{Observed, observe};
pub use operators::{CollectiveCall, collective_calls};
pub use prediction::{beside_run, measured_total};
pub use serving::composition::{SequencePart, compositions};
pub use serving::join;
pub use serving::latency::load as served_load;
pub use steps::{PlacedSteps, placed_steps};
pub use subject::{InputRoofline, InputWork, ModelledStep, Subject};
