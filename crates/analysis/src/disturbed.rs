//! Whether what was measured says more about a busy machine than about the program.

use types::{Conditions, Disturbance, Facts, InferenceDisturbance, Metrics, Remark};

/// Share of the measured inferences or runs of commands that may be disturbed before the run counts as disturbed: a
/// median hardly moves while fewer are.
const FEW: f64 = 0.2;

/// Every measured inference or run of a command that somebody looked at.
fn measured(conditions: &Conditions) -> impl Iterator<Item = &Disturbance> {
    let inferences = conditions.disturbance.iter().filter(|one| !one.warmup).map(|one| &one.disturbance);
    let commands = conditions.command.iter().chain(&conditions.commands_beside);
    let runs = commands.flat_map(|command| &command.runs).filter(|run| run.counts());
    inferences.chain(runs.filter_map(|run| run.disturbance.as_ref()))
}

/// How many measured inferences were disturbed, of how many; absent where none was.
pub(crate) fn inferences(inferences: &[InferenceDisturbance]) -> Option<[u64; 2]> {
    let measured = || inferences.iter().filter(|one| !one.warmup);
    let disturbed = measured().filter(|one| one.disturbance.is_disturbed()).count() as u64;
    (disturbed > 0).then(|| [disturbed, measured().count() as u64])
}

/// How many were disturbed, of how many; absent where nobody looked.
pub(crate) fn share(conditions: &Conditions) -> Option<[u64; 2]> {
    let count = |of: fn(&&Disturbance) -> bool| measured(conditions).filter(of).count() as u64;
    let (disturbed, all) = (count(|one| one.is_disturbed()), count(|_| true));
    (all > 0).then_some([disturbed, all])
}

/// Whether so many of all are more than a median hides.
pub(crate) fn is_much([disturbed, all]: [u64; 2]) -> bool {
    disturbed as f64 > FEW * all as f64
}

/// Why, each kind of reason once: the reasons of the first sample that has them.
pub(crate) fn causes(conditions: &Conditions) -> Vec<&str> {
    let worst = measured(conditions).max_by_key(|one| one.causes.len());
    worst.map(|one| one.causes.iter().map(String::as_str).collect()).unwrap_or_default()
}

/// That the run as a whole was disturbed; absent where it was not, or nobody looked.
pub fn verdict(metrics: &Metrics) -> Option<Remark> {
    let [disturbed, all] = share(&metrics.conditions).filter(|share| is_much(*share))?;
    let facts = Facts::new().with("disturbed", disturbed).with("all", all);
    Some(Remark::new("disturbed", facts.with("causes", causes(&metrics.conditions).join("; "))))
}
#[cfg(test)]
mod tests {
    use types::InferenceDisturbance;

    use super::*;
    use crate::{Evidence, Subject};

    fn run(disturbed: usize, all: usize) -> Metrics {
        let one = |number: usize| InferenceDisturbance {
            input: None,
            epoch: 0,
            repeat: number as u32,
            warmup: false,
            disturbance: Disturbance {
                causes: if number < disturbed { vec!["noise".to_owned()] } else { Vec::new() },
                ..Disturbance::default()
            },
        };
        let disturbance = (0..all).map(one).collect();
        crate::metrics(&Subject::default(), &Evidence { disturbance, ..Evidence::default() })
    }

    #[test]
    fn a_run_is_disturbed_when_more_than_a_fifth_of_it_is() {
        assert_eq!(verdict(&run(0, 0)), None);
        assert_eq!(verdict(&run(2, 10)), None);
        let facts = Facts::new().with("disturbed", 3_u64).with("all", 10_u64).with("causes", "noise");
        assert_eq!(verdict(&run(3, 10)), Some(Remark::new("disturbed", facts)));
        assert_eq!(share(&run(3, 10).conditions), Some([3, 10]));
    }
}
