//! One clock for ranks of several hosts.
//!
//! A collective in which every rank needs something of every other ends on all of them at about the same time. Two ranks that ran
//! the same collectives in the same order therefore show, by the differences of the ends, how far their clocks are apart and how
//! they drift; what is left over is the uncertainty.

use std::collections::HashSet;

use types::{ClockBasis, Nanos, QualityCounter, Severity};

use super::facts::{CollectiveFact, RankFacts};
use crate::operators::is_exchange;
use crate::statistics::{median, percentile};

/// Fewest collectives that show an offset.
const FEWEST: usize = 3;
/// Share of calls in the overlap of two ranks that must be of the same kind.
const ALIKE: f64 = 0.9;
/// Calls looked at to find which of two ranks began recording later.
const LOOKED_AT: usize = 2_000;
/// Ends further apart than this were not one collective.
const FARTHEST: f64 = 1e6;
/// Calls that show a drift.
const FEWEST_FOR_DRIFT: usize = 12;

/// How a clock differs from that of the reference.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offset {
    /// Added to its times at `origin`.
    pub(super) ns: Nanos,
    /// Added for each nanosecond after that.
    drift: f64,
    origin: Nanos,
    /// 95% of the collectives end within this; absent where nothing shows it.
    pub(super) uncertainty: Option<Nanos>,
}

/// Clocks of all ranks.
#[derive(Debug)]
pub(super) struct Clocks {
    pub(super) basis: ClockBasis,
    offsets: Vec<Option<Offset>>,
}

impl Clocks {
    /// Brings the clocks together, starting from the first rank and going on from every rank that is reached.
    pub(super) fn new(ranks: &[RankFacts]) -> Self {
        let calls: Vec<Vec<Call<'_>>> = ranks.iter().map(|rank| symmetric(&rank.collectives)).collect();
        let mut offsets: Vec<Option<Offset>> = vec![None; ranks.len()];
        if let Some(first) = offsets.first_mut() {
            *first = Some(Offset { ns: Nanos::ZERO, drift: 0.0, origin: Nanos::ZERO, uncertainty: None });
        }
        let mut reached: Vec<usize> = (0..ranks.len().min(1)).collect();
        let mut from = 0;
        while from < reached.len() {
            let known = reached[from];
            from += 1;
            for other in 0..ranks.len() {
                if offsets[other].is_some() {
                    continue;
                }
                let both_unix = ranks[known].unix && ranks[other].unix;
                if let Some(found) = offset(&calls[known], &calls[other], both_unix) {
                    offsets[other] = offsets[known].map(|base| chain(base, found));
                    reached.push(other);
                }
            }
        }
        if reached.len() == ranks.len() && ranks.len() > 1 {
            return Self { basis: ClockBasis::Collectives, offsets };
        }
        if ranks.len() > 1 && ranks.iter().all(|rank| rank.unix) {
            let as_it_is = Offset { ns: Nanos::ZERO, drift: 0.0, origin: Nanos::ZERO, uncertainty: None };
            return Self { basis: ClockBasis::WallClock, offsets: vec![Some(as_it_is); ranks.len()] };
        }
        Self { basis: ClockBasis::None, offsets: vec![None; ranks.len()] }
    }

    pub(super) fn offset(&self, rank: usize) -> Option<Offset> {
        self.offsets[rank].filter(|_| self.basis == ClockBasis::Collectives)
    }

    /// A time of a rank on the clock of all; `None` where its clock was not brought together.
    pub(super) fn at(&self, rank: usize, time: Nanos) -> Option<Nanos> {
        self.offsets[rank].map(|offset| offset.at(time))
    }

    /// The largest uncertainty; absent where it is not known.
    pub(super) fn uncertainty(&self) -> Option<Nanos> {
        let known = self.offsets.iter().flatten().filter_map(|offset| offset.uncertainty);
        known.max().filter(|_| self.basis == ClockBasis::Collectives)
    }

