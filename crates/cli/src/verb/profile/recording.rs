//! Flags of what is recorded inside a command.

use std::path::PathBuf;

use flow::command::{Collector, Recording};
use flow::inject::{InjectSettings, Window};
use types::UserError;

use crate::choice::one_of;
use crate::graphs::share;

/// Whether and what to record inside a command.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RecordingArguments {
    /// Record the command in one more run with the CUDA collector: auto (if there is a GPU), inject (always) or none
    #[arg(long, value_name = "COLLECTOR", default_value = "auto", value_parser = one_of(&COLLECTORS), requires = "any_command")]
    collector: Collector,
    /// Record only these NVTX ranges (prefill, or decode_step:8..16 for instances 8 to 15), steps (decode bs>=32), seconds (5s..10s) or
    /// what the program delimits (cudaProfilerApi)
    #[arg(long, value_name = "PARTS", requires = "any_command")]
    window: Option<String>,
    /// CUPTI library [default: found automatically]
    #[arg(long, value_name = "FILE", requires = "any_command")]
    cupti: Option<PathBuf>,
    /// Record each CUDA graph launch as a whole instead of kernel by kernel
    #[arg(long, requires = "any_command", conflicts_with = "window")]
    whole_graphs: bool,
    /// Record one launch of a CUDA graph in N kernel by kernel and the others as a whole
    #[arg(long, value_name = "1/N", value_parser = share, requires = "any_command", conflicts_with_all = ["whole_graphs", "window"])]
    graph_nodes: Option<u32>,
}

/// The values of `--collector`.
const COLLECTORS: [Collector; 3] = [Collector::Auto, Collector::Inject, Collector::None];

impl RecordingArguments {
    pub(super) fn recording(&self) -> Result<Recording, UserError> {
        let window = self.window.as_deref().map(Window::read).transpose()?;
        let cupti = match &self.cupti {
            Some(path) => Some(std::fs::canonicalize(path).map_err(|error| {
                UserError::usage(format!("cannot find {}: {error}", path.display()))
                    .hint("run `llm-perf doctor` to see the CUPTI of this machine")
            })?),
            None => None,
        };
        let graphs = if self.whole_graphs { Some(0) } else { self.graph_nodes };
        Ok(Recording { collector: self.collector, settings: InjectSettings { window, cupti, graphs } })
    }
}
