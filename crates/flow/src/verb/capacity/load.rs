//! Loads to simulate: generated, repeated from a file, or the requests of a results file.

use std::path::Path;

use forecast::serving::{self, Asked, Load, Started};
use load::{Arrivals, LONGEST, Prompt, Prompts, Schedule};
use types::{Exit, LoadArrivals, Nanos, RequestLog, RequestSource, UserError};

use crate::pipeline::load_file;
use crate::pipeline::requests::read_log;

/// The most requests of a load: every one is simulated a few dozen times.
const MOST: usize = 1_000_000;
/// Seconds of a load that is to show whether a server keeps up, and the fewest and the most requests of it.
const SHOWN: (f64, usize, usize) = (20.0, 200, 2_000);
/// Requests one after the other that show what a server does for one alone.
const ALONE: usize = 20;

/// A load: when its requests arrive, and what they ask for.
#[derive(Clone, Debug)]
pub struct PlannedLoad {
    arrivals: Arrivals,
    pub(super) asked: Vec<Asked>,
    pub(super) about: LoadArrivals,
    /// Tokens of a block of a prompt that others may share.
    pub(super) piece: u64,
    pub(super) started: Started,
    seed: u64,
}

impl PlannedLoad {
    /// As `serve` would send it with this seed.
    pub fn generated(arrivals: Arrivals, prompts: &Prompts, requests: usize, seed: u64) -> Result<Self, UserError> {
        enough(requests)?;
        prompts.check(&(0..1))?;
        let asked = (0..requests).map(|index| asked(prompts, index, seed)).collect::<Result<_, _>>()?;
        let about = about(&arrivals, requests);
        let planned = Self { arrivals, asked, about, piece: 0, started: Started::Long, seed };
        planned.arrivals.schedule(requests, seed)?;
        Ok(planned)
    }

    /// A load file: Mooncake's JSON Lines or a table, in the order of time.
    pub fn replayed(path: &Path, most: Option<usize>, seed: u64) -> Result<Self, UserError> {
        let replay = load_file::replay(path)?;
        if let Some(request) = replay.disordered {
            return Err(times_go_back(path, request));
        }
        let requests = most.map_or(replay.requests, |most| most.min(replay.requests));
        let planned = Self::generated(replay.arrivals, &replay.prompts, requests, seed)?;
        Ok(Self { piece: load::BLOCK as u64, ..planned })
    }

    /// The requests of a results file: when they were sent and how long they were.
    pub fn recorded(path: &Path) -> Result<Self, UserError> {
        let log = read_log(path).map_err(|error| error.exiting(Exit::Usage))?;
        let name = path.display().to_string();
        let mut requests: Vec<(Nanos, Asked)> = Vec::new();
        for (place, request) in (1..).zip(&log.requests).filter(|(_, request)| request.error.is_none()) {
            let lacks = |what: &str| UserError::usage(format!("{name}: request {place} does not say {what}"));
            let time = request.due_ns.or(request.sent_ns).ok_or_else(|| {
                lacks("when it was sent").hint("give a load with --rate, --input and --output instead")
            })?;
            let tokens = |count: Option<u64>, what: &str| {
                let count = count.ok_or_else(|| lacks(&format!("how many tokens its {what} has")))?;
                let fits = (1..=u64::from(LONGEST)).contains(&count);
                fits.then_some(count).ok_or_else(|| {
                    UserError::usage(format!("{name}: request {place} has {count} tokens of {what}"))
                        .hint(format!("lengths are from 1 to {LONGEST} tokens"))
                })
            };
            let (input, output) = (tokens(request.input_tokens, "prompt")?, tokens(request.output_tokens, "output")?);
            requests.push((time, Asked { input, output, pieces: Vec::new() }));
        }
        in_order(path, &log, &mut requests)?;
        let first = requests.first().map(|(time, _)| *time);
        let first = first.ok_or_else(|| UserError::usage(format!("{name}: no request ran to its end")))?;
        enough(requests.len())?;
        let (times, asked): (Vec<Nanos>, Vec<Asked>) =
            requests.into_iter().map(|(time, asked)| (time - first, asked)).unzip();
        let arrivals = Arrivals::At(times);
        let about = about(&arrivals, asked.len());
        Ok(Self { arrivals, asked, about, piece: 0, started: Started::Unknown, seed: 0 })
    }

    /// The load of one simulation: the first has the seed's own arrivals, every other has others of their kind.
    pub(super) fn draw(&self, index: u64) -> Load {
        self.scheduled(&self.arrivals, self.asked.clone(), index)
    }

