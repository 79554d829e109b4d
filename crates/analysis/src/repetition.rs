//! What repeats in a sequence of kernel names, found in linear time.
//!
//! A step of a program launches the same kernels in the same order as the one before it, but so does a layer of a model. The
//! longest sequence that repeats is looked for, and it is taken for a step only where something tells it from a layer: it has a
//! kernel that a layer never has, or layers repeat inside of it and nothing comes after the last one, where the head of a model
//! would follow its layers.

use std::collections::BTreeMap;

/// Names of a repeated sequence, at the least; fewer repeat by chance.
const FEWEST_NAMES: usize = 8;
/// Names of a layer inside, at the least.
const FEWEST_IN_LAYER: usize = 4;
/// How often it has to repeat.
const FEWEST_TIMES: usize = 3;
/// Names whose distances are tried: the rarest, since a step has something that it does once.
const RAREST: usize = 24;
/// How many occurrences of a name one step may have, for its distances to be tried.
const OCCURRENCES: usize = 4;

/// A sequence that repeats exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Repetition {
    /// Where the first one starts.
    pub(crate) start: usize,
    /// Names of one.
    pub(crate) length: usize,
    /// How many there are.
    pub(crate) times: usize,
    /// Whether the sequence goes on like that to its end, which may cut the next one.
    goes_on: bool,
}

impl Repetition {
    /// Where it ends.
    pub(crate) fn end(self) -> usize {
        self.start + self.length * self.times
    }
}

/// The longest sequence that repeats, of those that `covers` accepts, if it is a step: `marks` says which names only a step has.
pub(crate) fn steps(
    names: &[usize],
    covers: impl Fn(Repetition) -> bool,
    marks: impl Fn(usize) -> bool,
) -> Option<Repetition> {
    let candidates = lengths(names, FEWEST_NAMES).into_iter().rev();
    let found = candidates.filter_map(|length| longest(names, length)).find(|found| covers(*found))?;
    let one = &names[found.start..found.start + found.length];
    (one.iter().any(|name| marks(*name)) || found.goes_on && has_layers(one)).then_some(found)
}

/// Whether most of a sequence is itself a shorter one over and over.
fn has_layers(names: &[usize]) -> bool {
    let inner = lengths(names, FEWEST_IN_LAYER).into_iter().filter_map(|length| longest(names, length));
    inner
        .max_by_key(|found| found.length * found.times)
        .is_some_and(|found| found.length * found.times * 2 >= names.len())
}

/// Distances at which names come again, shortest first.
fn lengths(names: &[usize], fewest: usize) -> Vec<usize> {
    let mut places: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (place, name) in names.iter().enumerate() {
        places.entry(*name).or_default().push(place);
    }
    let mut places: Vec<_> = places.into_values().filter(|places| places.len() >= FEWEST_TIMES).collect();
    places.sort_by_key(Vec::len);
    let mut found = Vec::new();
    for places in places.iter().take(RAREST) {
        for apart in 1..=OCCURRENCES.min(places.len() - 1) {
            let mut distances: BTreeMap<usize, usize> = BTreeMap::new();
            for (one, two) in places.iter().zip(&places[apart..]) {
                *distances.entry(two - one).or_default() += 1;
            }
            let most = distances.into_iter().max_by_key(|(length, count)| (*count, std::cmp::Reverse(*length)));
            found.extend(most.map(|(length, _)| length));
        }
    }
    found.retain(|length| *length >= fewest && length * FEWEST_TIMES <= names.len());
    found.sort_unstable();
    found.dedup();
    found
}

/// The longest part of a sequence that repeats with this length and none that divides it; `None` where it repeats too seldom.
fn longest(names: &[usize], length: usize) -> Option<Repetition> {
    let (mut best, mut start) = (0..0, 0);
    for place in 0..=names.len() - length {
        let is_same = place + length < names.len() && names[place] == names[place + length];
        if !is_same {
            if place - start > best.len() {
                best = start..place;
            }
            start = place + 1;
        }
    }
    let times = if best.is_empty() { 0 } else { best.len() / length + 1 };
    let one = names.get(best.start..best.start + length)?;
    let goes_on = best.end + length == names.len();
    let is_whole = times >= FEWEST_TIMES && smallest_period(one) == length;
    is_whole.then_some(Repetition { start: best.start, length, times, goes_on })
}

/// The shortest length that a sequence is a whole number of; by the failure function of Knuth, Morris and Pratt.
fn smallest_period(names: &[usize]) -> usize {
    let mut failure = vec![0; names.len()];
    let mut matched = 0;
    for place in 1..names.len() {
        while matched > 0 && names[place] != names[matched] {
            matched = failure[matched - 1];
        }
        matched += usize::from(names[place] == names[matched]);
        failure[place] = matched;
    }
    let period = names.len() - failure.last().copied().unwrap_or(0);
    if names.len().is_multiple_of(period.max(1)) { period } else { names.len() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(text: &str, mark: char) -> Option<(usize, usize, usize)> {
        let names: Vec<usize> = text.chars().map(|letter| letter as usize).collect();
        let most = |found: Repetition| found.length * found.times * 2 >= names.len();
        let found = steps(&names, most, |name| name == mark as usize)?;
        Some((found.start, found.length, found.times))
    }

    #[test]
    fn the_step_is_found_and_not_its_layers() {
        let step = "eabcdabcdabcdhs";
        assert_eq!(found(&("xyz".to_owned() + &step.repeat(4)), '-'), Some((3, 15, 4)));
    }

    #[test]
    fn layers_of_one_pass_are_no_steps() {
        assert_eq!(found("eabcdefghabcdefghabcdefghhs", '-'), None);
        // Experts repeat inside of a layer.
        assert_eq!(found("eabcxyzwxyzwxyzwabcxyzwxyzwxyzwabcxyzwxyzwxyzwhs", '-'), None);
    }

    #[test]
    fn a_kernel_that_only_steps_have_shows_a_step_without_layers() {
        assert_eq!(found(&"abcdefgho".repeat(5), 'o'), Some((0, 9, 5)));
        assert_eq!(found(&"abcdefgho".repeat(5), '-'), None);
    }

    #[test]
    fn two_times_and_other_kernels_in_between_are_no_repetition() {
        assert_eq!(found(&"eabcdabcdabcdhs".repeat(2), '-'), None);
        assert_eq!(found("eabcdabcdabcdhs1eabcdabcdabcdhs2eabcdabcdabcdhs", '-'), None);
    }

    #[test]
    fn the_period_is_the_smallest() {
        assert_eq!(smallest_period(&[1, 2, 1, 2]), 2);
        assert_eq!(smallest_period(&[1, 2, 1]), 3);
        assert_eq!(smallest_period(&[1, 1, 1]), 1);
    }

    proptest! {
        #[test]
        fn what_is_found_repeats_exactly(
            one in proptest::collection::vec(0..12usize, 8..30),
            before in proptest::collection::vec(0..12usize, 0..10),
            times in 0..6usize,
        ) {
            let mut names = before;
            for _ in 0..times {
                names.extend(&one);
            }
            if let Some(found) = steps(&names, |_| true, |_| true) {
                prop_assert!(found.times >= 3 && found.end() <= names.len());
                let part = &names[found.start..found.end()];
                prop_assert!(part.chunks(found.length).all(|chunk| *chunk == part[..found.length]));
            }
        }
    }
}
