//! What a driver is asked to run.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use types::{Remedy, RemedyKind};

/// Version of the request and the events. The driver travels with the program, so that both always agree; it is written
/// down for whoever reads a kept request.
pub const PROTOCOL: u32 = 1;

/// Everything a driver needs to know.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DriverRequest {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// What to build.
    pub model: ModelRequest,
    /// `cpu`, `cuda:N` or `auto`.
    pub device: String,
    /// Whether NVTX ranges are pushed around stages.
    pub nvtx: bool,
    /// Depth to which modules get ranges; zero for none.
    pub module_ranges: u32,
    /// How tokens are generated; absent for one forward pass.
    pub decoding: Option<Decoding>,
    /// Whether prefill computes the logits of the last position only, where the model can.
    pub last_logits_only: bool,
    /// Whether FLOPs are counted.
    pub check_flops: bool,
    /// What it is fed.
    pub inputs: Vec<InputRequest>,
    /// Indices of inputs, epoch by epoch.
    pub epochs: Vec<Vec<usize>>,
    /// Runs of each input before measuring.
    pub warmup_rounds: u32,
    /// Measured runs of each input in an epoch.
    pub repeats: u32,
    /// The profiled pass; absent: none.
    pub profiler: Option<Profiler>,
    /// Remedies to try; absent: none.
    pub tries: Option<TriesRequest>,
}

/// Remedies to try.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TriesRequest {
    /// Rounds of both sides, at most.
    pub rounds: u32,
    /// Time for all of it.
    pub limit_s: f64,
    /// Each alone or together with others.
    pub remedies: Vec<Vec<Remedy>>,
    /// Whether those that win are tried together.
    pub combine: bool,
    /// What each changes: of one kind only one is combined.
    pub kinds: BTreeMap<String, RemedyKind>,
}

/// What to build.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum ModelRequest {
    /// A model of the Hugging Face kind.
    Transformers(TransformerModel),
    /// The dummy ResNet.
    Resnet {
        /// Its sizes.
        sizes: ResnetSizes,
        /// Of its weights.
        seed: u64,
        /// Element type; absent: single precision.
        dtype: Option<String>,
    },
    /// A function of the user's that gives a model.
    Factory {
        /// `module:function`.
        factory: String,
        /// Folders to import from first.
        search: Vec<PathBuf>,
        /// Element type; absent: as it comes.
        dtype: Option<String>,
    },
}

/// A model of the Hugging Face kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TransformerModel {
    /// A config.json, or a folder with one.
    pub path: PathBuf,
    /// `synthetic`, or a folder.
    pub weights: String,
    /// Of synthetic weights.
    pub seed: u64,
    /// Element type; absent: that of the config, single precision on a processor.
    pub dtype: Option<String>,
    /// Whether Python code in the folder may run.
    pub trust_remote_code: bool,
    /// Which attention; absent: the library's choice.
    pub attention: Option<String>,
}

/// Sizes of the dummy ResNet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ResnetSizes {
    /// Channels of an image.
    pub in_channels: u64,
    /// Channels inside.
    pub channels: u64,
    /// Residual blocks.
    pub blocks: u64,
    /// Classes.
    pub classes: u64,
}

/// How tokens are generated: the likeliest each time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Decoding {
    /// Most tokens.
    pub max_new_tokens: u64,
    /// Tokens after which there is no other.
    pub end_tokens: Vec<i64>,
}

/// One input.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum InputRequest {
    /// Tokens, perhaps with a page among them.
    Tokens {
        /// Name in reports.
        name: String,
        /// The tokens.
        ids: Vec<i64>,
        /// Sequences at once, all with these tokens.
        batch: u32,
        /// Which of them stand for the page.
        image_mask: Vec<bool>,
        /// The page.
        page: Option<Page>,
    },
    /// Random images.
    Pictures {
        /// Name in reports.
        name: String,
        /// Images at once.
        count: u64,
        /// Channels of each.
        channels: u64,
        /// Side of each.
        side: u64,
        /// Of their pixels.
        seed: u64,
    },
    /// What the user's factory brings along, else random tokens.
    Made {
        /// Name in reports.
        name: String,
        /// Sequences at once, where the factory brings nothing.
        batch: u32,
        /// Tokens, where the factory brings nothing.
        tokens: u64,
        /// Of the tokens.
        seed: u64,
    },
}

/// A page, cut and normalised: pixels as 32-bit floats in files.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Page {
    /// Width as stored.
    pub width: u64,
    /// Height as stored.
    pub height: u64,
    /// Tiles across and down.
    pub crop_grid: [u64; 2],
    /// The whole page.
    pub global: View,
    /// Its tiles.
    pub tiles: Option<View>,
}

/// Square images in a file, channel by channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct View {
    /// The file.
    pub file: PathBuf,
    /// How many.
    pub count: u64,
    /// Side of each.
    pub side: u64,
}

/// The profiled pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Profiler {
    /// What is recorded.
    #[serde(flatten)]
    pub settings: ProfilerSettings,
    /// Where the trace goes.
    pub trace: PathBuf,
}

/// The `pipeline.torch_profiler` part of a configuration: settings of torch.profiler, and what we do with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfilerSettings {
    /// Whether there is a profiled pass.
    #[serde(skip_serializing)]
    pub enabled: bool,
    /// `cpu`, `cuda`.
    pub activities: Vec<String>,
    /// Input shapes of operators.
    pub record_shapes: bool,
    /// Allocations of operators.
    pub profile_memory: bool,
    /// Source lines of operators.
    pub with_stack: bool,
    /// Modules of operators.
    pub with_modules: bool,
    /// Torch's own estimate of FLOPs.
    pub with_flops: bool,
    /// Rounds first, nothing kept.
    pub warmup_rounds: u32,
    /// Rounds recorded.
    pub active_rounds: u32,
    /// Rows of each table of operators.
    #[serde(skip_serializing)]
    pub top_k: u32,
    /// Whether the trace is kept.
    #[serde(skip_serializing)]
    pub export_trace: bool,
}
