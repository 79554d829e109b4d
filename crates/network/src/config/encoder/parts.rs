//! Parts of an encoder that its file decides.

/// How scores depend on the distance of two positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DistancesConfig {
    /// A score of each head for every range of distances: so many ranges.
    Buckets(u64),
    /// Embeddings of distances that queries and keys are multiplied with.
    Embedded {
        /// Distances to either side.
        span: u64,
        /// Whether the embeddings are normed.
        normed: bool,
        /// Whether the projections of queries and keys serve distances too.
        shared: bool,
        /// Whether distances are multiplied with queries, and with keys.
        with: [bool; 2],
        /// Taps of the convolution beside the first layer; zero without one.
        kernel: u64,
    },
}

/// What a classifier pools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pools {
    First,
    /// The mean of all positions.
    Mean,
    /// The mean of the scores of all positions.
    Scores,
}
