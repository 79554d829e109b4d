//! What a framework records of a collective.

/// A collective as it was called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Collective {
    /// The framework's name for it: `allreduce`, `_allgather_base`, `all_to_allv`.
    pub name: String,
    /// Element type, as the source spells it.
    pub dtype: String,
    /// Elements this rank hands in.
    pub input_elements: Option<u64>,
    /// Elements this rank gets.
    pub output_elements: Option<u64>,
    /// Ranks that take part.
    pub group_size: Option<u32>,
    /// What the program says the group is for; empty where it does not.
    pub group: String,
    /// The ranks of the group as the source lists them, such as `[0, 1]`, which tells groups of one purpose apart; empty where it
    /// does not.
    pub members: String,
}
