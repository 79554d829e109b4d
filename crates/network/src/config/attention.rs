//! How positions of a layer exchange what they know, as data.

use types::{AttentionDetail, RotaryForm};

/// Attention of a layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AttentionConfig {
    /// Heads that share keys and values in groups.
    Grouped(GroupedConfig),
    /// Keys and values made from one small vector a position.
    Latent(LatentConfig),
    /// A state of fixed size.
    Delta(DeltaConfig),
    /// A state of fixed size, of a state-space model.
    StateSpace(StateSpaceConfig),
    /// Attention and a state-space layer side by side, both outputs added.
    Hybrid(HybridConfig),
    /// Attention to the features of a picture. Without one the layer is passed over.
    Cross(GroupedConfig),
    /// A gated convolution over a few positions.
    ShortConv(ShortConvConfig),
    /// A window of positions, and compressed entries of those before it.
    Compressed(CompressedConfig),
    /// None: the layer is a feed-forward alone.
    Absent,
}

/// Attention and a state-space layer that are given the same input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HybridConfig {
    /// Attention.
    pub attention: GroupedConfig,
    /// The state-space layer.
    pub state_space: StateSpaceConfig,
    /// Factors on the input of attention, on its output, and on that of the state-space layer.
    pub scales: [f64; 3],
}

/// A convolution between two gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortConvConfig {
    /// Its taps.
    pub kernel: u64,
    /// Biases of the convolution and of the projections into it and out of it.
    pub bias: bool,
}

/// Attention over a window and over compressed entries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CompressedConfig {
    /// Query heads.
    pub heads: u64,
    /// Width of a head, and of the one key that is the value too.
    pub head_width: u64,
    /// Width queries are squeezed to.
    pub query_rank: u64,
    /// Groups of heads whose outputs are squeezed on their own.
    pub groups: u64,
    /// Width each group is squeezed to.
    pub group_rank: u64,
    /// Positions that are seen as they are.
    pub window: u64,
    /// Rotary positions.
    pub rotary: RotaryConfig,
    /// Factor on the scores.
    pub scale: f64,
    /// How earlier positions are compressed, where they are seen at all.
    pub compression: Option<Compression>,
}

/// How positions are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compression {
    /// Positions of an entry.
    pub every: u64,
    /// What chooses entries; without one all are seen, and groups do not overlap.
    pub indexer: Option<EntryIndexerConfig>,
}

/// What chooses compressed entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryIndexerConfig {
    /// Its heads.
    pub heads: u64,
    /// Width of its queries and entries.
    pub width: u64,
    /// Entries a query sees at most.
    pub keep: u64,
}

impl CompressedConfig {
    /// Elements of entries that one position adds.
    pub(crate) fn entry_elements(&self) -> u64 {
        self.compression
            .map_or(0, |part| (self.head_width + part.indexer.map_or(0, |indexer| indexer.width)) / part.every.max(1))
    }
}

/// A state-space layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateSpaceConfig {
    /// Width inside.
    pub inner: u64,
    /// Elements of the state for each element inside.
    pub state: u64,
    /// Taps of the convolution.
    pub kernel: u64,
    /// Bias of the projection into it.
    pub bias: bool,
    /// Bias of the projection out of it.
    pub output_bias: bool,
    /// Bias of the convolution.
    pub conv_bias: bool,
    /// Which decays it has.
    pub kind: StateSpaceKind,
}

/// Generations of state-space layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateSpaceKind {
    /// Mamba-2: one decay a head.
    Heads {
        /// Heads.
        heads: u64,
        /// Groups of heads that share inputs and outputs of the state.
        groups: u64,
        /// Positions processed at a time.
        chunk: u64,
        /// Whether what comes out is normed behind the gate.
        normed: bool,
    },
    /// Mamba: decays of each channel, from steps of a low rank.
    Channels {
        /// The rank.
        rank: u64,
        /// How steps, inputs and outputs of the state are normed.
        norms: SelectionNorms,
    },
}

/// Norms of what a selective scan is steered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelectionNorms {
    /// None of them.
    Absent,
    /// With a weight each.
    Weighted,
    /// Without weights.
    Bare,
}

impl StateSpaceConfig {
    /// Channels of the convolution.
    pub(crate) fn channels(&self) -> u64 {
        match self.kind {
            StateSpaceKind::Heads { groups, .. } => self.inner + 2 * groups * self.state,
            StateSpaceKind::Channels { .. } => self.inner,
        }
    }
}

