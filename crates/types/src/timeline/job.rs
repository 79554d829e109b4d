//! The distributed job that a trace is a rank of.

/// What a trace says of the distributed job it is a rank of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// The rank of this trace.
    pub rank: Option<u32>,
    /// Number of ranks.
    pub world_size: Option<u32>,
    /// The library that carries the collectives, such as `nccl`.
    pub backend: Option<String>,
    /// Groups of ranks that communicate.
    pub groups: Vec<ProcessGroup>,
}

/// Ranks that communicate with each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessGroup {
    /// Its name in the framework, often a number.
    pub name: String,
    /// What it is for, where the program says: `default_pg`, `mesh_tp`, `TENSOR_MODEL_PARALLEL_GROUP`.
    pub description: String,
    /// The ranks.
    pub ranks: Vec<u32>,
    /// How many they are; a list of ranks may be cut.
    pub size: Option<u32>,
}

impl Job {
    /// Most ranks that a trace is believed to be one of: twice the largest machine there is. Every rank that is missing is named.
    pub const LARGEST_WORLD: u32 = 1 << 18;

    /// Devices that share the weights of one layer, where a group says so; 1 where the job has one rank.
    pub fn tensor_parallel(&self) -> Option<u32> {
        let words = |text: &str| -> Vec<String> {
            text.to_lowercase().split(|letter: char| !letter.is_alphanumeric()).map(str::to_owned).collect()
        };
        let is_tensor = |group: &&ProcessGroup| {
            words(&group.description).iter().chain(&words(&group.name)).any(|word| word == "tp" || word == "tensor")
        };
        let size = |group: &ProcessGroup| group.size.or_else(|| u32::try_from(group.ranks.len()).ok());
        let named = self.groups.iter().filter(is_tensor).filter_map(size).max();
        named.or(self.world_size.filter(|size| *size == 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensor_parallelism_is_what_a_group_says_and_otherwise_unknown() {
        let group = |description: &str, size| ProcessGroup {
            name: "3".to_owned(),
            description: description.to_owned(),
            ranks: Vec::new(),
            size: Some(size),
        };
        let job = |groups| Job { world_size: Some(8), groups, ..Job::default() };
        assert_eq!(job(vec![group("default_pg", 8), group("mesh_tp", 4)]).tensor_parallel(), Some(4));
        assert_eq!(job(vec![group("TENSOR_MODEL_PARALLEL_GROUP", 2)]).tensor_parallel(), Some(2));
        assert_eq!(job(vec![group("default_pg", 8)]).tensor_parallel(), None);
        assert_eq!(Job { world_size: Some(1), ..Job::default() }.tensor_parallel(), Some(1));
    }
}
