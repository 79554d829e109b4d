//! Requests of a load joined to the steps of the server that served them, without ids.
//!
//! Engines say how many sequences and tokens every step has, never whose; clients say when output arrived, never from which
//! step. `server_steps` are the former, `placing` finds the step of every output, `offset` the clock, `membership` the prompts, and
//! `parts` divides every latency by what the server did meanwhile. Where an engine does not say what its steps process, `unannotated`
//! infers it.

mod cold;
pub(crate) mod composition;
mod improving;
pub(crate) mod latency;
mod membership;
mod offset;
mod parts;
mod placing;
mod pressure;
#[cfg(test)]
mod recorded;
mod server_steps;
#[cfg(test)]
mod simulated;
#[cfg(test)]
mod tests;
mod unannotated;

use types::{
    LoadEnergy, Nanos, Objective, OffsetBasis, RequestClock, RequestJoin, RequestLog, RequestStep, RequestWork, Served,
    ServedRequest, Serving,
};

use crate::evidence::{Apart, JoinedRequests, PlacedTimeline};
use crate::pressure::Pressure;
use crate::time::{Span, Spans, unix_zero};
use membership::{Member, members};
use offset::Offset;
use parts::Division;
use placing::{Arrival, Places};
use pressure::Joined;
use server_steps::ServerSteps;

impl JoinedRequests {
    /// Requests of which nothing is known but what their client saw.
    pub fn of_client(log: &RequestLog, objective: Option<&Objective>) -> Self {
        join(log, objective, &[])
    }

    /// The same, recorded beside a load without a profiler: its latencies are the server's.
    #[must_use]
    pub fn beside(mut self, plain: &RequestLog, objective: Option<&Objective>) -> Self {
        if let Some(serving) = &mut self.served.serving {
            let recorded = std::mem::replace(&mut serving.load, latency::load(plain, objective));
            serving.recorded = Some(recorded);
        }
        self.cold = cold::cold(plain);
        self
    }

    /// With what the GPUs took while the load ran that its latencies are of.
    #[must_use]
    pub fn with_energy(mut self, energy: Option<LoadEnergy>) -> Self {
        if let Some(load) = self.served.serving.as_mut().map(|serving| &mut serving.load) {
            load.energy = energy;
            let tokens = load.output_throughput.map(|_| load.output_tokens);
            load.joules_per_output_token = energy.zip(tokens).and_then(|(energy, tokens)| energy.joules.per(tokens));
        }
        self
    }
}

