//! Servers under a load, event by event.
//!
//! [`Scheduler`] decides what each step processes, [`StepPrices`] what it takes, and [`simulate`] runs a load through both. All of it
//! is driven by requests alone: it knows no traces and speaks no HTTP.

mod blocks;
mod clients;
mod draw;
mod engine;
mod fleet;
mod kernels;
mod load;
mod moments;
mod outcome;
mod price;
mod replica;
mod residual;
mod scheduler;
mod simulate;
mod simulated;
mod uncertainty;

pub use clients::Answer;
pub use draw::Draw;
pub use engine::{Backend, Engine, HostCosts, Mixing, Rules, SGLANG, VLLM};
pub use fleet::{Apart, Fleet, Router};
pub use load::{Arrivals, Load, Started};
pub use moments::Moments;
pub use outcome::{DRAWS, LoadForecast, Outcome, RequestOutcome, Server, Spread};
pub use price::{Launch, StepPrices, StepTime};
pub use residual::{MeasuredStep, Residuals};
pub use scheduler::{Asked, Part, Scheduler};
pub use simulate::simulate;
pub use simulated::Simulated;
pub use uncertainty::Uncertainty;
