//! Flags of remedies that a run tries.

use std::time::Duration;

use flow::profile::TrySettings;
use types::{Remedies, RemedyError, UserError};

/// Which remedies are tried.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct TryArguments {
    /// Try remedies, alternating each with the baseline: auto (all that apply), or a list such as
    /// cuda-graph,bf16,cuda-graph+bf16 (`+` combines remedies)
    #[arg(long = "try", value_name = "REMEDIES", conflicts_with = "command")]
    remedies: Option<String>,
    /// Total time budget for --try, in seconds
    #[arg(long = "try-limit", value_name = "SECONDS", default_value_t = 300.0, requires = "remedies")]
    limit: f64,
}

impl TryArguments {
    pub(super) fn settings(&self) -> Result<Option<TrySettings>, UserError> {
        let Some(text) = &self.remedies else { return Ok(None) };
        let limit = Duration::try_from_secs_f64(self.limit).ok().filter(|limit| !limit.is_zero());
        let limit =
            limit.ok_or_else(|| UserError::usage(format!("--try-limit is {}; expected more than 0", self.limit)))?;
        if text == "auto" {
            return Ok(Some(TrySettings { chosen: None, limit }));
        }
        let mut chosen: Vec<Remedies> = Vec::new();
        for name in text.split(',').map(str::trim) {
            let one = name.parse().map_err(|error: RemedyError| {
                UserError::usage(format!("--try: {error}")).hint("use --try auto to try all that apply")
            })?;
            if !chosen.contains(&one) {
                chosen.push(one);
            }
        }
        Ok(Some(TrySettings { chosen: Some(chosen), limit }))
    }
}
