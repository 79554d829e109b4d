//! Loads to simulate: generated, repeated from a file, or the requests of a results file.

use std::path::Path;

use forecast::serving::{self, Asked, Load, Started};
use load::{Arrivals, LONGEST, Prompt, Prompts, Schedule};
use types::{Exit, LoadArrivals, MeasuredRequest, Nanos, RequestLog, RequestRecord, RequestSource, UserError};

use crate::pipeline::load_file;
use crate::pipeline::requests::read_log;

/// The most requests of a load: every one is simulated a few dozen times.
const MOST: usize = 200_000;
/// Seconds of a load that is to show whether a server keeps up, and the fewest and the most requests of it.
const SHOWN: (f64, usize, usize) = (20.0, 200, 2_000);
/// Requests one after the other that show what a server does for one alone: where all are alike, and where they differ.
const ALONE: [usize; 2] = [20, 200];

/// A load: when its requests arrive, and what they ask for.
#[derive(Clone, Debug)]
pub struct PlannedLoad {
    arrivals: Arrivals,
    pub(super) asked: Vec<Asked>,
    pub(super) about: LoadArrivals,
    /// Tokens of a block of a prompt that others may share.
    pub(super) piece: u64,
    pub(super) started: Started,
    /// What a client measured of each request, where it sent them at these times.
    pub(super) measured: Vec<MeasuredRequest>,
    /// Requests of the file that failed and are left out.
    pub(super) failed: u64,
    seed: u64,
}

impl PlannedLoad {
    /// As `serve` would send it with this seed.
    pub fn generated(arrivals: Arrivals, prompts: &Prompts, requests: usize, seed: u64) -> Result<Self, UserError> {
        enough(requests)?;
        prompts.check(&(0..1))?;
        let asked = (0..requests).map(|index| asked(prompts, index, seed)).collect::<Result<_, _>>()?;
        let about = about(&arrivals, requests);
        let (started, measured) = (Started::Long, Vec::new());
        let planned = Self { arrivals, asked, about, piece: 0, started, measured, failed: 0, seed };
        planned.arrivals.schedule(requests, seed)?;
        Ok(planned)
    }

