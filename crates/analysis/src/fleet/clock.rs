//! One clock for ranks of several hosts.
//!
//! A collective in which every rank needs something of every other ends on all of them at about the same time. Two ranks that ran
//! the same collectives in the same order therefore show, by the differences of the ends, how far their clocks are apart and how
//! they drift; what is left over is the uncertainty.

use std::collections::HashSet;

use types::{ClockBasis, Facts, Nanos, QualityCounter, Severity};

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
const FARTHEST_APART: Nanos = Nanos::new(1_000_000);
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
                let agreeing = || agreeing(&calls[known], &calls[other]).filter(|_| both_unix);
                if let Some(found) = offset(&calls[known], &calls[other], both_unix).or_else(agreeing) {
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

    pub(super) fn ranks(&self) -> usize {
        self.offsets.len()
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
        let ranks = self.offsets.len() as u64;
        let counter = QualityCounter::new("clocks_not_aligned", Severity::Warning, ranks);
        match self.basis {
            ClockBasis::Collectives => None,
            ClockBasis::None if ranks < 2 => None,
            ClockBasis::WallClock => Some(counter.facts(Facts::new().with_if("wall_clock", true))),
            ClockBasis::None => Some(counter),
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
    let pairs = overlap(&first, &second, shift).filter(|(one, two)| one.is_like(two));
    fitted(&pairs.map(ends).collect::<Vec<_>>())
}

/// Clocks that agree as they are, as the ends of most calls show although each recording may lack some.
fn agreeing(first: &[Call<'_>], second: &[Call<'_>]) -> Option<Offset> {
    let apart = |one: &Call<'_>| {
        let from = second.partition_point(|two| two.end + FARTHEST_APART < one.end);
        let near = second[from..].iter().take_while(|two| two.end <= one.end + FARTHEST_APART);
        near.filter(|two| one.is_like(two)).map(|two| (one.end - two.end).get().abs()).min()
    };
    let apart: Vec<i64> = first.iter().filter_map(apart).collect();
    if apart.len() < FEWEST || apart.len() * 2 < first.len().min(second.len()) {
        return None;
    }
    let uncertainty = apart.into_iter().max().map(Nanos::new);
    Some(Offset { ns: Nanos::ZERO, drift: 0.0, origin: Nanos::ZERO, uncertainty })
}

/// When a call ends on the second, and how far that is behind its end on the first.
type Ends = (Nanos, f64);

fn ends((one, two): (&Call<'_>, &Call<'_>)) -> Ends {
    (two.end, (one.end - two.end).get() as f64)
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
        let pairs: Vec<Ends> = pairs.into_iter().map(ends).collect();
        let steady = Line::level(&pairs)?;
        let lines = [Some(steady), Line::drifting(&pairs)];
        // Clocks that drift for a minute are further apart than steps are uneven.
        let spread = lines.iter().flatten().filter_map(|line| median(&line.left(&pairs))).min_by(f64::total_cmp)?;
        // Hosts agree on the time of day to a second or so; recordings that begin a step apart differ by less than that only by
        // chance, so the evenness of the ends decides first.
        let far = if both_unix { steady.apart.abs() } else { 0.0 };
        let cost = spread + far * 1e-6;
        if best.is_none_or(|(_, least)| cost < least * 0.5) {
            best = Some((shift, cost));
        }
    }
    best.map(|(shift, _)| shift)
}

/// How far a clock is behind over time.
#[derive(Clone, Copy)]
struct Line {
    apart: f64,
    drift: f64,
    origin: Nanos,
}

impl Line {
    /// Without a drift.
    fn level(pairs: &[Ends]) -> Option<Self> {
        let apart = median(&pairs.iter().map(|(_, apart)| *apart).collect::<Vec<_>>())?;
        Some(Self { apart, drift: 0.0, origin: pairs[pairs.len() / 2].0 })
    }

    /// With that between the first third and the last; absent where there are too few.
    fn drifting(pairs: &[Ends]) -> Option<Self> {
        let origin = pairs.get(pairs.len() / 2).filter(|_| pairs.len() >= FEWEST_FOR_DRIFT)?.0;
        let third = pairs.len() / 3;
        let of = |part: &[Ends]| {
            let times: Vec<f64> = part.iter().map(|(time, _)| (*time - origin).get() as f64).collect();
            let apart: Vec<f64> = part.iter().map(|(_, apart)| *apart).collect();
            Some((median(&times)?, median(&apart)?))
        };
        let ((early, before), (late, after)) = (of(&pairs[..third])?, of(&pairs[pairs.len() - third..])?);
        let drift = Some((after - before) / (late - early)).filter(|_| late > early)?;
        let levels: Vec<f64> =
            pairs.iter().map(|(time, apart)| apart - drift * (*time - origin).get() as f64).collect();
        Some(Self { apart: median(&levels)?, drift, origin })
    }

    /// What it leaves of each pair.
    fn left(&self, pairs: &[Ends]) -> Vec<f64> {
        let left = |(time, apart): &Ends| (apart - self.apart - self.drift * (*time - self.origin).get() as f64).abs();
        pairs.iter().map(left).collect()
    }
}

/// Offset and drift of pairs.
fn fitted(pairs: &[Ends]) -> Option<Offset> {
    if pairs.len() < FEWEST {
        return None;
    }
    let measured = |line: Line| Some((line, percentile(&line.left(pairs), 0.95)?));
    let steady = measured(Line::level(pairs)?)?;
    // A drift must explain something.
    let drifting = Line::drifting(pairs).and_then(measured).filter(|(_, left)| *left < steady.1 * 0.8);
    let (line, left) = drifting.unwrap_or(steady);
    (left <= FARTHEST_APART.get() as f64).then(|| Offset {
        ns: Nanos::new(line.apart.round() as i64),
        drift: line.drift,
        origin: line.origin,
        uncertainty: Some(Nanos::new(left.ceil() as i64)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drift_that_longer_steps_would_explain_too_is_not_taken_for_a_later_start() {
        // Steps of 452 ms, each a little longer than the one before and none quite even, on two clocks of which one is fast.
        let ends: Vec<f64> = (0..100)
            .map(|step| f64::from(step) * 452e6 + f64::from(step * step) * 113.0 + f64::from(step * 7919 % 7) * 2e3)
            .collect();
        let calls = |clock: &dyn Fn(f64) -> f64| -> Vec<Call<'static>> {
            let call = |end: &f64| Call {
                name: "allreduce",
                bytes: Some(1 << 20),
                group: (Some("tensor"), Some(2), None),
                end: Nanos::new(clock(*end).round() as i64),
            };
            ends.iter().map(call).collect()
        };
        // Forty steps later the growth of the steps hides the drift of the clock.
        let found = offset(&calls(&|time| time), &calls(&|time| time * (1.0 + 2e-5) + 4e8), false).unwrap();
        assert!((found.drift + 2e-5).abs() < 1e-8, "{found:?}");
        assert!(found.uncertainty.unwrap() <= Nanos::new(2), "{found:?}");
        assert_eq!(found.at(Nanos::new(4e8 as i64)).get().abs() / 100, 0, "{found:?}");
    }
}