    pub(super) fn quality(&self) -> Option<QualityCounter> {
        let told = |value, remedy: &str| QualityCounter {
            counter: "clocks_not_aligned".to_owned(),
            value,
            share: None,
            severity: Severity::Warning,
            remedy: remedy.to_owned(),
        };
        let ranks = self.offsets.len() as u64;
        match self.basis {
            ClockBasis::Collectives => None,
            ClockBasis::None if ranks < 2 => None,
            ClockBasis::WallClock => Some(told(
                ranks,
                "too few collectives of all ranks were recorded to bring their clocks together: hosts are taken to agree, which is \
                 not known",
            )),
            ClockBasis::None => Some(told(ranks, "no collective and no time of day ties these ranks together")),
        }
    }
}

impl Offset {
    fn at(&self, time: Nanos) -> Nanos {
        time + self.ns + Nanos::new((self.drift * (time - self.origin).get() as f64).round() as i64)
    }
}

/// The offset of a rank whose neighbour is off by `base`.
fn chain(base: Offset, found: Offset) -> Offset {
    let here = found.origin + found.ns;
    Offset {
        ns: base.at(here) - here + found.ns,
        drift: found.drift + base.drift,
        origin: found.origin,
        uncertainty: Some(base.uncertainty.unwrap_or_default() + found.uncertainty.unwrap_or_default()),
    }
}

/// A call that ends on all ranks together.
struct Call<'a> {
    name: &'a str,
    bytes: Option<u64>,
    group: Group<'a>,
    end: Nanos,
}

/// What the group is for, its size and its ranks, as far as the trace says.
type Group<'a> = (Option<&'a str>, Option<u32>, Option<&'a str>);

impl Call<'_> {
    fn is_like(&self, other: &Call<'_>) -> bool {
        let bytes = self.bytes == other.bytes || is_exchange(self.name);
        self.name == other.name && bytes && self.group == other.group
    }
}

/// Calls that none of their ranks can leave before the last has come, in order of their end.
fn symmetric(calls: &[CollectiveFact]) -> Vec<Call<'_>> {
    let one_sided = |name: &str| {
        let name = name.to_lowercase();
        ["send", "recv", "broadcast", "scatter_", "gather_"].iter().any(|word| name.contains(word))
            && !["reduce_scatter", "reducescatter", "all_gather", "allgather"].iter().any(|word| name.contains(word))
    };
    let mut calls: Vec<_> = calls
        .iter()
        .filter(|call| !one_sided(&call.name))
        .map(|call| Call {
            name: &call.name,
            bytes: call.bytes.map(|bytes| bytes.get()),
            group: (call.group.as_deref(), call.group_size, call.members.as_deref()),
            end: call.end,
        })
        .collect();
    calls.sort_by_key(|call| call.end);
    calls
}

/// How far the clock of the second is behind that of the first; `None` where they do not share enough.
fn offset(first: &[Call<'_>], second: &[Call<'_>], both_unix: bool) -> Option<Offset> {
    // Of groups that only one of them is in, nothing can be matched.
    let of_first: HashSet<Group<'_>> = first.iter().map(|call| call.group).collect();
    let of_second: HashSet<Group<'_>> = second.iter().map(|call| call.group).collect();
    let shared = |call: &&Call<'_>| of_first.contains(&call.group) && of_second.contains(&call.group);
    let first: Vec<_> = first.iter().filter(shared).collect();
    let second: Vec<_> = second.iter().filter(shared).collect();
    let shift = shift(&first, &second, both_unix)?;
    let pairs: Vec<(Nanos, f64)> = overlap(&first, &second, shift)
        .filter(|(one, two)| one.is_like(two))
        .map(|(one, two)| (two.end, (one.end - two.end).get() as f64))
        .collect();
    fitted(&pairs)
}

