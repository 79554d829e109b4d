//! Flags of remedies that a run tries.

use std::time::Duration;

use flow::profile::TrySettings;
use types::{Remedies, RemedyError};

use crate::error::CliError;

/// Which remedies are tried.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct TryArguments {
    /// Try remedies, each against the baseline in turns: `auto` for those that apply, or a list such as
    /// cuda-graph,bf16,cuda-graph+bf16 (`+` applies several together)
    #[arg(long = "try", value_name = "auto|LIST", conflicts_with = "command")]
    remedies: Option<String>,
    /// Seconds for all tries together
    #[arg(long = "try-limit", value_name = "SECONDS", default_value_t = 300.0, requires = "remedies")]
    limit: f64,
}

impl TryArguments {
    pub(super) fn settings(&self) -> Result<Option<TrySettings>, CliError> {
        let Some(text) = &self.remedies else { return Ok(None) };
        let limit = Duration::try_from_secs_f64(self.limit).ok().filter(|limit| !limit.is_zero());
        let limit = limit.ok_or_else(|| CliError::usage(format!("--try-limit is {}; it must be above 0", self.limit)))?;
        if text == "auto" {
            return Ok(Some(TrySettings { chosen: None, limit }));
        }
        let mut chosen: Vec<Remedies> = Vec::new();
        for name in text.split(',').map(str::trim) {
            let one = name.parse().map_err(|error: RemedyError| {
                CliError::usage(format!("--try: {error}")).hint("--try auto tries those that apply")
            })?;
            if !chosen.contains(&one) {
                chosen.push(one);
            }
        }
        Ok(Some(TrySettings { chosen: Some(chosen), limit }))
    }
}
