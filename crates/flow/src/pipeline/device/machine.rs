//! `env`: the machine and the software on it, with each GPU's entry in the catalogue.

use std::path::Path;

use collect::environment::{self, EnvironmentFacts, EnvironmentRequest};
use types::{Environment, GpuInfo, UserError};

use crate::pipeline::device::hardware;

/// The content of `env.json`.
pub fn capture(config_dir: Option<&Path>) -> Result<Environment, UserError> {
    Ok(capture_with_facts(config_dir)?.environment)
}

/// The same with what was learnt beside it.
pub(crate) fn capture_with_facts(config_dir: Option<&Path>) -> Result<EnvironmentFacts, UserError> {
    // A wrong device file fails before the driver and the tools are asked.
    let catalogue = hardware::catalogue(config_dir)?;
    let request = EnvironmentRequest {
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        tool_features: features(),
        folder: std::env::current_dir().unwrap_or_default(),
    };
    let mut capture = environment::capture(&request);
    let known = |gpu: &GpuInfo| catalogue.find(gpu.name.as_deref()?).ok().map(|device| device.id.clone());
    for gpu in &mut capture.environment.gpus {
        gpu.hardware = known(gpu);
    }
    Ok(capture)
}

/// What was compiled in. A build without optimisation is named, because its times are good for nothing.
fn features() -> Vec<String> {
    if cfg!(debug_assertions) { vec!["debug".to_owned()] } else { Vec::new() }
}
