//! Which process of a distributed run this is, as its launcher says.

/// Variables of launchers: rank and number of ranks. torchrun first, because it may itself be started by another.
const LAUNCHERS: [[&str; 2]; 4] = [
    ["RANK", "WORLD_SIZE"],
    ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"],
    ["PMI_RANK", "PMI_SIZE"],
    ["SLURM_PROCID", "SLURM_NTASKS"],
];

/// One process of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rank {
    /// Its number, from zero.
    pub rank: u32,
    /// How many there are; more than one.
    pub world: u32,
}

impl Rank {
    /// This process; `None` where it is on its own.
    pub fn of_this_process() -> Option<Self> {
        Self::find(|name| std::env::var(name).ok())
    }

    fn find(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let number = |name: &str| variable(name)?.trim().parse().ok();
        let found = LAUNCHERS.into_iter().find_map(|[rank, world]| Some((number(rank)?, number(world)?)));
        found.filter(|(rank, world)| *world > 1 && rank < world).map(|(rank, world)| Self { rank, world })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(set: &[(&str, &str)]) -> Option<Rank> {
        Rank::find(|name| set.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn every_launcher_is_understood() {
        for [rank, world] in LAUNCHERS {
            assert_eq!(with(&[(rank, "1"), (world, "4")]), Some(Rank { rank: 1, world: 4 }), "{rank}");
        }
    }

    #[test]
    fn a_process_on_its_own_has_no_rank() {
        assert_eq!(with(&[]), None);
        assert_eq!(with(&[("RANK", "0"), ("WORLD_SIZE", "1")]), None);
        assert_eq!(with(&[("SLURM_PROCID", "0")]), None);
        assert_eq!(with(&[("RANK", "4"), ("WORLD_SIZE", "4")]), None);
        assert_eq!(with(&[("RANK", "x"), ("WORLD_SIZE", "4")]), None);
    }
}
