//! Model, workload and device of what was recorded, and which regions of it are kept.

use std::ffi::OsStr;

use config::Config;
use flow::import::{NamedSubject, NcuPreset, RegionChoice};
use types::UserError;

use crate::context::Context;
use crate::resolution;

/// What a configuration names, with the model where a flag says one.
pub(crate) fn named(config: &Config, model: Option<&OsStr>, context: &Context) -> Result<NamedSubject, UserError> {
    Ok(NamedSubject {
        name: None,
        model: model.map(|named| resolution::model::load(config, Some(named))).transpose()?,
        workload: resolution::workload::request(config, model.is_some())?,
        hardware: resolution::hardware(config)?,
        config_dir: context.config_dir.clone(),
    })
}

/// The regions that the preset of Nsight Compute keeps.
pub(crate) fn regions(config: &Config) -> Result<RegionChoice, UserError> {
    RegionChoice::new(&config.get::<NcuPreset>("pipeline.ncu")?).map_err(|(key, error)| {
        UserError::usage(format!("pipeline.ncu.ncu_cli.{key}: {error}"))
            .hint("write an exact name, or a pattern that starts with regex:")
    })
}
