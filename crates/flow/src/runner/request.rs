//! What to run a model on, and how often.

use std::path::PathBuf;

use serde::Deserialize;
use types::{DType, ProfileSettings as RunCounts, UserError};

use super::error::wrong_setting;
use super::inputs::DatasetSettings;
use super::settings::InferSettings;
use super::tries::TrySettings;

/// Where weights come from: the `model.weights` and `model.seed` of a configuration.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct WeightSettings {
    /// `synthetic`, or a checkpoint.
    pub weights: String,
    /// Seed of synthetic weights.
    pub seed: u64,
}

/// What to profile.
#[derive(Clone, Debug)]
pub struct ProfileRequest {
    /// What runs the model; `native` is all there is.
    pub engine: String,
    /// Where it runs; `cpu` is all there is, and `auto` means it.
    pub device: String,
    /// Where weights come from.
    pub weights: WeightSettings,
    /// What the model is fed, and how it writes.
    pub infer: InferSettings,
    /// Which files, and how often each is run.
    pub dataset: DatasetSettings,
    /// Remedies to try; absent: none.
    pub tries: Option<TrySettings>,
    /// Whether decoded texts are kept.
    pub keep_predictions: bool,
    /// Version of llm-perf.
    pub tool_version: String,
    /// Folder with a user's own devices.
    pub config_dir: Option<PathBuf>,
}

impl ProfileRequest {
    /// What every engine needs of the settings.
    pub(crate) fn check(&self) -> Result<(), UserError> {
        let sampling = &self.dataset.sampling;
        let counts = [("dataset.sampling.epochs", sampling.epochs), ("dataset.sampling.repeats", sampling.repeats)];
        for (key, found) in counts {
            if found == 0 {
                return Err(wrong_setting(key, "at least 1", &found.to_string()));
            }
        }
        if let Some(tries) = &self.tries {
            tries.check(&self.engine)?;
        }
        self.infer.check()
    }

    /// How often inputs are run, as a document says it.
    pub(crate) fn counts(&self, batch: u32, weights_dtype: Option<DType>) -> RunCounts {
        let (sampling, passes) = (&self.dataset.sampling, self.infer.passes());
        RunCounts {
            repeats: sampling.repeats.saturating_mul(passes),
            epochs: sampling.epochs,
            warmup_rounds: sampling.warmup_rounds.saturating_mul(passes),
            batch,
            seed: Some(sampling.seed),
            weights_dtype,
        }
    }
}
