//! What earlier runs kept: where they came from, their samples and their recordings.

pub(crate) mod earlier;
pub(crate) mod provenance;
pub(crate) mod recording;
pub(crate) mod run_points;