    /// A load file: Mooncake's JSON Lines or a table, in the order of time.
    pub fn replayed(path: &Path, most: Option<usize>, seed: u64) -> Result<Self, UserError> {
        let replay = load_file::replay(path).map_err(|error| error.exiting(Exit::Usage))?;
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
        let failed = log.requests.iter().filter(|request| request.error.is_some()).count() as u64;
        let mut requests: Vec<Recorded> = Vec::new();
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
            requests.push((time, Asked { input, output, pieces: Vec::new() }, measured(request)));
        }
        in_order(path, &log, &mut requests)?;
        let first = requests.first().map(|(time, ..)| *time);
        let first = first.ok_or_else(|| UserError::usage(format!("{name}: no request ran to its end")))?;
        enough(requests.len())?;
        let measured: Option<Vec<MeasuredRequest>> = requests.iter().map(|(.., measured)| *measured).collect();
        let measured = measured.unwrap_or_default();
        let (times, asked): (Vec<Nanos>, Vec<Asked>) =
            requests.into_iter().map(|(time, asked, _)| (time - first, asked)).unzip();
        let arrivals = Arrivals::At(times);
        let about = about(&arrivals, asked.len());
        Ok(Self { arrivals, asked, about, piece: 0, started: Started::Unknown, measured, failed, seed: 0 })
    }

    /// The requests of a file at another rate.
    pub fn at_rate(mut self, rate: f64) -> Result<Self, UserError> {
        let (Arrivals::At(times), Some(own)) = (&mut self.arrivals, self.about.rate()) else {
            return Err(UserError::usage(
                "the requests of the file all start at once, so that they have no rate to change",
            )
            .hint("--concurrency sends so many of them at a time"));
        };
        times.iter_mut().for_each(|time| *time = Nanos::new((time.get() as f64 * own / rate) as i64));
        self.about = LoadArrivals::File { per_second: Some(rate) };
        Ok(self.unmeasured())
    }

    /// The same requests, so many at a time.
    #[must_use]
    pub fn together(mut self, concurrency: usize) -> Self {
        self.arrivals = Arrivals::Closed { concurrency };
        self.about = LoadArrivals::Concurrency { requests: concurrency as u64 };
        self.unmeasured()
    }

    /// The same requests where what a client measured is not comparable: their arrivals or their server are others.
    #[must_use]
    pub fn unmeasured(mut self) -> Self {
        self.measured.clear();
        self
    }

    /// Whether a client measured these requests, at these times, on this server.
    pub fn is_measured(&self) -> bool {
        !self.measured.is_empty()
    }

    /// The load of one simulation: the first has the seed's own arrivals, every other has others of their kind.
    pub(super) fn draw(&self, index: u64) -> Load {
        self.scheduled(&self.arrivals, self.asked.clone(), index)
    }

    /// A load of this kind at so many requests a second, or at a time, long enough to show whether a server keeps up: a file that is
    /// shorter is repeated.
    pub(super) fn at(&self, level: f64, index: u64) -> Load {
        let (seconds, fewest, most) = SHOWN;
        let gamma = |burstiness| Arrivals::Gamma { rate: level, burstiness };
        let shown = ((seconds * level) as usize).clamp(fewest, most);
        let (arrivals, count) = match &self.arrivals {
            Arrivals::Closed { .. } => {
                let concurrency = level.round().max(1.0) as usize;
                (Arrivals::Closed { concurrency }, (8 * concurrency).clamp(fewest, most.max(2 * concurrency)).min(MOST))
            }
            Arrivals::At(times) => {
                let count = shown.max(self.asked.len());
                let slower = self.about.rate().unwrap_or(1.0) / level;
                (Arrivals::At(repeated(&times[..self.asked.len()], slower, count)), count)
            }
            Arrivals::Gamma { burstiness, .. } => (gamma(*burstiness), shown),
            Arrivals::Constant { .. } => (gamma(f64::INFINITY), shown),
            Arrivals::Ramp { .. } => (gamma(1.0), shown),
        };
        self.scheduled(&arrivals, self.first(count), index)
    }

    /// Its requests one after the other, as many as tell what a server does for one alone: evenly spread over the load.
    pub(super) fn alone(&self) -> Load {
        let lengths = |asked: &Asked| [asked.input, asked.output];
        let are_alike = self.asked.iter().all(|asked| lengths(asked) == lengths(&self.asked[0]));
        let apart = self.asked.len().div_ceil(ALONE[usize::from(!are_alike)]).max(1);
        let asked = self.asked.iter().step_by(apart).cloned().collect();
        Load { arrivals: serving::Arrivals::Slots(1), asked, started: self.started }
    }

    /// So many requests, the load repeated; a repeated prompt shares nothing with the ones before.
    fn first(&self, count: usize) -> Vec<Asked> {
        let again = (0u64..).flat_map(|pass| self.asked.iter().map(move |asked| (pass, asked)));
        let of = |(pass, asked): (u64, &Asked)| {
            let rename = |piece: &u64| piece.wrapping_add(pass.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            Asked { pieces: asked.pieces.iter().map(rename).collect(), ..*asked }
        };
        again.take(count).map(of).collect()
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

/// Times so many times as far apart, from the start again after the last: the pause before that is a mean one.
fn repeated(times: &[Nanos], slower: f64, count: usize) -> Vec<Nanos> {
    let last = times.last().map_or(0.0, |last| last.get() as f64);
    let period = last * times.len() as f64 / (times.len() as f64 - 1.0).max(1.0);
    let passes = (0u64..).flat_map(|pass| times.iter().map(move |time| time.get() as f64 + pass as f64 * period));
    passes.take(count).map(|time| Nanos::new((time * slower) as i64)).collect()
}

/// When a request was sent, what it asked, and what its client measured.
type Recorded = (Nanos, Asked, Option<MeasuredRequest>);

fn measured(request: &RequestRecord) -> Option<MeasuredRequest> {
    let milliseconds = |time: Nanos| time.get() as f64 / 1e6;
    Some(MeasuredRequest {
        ttft_ms: milliseconds(request.first_token()?),
        tpot_ms: request.per_token().map(|nanos| nanos / 1e6),
        e2el_ms: milliseconds(request.latency()?),
    })
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
fn in_order(path: &Path, log: &RequestLog, requests: &mut [Recorded]) -> Result<(), UserError> {
    let back = requests.windows(2).position(|pair| pair[1].0 < pair[0].0);
    match back.filter(|_| log.source == RequestSource::VllmBench) {
        Some(place) => Err(times_go_back(path, place + 2)),
        None => {
            requests.sort_by_key(|(time, ..)| *time);
            Ok(())
        }
    }
}

fn times_go_back(path: &Path, request: usize) -> UserError {
    UserError::usage(format!("{}: request {request} is sent before request {}", path.display(), request - 1))
        .hint("sort the requests by time")
}