/// Joins requests to the steps of the first timeline that has any; without steps they stand for themselves.
pub fn join(log: &RequestLog, objective: Option<&Objective>, timelines: &[PlacedTimeline<'_>]) -> JoinedRequests {
    let mut requests: Vec<_> = log.requests.iter().map(served_request).collect();
    let joined = joined(timelines, log, &mut requests);
    let parts = requests.iter().filter_map(|request| request.parts).reduce(|sum, parts| sum + parts);
    let mut all = JoinedRequests::default();
    let join = match joined {
        Ok(Found { join, without, timeline, pressure }) => {
            all = JoinedRequests { without, timeline, pressure: Some(pressure), ..all };
            Some(join)
        }
        Err(apart) => {
            all.apart = Some(apart);
            None
        }
    };
    let load = latency::load(log, objective);
    let serving = Serving { source: log.source, clock: log.clock, load, recorded: None, join, parts };
    all.served = Served { serving: Some(serving), requests };
    all.cold = cold::cold(log);
    all
}

/// What a join comes to.
struct Found {
    join: RequestJoin,
    without: Option<Spans>,
    timeline: usize,
    pressure: Pressure,
}

fn served_request(record: &types::RequestRecord) -> ServedRequest {
    ServedRequest {
        id: record.id.clone(),
        due_ns: record.due_ns,
        ttft_ns: record.first_token(),
        latency_ns: record.latency(),
        input_tokens: record.input_tokens,
        output_tokens: record.output_tokens,
        error: record.error.clone(),
        parts: None,
        steps: Vec::new(),
    }
}

/// Requests where they are in the steps of their server.
struct Fitted {
    steps: ServerSteps,
    arrivals: Vec<Arrival>,
    found: Offset,
    /// Per arrival: its steps; none where it fits nowhere.
    members: Vec<Vec<Member>>,
}

impl Fitted {
    /// Finds the offset of the clocks, unless it is known, and the steps of every request.
    fn new(steps: ServerSteps, log: &RequestLog, known: Option<Nanos>) -> Result<Self, Apart> {
        let arrivals = Arrival::of_log(log, &steps);
        if arrivals.is_empty() {
            return Err(Apart::NoTimes);
        }
        let (steps, found) = match steps.unannotated {
            true => unannotated::inferred(&steps, &arrivals, known).ok_or(Apart::Unannotated)?,
            false => {
                let found = offset::offset(&steps, &arrivals, known).ok_or(Apart::NothingFits)?;
                (steps, found)
            }
        };
        let members = members(&steps, &arrivals, &found.placed, found.ns);
        Ok(Self { steps, arrivals, found, members })
    }

    /// With the parts of every request that has steps.
    fn divided<'a>(&'a self, division: &'a Division<'a>) -> Joined<'a> {
        let offset = self.found.ns;
        let placed = self.arrivals.iter().zip(&self.members).filter(|(_, members)| !members.is_empty());
        let rows = placed.map(|(one, members)| (one, members.as_slice(), division.parts(one, members, offset)));
        Joined { steps: &self.steps, division, rows: rows.collect(), offset }
    }

    fn quality(&self) -> RequestJoin {
        let Self { steps, arrivals, found, members } = self;
        let due = |(arrival, members): (&Arrival, &Vec<Member>)| {
            let first = members.first().filter(|member| member.work == RequestWork::Prefill)?;
            Some(steps.list[first.place].host.start - arrival.due)
        };
        let latest = arrivals.iter().zip(members).filter_map(due).min();
        let during = |arrival: &&Arrival| {
            let (due, end) = (arrival.due + found.ns, arrival.chunks.last().copied().unwrap_or_default() + found.ns);
            due < steps.end() && end > steps.start()
        };
        let slack = match found.basis {
            OffsetBasis::SameClock => Nanos::ZERO,
            OffsetBasis::Fitted => {
                offset::quick_return(steps, arrivals, &found.placed, found.ns, ServerSteps::emitted).unwrap_or_default()
            }
        };
        RequestJoin {
            offset_ns: found.ns,
            offset_low_ns: found.ns - slack,
            offset_high_ns: latest.map_or(found.ns, |latest| latest.max(found.ns)),
            basis: found.basis,
            requests: members.iter().filter(|members| !members.is_empty()).count() as u64,
            requests_in_trace: arrivals.iter().filter(during).count() as u64,
            tokens: found.placed.iter().flatten().map(|placement| placement.steps.len() as u64).sum(),
            steps: steps.list.len() as u64,
            steps_agreeing: (!steps.unannotated).then(|| Places::new(steps).agreeing(&found.placed) as u64),
        }
    }
}

/// Gives every request its steps and parts.
fn joined(timelines: &[PlacedTimeline<'_>], log: &RequestLog, requests: &mut [ServedRequest]) -> Result<Found, Apart> {
    if timelines.iter().any(|placed| placed.timeline.graphs_only) {
        return Err(Apart::GraphsOnly);
    }
    let (steps, timeline) = ServerSteps::of(timelines)?;
    let known = match log.clock {
        RequestClock::Epoch => unix_zero(timelines[timeline].timeline).map(|zero| Nanos::ZERO - zero),
        RequestClock::Monotonic | RequestClock::Unknown => None,
    };
    let fitted = Fitted::new(steps, log, known)?;
    let division = Division::new(&fitted.steps);
    let joined = fitted.divided(&division);
    for (arrival, members, parts) in &joined.rows {
        let request = &mut requests[arrival.index];
        request.parts = Some(*parts);
        request.steps = members.iter().map(|member| request_step(&fitted.steps, member)).collect();
    }
    let without = without_requests(&fitted.steps, log, fitted.found.ns);
    Ok(Found { join: fitted.quality(), without, timeline, pressure: joined.pressure() })
}

/// When no request was due and unanswered, while the server was recorded. A request without an end, or without a beginning, may
/// have been there at any time.
fn without_requests(steps: &ServerSteps, log: &RequestLog, offset: Nanos) -> Option<Spans> {
    let life = |record: &types::RequestRecord| {
        let due = record.due_ns? + offset;
        Some(Span::new(due, due + record.end_ns.max(record.latency())?))
    };
    let lives = log.requests.iter().map(life).collect::<Option<Vec<_>>>()?;
    Some(Spans::union(lives).gaps(Span::new(steps.start(), steps.end())))
}

fn request_step(steps: &ServerSteps, member: &Member) -> RequestStep {
    RequestStep { step: steps.list[member.place].index, tokens: member.tokens, work: member.work }
}
