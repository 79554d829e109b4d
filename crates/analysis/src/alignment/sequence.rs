//! The longest common walk of a modelled and a recorded sequence, where parts of the model may repeat.
//!
//! A network's forward code applies its weights in one order; a trace records them in the order they ran. Both are
//! strings over weight shapes, and the longest common subsequence pairs them. Experts are the exception: the model lists
//! one expert, the trace as many as tokens chose, so a walk may go from the end of such a part back to its start.

use std::ops::Range;

/// Cells of the table above which two sequences are not compared: it takes a byte each.
const MOST_CELLS: usize = 1 << 28;

/// How a cell was reached.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Step {
    /// The recorded item has no partner.
    SkipRecorded,
    /// The modelled item has no partner.
    SkipModelled,
    /// Both are paired, the modelled ones before it lie behind.
    Pair,
    /// Both are paired, coming from the end of the part that starts here.
    PairAgain,
}

/// The partner of every recorded item in the model; `None` for a table too large to fill.
///
/// `again` are the parts of the model that may be walked several times; they do not overlap.
pub(crate) fn align<K: PartialEq>(
    modelled: &[K],
    again: &[Range<usize>],
    recorded: &[K],
) -> Option<Vec<Option<usize>>> {
    let columns = modelled.len() + 1;
    let cells = columns.checked_mul(recorded.len() + 1).filter(|cells| *cells <= MOST_CELLS)?;
    let mut steps = vec![Step::SkipModelled; cells];
    // Column `c` stands for "the first `c` modelled items lie behind".
    let mut before = vec![0u32; columns];
    let mut now = vec![0u32; columns];
    for (row, item) in recorded.iter().enumerate() {
        let steps = &mut steps[(row + 1) * columns..][..columns];
        now[0] = before[0];
        steps[0] = Step::SkipRecorded;
        for column in 1..columns {
            let (mut best, mut step) = (before[column], Step::SkipRecorded);
            if now[column - 1] > best {
                (best, step) = (now[column - 1], Step::SkipModelled);
            }
            if modelled[column - 1] == *item {
                if before[column - 1] + 1 > best {
                    (best, step) = (before[column - 1] + 1, Step::Pair);
                }
                if let Some(part) = again.iter().find(|part| part.start == column - 1)
                    && before[part.end] + 1 > best
                {
                    (best, step) = (before[part.end] + 1, Step::PairAgain);
                }
            }
            (now[column], steps[column]) = (best, step);
        }
        std::mem::swap(&mut before, &mut now);
    }
    Some(walk_back(&steps, columns, again, recorded.len()))
}

fn walk_back(steps: &[Step], columns: usize, again: &[Range<usize>], recorded: usize) -> Vec<Option<usize>> {
    let mut partners = vec![None; recorded];
    let (mut row, mut column) = (recorded, columns - 1);
    while row > 0 {
        match steps[row * columns + column] {
            Step::SkipRecorded => row -= 1,
            Step::SkipModelled => column -= 1,
            Step::Pair => {
                (row, column) = (row - 1, column - 1);
                partners[row] = Some(column);
            }
            Step::PairAgain => {
                row -= 1;
                partners[row] = Some(column - 1);
                column = again.iter().find(|part| part.start == column - 1).map_or(column - 1, |part| part.end);
            }
        }
    }
    partners
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const EXPERT: Range<usize> = 1..3;

    fn pairs(modelled: &str, again: &[Range<usize>], recorded: &str) -> Vec<Option<usize>> {
        align(modelled.as_bytes(), again, recorded.as_bytes()).unwrap()
    }

    #[test]
    fn equal_sequences_pair_item_by_item() {
        assert_eq!(pairs("qkvo", &[], "qkvo"), [Some(0), Some(1), Some(2), Some(3)]);
        assert_eq!(pairs("", &[], "ab"), [None, None]);
        assert_eq!(pairs("ab", &[], ""), []);
    }

    #[test]
    fn what_only_one_side_has_is_left_out() {
        assert_eq!(pairs("abcd", &[], "axbd"), [Some(0), None, Some(1), Some(3)]);
    }

    #[test]
    fn a_part_that_repeats_takes_every_turn() {
        // Gate `g`, one expert `u d`, shared expert `s`; three experts ran, the last one only half.
        let found = pairs("guds", &[EXPERT], "gududus");
        assert_eq!(found, [Some(0), Some(1), Some(2), Some(1), Some(2), Some(1), Some(3)]);
    }

    #[test]
    fn a_table_that_would_not_fit_is_refused() {
        let long = vec![0u8; 1 << 15];
        assert_eq!(align(&long, &[], &long), None);
    }

    proptest! {
        #[test]
        fn partners_are_equal_and_in_order(modelled in "[abc]{0,20}", recorded in "[abc]{0,20}") {
            let found = pairs(&modelled, &[], &recorded);
            let partners: Vec<_> = found.iter().flatten().copied().collect();
            prop_assert!(partners.windows(2).all(|pair| pair[0] < pair[1]));
            for (item, partner) in recorded.bytes().zip(found) {
                prop_assert!(partner.is_none_or(|partner| modelled.as_bytes()[partner] == item));
            }
        }

        #[test]
        fn turns_of_a_part_are_all_found(turns in 0usize..30) {
            let recorded = format!("a{}z", "bc".repeat(turns));
            let found = pairs("abcz", &[EXPERT], &recorded);
            prop_assert!(found.iter().all(Option::is_some));
        }
    }
}