/// Gated delta-net.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeltaConfig {
    /// Heads of queries and keys.
    pub key_heads: u64,
    /// Heads of values, of gates and of the state.
    pub value_heads: u64,
    /// Width of a query or key.
    pub key_width: u64,
    /// Width of a value.
    pub value_width: u64,
    /// Taps of the convolution.
    pub kernel: u64,
    /// How its inputs are projected.
    pub projections: DeltaProjections,
}

/// Projections in front of a gated delta-net.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeltaProjections {
    /// One for queries, keys, values and gates, one for steps and decays.
    Two,
    /// One each for queries, keys and values together, gates, steps and decays.
    Four,
    /// One each for queries, keys, values, gates, steps and decays.
    Apart,
    /// The same with a decay for each channel of a key; gates and decays are made from vectors of that width, where there is one.
    Channels {
        /// The width.
        rank: Option<u64>,
    },
}

/// Heads that share keys and values in groups; as many groups as heads is plain attention, one group multi-query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GroupedConfig {
    /// Query heads.
    pub heads: u64,
    /// Key-value heads.
    pub key_value_heads: u64,
    /// Width of a head.
    pub head_width: u64,
    /// Biases of the projections to queries, keys and values.
    pub input_bias: bool,
    /// Bias of the output projection.
    pub output_bias: bool,
    /// Whether one projection makes queries, keys and values, and in which order.
    pub fused: Option<FusedOrder>,
    /// How queries and keys are normed, where they are.
    pub head_norms: Option<HeadNorms>,
    /// Rotary positions; absent in layers without positions.
    pub rotary: Option<RotaryConfig>,
    /// What makes a gate that weighs the output, where there is one.
    pub gate: Option<OutputGate>,
    /// What chooses the blocks of positions a query sees, where it sees a part of them.
    pub blocks: Option<BlockIndexerConfig>,
    /// Width of a value.
    pub value_width: u64,
    /// Where values come from.
    pub values: Values,
    /// Whether values are normed too, without a weight.
    pub value_norm: bool,
    /// Factor on the scores.
    pub scale: f64,
    /// Window, softcap, sinks.
    pub detail: AttentionDetail,
}

/// What makes the gate of attention's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputGate {
    /// The query projection, an element for each of the output.
    InQuery,
    /// A projection of its own, an element for each of the output.
    Elements,
    /// A projection of its own, one for each head.
    Heads,
}

/// What chooses blocks of positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockIndexerConfig {
    /// Its heads.
    pub heads: u64,
    /// Width of its queries and of its one key.
    pub width: u64,
    /// Positions a query sees at most.
    pub keep: u64,
}

/// Where the values of attention come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// A projection of their own.
    Own,
    /// The projection of the keys.
    Keys,
    /// The cache of an earlier layer, which has the keys too.
    OfLayer(usize),
}

/// How queries and keys are normed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadNorms {
    /// Each head on its own, before the rotation.
    EachHead,
    /// Each head on its own, behind the rotation.
    EachHeadTurned,
    /// All heads together.
    AllHeads,
    /// Each head on its own, behind the rotation, without a weight.
    Bare,
}

/// The order of what one projection makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FusedOrder {
    /// Heads of queries, then of keys, then of values.
    Blocks,
    /// For each key-value head its queries, its key and its value.
    Groups,
}

/// Multi-head latent attention: the cache holds one latent vector and one rotated key a position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatentConfig {
    /// Heads.
    pub heads: u64,
    /// Width queries are squeezed to; absent where they are projected directly.
    pub query_rank: Option<u64>,
    /// Width of the latent vector keys and values are made from.
    pub latent: u64,
    /// Width of the part of a query or key that is not rotated.
    pub plain_width: u64,
    /// Width of the part that is.
    pub rotary_width: u64,
    /// Width of a value.
    pub value_width: u64,
    /// Biases of the first projections and of the output.
    pub bias: bool,
    /// Rotary positions; the part of a query or key that is rotated elsewhere is as it is where positions are left to other layers.
    pub rotary: Option<RotaryConfig>,
    /// Factor on the scores.
    pub scale: f64,
    /// Positions a query sees at most, where an indexer chooses them.
    pub keep: Option<u64>,
    /// The indexer; absent where an earlier layer's choice is used.
    pub indexer: Option<IndexerConfig>,
    /// Whether a projection gates what each head gives.
    pub gated: bool,
}

/// What chooses the positions of sparse attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexerConfig {
    /// Its heads.
    pub heads: u64,
    /// Width of its queries and keys.
    pub width: u64,
    /// Whether neighbours are rotated together, not halves.
    pub interleaved: bool,
}

/// Rotary positions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RotaryConfig {
    /// Base of the angles.
    pub theta: f64,
    /// Width that is rotated; the rest of a head passes.
    pub width: u64,
    /// Which elements, and how angles are stretched.
    pub form: RotaryForm,
}
