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
        let counter = |name: &str, value: u64, of_rows: bool, severity, remedy: &str| QualityCounter {
            quantities: Default::default(),
            counter: name.to_owned(),
            value,
            share: (of_rows && rows > 0).then(|| value as f64 / rows as f64),
            severity,
            remedy: remedy.to_owned(),
        };
        let rewrite = "write the page again with `ncu --import FILE --csv` and do not edit it";
        let copy = "the file ends within a row; check that it is complete";
        let apart = "keep the program's output out of the file: use --log-file, or export from a report with --import";
        let language = "the numbers use another locale and may be wrong by a factor of 1000; run ncu with LC_ALL=C";
        let impossible = "negative times and sizes, and shares of a peak far above 100%, are left out; profile again, and check \
                          that the page was not edited";
        let counters = [
            counter("ncu_rows_unreadable", self.unreadable, true, Severity::Error, rewrite),
            counter("ncu_rows_cut_off", self.cut, true, Severity::Error, copy),
            counter("ncu_numbers_with_decimal_comma", self.decimal_commas, false, Severity::Error, language),
            counter("ncu_numbers_impossible", self.impossible, false, Severity::Error, impossible),
            counter("ncu_lines_foreign", self.foreign, false, Severity::Info, apart),
        ];
        counters.into_iter().filter(|counter| counter.value > 0).collect()
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
