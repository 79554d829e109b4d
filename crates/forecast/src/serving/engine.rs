//! Serving engines as data: how they schedule, what they capture, and what their host costs.

use types::Hardware;

/// Which requests share a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mixing {
    /// Prompts and sequences that decode.
    Together,
    /// Steps of prompts before steps that decode.
    PromptsFirst {
        /// Share of the output still to come for which an admission leaves room: at first, at least, and the steps between.
        reserve: [f64; 3],
    },
}

/// What a scheduler goes by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// Which requests share a step.
    pub mixing: Mixing,
    /// Most requests that run.
    pub max_num_seqs: u64,
    /// Most tokens of a step; of a step of prompts where those have steps of their own.
    pub max_num_batched_tokens: u64,
    /// Blocks of the KV cache.
    pub kv_blocks: u64,
    /// Tokens of a block.
    pub block_size: u64,
    /// Tokens of a piece of a prompt that others may share.
    pub piece: u64,
}

/// A serving engine, with its defaults.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Engine {
    /// The name on the command line.
    pub name: &'static str,
    /// Which requests share a step.
    pub mixing: Mixing,
    /// Tokens of a block.
    pub block_size: u64,
    /// Share of the device's memory that weights, activations and the KV cache may take.
    pub memory_share: f64,
    /// Limits by device, the largest first.
    limits: &'static [Limits],
    /// Most tokens of a step whose kernels are replayed from CUDA graphs between attention calls; 0 where none are.
    pub pieces_captured: u64,
    /// Most sequences of a step that decodes from one CUDA graph.
    pub captured: u64,
    /// What its host costs.
    pub host: HostCosts,
}

/// What a step may hold on some devices.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Limits {
    /// Least memory of the device, GiB.
    gib: u64,
    /// What the names of the devices must not contain.
    except: Option<&'static str>,
    sequences: u64,
    tokens: u64,
}

impl Limits {
    const fn of(gib: u64, sequences: u64, tokens: u64) -> Self {
        Self { gib, except: None, sequences, tokens }
    }

    const fn except(self, name: &'static str) -> Self {
        Self { except: Some(name), ..self }
    }

    fn apply(&self, hardware: &Hardware) -> bool {
        let name = hardware.name.to_ascii_lowercase();
        hardware.memory_bytes.get() >> 30 >= self.gib && self.except.is_none_or(|except| !name.contains(except))
    }
}

/// Attention kernels that an engine may be told to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// FlashAttention, called once a layer.
    #[default]
    Flash,
    /// Kernels in Triton, whose launches cost the host more.
    Triton,
}

/// Times of the host, in microseconds, on a host that takes [`HostCosts::LAUNCH_US`] for an operator call in eager mode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HostCosts {
    /// To schedule a step, prepare its inputs, launch it and take its results, where one CUDA graph has all kernels.
    pub step: f64,
    /// The same, for each sequence in it.
    pub sequence: f64,
    /// The same, for each layer whose kernels are in graphs between attention calls.
    pub piece: f64,
    /// The same, for each layer whose kernels are launched one by one.
    pub layer: f64,
    /// What attention in Triton adds to either.
    pub triton: f64,
    /// From when a client sends a request to when the scheduler has it.
    pub way_in: f64,
    /// The same, for each token of the prompt.
    pub way_in_token: f64,
    /// From the end of a step to the client's first chunk of it.
    pub way_out: f64,
    /// The same, for each sequence in the step.
    pub way_out_sequence: f64,
    /// From one chunk of a step to the next.
    pub chunk: f64,
    /// The first use of a matrix kernel by the process, which loads it.
    pub first_use: f64,
    /// Sequences for which the kernels that choose tokens change.
    pub rows: u64,
}

impl HostCosts {
    /// Host time of an operator call in eager mode on the machine of [`VLLM`]'s times.
    pub const LAUNCH_US: f64 = 16.8;
}