    /// A load of this kind at so many requests a second, or at a time, long enough to show whether a server keeps up.
    pub(super) fn at(&self, level: f64, index: u64) -> Load {
        let (seconds, fewest, most) = SHOWN;
        let gamma = |burstiness| Arrivals::Gamma { rate: level, burstiness };
        let (arrivals, count) = match &self.arrivals {
            Arrivals::Closed { .. } => {
                let concurrency = level.round().max(1.0) as usize;
                (Arrivals::Closed { concurrency }, (8 * concurrency).clamp(fewest, most.max(2 * concurrency)))
            }
            Arrivals::At(times) => {
                let slower = self.rate().unwrap_or(1.0) / level;
                let scaled = |time: &Nanos| Nanos::new((time.get() as f64 * slower) as i64);
                (Arrivals::At(times.iter().map(scaled).collect()), self.asked.len())
            }
            Arrivals::Gamma { burstiness, .. } => {
                (gamma(*burstiness), ((seconds * level) as usize).clamp(fewest, most))
            }
            Arrivals::Constant { .. } => (gamma(f64::INFINITY), ((seconds * level) as usize).clamp(fewest, most)),
            Arrivals::Ramp { .. } => (gamma(1.0), ((seconds * level) as usize).clamp(fewest, most)),
        };
        let asked = self.asked.iter().cycle().take(count).cloned().collect();
        self.scheduled(&arrivals, asked, index)
    }

    /// A few of its requests, one after the other.
    pub(super) fn alone(&self) -> Load {
        let asked = self.asked.iter().take(ALONE).cloned().collect();
        Load { arrivals: serving::Arrivals::Slots(1), asked, started: self.started }
    }

    /// Requests a second; absent for a load of so many at a time, or all at once.
    pub(super) fn rate(&self) -> Option<f64> {
        match self.about {
            LoadArrivals::Rate { per_second } | LoadArrivals::File { per_second } => per_second,
            LoadArrivals::Ramp { from, to } => Some((from + to) / 2.0),
            LoadArrivals::Concurrency { .. } => None,
        }
    }

    fn scheduled(&self, arrivals: &Arrivals, asked: Vec<Asked>, index: u64) -> Load {
        let micros = |times: Vec<Nanos>| times.iter().map(|time| time.get() as f64 / 1e3).collect();
        let arrivals = match arrivals.schedule(asked.len(), self.seed.wrapping_add(index)) {
            Ok(Schedule::Slots(slots)) => serving::Arrivals::Slots(slots),
            Ok(Schedule::Due(times)) => serving::Arrivals::Due(micros(times)),
            // Checked when the load was made.
            Err(_) => serving::Arrivals::Due(vec![0.0; asked.len()]),
        };
        Load { arrivals, asked, started: self.started }
    }
}

fn enough(requests: usize) -> Result<(), UserError> {
    if (1..=MOST).contains(&requests) {
        return Ok(());
    }
    Err(UserError::usage(format!("a load must have from 1 to {MOST} requests, not {requests}")))
}

fn asked(prompts: &Prompts, index: usize, seed: u64) -> Result<Asked, UserError> {
    let ask = prompts.ask(index, seed);
    let (length, pieces) = match &ask.prompt {
        Prompt::Random(length) => (*length, Vec::new()),
        Prompt::Blocks { hashes, length } => (*length, hashes.clone()),
        Prompt::Text(_) | Prompt::Chat { .. } => {
            return Err(UserError::usage("the tokens of text prompts are not known")
                .hint("give their lengths with --input, or a load file with them"));
        }
    };
    Ok(Asked { input: length.into(), output: ask.max_tokens.into(), pieces })
}

/// How a schedule is described.
fn about(arrivals: &Arrivals, requests: usize) -> LoadArrivals {
    let finite = |rate: f64| Some(rate).filter(|rate| rate.is_finite());
    match arrivals {
        Arrivals::Closed { concurrency } => LoadArrivals::Concurrency { requests: *concurrency as u64 },
        Arrivals::Constant { rate } | Arrivals::Gamma { rate, .. } => LoadArrivals::Rate { per_second: finite(*rate) },
        Arrivals::Ramp { from, to, .. } => LoadArrivals::Ramp { from: *from, to: *to },
        Arrivals::At(times) => {
            let seconds = times.get(requests - 1).map_or(0.0, |last| last.as_seconds().get());
            LoadArrivals::File { per_second: finite((requests - 1) as f64 / seconds).filter(|rate| *rate > 0.0) }
        }
    }
}

/// Puts requests in the order of sending. `vllm bench serve` lists them in that order itself; others list them as they end.
fn in_order(path: &Path, log: &RequestLog, requests: &mut [(Nanos, Asked)]) -> Result<(), UserError> {
    let back = requests.windows(2).position(|pair| pair[1].0 < pair[0].0);
    match back.filter(|_| log.source == RequestSource::VllmBench) {
        Some(place) => Err(times_go_back(path, place + 2)),
        None => {
            requests.sort_by_key(|(time, _)| *time);
            Ok(())
        }
    }
}

fn times_go_back(path: &Path, request: usize) -> UserError {
    UserError::usage(format!("{}: request {request} is sent before request {}", path.display(), request - 1))
        .hint("sort the requests by time")
}
