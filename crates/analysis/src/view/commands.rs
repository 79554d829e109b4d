//! Commands that were measured, beside each other.

use types::view::{CommandRunView, CommandView};
use types::{CommandFacts, CommandRun, Metrics, Nanos, Statistics};

use super::time_share;

/// The commands of a run, in the order given.
pub(super) fn commands(metrics: &Metrics) -> Vec<CommandView<'_>> {
    let all: Vec<&CommandFacts> =
        metrics.conditions.command.iter().chain(&metrics.conditions.commands_beside).collect();
    let fastest = all
        .iter()
        .filter(|_| all.len() > 1)
        .filter_map(|facts| facts.wall_ms)
        .min_by(|one, other| one.mean.total_cmp(&other.mean));
    all.iter().map(|facts| command(facts, fastest)).collect()
}

fn command<'a>(facts: &'a CommandFacts, fastest: Option<Statistics>) -> CommandView<'a> {
    // The ratio of two means, and how far their standard deviations let it vary (first order).
    let relative = fastest.zip(facts.wall_ms).map(|(fastest, own)| {
        let ratio = own.mean / fastest.mean;
        let spread = own.std.zip(fastest.std).filter(|_| own != fastest);
        (ratio, spread.map(|(own_std, std)| ratio * (own_std / own.mean).hypot(std / fastest.mean)))
    });
    CommandView {
        facts,
        runs: facts.runs.iter().map(|run| CommandRunView { run, core_share: core_share(run) }).collect(),
        measured: facts.runs.iter().filter(|run| !run.warmup).count() as u64,
        cpu_mean: cpu_mean(&facts.runs),
        relative: relative.filter(|(ratio, _)| ratio.is_finite()),
    }
}

fn core_share(run: &CommandRun) -> Option<f64> {
    time_share(run.user_ns + run.system_ns, run.wall_ns)
}

fn cpu_mean(runs: &[CommandRun]) -> Option<[Nanos; 2]> {
    let counted: Vec<_> = runs.iter().filter(|run| run.counts()).collect();
    let count = i64::try_from(counted.len()).ok().filter(|count| *count > 0)?;
    let mean =
        |of: fn(&CommandRun) -> Nanos| Nanos::new(counted.iter().map(|run| of(run)).sum::<Nanos>().get() / count);
    Some([mean(|run| run.user_ns), mean(|run| run.system_ns)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Evidence, Subject};

    #[test]
    fn commands_stand_relative_to_the_fastest() {
        let facts = |mean, std| {
            let times = Statistics { mean, std: Some(std), median: mean, mad: None, min: mean, max: mean, n: 3 };
            let command = format!("sleep {mean}");
            CommandFacts { command, runs: Vec::new(), wall_ms: Some(times), start_cost_ns: None }
        };
        let mut metrics = crate::metrics(&Subject::default(), &Evidence::default());
        metrics.conditions.command = Some(facts(30.0, 3.0));
        assert_eq!(commands(&metrics)[0].relative, None, "alone");
        metrics.conditions.commands_beside = vec![facts(10.0, 1.0)];
        let found: Vec<_> = commands(&metrics).iter().map(|one| one.relative.unwrap()).collect();
        // 3 times as long; both vary by a tenth, so the ratio does by sqrt(2) tenths.
        assert!((found[0].0 - 3.0).abs() < 1e-12 && (found[0].1.unwrap() - 0.3 * 2f64.sqrt()).abs() < 1e-12);
        assert_eq!(found[1], (1.0, None));
    }
}
