//! What of a page could not be read, as quality counters.

use types::{QualityCounter, Severity};

/// Rows and lines by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// Rows that were read.
    pub(super) read: u64,
    /// Rows of the table that could not be read.
    pub(super) unreadable: u64,
    /// The row at the end of the file, where it is cut off.
    pub(super) cut: u64,
    /// Lines behind the header that are no part of the table.
    pub(super) foreign: u64,
    /// Numbers with a comma before their decimals.
    pub(super) decimal_commas: u64,
    /// Numbers that no device can have counted.
    pub(super) impossible: u64,
}

impl Tally {
    /// The counters that are not zero.
    pub(super) fn counters(self) -> Vec<QualityCounter> {
        let rows = self.read + self.unreadable + self.cut;
        let of_rows = |counter: Option<QualityCounter>| counter.map(|counter| counter.of(rows));
        let counters = [
            of_rows(QualityCounter::some("ncu_rows_unreadable", Severity::Error, self.unreadable)),
            of_rows(QualityCounter::some("ncu_rows_cut_off", Severity::Error, self.cut)),
            QualityCounter::some("ncu_numbers_with_decimal_comma", Severity::Error, self.decimal_commas),
            QualityCounter::some("ncu_numbers_impossible", Severity::Error, self.impossible),
            QualityCounter::some("ncu_lines_foreign", Severity::Info, self.foreign),
        ];
        counters.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_happened_is_counted_and_rows_have_a_share() {
        assert_eq!(Tally { read: 3, ..Tally::default() }.counters(), []);
        let counters = Tally { read: 3, cut: 1, foreign: 2, ..Tally::default() }.counters();
        let seen: Vec<_> = counters.iter().map(|c| (c.counter.as_str(), c.value, c.share)).collect();
        assert_eq!(seen, [("ncu_rows_cut_off", 1, Some(0.25)), ("ncu_lines_foreign", 2, None)]);
    }
}
