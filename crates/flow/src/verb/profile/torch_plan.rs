//! A run in PyTorch that is ready to start.

use std::path::PathBuf;

use collect::rank::Rank;
use types::{Environment, Hardware};

use crate::runner::torch::{TorchModel, TorchRequest};

/// Where the trace stands in a run folder.
pub(super) const TRACE: &str = "trace/torch.json.gz";

/// A run that is ready to start.
pub(super) struct TorchProfile<'a> {
    pub(super) model: &'a TorchModel,
    pub(super) request: &'a TorchRequest,
    pub(super) environment: Environment,
    pub(super) config_yaml: &'a str,
    pub(super) python: PathBuf,
    pub(super) named: Option<Hardware>,
    /// Which process of several this is.
    pub(super) rank: Option<Rank>,
}
