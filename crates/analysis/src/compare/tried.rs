//! The two sides of a remedy that was tried: one run each, made of the turns they took.

use types::{
    Breakdown, Conclusions, Conditions, Metrics, PeakMemory, RunHeader, Sample, Stage, Times, Trials, TryTurn,
};

use super::RunRecords;

/// Baseline and remedy as runs of their own; `None` where the run did not try that remedy, or no turn of it ended.
pub fn try_sides(run: &RunRecords, remedy: &str) -> Option<[RunRecords; 2]> {
    let tries = &run.metrics.trials.tries;
    let tried = tries.iter().find(|one| one.remedy.to_string() == remedy && !one.turns.is_empty())?;
    let side = |baseline: bool, name: &str, peak| {
        let turns: Vec<&TryTurn> = tried.turns.iter().filter(|turn| turn.baseline == baseline).collect();
        let header = RunHeader { id: format!("{} ({name})", run.metrics.run.id), ..run.metrics.run.clone() };
        let memory = PeakMemory { allocated_bytes: peak, ..PeakMemory::default() };
        let samples = turns.iter().flat_map(|turn| samples(turn)).collect();
        // What the run measured beside its tries is of neither side.
        let metrics = Metrics {
            run: header,
            times: Times { samples, ..Times::default() },
            breakdown: Breakdown::default(),
            conclusions: Conclusions::default(),
            trials: Trials::default(),
            conditions: Conditions { memory: peak.map(|_| memory), ..Conditions::default() },
            ..run.metrics.clone()
        };
        RunRecords { metrics, ..run.clone() }
    };
    Some([side(true, "baseline", tried.baseline_peak_memory_bytes), side(false, remedy, tried.peak_memory_bytes)])
}

/// The stages of a turn.
fn samples(turn: &TryTurn) -> Vec<Sample> {
    let sample = |stage, wall_ns| Sample {
        stage,
        input: None,
        epoch: 0,
        repeat: turn.round,
        rank: None,
        warmup: false,
        wall_ns,
    };
    let decode = turn.decode_ns.map(|time| sample(Stage::Decode, time));
    [sample(Stage::Prefill, turn.prefill_ns)].into_iter().chain(decode).collect()
}
