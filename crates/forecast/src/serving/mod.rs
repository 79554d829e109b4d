//! A server under a load, event by event.
//!
//! [`Scheduler`] decides what each step processes, [`StepPrices`] what it takes, and [`simulate`] runs a load through both. All of it
//! is driven by requests alone: it knows no traces and speaks no HTTP.

mod blocks;
mod engine;
mod kernels;
mod outcome;
mod price;
mod scheduler;
mod simulate;

pub use engine::{Backend, Engine, HostCosts, Mixing, Rules, SGLANG, VLLM};
pub use outcome::{LoadForecast, Outcome, RequestOutcome, Server, Spread, range};
pub use price::{Launch, StepPrices, StepTime};
pub use scheduler::{Asked, Part, Scheduler};
pub use simulate::{Answer, Arrivals, Draw, Load, Moment, Moments, Simulated, Started, simulate};
