//! Layers in a sequence of names, where nothing but their repetition shows them.

use std::ops::Range;

/// Names of a layer, at the least: a decoder has four GEMMs that wait for each other (into the heads, out of them, up,
/// down), and fewer names repeat by chance.
const FEWEST: usize = 4;
/// Longest sequence looked at. The time it takes grows with the square.
const LONGEST: usize = 1 << 14;

/// The layer, from zero, of each name of a sequence that is something, `count` layers of the same names in the same order,
/// and something else. `None` unless exactly that is found: with one layer more or less, with one name changed, where the
/// layers are less than half of the sequence, or where they could be of two lengths, nothing is claimed.
///
/// What comes before the first layer may end like a layer ends, and what comes after the last start like one: then where
/// layers start is not certain, and names that would change their layer have none.
pub(super) fn layers<T: PartialEq>(sequence: &[T], count: usize) -> Option<Vec<Option<usize>>> {
    if count < 2 || sequence.len() > LONGEST {
        return None;
    }
    let lengths = (FEWEST.max(sequence.len() / (2 * count))..=sequence.len() / count)
        .filter(|length| 2 * count * length > sequence.len());
    let mut found = lengths.filter_map(|length| Some((length, repeated(sequence, length, count)?)));
    let (length, run) = found.next().filter(|_| found.next().is_none())?;
    let spare = run.len() - count * length;
    let part = &sequence[run.clone()];
    let is_shorter = |shorter: usize| length.is_multiple_of(shorter) && part[shorter..] == part[..part.len() - shorter];
    // More layers than the model has: one more of these, or several shorter ones in each.
    if spare >= length || (1..length).any(is_shorter) {
        return None;
    }
    let layer = |place: usize| {
        let first = place.checked_sub(run.start + spare)? / length;
        let last = (place - run.start) / length;
        (first == last && last < count).then_some(last)
    };
    Some((0..sequence.len()).map(layer).collect())
}

/// The part of a sequence that repeats with a period of `length`, `count` times or more often.
fn repeated<T: PartialEq>(sequence: &[T], length: usize, count: usize) -> Option<Range<usize>> {
    let is_same = |place: usize| sequence[place] == sequence[place + length];
    let mut start = 0;
    let last = sequence.len() - length;
    while start < last {
        let end = (start..last).find(|place| !is_same(*place)).unwrap_or(last);
        let run = start..end + length;
        if run.len() >= count * length {
            return Some(run);
        }
        start = end + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(sequence: &str, count: usize) -> Option<String> {
        let letters: Vec<char> = sequence.chars().collect();
        let shown = |layer: &Option<usize>| layer.map_or('.', |layer| char::from(b'0' + layer as u8));
        layers(&letters, count).map(|found| found.iter().map(shown).collect())
    }

    #[test]
    fn layers_between_something_else_are_numbered() {
        assert_eq!(found("eabcdabcdabcdhs", 3).as_deref(), Some(".000011112222.."));
        assert_eq!(found("abcdabcd", 2).as_deref(), Some("00001111"));
    }

    #[test]
    fn another_number_of_layers_or_one_other_name_is_no_match() {
        assert_eq!(found("eabcdabcdabcdhs", 2), None);
        assert_eq!(found("eabcdabcdabcdhs", 4), None);
        assert_eq!(found("eabcdabxdabcdhs", 3), None);
        assert_eq!(found("eabcdabcdabcdhs", 1), None);
        assert_eq!(found("", 2), None);
    }

    #[test]
    fn names_that_could_be_of_two_layers_are_of_none() {
        // Behind the last layer stands its first name once more: a final norm, or a first layer that starts later.
        assert_eq!(found("eabcdabcdabcdahs", 3).as_deref(), Some("..000.111.222..."));
    }

    #[test]
    fn few_names_and_a_small_part_of_the_sequence_are_chance() {
        assert_eq!(found("abcabcabc", 3), None, "three names");
        assert_eq!(found("abcdabcdqwertyuio", 2), None, "eight of seventeen");
        assert_eq!(found("aaaaaaaa", 2), None, "repeats with any period");
    }

    proptest! {
        #[test]
        fn what_is_claimed_is_what_was_put_together(
            before in proptest::collection::vec(0..9u8, 0..6),
            layer in proptest::collection::vec(0..9u8, 4..12),
            after in proptest::collection::vec(0..9u8, 0..6),
            count in 2..7usize,
        ) {
            let mut sequence = before.clone();
            for _ in 0..count {
                sequence.extend(&layer);
            }
            sequence.extend(&after);
            for (place, found) in layers(&sequence, count).into_iter().flatten().enumerate() {
                if let Some(found) = found {
                    let truth = place.checked_sub(before.len()).map(|place| place / layer.len());
                    prop_assert_eq!(Some(found), truth, "at {} of {:?}", place, sequence);
                }
            }
        }
    }
}
