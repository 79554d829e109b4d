//! Between which values a counter can lie at all.
//!
//! A number outside is no measurement: a page that was edited or damaged, or a counter that overflowed. It is left out and
//! counted, because 900% of a peak in a report would be believed.

use std::ops::RangeInclusive;

use types::counter::CounterUnit;

/// Most percent of a peak. The passes of a replay differ a little, so that a counter of one divided by the cycles of another
/// may pass 100; by more than this they do not.
const MOST_OF_PEAK: f64 = 110.0;

/// What numbers of a counter may be.
pub(super) fn of(name: &str, unit: &CounterUnit) -> RangeInclusive<f64> {
    let lowest = match unit {
        CounterUnit::Nanoseconds
        | CounterUnit::Bytes
        | CounterUnit::BytesPerSecond
        | CounterUnit::Hertz
        | CounterUnit::Percent => 0.0,
        _ => f64::NEG_INFINITY,
    };
    // The largest of several units may be many times the peak of their average where one alone had work, and is no mistake.
    let is_share_of_peak =
        name.contains(".avg.pct_of_peak") || name.ends_with(" Throughput") || name.ends_with(" Occupancy");
    // Other percentages may pass 100: warps that stall for each instruction issued.
    let highest = match unit {
        CounterUnit::Percent if is_share_of_peak => MOST_OF_PEAK,
        _ => f64::INFINITY,
    };
    lowest..=highest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_a_peak_end_at_it_and_times_are_not_negative() {
        let throughput = of("sm__throughput.avg.pct_of_peak_sustained_elapsed", &CounterUnit::Percent);
        assert!(throughput.contains(&100.4) && !throughput.contains(&900.0) && !throughput.contains(&-1.0));
        assert!(!of("Achieved Occupancy", &CounterUnit::Percent).contains(&250.0));
        let stalls = "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.pct";
        assert!(of(stalls, &CounterUnit::Percent).contains(&750.0));
        // Both stand in a real capture: one block on one multiprocessor, and a sum over sizes of blocks.
        let largest = of("sm__warps_active.max.pct_of_peak_sustained_active", &CounterUnit::Percent);
        assert!(largest.contains(&412.550551));
        assert!(of("derived__pct_occupancy_per_block_size", &CounterUnit::Percent).contains(&5_543.0));
        assert!(!of("gpu__time_duration.sum", &CounterUnit::Nanoseconds).contains(&-5.0));
        assert!(of("launch__offset", &CounterUnit::Plain).contains(&-5.0));
    }
}
