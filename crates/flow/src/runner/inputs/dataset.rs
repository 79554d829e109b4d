//! Which files a run takes, and how often each is run: the `dataset` part of a configuration.

use std::path::PathBuf;

use serde::Deserialize;

/// The `dataset` part of a configuration.
#[derive(Clone, Debug, Deserialize)]
pub struct DatasetSettings {
    /// Folder, or `builtin:NAME`.
    pub root: PathBuf,
    /// Patterns of files to take.
    pub include: Vec<String>,
    /// Patterns of files to leave.
    pub exclude: Vec<String>,
    /// File with one path a line, instead of the patterns.
    pub file_list: Option<PathBuf>,
    /// Whether folders inside are searched.
    pub recursive: bool,
    /// Which of them are measured, and how often.
    pub sampling: SamplingSettings,
}

/// The `dataset.sampling` part.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct SamplingSettings {
    /// Passes over the chosen inputs.
    pub epochs: u32,
    /// Inputs taken each epoch; all when open.
    pub samples_per_epoch: Option<usize>,
    /// Seed of the choice.
    pub seed: u64,
    /// Whether inputs are taken in random order.
    pub shuffle: bool,
    /// Runs of each input before measuring.
    pub warmup_rounds: u32,
    /// Measured runs of each input.
    pub repeats: u32,
}
