//! The nouns of llm-perf: units, records, documents.
//!
//! Every other crate agrees on these and on nothing else. There is no input or output here, no clock and no formula;
//! JSON Schemas come from these types, so a document that validates is a document these types can read.
//!
//! ```
//! use llm_perf_types::{Bytes, Nanos, documents};
//!
//! // Units are types: they print themselves, and do not add up to nonsense.
//! let step = Nanos::new(1_500_000) + Nanos::new(250_000);
//! assert_eq!(step.to_string(), "1.75 ms");
//! assert_eq!(Bytes::new(16_060_000_000).to_string(), "16.1 GB");
//!
//! // Every document has a name with a version, and a schema.
//! let metrics = documents::find("metrics").unwrap();
//! assert_eq!(metrics.name.to_string(), "llm-perf/metrics/1");
//! assert!(metrics.schema().get("properties").is_some());
//! ```

mod analytic;
mod clock;
mod compared;
mod conclusion;
pub mod counter;
mod deep;
pub mod documents;
mod failure;
mod internal_error;
mod likeness;
mod machine;
mod metrics;
mod model;
mod named;
mod random;
mod run;
mod schema;
mod serving;
mod stage;
mod statistics;
mod sums;
pub mod timeline;
mod unit;
pub mod view;

pub use analytic::*;
pub use clock::{Clock, ClockId, ClockKind};
pub use compared::*;
pub use conclusion::*;
pub use deep::*;
pub use failure::{Exit, Failure, UserError};
pub use internal_error::{CaughtPanic, catching, guarded, report_panics};
pub use likeness::nearest;
pub use machine::*;
pub use metrics::*;
pub use model::*;
pub use named::Named;
pub use random::Random;
pub use run::*;
pub use schema::{Document, SchemaName, SchemaNameError, SchemaTag};
pub use serving::*;
pub use stage::Stage;
pub use statistics::{Statistics, Variance};
pub use unit::*;

#[cfg(not(test))]
pub(crate) use derive::JsonSchema;
#[cfg(test)]
pub(crate) use schemars::JsonSchema;
