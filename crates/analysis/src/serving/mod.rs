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
mod unannotated;

use types::{
    LoadEnergy, Nanos, Objective, OffsetBasis, RequestClock, RequestJoin, RequestLog, RequestStep, RequestWork, Served,
    ServedRequest, Serving,
};

use crate::evidence::{Apart, JoinedRequests, PlacedTimeline};
use crate::pressure::Pressure;
use crate::time::{Span, Spans, unix_zero};
use membership::{Member, members};
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

/// Gives every request its steps and parts; `None` where nothing fits.
fn joined(timelines: &[PlacedTimeline<'_>], log: &RequestLog, requests: &mut [ServedRequest]) -> Result<Found, Apart> {
    let (steps, timeline) = ServerSteps::of(timelines).ok_or(Apart::NoSteps)?;
    let arrivals = Arrival::of_log(log, steps.one_token_each());
    let known = match log.clock {
        RequestClock::Epoch => unix_zero(timelines[timeline].timeline).map(|zero| Nanos::ZERO - zero),
        RequestClock::Monotonic | RequestClock::Unknown => None,
    };
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
    let division = Division::new(&steps);
    let placed = arrivals.iter().zip(&members).filter(|(_, members)| !members.is_empty());
    let rows =
        placed.map(|(arrival, members)| (arrival, members.as_slice(), division.parts(arrival, members, found.ns)));
    let joined = Joined { steps: &steps, division: &division, rows: rows.collect(), offset: found.ns };
    for (arrival, members, parts) in &joined.rows {
        let request = &mut requests[arrival.index];
        request.parts = Some(*parts);
        request.steps = members.iter().map(|member| request_step(&steps, member)).collect();
    }
    let due = |(arrival, members): (&Arrival, &Vec<Member>)| {
        let first = members.first().filter(|member| member.work == RequestWork::Prefill)?;
        Some(steps.list[first.place].host.start - arrival.due)
    };
    let quickest = offset::quick_return(&steps, &arrivals, &found.placed, found.ns).unwrap_or_default();
    let during = |arrival: &&Arrival| {
        let (due, end) = (arrival.due + found.ns, arrival.chunks.last().copied().unwrap_or_default() + found.ns);
        due < steps.end() && end > steps.start()
    };
    let slack = match found.basis {
        OffsetBasis::SameClock => Nanos::ZERO,
        OffsetBasis::Fitted => quickest,
    };
    let join = RequestJoin {
        offset_ns: found.ns,
        offset_low_ns: found.ns - slack,
        offset_high_ns: arrivals
            .iter()
            .zip(&members)
            .filter_map(due)
            .min()
            .map_or(found.ns, |latest| latest.max(found.ns)),
        basis: found.basis,
        requests: members.iter().filter(|members| !members.is_empty()).count() as u64,
        requests_in_trace: arrivals.iter().filter(during).count() as u64,
        tokens: found.placed.iter().flatten().map(|placement| placement.steps.len() as u64).sum(),
        steps: steps.list.len() as u64,
        steps_agreeing: (!steps.unannotated).then(|| Places::new(&steps).agreeing(&found.placed) as u64),
    };
    let without = without_requests(&steps, log, found.ns);
    Ok(Found { join, without, timeline, pressure: joined.pressure() })
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

#[cfg(test)]
mod tests {
    use super::recorded::Recorded;
    use super::simulated::{Server, Simulated};
    use super::*;

    /// Tokens in the right step, all tokens, and how far the clock is off.
    fn joined(simulated: &Simulated, known: Option<Nanos>, moved: i64) -> (u64, u64, i64) {
        let Simulated { steps, log, truth, .. } = simulated;
        let mut log = log.clone();
        for record in &mut log.requests {
            record.due_ns = record.due_ns.map(|due| due - Nanos::new(moved));
        }
        let arrivals = Arrival::of_log(&log, steps.one_token_each());
        let found = offset::offset(steps, &arrivals, known).unwrap();
        let members = members(steps, &arrivals, &found.placed, found.ns);
        let division = Division::new(steps);
        let (mut right, mut all) = (0, 0);
        for (request, truth) in truth.iter().enumerate() {
            for (place, tokens, work) in truth {
                all += tokens;
                let same = |member: &&Member| member.place == *place && member.work == *work;
                right += members[request].iter().find(same).map_or(0, |member| member.tokens.min(*tokens));
            }
            let parts = division.parts(&arrivals[request], &members[request], found.ns);
            assert_eq!(Some(parts.sum()), log.requests[request].latency());
        }
        (right, all, found.ns.get() - moved)
    }

    fn assert_joined(server: Server, known: bool, least: f64) -> Simulated {
        let simulated = server.run();
        let moved = if known { 0 } else { 1_700_000_000_000_000_000 };
        let (right, all, off) = joined(&simulated, known.then_some(Nanos::ZERO), moved);
        assert!(right as f64 >= least * all as f64, "{right} of {all}: {server:?}");
        assert!(off.abs() <= 200_000, "{off} ns");
        simulated
    }

    #[test]
    fn survey() {
        let base = Server::default();
        let cases: &[(&str, Server)] = &[
            ("base", base),
            ("chunk 64", Server { budget: 64, interval_us: 120_000, ..base }),
            ("chunk 512", Server { budget: 512, interval_us: 40_000, ..base }),
            ("chunk 8192", Server { budget: 8192, longest: (4000, 60), interval_us: 60_000, ..base }),
            ("prefixes", Server { prefixes: 70, ..base }),
            ("prefixes chunked", Server { prefixes: 70, budget: 256, interval_us: 50_000, ..base }),
            ("preempt", Server { cache: 3_000, ..base }),
            ("preempt prefixes", Server { cache: 3_000, prefixes: 50, ..base }),
            ("ahead", Server { ahead: true, ..base }),
            ("ahead chunk", Server { ahead: true, budget: 256, interval_us: 60_000, ..base }),
            ("ahead preempt", Server { ahead: true, cache: 3_000, ..base }),
            ("shortest", Server { shortest_first: true, seats: 8, ..base }),
            ("shortest chunk", Server { shortest_first: true, seats: 8, budget: 256, interval_us: 60_000, ..base }),
            ("batch 1", Server { seats: 1, interval_us: 300_000, ..base }),
            ("batch 1 busy", Server { seats: 1, interval_us: 100_000, ..base }),
            ("batch 4", Server { seats: 4, interval_us: 60_000, ..base }),
            ("replicas", Server { replicas: 2, ..base }),
            ("interval 4", Server { interval: 4, ..base }),
            ("interval 10", Server { interval: 10, longest: (900, 200), interval_us: 60_000, ..base }),
            ("drafts 3", Server { drafts: 3, longest: (900, 200), ..base }),
            ("drafts 1", Server { drafts: 1, longest: (900, 200), ..base }),
            ("drafts 3 ahead", Server { drafts: 3, ahead: true, longest: (900, 200), ..base }),
            ("strangers 5", Server { strangers: 5, ..base }),
            ("strangers 30", Server { strangers: 30, ..base }),
            ("apart", Server { apart: true, ..base }),
            ("slow way", Server { way_back_us: (14_000, 4_000), ..base }),
            ("long outputs", Server { longest: (200, 400), interval_us: 100_000, ..base }),
            ("overload", Server { interval_us: 5_000, seats: 32, ..base }),
        ];
        for (name, server) in cases {
            for seed in 0..3 {
                let server = Server { seed, ..*server };
                let simulated = server.run();
                let Simulated { steps, log, truth, .. } = &simulated;
                let mut line = String::new();
                for (annotated, known) in [(true, true), (true, false), (false, true), (false, false)] {
                    let steps = if annotated { steps.clone() } else { bare(steps) };
                    let arrivals = Arrival::of_log(log, steps.one_token_each());
                    let known = known.then_some(Nanos::ZERO);
                    let found = match annotated {
                        true => offset::offset(&steps, &arrivals, known).map(|found| (steps, found)),
                        false => unannotated::inferred(&steps, &arrivals, known),
                    };
                    let Some((steps, found)) = found else {
                        line += "      refused       |";
                        continue;
                    };
                    let members = members(&steps, &arrivals, &found.placed, found.ns);
                    let (tokens, sequences) = right(truth, &members);
                    let placed: usize = members.iter().map(Vec::len).sum();
                    let all: usize = truth.iter().map(Vec::len).sum();
                    line += &format!(" {:5.1} {:5.1} {:5.1} {:5.2} |", 100.0 * tokens, 100.0 * sequences, 100.0 * placed as f64 / all as f64, found.ns.as_millis());
                }
                eprintln!("{name:18} {:4} steps {} |{line}", simulated.steps.list.len(), simulated.preemptions);
            }
        }
    }

    #[test]
    fn every_token_is_in_its_step() {
        for seed in 0..8 {
            assert_joined(Server { seed, ..Server::default() }, false, 0.99);
        }
    }

    #[test]
    fn prompts_in_chunks_are_in_all_their_steps() {
        for seed in 0..8 {
            assert_joined(Server { seed, budget: 256, interval_us: 60_000, ..Server::default() }, false, 0.99);
        }
    }

    #[test]
    fn preempted_requests_are_processed_again() {
        let mut preemptions = 0;
        for seed in 0..8 {
            preemptions += assert_joined(Server { seed, cache: 3_000, ..Server::default() }, false, 0.97).preemptions;
        }
        assert!(preemptions > 20, "{preemptions}");
    }

    #[test]
    fn output_that_comes_steps_late_belongs_to_its_step_all_the_same() {
        for seed in 0..4 {
            assert_joined(Server { seed, way_back_us: (14_000, 4_000), ..Server::default() }, true, 0.97);
        }
    }

    /// Tokens in the right step of a load on vLLM, as shares: with the clock known, and with it moved; and how far that is off then.
    fn recorded(bytes: &[u8]) -> (Recorded, [f64; 2], i64) {
        let recorded = Recorded::read(bytes);
        let joined = |moved: i64, known: Option<Nanos>| {
            let mut log = recorded.log.clone();
            log.requests.iter_mut().for_each(|one| one.due_ns = one.due_ns.map(|due| due - Nanos::new(moved)));
            let arrivals = Arrival::of_log(&log, true);
            let found = offset::offset(&recorded.steps, &arrivals, known).unwrap();
            let members = members(&recorded.steps, &arrivals, &found.placed, found.ns);
            let (mut right, mut all) = (0, 0);
            for (place, step) in recorded.truth.iter().enumerate() {
                for (request, tokens) in step {
                    let found = members[*request].iter().find(|member| member.place == place);
                    right += found.map_or(0, |found| found.tokens.min(*tokens));
                    all += tokens;
                }
            }
            (right as f64 / all as f64, found.ns.get() - moved)
        };
        let ((known, _), (fitted, off)) = (joined(0, Some(Nanos::ZERO)), joined(1_700_000_000_000_000_000, None));
        (recorded, [known, fitted], off)
    }

    #[test]
    fn tokens_of_loads_on_vllm_are_in_the_steps_that_its_scheduler_chose() {
        for (bytes, least) in [
            (&include_bytes!("../../tests/data/serving/dense.json.gz")[..], 1.0),
            (include_bytes!("../../tests/data/serving/chunk.json.gz"), 1.0),
            (include_bytes!("../../tests/data/serving/eager.json.gz"), 1.0),
            (include_bytes!("../../tests/data/serving/slow-scheduler.json.gz"), 1.0),
            (include_bytes!("../../tests/data/serving/deeper.json.gz"), 1.0),
            // Requests of equal length that arrive together are told apart only by luck.
            (include_bytes!("../../tests/data/serving/padded.json.gz"), 0.98),
        ] {
            let (_, right, off) = recorded(bytes);
            assert!(right.iter().all(|share| *share >= least), "{right:?}");
            // Output of a busy server takes longer than is assumed, that of one without graphs 0.27 ms less.
            assert!((-2_000_000..=280_000).contains(&off), "{off} ns");
        }
    }

    /// The steps without what the engine says of them.
    fn bare(steps: &ServerSteps) -> ServerSteps {
        let mut steps = ServerSteps { unannotated: true, ..steps.clone() };
        steps.list.iter_mut().for_each(|step| (step.context, step.generation) = Default::default());
        steps
    }

    #[test]
    fn steps_that_nothing_annotates_are_known_by_when_output_arrives() {
        for (bytes, least, most) in [
            (&include_bytes!("../../tests/data/serving/dense.json.gz")[..], 0.98, 0.03),
            (include_bytes!("../../tests/data/serving/chunk.json.gz"), 0.94, 0.05),
            (include_bytes!("../../tests/data/serving/eager.json.gz"), 0.99, 0.001),
            (include_bytes!("../../tests/data/serving/slow-scheduler.json.gz"), 0.97, 0.02),
            (include_bytes!("../../tests/data/serving/deeper.json.gz"), 0.99, 0.01),
            (include_bytes!("../../tests/data/serving/padded.json.gz"), 0.98, 0.02),
            (include_bytes!("../../tests/data/serving/preemption.json.gz"), 0.97, 0.01),
            // Prompts in two to four steps.
            (include_bytes!("../../tests/data/serving/unannotated.json.gz"), 0.8, 0.15),
            // Prompts in steps of their own.
            (include_bytes!("../../tests/data/serving/apart.json.gz"), 0.97, 0.1),
        ] {
            let Recorded { steps, log, truth, .. } = Recorded::read(bytes);
            let arrivals = Arrival::of_log(&log, true);
            let parts = |steps: &ServerSteps, members: &[Vec<Member>]| -> Vec<_> {
                let division = Division::new(steps);
                let rows = arrivals.iter().zip(members);
                rows.map(|(arrival, members)| division.parts(arrival, members, Nanos::ZERO)).collect()
            };
            let known = offset::offset(&steps, &arrivals, Some(Nanos::ZERO)).unwrap();
            let annotated = parts(&steps, &members(&steps, &arrivals, &known.placed, Nanos::ZERO));
            for clock in [Some(Nanos::ZERO), None] {
                let (steps, found) = unannotated::inferred(&bare(&steps), &arrivals, clock).unwrap();
                let members = members(&steps, &arrivals, &found.placed, Nanos::ZERO);
                let (mut right, mut all) = (0, 0);
                for (place, step) in truth.iter().enumerate() {
                    for (request, tokens) in step {
                        let found = members[*request].iter().find(|member| member.place == place);
                        right += found.map_or(0, |found| found.tokens.min(*tokens));
                        all += tokens;
                    }
                }
                assert!(right as f64 >= least * all as f64, "{right} of {all}");
                let off = annotated.iter().zip(parts(&steps, &members)).map(|(one, other)| {
                    let apart = one
                        .named()
                        .into_iter()
                        .zip(other.named())
                        .map(|((_, one), (_, other))| (one - other).get().abs());
                    apart.max().unwrap() as f64 / one.sum().get() as f64
                });
                let mut off: Vec<_> = off.collect();
                off.sort_by(f64::total_cmp);
                assert!(off[off.len() * 95 / 100] <= most, "{off:?}");
            }
        }
    }

    #[test]
    fn prompts_in_chunks_are_found_in_steps_that_nothing_annotates() {
        for seed in 0..3 {
            let Simulated { steps, log, truth, .. } = Server { seed, budget: 256, interval_us: 60_000, ..Server::default() }.run();
            let arrivals = Arrival::of_log(&log, true);
            let (steps, found) = unannotated::inferred(&bare(&steps), &arrivals, None).unwrap();
            assert!(found.ns.get().abs() < 200_000, "{}", found.ns);
            let members = members(&steps, &arrivals, &found.placed, found.ns);
            let chunks = |member: &&Member| member.work == RequestWork::Prefill;
            let found: usize = members.iter().map(|members| members.iter().filter(chunks).count()).sum();
            let all: usize = truth.iter().flatten().filter(|(.., work)| *work == RequestWork::Prefill).count();
            assert!((0.85..1.05).contains(&(found as f64 / all as f64)), "{found} of {all}");
        }
    }

    /// Shares of tokens and of the sequences of steps that are found in the right step.
    fn right(truth: &[Vec<(usize, u64, RequestWork)>], members: &[Vec<Member>]) -> (f64, f64) {
        let (mut tokens, mut all_tokens, mut sequences, mut all) = (0, 0, 0, 0);
        for (steps, members) in truth.iter().zip(members) {
            for (place, count, _) in steps {
                let found = members.iter().find(|member| member.place == *place);
                tokens += found.map_or(0, |found| found.tokens.min(*count));
                sequences += u64::from(found.is_some());
                (all_tokens, all) = (all_tokens + count, all + 1);
            }
        }
        (tokens as f64 / all_tokens as f64, sequences as f64 / all as f64)
    }

    #[test]
    fn steps_in_which_nothing_decodes_are_found() {
        // Of tokens fewer are right where prompts take several steps.
        for (seed, budget, way_back_us, longest, least) in [
            (0, 2_048, (1_100, 900), (900, 60), 0.99),
            (1, 512, (1_100, 900), (900, 60), 0.8),
            (2, 8_192, (300, 3_000), (4_000, 200), 0.8),
            (3, 2_048, (2_500, 2_500), (100, 60), 0.95),
            (4, 2_048, (5_500, 2_500), (100, 60), 0.95),
        ] {
            let server = Server { seed, apart: true, budget, way_back_us, longest, ..Server::default() };
            let Simulated { steps, log, truth, .. } = server.run();
            let arrivals = Arrival::of_log(&log, true);
            let (steps, found) = unannotated::inferred(&bare(&steps), &arrivals, None).unwrap();
            let members = members(&steps, &arrivals, &found.placed, found.ns);
            let (tokens, sequences) = right(&truth, &members);
            assert!(tokens >= least && sequences >= 0.99, "{seed}: {tokens}, {sequences}");
        }
    }

    #[test]
    fn requests_of_another_run_fit_no_steps_that_nothing_annotates() {
        let all = [
            &include_bytes!("../../tests/data/serving/dense.json.gz")[..],
            include_bytes!("../../tests/data/serving/eager.json.gz"),
            include_bytes!("../../tests/data/serving/slow-scheduler.json.gz"),
            include_bytes!("../../tests/data/serving/padded.json.gz"),
        ];
        let all = all.map(Recorded::read);
        for (place, one) in all.iter().enumerate() {
            for other in all.iter().enumerate().filter(|(other, _)| *other != place).map(|(_, other)| other) {
                let arrivals = Arrival::of_log(&other.log, true);
                assert!(unannotated::inferred(&bare(&one.steps), &arrivals, None).is_none());
            }
        }
    }

    #[test]
    fn requests_that_vllm_preempts_are_found_again() {
        let (recorded, right, off) = recorded(include_bytes!("../../tests/data/serving/preemption.json.gz"));
        assert_eq!(recorded.preemptions, 24);
        assert!(right.iter().all(|share| *share >= 0.99), "{right:?}");
        assert!((-2_000_000..=200_000).contains(&off), "{off} ns");
    }

    /// What held the requests of a recorded load up.
    fn held_up(bytes: &[u8]) -> Pressure {
        let Recorded { steps, log, .. } = Recorded::read(bytes);
        let arrivals = Arrival::of_log(&log, true);
        let found = offset::offset(&steps, &arrivals, Some(Nanos::ZERO)).unwrap();
        let members = members(&steps, &arrivals, &found.placed, found.ns);
        let division = Division::new(&steps);
        let rows = arrivals.iter().zip(&members).map(|(arrival, members)| {
            let parts = division.parts(arrival, members, found.ns);
            assert_eq!(Some(parts.sum()), log.requests[arrival.index].latency());
            (arrival, members.as_slice(), parts)
        });
        Joined { steps: &steps, division: &division, rows: rows.collect(), offset: found.ns }.pressure()
    }

    #[test]
    fn a_small_cache_preempts_and_large_prompts_interrupt() {
        let share = |part: Nanos, pressure: &Pressure| part.get() as f64 / pressure.latency.get() as f64;
        let cache = held_up(include_bytes!("../../tests/data/serving/preemption.json.gz"));
        assert!((20..=28).contains(&cache.preempted.times), "{:?}", cache.preempted);
        assert!(share(cache.queue.time + cache.preempted.time, &cache) > 0.4, "{cache:?}");
        let prompts = held_up(include_bytes!("../../tests/data/serving/chunk.json.gz"));
        assert!((0.05..0.3).contains(&share(prompts.interrupted.time, &prompts)), "{:?}", prompts.interrupted);
        assert_eq!((prompts.preempted.requests, prompts.interrupted.requests > 10), (0, true));
        assert!(prompts.interrupted.mixed_step > prompts.interrupted.decode_step);
        // The scheduler sleeps for 2 ms before each step.
        let slow = held_up(include_bytes!("../../tests/data/serving/slow-scheduler.json.gz"));
        assert!((0.45..0.55).contains(&share(slow.between.time, &slow)), "{:?}", slow.between);
        assert!(slow.between.median.is_some_and(|time| time > Nanos::new(2_000_000)), "{:?}", slow.between);
        let deeper = held_up(include_bytes!("../../tests/data/serving/deeper.json.gz"));
        assert!(share(deeper.between.time, &deeper) < 0.05, "{:?}", deeper.between);
        // The others are not held up like this.
        let padded = held_up(include_bytes!("../../tests/data/serving/padded.json.gz"));
        assert!(share(padded.interrupted.time, &padded) < 0.05 && padded.preempted.requests == 0, "{padded:?}");
    }

    #[test]
    fn a_count_of_tokens_that_cannot_be_is_not_believed() {
        let mut log = Server::default().run().log;
        log.requests[0].output_tokens = Some(u64::MAX);
        let arrivals = Arrival::of_log(&log, true);
        assert!(arrivals[0].outputs <= 64 * arrivals[0].chunks.len());
        assert_eq!(Some(arrivals[1].outputs as u64), log.requests[1].output_tokens);
    }

    #[test]
    fn requests_of_another_run_fit_nowhere() {
        let (one, other) = (Server::default().run(), Server { seed: 99, ..Server::default() }.run());
        let arrivals = Arrival::of_log(&other.log, true);
        assert!(offset::offset(&one.steps, &arrivals, None).is_none());
    }
}
