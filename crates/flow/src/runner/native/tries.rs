//! Remedies on our own engine: the first input again, with and without each, in turns.
//!
//! Both sides answer with as many tokens as there may be, so that they do the same work. What the turns tell is left to
//! `analysis`.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use analysis::TryRuns;
use analysis::statistics::median;
use engine::Threads;
use network::Model;
use network::config::ModelConfig;
use types::{DType, Nanos, OutputChange, Remedies, Remedy, RemedyKind, Stage, TryStatus, TryTurn, UserError};

use super::bench::Bench;
use super::measure::{Answer, Inference, Order, Turn};
use crate::pipeline::progress::Progress;
use crate::runner::inputs::prepare::PreparedInput;
use crate::runner::request::ProfileRequest;
use crate::runner::tries::{ROUNDS, TrySettings};

/// Rounds that make a pair of medians; more are run while there is time.
const FEWEST_ROUNDS: u32 = 5;
/// Inferences before the first turn of a remedy.
const WARM_UP: u32 = 2;
/// Why what the user did not wait for has no figures.
const STOPPED: &str = "stopped by the user";
/// Share of rounds a remedy must win to be part of the combination.
const MOST_ROUNDS: f64 = 0.75;

/// One way of running the model.
struct Variant<'a> {
    bench: Holder<'a>,
    request: ProfileRequest,
    input: PreparedInput,
    threads: Option<Threads>,
    notes: Vec<String>,
}

/// A loaded model: that of the run, or one of its own.
enum Holder<'a> {
    Shared(&'a Bench),
    Own(Box<Bench>),
}

/// Why there is no such variant.
enum Obstacle {
    /// It changes nothing here, or cannot be applied.
    Unfit(String),
    /// The user stopped it.
    Stopped,
    /// It failed.
    Failed(UserError),
}

impl From<UserError> for Obstacle {
    fn from(error: UserError) -> Self {
        Self::Failed(error)
    }
}

/// Everything tries have in common.
struct Trial<'a, 'b> {
    bench: &'a Bench,
    config: &'a ModelConfig,
    plain: Variant<'a>,
    reference: Inference,
    start: Instant,
    limit: Duration,
    progress: &'b mut dyn FnMut(Progress<'_>),
    stop: &'b dyn Fn() -> bool,
}