/// vLLM 0.24 on the host of an H200. Defaults: `EngineArgs.get_batch_defaults`. Host times: the server's own log of 3,291 steps
/// and its clients' results for a model of 32 layers; `docs/concepts/capacity.md` says how each was read.
pub const VLLM: Engine = Engine {
    name: "vllm",
    mixing: Mixing::Together,
    block_size: 16,
    memory_share: 0.92,
    // Of the OpenAI server. 0.28 added another tier from 160 GiB.
    limits: &[Limits::of(70, 1024, 8192).except("a100"), Limits::of(0, 256, 2048)],
    pieces_captured: 512,
    captured: 512,
    host: HostCosts {
        step: 1_650.0,
        sequence: 22.0,
        piece: 142.0,
        layer: 365.0,
        triton: 155.0,
        way_in: 3_750.0,
        way_in_token: 1.7,
        way_out: 930.0,
        way_out_sequence: 40.0,
        chunk: 48.0,
        first_use: 5_400.0,
        rows: 8,
    },
};

/// SGLang. Defaults: `ServerArgs._handle_gpu_memory_settings` and `SGLANG_INIT_NEW_TOKEN_RATIO` and its neighbours; its host
/// times were not measured and are taken to be vLLM's.
pub const SGLANG: Engine = Engine {
    name: "sglang",
    mixing: Mixing::PromptsFirst { reserve: [0.7, 0.098, 600.0] },
    block_size: 1,
    memory_share: 0.88,
    limits: &[
        Limits::of(160, 4096, 16384),
        Limits::of(60, 4096, 8192),
        Limits::of(35, 4096, 4096),
        Limits::of(0, 4096, 2048),
    ],
    pieces_captured: 0,
    captured: 256,
    host: VLLM.host,
};

impl Engine {
    /// Every engine.
    pub const ALL: [Self; 2] = [VLLM, SGLANG];

    /// The engine of that name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|engine| engine.name == name)
    }

    /// The same for so many sequences at once, of whose steps vLLM captures no larger ones than of twice as many tokens
    /// (`VllmConfig._set_cudagraph_sizes`).
    #[must_use]
    pub fn limited(mut self, max_num_seqs: u64, max_num_batched_tokens: u64) -> Self {
        if self.mixing == Mixing::Together {
            let most = max_num_seqs.saturating_mul(2).min(max_num_batched_tokens);
            (self.captured, self.pieces_captured) = (self.captured.min(most), self.pieces_captured.min(most));
        }
        self
    }

    /// The same with other attention kernels.
    #[must_use]
    pub fn with(mut self, backend: Backend) -> Self {
        if backend == Backend::Triton {
            self.host.piece += self.host.triton;
            self.host.layer += self.host.triton;
        }
        self
    }

    /// Most requests and most tokens of a step on a device, unless told otherwise.
    pub fn limits(&self, hardware: &Hardware) -> [u64; 2] {
        let limits = self.limits.iter().find(|limits| limits.apply(hardware));
        limits.map_or([256, 2048], |limits| [limits.sequences, limits.tokens])
    }
}

impl Backend {
    /// The backend of that name, as vLLM and SGLang call it.
    pub fn find(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "flash" | "flash_attn" | "fa3" => Some(Self::Flash),
            "triton" | "triton_attn" => Some(Self::Triton),
            _ => None,
        }
    }
}

impl Mixing {
    /// Share of the output still to come for which an admission leaves room: at first, at least, and the steps between.
    pub(crate) const fn reserve(self) -> [f64; 3] {
        match self {
            Self::Together => [0.0, 0.0, 1.0],
            Self::PromptsFirst { reserve } => reserve,
        }
    }
}

/// The size that a step of so many tokens is padded to: 1, 2, 4, multiples of 8 up to 256 and of 16 beyond; `None` above `most`.
pub(crate) fn captured_size(tokens: u64, most: u64) -> Option<u64> {
    let padded = match tokens {
        0..=2 => tokens,
        3..=4 => 4,
        5..=256 => tokens.next_multiple_of(8),
        _ => tokens.next_multiple_of(16),
    };
    (padded <= most).then_some(padded)
}
