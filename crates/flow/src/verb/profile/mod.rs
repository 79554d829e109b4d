//! `profile`: run a model on inputs, or any command, time it, and lay the result beside what the hardware allows.
//!
//! Three things can be profiled: a model on our own engine (`native`), in the user's PyTorch ([`torch`]), and any command
//! ([`command`]).

pub mod command;
mod files;
mod native;
mod ranks;
pub mod torch;
mod torch_evidence;
mod torch_plan;

use types::Metrics;

pub use crate::pipeline::progress::{Pass, Progress};
pub use crate::pipeline::recorded::provenance::FedInputs;
pub use crate::runner::inputs::{DatasetSettings, SamplingSettings, expected as expected_inputs};
pub use crate::runner::request::{ProfileRequest, WeightSettings};
pub use crate::runner::settings::{
    DecodingSettings, Feed, InferSettings, PageSettings, PictureSettings, PromptSettings,
};
pub use crate::runner::tries::TrySettings;
pub use native::profile;

/// The run in a few lines, for a terminal.
pub fn terminal(metrics: &Metrics) -> String {
    report::pages::run::terminal(&analysis::view::run(metrics))
}