/// Tries every remedy, then those that won together. Where the user stops it, what was tried before is kept.
pub(crate) fn attempt(
    bench: &Bench,
    config: &ModelConfig,
    request: &ProfileRequest,
    settings: &TrySettings,
    progress: &mut dyn FnMut(Progress<'_>),
    stop: &dyn Fn() -> bool,
) -> Result<Vec<TryRuns>, UserError> {
    let wanted = settings.remedies(|| Remedy::for_native(u32::try_from(Threads::usual()).unwrap_or(u32::MAX)));
    let plain = Variant {
        bench: Holder::Shared(bench),
        request: request.clone(),
        input: bench.first(request)?,
        threads: None,
        notes: Vec::new(),
    };
    let reference = plain.run(Answer::WholeWithLogits)?;
    let mut trial =
        Trial { bench, config, plain, reference, start: Instant::now(), limit: settings.limit, progress, stop };
    let mut tries = Vec::new();
    for (done, remedies) in wanted.iter().enumerate() {
        tries.push(trial.one(remedies, done + 1, wanted.len()));
    }
    for remedies in combinations(&tries) {
        if !wanted.contains(&remedies) {
            let count = tries.len() + 1;
            tries.push(trial.one(&remedies, count, count));
        }
    }
    Ok(tries)
}

/// The best of each kind among those that won, together; and the same in the best batch.
fn combinations(tries: &[TryRuns]) -> Vec<Remedies> {
    let mut best: BTreeMap<RemedyKind, (Remedy, f64)> = BTreeMap::new();
    for one in tries {
        let single = one.remedies.single().and_then(|remedy| Some((remedy.kind()?, remedy)));
        let (Some((kind, remedy)), Some(gain)) = (single, gain(&one.turns)) else { continue };
        if best.get(&kind).is_none_or(|(_, other)| gain > *other) {
            best.insert(kind, (remedy, gain));
        }
    }
    let of = |batch: bool| best.iter().filter(move |(kind, _)| batch || **kind != RemedyKind::Batch);
    let together = |batch: bool| of(batch).map(|(_, (remedy, _))| *remedy).collect::<Vec<_>>();
    let mut found = vec![together(false), together(true)];
    found.dedup();
    found.into_iter().filter(|all| all.len() > 1).filter_map(|all| Remedies::new(all).ok()).collect()
}

/// How much faster a sequence is answered, where that is so in most rounds.
fn gain(turns: &[TryTurn]) -> Option<f64> {
    let time = |turn: &TryTurn| turn.wall_ns.get() as f64 / turn.sequences.max(1) as f64;
    let pairs = turns.iter().filter(|turn| turn.baseline).filter_map(|base| {
        let tried = turns.iter().find(|turn| !turn.baseline && turn.round == base.round)?;
        Some(time(base) / time(tried))
    });
    let ratios: Vec<f64> = pairs.collect();
    let ahead = ratios.iter().filter(|ratio| **ratio > 1.0).count();
    (ahead > 0 && ahead as f64 >= MOST_ROUNDS * ratios.len() as f64).then(|| median(&ratios)).flatten()
}

impl Trial<'_, '_> {
    fn one(&mut self, remedies: &Remedies, number: usize, total: usize) -> TryRuns {
        let ended = |status, reason: String| TryRuns::new(remedies.clone(), status, Some(reason));
        if (self.stop)() {
            return ended(TryStatus::NotReached, STOPPED.to_owned());
        }
        (self.progress)(Progress::Doing(&format!("trying {remedies} ({number} of {total})")));
        if self.start.elapsed() >= self.limit {
            let over = format!("the {} s time budget ran out", self.limit.as_secs_f64());
            return ended(TryStatus::NotReached, over);
        }
        match self.measure(remedies, total + 1 - number) {
            Ok(runs) => runs,
            Err(Obstacle::Unfit(reason)) => ended(TryStatus::NotApplicable, reason),
            Err(Obstacle::Stopped) => ended(TryStatus::NotReached, STOPPED.to_owned()),
            Err(Obstacle::Failed(error)) => ended(TryStatus::Failed, error.to_string()),
        }
    }

    fn measure(&mut self, remedies: &Remedies, left: usize) -> Result<TryRuns, Obstacle> {
        let variant = self.variant(remedies)?;
        for _ in 0..WARM_UP {
            variant.run(Answer::Whole)?;
        }
        let answer = variant.run(Answer::WholeWithLogits)?;
        let mut runs = TryRuns::new(remedies.clone(), TryStatus::Tried, None);
        runs.output = Some(compared(&self.reference, &answer));
        runs.notes.clone_from(&variant.notes);
        // Half of what is left is for the others.
        let time = self.limit.saturating_sub(self.start.elapsed()) / (2 * u32::try_from(left.max(1)).unwrap_or(1));
        let begin = Instant::now();
        for round in 0..ROUNDS {
            if round >= FEWEST_ROUNDS && begin.elapsed() > time {
                break;
            }
            if (self.stop)() {
                return Err(Obstacle::Stopped);
            }
            // Who goes first takes turns too.
            let plain_first = round % 2 == 0;
            for baseline in [plain_first, !plain_first] {
                let side = if baseline { &self.plain } else { &variant };
                runs.turns.push(turn(&side.run(Answer::Whole)?, baseline, round, side.request.infer.batch()));
            }
        }
        Ok(runs)
    }

    fn in_bf16(&self, request: &ProfileRequest) -> Result<Bench, UserError> {
        Bench::load(Model::new(self.config), self.config.vocabulary(), request, DType::Bf16)
    }

    fn variant(&self, remedies: &Remedies) -> Result<Variant<'_>, Obstacle> {
        let mut request = self.plain.request.clone();
        let (mut bench, mut threads, mut notes) = (Holder::Shared(self.bench), None, Vec::new());
        let unfit = |reason: String| Err(Obstacle::Unfit(reason));
        for remedy in remedies.iter() {
            match remedy {
                Remedy::LastLogits if request.infer.last_logits_only() => {
                    return unfit("the baseline already computes the logits of the last position only".to_owned());
                }
                Remedy::LastLogits => match request.infer.with_last_logits() {
                    Some(infer) => request.infer = infer,
                    None => return unfit("the model generates no tokens".to_owned()),
                },
                Remedy::Batch(count) if request.infer.batch() == count => {
                    return unfit(format!("the baseline already has a batch of {count}"));
                }
                Remedy::Batch(count) => {
                    request.infer = request.infer.in_batch(count);
                    notes.push("all sequences are identical".to_owned());
                }
                Remedy::Threads(count) => {
                    let usual = Threads::usual();
                    let available = std::thread::available_parallelism().map_or(usual, usize::from).max(usual);
                    if count as usize > available {
                        return unfit(format!("this process may use {available} CPUs"));
                    }
                    if count as usize == usual {
                        return unfit(format!("the baseline already uses {count} threads"));
                    }
                    threads = Some(Threads::start(count as usize).map_err(Obstacle::Unfit)?);
                }
                Remedy::Bf16Weights if self.bench.session.dtype() == DType::Bf16 => {
                    return unfit("the baseline already keeps its weights in bf16".to_owned());
                }
                Remedy::Bf16Weights => bench = Holder::Own(Box::new(self.in_bf16(&request)?)),
                other => return unfit(format!("{other} is not a remedy of this engine")),
            }
        }
        let input = bench.get().first(&request)?;
        Ok(Variant { bench, request, input, threads, notes })
    }
}

