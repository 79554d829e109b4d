//! Which inputs every epoch runs.

use std::collections::{BTreeMap, BTreeSet};
use types::UserError;

use super::prepare::PreparedInput;
use super::{Input, Inputs, SamplingSettings, choose};

/// What is run: the inputs of every epoch, by index, and each of them prepared.
pub(crate) struct InputPlan {
    pub(crate) epochs: Vec<Vec<usize>>,
    pub(crate) prepared: BTreeMap<usize, PreparedInput>,
}

impl InputPlan {
    /// The epochs and the inputs, numbered from zero without gaps.
    pub(crate) fn numbered(self) -> (Vec<Vec<usize>>, Vec<PreparedInput>) {
        let numbers: BTreeMap<usize, usize> = self.prepared.keys().enumerate().map(|(new, old)| (*old, new)).collect();
        let renumbered = |epoch: &Vec<usize>| epoch.iter().map(|old| numbers[old]).collect();
        (self.epochs.iter().map(renumbered).collect(), self.prepared.into_values().collect())
    }
}

/// The inputs of every epoch, prepared. One that turns out to be broken is left out, and the choice made again.
pub(crate) fn plan(
    sampling: &SamplingSettings,
    inputs: &mut Inputs,
    mut prepare: impl FnMut(&mut Input) -> Result<PreparedInput, UserError>,
) -> Result<InputPlan, UserError> {
    let mut prepared = BTreeMap::new();
    loop {
        let usable = inputs.usable()?;
        let epochs: Vec<Vec<usize>> = (0..sampling.epochs).map(|epoch| choose(sampling, &usable, epoch)).collect();
        let chosen: BTreeSet<usize> = epochs.iter().flatten().copied().collect();
        let mut broken = false;
        for index in &chosen {
            if prepared.contains_key(index) {
                continue;
            }
            let input = &mut inputs.all[*index];
            match prepare(input) {
                Ok(one) => {
                    prepared.insert(*index, one);
                }
                Err(error) => {
                    input.problem = Some(error.to_string());
                    broken = true;
                }
            }
        }
        if !broken {
            prepared.retain(|index, _| chosen.contains(index));
            for index in prepared.keys() {
                inputs.all[*index].used = true;
            }
            return Ok(InputPlan { epochs, prepared });
        }
    }
}