/// Calls of both, the second shifted by so many.
fn overlap<'a, 'b>(
    first: &'a [&'b Call<'b>],
    second: &'a [&'b Call<'b>],
    shift: isize,
) -> impl Iterator<Item = (&'b Call<'b>, &'b Call<'b>)> {
    let (skip_first, skip_second) = if shift >= 0 { (shift as usize, 0) } else { (0, shift.unsigned_abs()) };
    first.iter().skip(skip_first).copied().zip(second.iter().skip(skip_second).copied())
}

/// By how many calls the second rank began recording later: the shift at which kinds agree and ends differ most evenly.
fn shift(first: &[&Call<'_>], second: &[&Call<'_>], both_unix: bool) -> Option<isize> {
    let most = first.len().max(second.len()).min(LOOKED_AT) as isize;
    let mut best: Option<(isize, f64)> = None;
    let mut order: Vec<isize> = (-most..=most).collect();
    order.sort_by_key(|shift| shift.abs());
    for shift in order {
        let pairs: Vec<_> = overlap(first, second, shift).take(LOOKED_AT).collect();
        let alike = pairs.iter().filter(|(one, two)| one.is_like(two)).count();
        // A short overlap at the very end of both agrees by chance.
        let enough = (first.len().min(second.len()) / 2).clamp(FEWEST, LOOKED_AT);
        if pairs.len() < enough || (alike as f64) < ALIKE * pairs.len() as f64 {
            continue;
        }
        let apart: Vec<f64> = pairs.iter().map(|(one, two)| (one.end - two.end).get() as f64).collect();
        let centre = median(&apart)?;
        let spread = median(&apart.iter().map(|one| (one - centre).abs()).collect::<Vec<_>>())?;
        // Hosts agree on the time of day to a second or so; recordings that begin a step apart differ by less than that only by
        // chance, so the evenness of the ends decides first.
        let far = if both_unix { centre.abs() } else { 0.0 };
        let cost = spread + far * 1e-6;
        if best.is_none_or(|(_, least)| cost < least * 0.5) {
            best = Some((shift, cost));
        }
    }
    best.map(|(shift, _)| shift)
}

/// Offset and drift of pairs of a time and how far it is behind.
fn fitted(pairs: &[(Nanos, f64)]) -> Option<Offset> {
    if pairs.len() < FEWEST {
        return None;
    }
    let apart: Vec<f64> = pairs.iter().map(|(_, apart)| *apart).collect();
    let level = median(&apart)?;
    let origin = pairs[pairs.len() / 2].0;
    let residual = |level: f64, drift: f64| {
        let left = pairs.iter().map(|(time, apart)| (apart - level - drift * (*time - origin).get() as f64).abs());
        percentile(&left.collect::<Vec<_>>(), 0.95)
    };
    let steady = residual(level, 0.0)?;
    let mut found = (level, 0.0, steady);
    if pairs.len() >= FEWEST_FOR_DRIFT {
        let third = pairs.len() / 3;
        let of = |part: &[(Nanos, f64)]| {
            let times: Vec<f64> = part.iter().map(|(time, _)| (*time - origin).get() as f64).collect();
            let apart: Vec<f64> = part.iter().map(|(_, apart)| *apart).collect();
            Some((median(&times)?, median(&apart)?))
        };
        let ((early, before), (late, after)) = (of(&pairs[..third])?, of(&pairs[pairs.len() - third..])?);
        if late > early {
            let drift = (after - before) / (late - early);
            let levels: Vec<f64> =
                pairs.iter().map(|(time, apart)| apart - drift * (*time - origin).get() as f64).collect();
            let level = median(&levels)?;
            let left = residual(level, drift)?;
            if left < steady * 0.8 {
                found = (level, drift, left);
            }
        }
    }
    let (level, drift, left) = found;
    (left <= FARTHEST).then(|| Offset {
        ns: Nanos::new(level.round() as i64),
        drift,
        origin,
        uncertainty: Some(Nanos::new(left.ceil() as i64)),
    })
}