impl Holder<'_> {
    fn get(&self) -> &Bench {
        match self {
            Self::Shared(bench) => bench,
            Self::Own(bench) => bench,
        }
    }
}

impl Variant<'_> {
    fn run(&self, answer: Answer) -> Result<Inference, UserError> {
        let infer = || {
            let turn = Turn { epoch: 0, repeat: 0, warmup: false };
            let order = Order { turn, traced: false, answer, begins: &mut |_| {} };
            self.bench.get().runner(&self.request).infer(&self.input, order)
        };
        match &self.threads {
            Some(threads) => threads.run(infer),
            None => infer(),
        }
    }
}

fn turn(inference: &Inference, baseline: bool, round: u32, sequences: u32) -> TryTurn {
    let stage = |stage: Stage| inference.samples.iter().find(|one| one.stage == stage).map(|one| one.wall_ns);
    TryTurn {
        baseline,
        round,
        prefill_ns: stage(Stage::Prefill).unwrap_or(Nanos::ZERO),
        decode_ns: stage(Stage::Decode),
        wall_ns: inference.wall,
        tokens: inference.tokens.len() as u64,
        sequences: sequences.into(),
    }
}

/// Answers side by side; logits as long as both had seen the same tokens.
fn compared(reference: &Inference, answer: &Inference) -> OutputChange {
    let differs = |(one, other): (&i64, &i64)| one != other;
    let pairs = || reference.tokens.iter().zip(&answer.tokens);
    let first = pairs().position(differs);
    let same = first.map_or(usize::MAX, |first| first + 1);
    let logits = reference.logits.iter().zip(&answer.logits).take(same);
    let distances =
        logits.flat_map(|(one, other)| one.iter().zip(other).map(|(one, other)| f64::from((one - other).abs())));
    let differing = pairs().filter(|pair| differs(*pair)).count() as u64;
    let furthest = distances.reduce(f64::max).filter(|distance| distance.is_finite());
    OutputChange {
        equal: differing == 0,
        tokens: pairs().count() as u64,
        differing_tokens: differing,
        max_logit_distance: furthest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(remedy: Remedy, base: i64, tried: i64, sequences: u64) -> TryRuns {
        let turn = |baseline, round, wall, sequences| TryTurn {
            baseline,
            round,
            prefill_ns: Nanos::new(1),
            decode_ns: None,
            wall_ns: Nanos::new(wall),
            tokens: 1,
            sequences,
        };
        let rounds = (0..4).flat_map(|round| [turn(true, round, base, 1), turn(false, round, tried, sequences)]);
        TryRuns { turns: rounds.collect(), ..TryRuns::new(remedy.into(), TryStatus::Tried, None) }
    }

    #[test]
    fn the_best_of_each_kind_that_won_are_combined_and_then_in_the_best_batch() {
        let tries = [
            turns(Remedy::LastLogits, 100, 90, 1),
            turns(Remedy::Bf16Weights, 100, 70, 1),
            turns(Remedy::Threads(1), 100, 120, 1),
            turns(Remedy::Batch(2), 100, 150, 2),
            turns(Remedy::Batch(8), 100, 300, 8),
        ];
        let found: Vec<String> = combinations(&tries).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["last-logits+bf16-weights", "last-logits+bf16-weights+batch-8"]);
        // One that won alone is no combination, and neither is none.
        assert!(combinations(&tries[..1]).is_empty() && combinations(&[]).is_empty());
    }

    #[test]
    fn a_remedy_that_wins_every_other_round_did_not_win() {
        let mut runs = turns(Remedy::LastLogits, 100, 90, 1);
        runs.turns
            .iter_mut()
            .filter(|turn| !turn.baseline && turn.round % 2 == 0)
            .for_each(|turn| turn.wall_ns = Nanos::new(110));
        assert_eq!(gain(&runs.turns), None);
    }

    #[test]
    fn answers_are_compared_until_they_part() {
        let answer = |tokens: &[i64], logits: &[f32]| Inference {
            tokens: tokens.to_vec(),
            logits: logits.iter().map(|one| vec![*one, 0.0]).collect(),
            ..Inference::default()
        };
        let found = compared(&answer(&[1, 2, 3], &[1.0, 2.0, 3.0]), &answer(&[1, 5, 6], &[1.0, 2.5, 9.0]));
        // The third logits answer another text.
        assert_eq!((found.equal, found.tokens, found.differing_tokens), (false, 3, 2));
        assert_eq!(found.max_logit_distance, Some(0.5));
        let same = compared(&answer(&[1], &[1.0]), &answer(&[1], &[1.0]));
        assert!(same.equal && same.max_logit_distance == Some(0.0));
    }
}
