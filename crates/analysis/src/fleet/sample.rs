//! Ranks made by a script that knows what is wrong with them.

use types::{Bytes, Nanos, Random};

use super::facts::{CollectiveFact, KernelFact, RankFacts};

/// What the script does to eight ranks over twenty steps, or as many as it says.
#[derive(Default)]
pub(super) struct Script {
    /// A rank that takes so much longer in each step, with more work.
    pub(super) straggler: Option<(usize, i64)>,
    /// In one of so many steps; in each where it is zero.
    pub(super) every: i64,
    /// Steps.
    pub(super) steps: Option<i64>,
    /// Ranks that are not late arrive at the same time, and not one after the other.
    pub(super) together: bool,
    /// A rank whose kernels all take so many times as long.
    pub(super) slow_device: Option<(usize, f64)>,
    /// A pair of ranks (2n and 2n + 1) whose transfers take so many times as long.
    pub(super) slow_pair: Option<(usize, f64)>,
    /// A rank whose messages in an all-to-all are so many times those of the others; without it there is none.
    pub(super) hot: Option<(usize, f64)>,
    /// How far the clock of each rank is ahead.
    pub(super) clock: Vec<i64>,
    /// How much faster it runs.
    pub(super) drift: Vec<f64>,
}

const RANKS: usize = 8;
const STEPS: i64 = 20;
const COMPUTE: i64 = 1_000_000;
const TRANSFER: i64 = 200_000;
const PAIR_TRANSFER: i64 = 50_000;

/// The small tables of all ranks.
pub(super) fn facts(script: &Script) -> Vec<RankFacts> {
    let mut random = Random::new(7);
    let mut noise = |most: i64| (random.normal().abs().min(3.0) / 3.0 * most as f64) as i64;
    let mut ranks: Vec<RankFacts> = (0..RANKS as u32)
        .map(|rank| RankFacts { rank: Some(rank), world_size: Some(RANKS as u32), unix: true, ..RankFacts::default() })
        .collect();
    let mut now = 1_700_000_000_000_000_000i64;
    let begin = now;
    let all: Vec<usize> = (0..RANKS).collect();
    for step in 0..script.steps.unwrap_or(STEPS) {
        let is_late = step % script.every.max(1) == 0;
        let mut arrivals = Vec::new();
        for (rank, facts) in ranks.iter_mut().enumerate() {
            let pace = script.slow_device.filter(|(slow, _)| *slow == rank).map_or(1.0, |(_, factor)| factor);
            let extra = script.straggler.filter(|(late, _)| is_late && *late == rank).map_or(0, |(_, extra)| extra);
            let compute = (COMPUTE as f64 * pace) as i64 + extra;
            facts.compute += Nanos::new(compute);
            arrivals.push(now + compute + if script.together { 0 } else { noise(20_000) });
        }
        // Pairs meet first, then all.
        for pair in 0..RANKS / 2 {
            let slow = script.slow_pair.filter(|(slow, _)| *slow == pair).map_or(1.0, |(_, factor)| factor);
            let end = arrivals[2 * pair].max(arrivals[2 * pair + 1]) + (PAIR_TRANSFER as f64 * slow) as i64;
            for rank in [2 * pair, 2 * pair + 1] {
                let end = end + noise(1_000);
                let group = ("pair", &[2 * pair, 2 * pair + 1][..], 1 << 20);
                ranks[rank].collectives.push(call("allreduce", group, arrivals[rank], end));
                arrivals[rank] = end + noise(5_000);
            }
        }
        if let Some((hot, factor)) = script.hot {
            let end = arrivals.iter().max().copied().unwrap_or(now) + PAIR_TRANSFER;
            for (rank, facts) in ranks.iter_mut().enumerate() {
                let bytes =
                    if rank == hot { ((1 << 20) as f64 * factor) as u64 } else { (1 << 20) + noise(1 << 14) as u64 };
                let end = end + noise(1_000);
                facts.collectives.push(call("all_to_allv", ("experts", &all[..], bytes), arrivals[rank], end));
                arrivals[rank] = end + noise(5_000);
            }
        }
        let end = arrivals.iter().max().copied().unwrap_or(now) + TRANSFER;
        for (facts, arrival) in ranks.iter_mut().zip(&arrivals) {
            let end = end + noise(1_000);
            facts.collectives.push(call("allreduce", ("world", &all[..], 1 << 26), *arrival, end));
        }
        now = end + 10_000;
    }
    for (place, rank) in ranks.iter_mut().enumerate() {
        let pace = script.slow_device.filter(|(slow, _)| *slow == place).map_or(1.0, |(_, factor)| factor);
        rank.span = Nanos::new(now - begin);
        rank.first = Nanos::new(begin);
        rank.last = Nanos::new(now);
        rank.busy = rank.span;
        rank.kernels = vec![kernel("gemm", 80_000.0 * pace, 200), kernel("softmax", 20_000.0 * pace, 200)];
        let ahead = script.clock.get(place).copied().unwrap_or(0);
        let drift = script.drift.get(place).copied().unwrap_or(0.0);
        let seen =
            |time: Nanos| Nanos::new(time.get() + ahead + (drift * (time.get() - (begin + now) / 2) as f64) as i64);
        for call in &mut rank.collectives {
            (call.start, call.end) = (seen(call.start), seen(call.end));
        }
        (rank.first, rank.last) = (seen(rank.first), seen(rank.last));
    }
    ranks
}

fn call(name: &str, (group, members, bytes): (&str, &[usize], u64), start: i64, end: i64) -> CollectiveFact {
    CollectiveFact {
        name: name.to_owned(),
        dtype: Some("Float".to_owned()),
        bytes: Some(Bytes::new(bytes)),
        group: Some(group.to_owned()),
        group_size: Some(members.len() as u32),
        members: Some(format!("{members:?}")),
        start: Nanos::new(start),
        end: Nanos::new(end),
        exposed: Nanos::new(end - start),
    }
}

fn kernel(name: &str, median: f64, calls: u64) -> KernelFact {
    KernelFact {
        name: name.to_owned(),
        short_name: name.to_owned(),
        communicates: false,
        calls,
        total: Nanos::new((median * calls as f64) as i64),
        median: Nanos::new(median as i64),
    }
}
