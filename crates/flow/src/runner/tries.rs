//! Which remedies a run tries, and for how long.

use std::time::Duration;

use collect::tool::torch::TriesRequest;
use types::{Remedies, Remedy, UserError};

/// Rounds of both sides, at most: enough for an interval, few enough to try a dozen remedies.
pub(crate) const ROUNDS: u32 = 10;

/// What to try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrySettings {
    /// These; absent: whatever the engine can apply.
    pub chosen: Option<Vec<Remedies>>,
    /// Time for all of it.
    pub limit: Duration,
}

impl TrySettings {
    /// Refuses remedies that another engine has.
    pub(crate) fn check(&self, engine: &str) -> Result<(), UserError> {
        let mut all = self.chosen.iter().flatten().flat_map(Remedies::iter);
        match all.find(|remedy| !remedy.engines().contains(&engine)) {
            Some(remedy) => Err(UserError::usage(format!(
                "remedy `{remedy}` requires the {} engine, but this run uses {engine}",
                remedy.engines().join(" and ")
            ))
            .hint(format!("try the remedies of the {engine} engine with --try auto"))),
            None => Ok(()),
        }
    }

    /// What is chosen, else all of these.
    pub(crate) fn remedies(&self, all: impl FnOnce() -> Vec<Remedy>) -> Vec<Remedies> {
        self.chosen.clone().unwrap_or_else(|| all().into_iter().map(Remedies::from).collect())
    }

    /// In the driver's words.
    pub(crate) fn for_driver(&self) -> TriesRequest {
        let remedies = self.remedies(Remedy::for_torch);
        let kinds = remedies.iter().flat_map(Remedies::iter).filter_map(|one| Some((one.to_string(), one.kind()?)));
        TriesRequest {
            rounds: ROUNDS,
            limit_s: self.limit.as_secs_f64(),
            kinds: kinds.collect(),
            remedies: remedies.iter().map(|one| one.iter().collect()).collect(),
            combine: true,
        }
    }
}
