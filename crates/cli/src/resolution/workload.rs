//! Which workload is meant, and how much of it the user said.

use config::Config;
use flow::WorkloadSettings;
use flow::import::WorkloadRequest;
use serde_json::{Map, Value};
use types::UserError;

/// Quantities that go together: setting one leaves the other open.
const PAIRS: [[&str; 2]; 2] = [["seq_len", "text_tokens"], ["decode_steps", "max_new_tokens"]];

/// The workload as configured.
pub(crate) fn settings(config: &Config) -> Result<WorkloadSettings, UserError> {
    let mut settings: WorkloadSettings = config.get("workload")?;
    for key in open(config) {
        match key {
            "seq_len" => settings.seq_len = None,
            "text_tokens" => settings.text_tokens = None,
            "decode_steps" => settings.decode_steps = None,
            _ => settings.max_new_tokens = None,
        }
    }
    Ok(settings)
}

/// The same by key, for settings that vary.
pub(crate) fn map(config: &Config) -> Result<Map<String, Value>, UserError> {
    let mut map: Map<String, Value> = config.get("workload")?;
    map.extend(open(config).map(|key| (key.to_owned(), Value::Null)));
    Ok(map)
}

/// The workload as far as the user says; what the configuration says by itself does not count.
pub(crate) fn request(config: &Config, has_model: bool) -> Result<WorkloadRequest, UserError> {
    let profile = config.chosen("workload").map(str::to_owned);
    let overridden: Vec<String> = config.set_below("workload").into_iter().map(str::to_owned).collect();
    if !has_model && (profile.is_some() || !overridden.is_empty()) {
        return Err(UserError::usage("a workload has no effect without a model").hint("add --model NAME"));
    }
    Ok(WorkloadRequest { settings: settings(config)?, profile, overridden })
}

/// Keys whose counterpart the user set, and not them.
fn open(config: &Config) -> impl Iterator<Item = &'static str> {
    let set = config.set_below("workload");
    let open = PAIRS.map(|[one, other]| match (set.contains(&one), set.contains(&other)) {
        (true, false) => Some(other),
        (false, true) => Some(one),
        _ => None,
    });
    open.into_iter().flatten()
}
