//! By which rule the values of kernels become the value of a region.
//!
//! Counts, bytes, cycles and times add up. Rates, shares and ratios do not: they are means over the time the device spent,
//! because a kernel of a millisecond says more about a region than one of a microsecond. Extremes stay extremes, and
//! properties of a launch or of the device are shown by their largest.

use types::RollUp;
use types::counter::CounterUnit;

/// Endings of counters that are rates or shares, whatever they count.
const RATES: [&str; 8] =
    ["per_second", "per_cycle_active", "per_cycle_elapsed", "pct", "ratio", "max_rate", "per_cycle_in_frame", "pct_"];

/// The rule of a counter of the raw page.
pub(super) fn of_counter(name: &str, unit: &CounterUnit) -> RollUp {
    let mut parts = name.split('.');
    let base = parts.next().unwrap_or_default();
    let suffixes: Vec<&str> = parts.collect();
    if suffixes.iter().any(|part| part.starts_with("peak_sustained")) || base.starts_with("device__") {
        return RollUp::Max;
    }
    if suffixes.iter().any(|part| RATES.iter().any(|rate| part.starts_with(rate))) || is_rate(unit) {
        return RollUp::TimeWeightedMean;
    }
    if base.starts_with("launch__") {
        return if base.contains("waves") { RollUp::TimeWeightedMean } else { RollUp::Max };
    }
    match suffixes.first() {
        // The mean over the units of the chip: per unit, the counts of kernels add up as well.
        Some(&"sum" | &"avg") => RollUp::Sum,
        Some(&"max") => RollUp::Max,
        Some(&"min") => RollUp::Min,
        _ => match unit {
            CounterUnit::Bytes | CounterUnit::Nanoseconds => RollUp::Sum,
            _ => RollUp::TimeWeightedMean,
        },
    }
}

/// Words of metrics on the details page that count something and add up.
const COUNTED: [&str; 4] = ["inst", "cycle", "ns", "byte"];

/// The rule of a metric of the details page, where names are titles.
pub(super) fn of_title(name: &str, unit: &CounterUnit) -> RollUp {
    if name.contains("__") {
        return of_counter(name, unit);
    }
    let is_limit =
        ["Theoretical ", "Block Limit", "Max "].iter().any(|word| name.starts_with(word)) || name.contains(" Maximum ");
    if is_rate(unit) {
        return if is_limit && *unit != CounterUnit::Percent { RollUp::Max } else { RollUp::TimeWeightedMean };
    }
    // Instructions of a scheduler on average over the schedulers add up like those of all of them.
    let is_average = name.starts_with("Avg. ") && unit.to_string() == "inst";
    let is_ratio = name.contains(" Per ") || name.contains("Avg. ") || name.contains(" per ");
    if is_average {
        return RollUp::Sum;
    }
    let is_property = name.contains("Size") || name.contains("Shared Memory") || is_limit;
    if is_property || matches!(&*unit.to_string(), "block" | "thread" | "register/thread" | "byte/block") {
        return RollUp::Max;
    }
    let is_counted = COUNTED.contains(&&*unit.to_string());
    let is_mean = is_ratio || unit.to_string() == "warp";
    if !is_mean && is_counted {
        return RollUp::Sum;
    }
    let is_limit = name.starts_with('#') || name.starts_with("Uses ") || name == "Stack Size";
    if !is_mean && is_limit { RollUp::Max } else { RollUp::TimeWeightedMean }
}

fn is_rate(unit: &CounterUnit) -> bool {
    match unit {
        CounterUnit::Percent | CounterUnit::Hertz | CounterUnit::BytesPerSecond => true,
        CounterUnit::Other(unit) => unit.ends_with("/cycle") || unit.ends_with("/s") || unit.starts_with("%/"),
        CounterUnit::Plain | CounterUnit::Bytes | CounterUnit::Nanoseconds => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_add_shares_weigh_by_time_and_extremes_stay() {
        let other = |unit: &str| CounterUnit::Other(unit.into());
        let cases = [
            ("dram__bytes.sum", CounterUnit::Bytes, RollUp::Sum),
            ("dram__bytes.avg", CounterUnit::Bytes, RollUp::Sum),
            ("dram__bytes.sum.per_second", CounterUnit::BytesPerSecond, RollUp::TimeWeightedMean),
            ("gpu__time_duration.sum", CounterUnit::Nanoseconds, RollUp::Sum),
            ("gpu__time_duration.max", CounterUnit::Nanoseconds, RollUp::Max),
            ("sm__cycles_elapsed.min", other("cycle"), RollUp::Min),
            ("sm__throughput.avg.pct_of_peak_sustained_elapsed", CounterUnit::Percent, RollUp::TimeWeightedMean),
            ("sm__warps_active.avg.pct_of_peak_sustained_active", CounterUnit::Percent, RollUp::TimeWeightedMean),
            ("dram__bytes.sum.peak_sustained", other("byte/cycle"), RollUp::Max),
            ("sm__ops_path_tensor_src_fp64.sum", CounterUnit::Plain, RollUp::Sum),
            ("smsp__inst_executed.sum.per_cycle_elapsed", other("inst/cycle"), RollUp::TimeWeightedMean),
            ("launch__registers_per_thread", other("register/thread"), RollUp::Max),
            ("launch__occupancy_limit_warps", other("block"), RollUp::Max),
            ("launch__waves_per_multiprocessor", CounterUnit::Plain, RollUp::TimeWeightedMean),
            ("device__attribute_sass_level", CounterUnit::Plain, RollUp::Max),
        ];
        for (name, unit, rule) in cases {
            assert_eq!(of_counter(name, &unit), rule, "{name}");
        }
    }

    #[test]
    fn titles_of_sections_follow_the_same_rules() {
        let other = |unit: &str| CounterUnit::Other(unit.into());
        let cases = [
            ("Duration", CounterUnit::Nanoseconds, RollUp::Sum),
            ("Elapsed Cycles", other("cycle"), RollUp::Sum),
            ("SM Frequency", CounterUnit::Hertz, RollUp::TimeWeightedMean),
            ("Memory Throughput", CounterUnit::Percent, RollUp::TimeWeightedMean),
            ("Memory Throughput", CounterUnit::BytesPerSecond, RollUp::TimeWeightedMean),
            ("Achieved Occupancy", CounterUnit::Percent, RollUp::TimeWeightedMean),
            ("Theoretical Occupancy", CounterUnit::Percent, RollUp::TimeWeightedMean),
            ("Achieved Active Warps Per SM", other("warp"), RollUp::TimeWeightedMean),
            ("Waves Per SM", CounterUnit::Plain, RollUp::TimeWeightedMean),
            ("Registers Per Thread", other("register/thread"), RollUp::Max),
            ("Block Size", CounterUnit::Plain, RollUp::Max),
            ("Shared Memory Configuration Size", CounterUnit::Bytes, RollUp::Max),
            ("Block Limit SM", other("block"), RollUp::Max),
            ("Max Active Clusters", other("cluster"), RollUp::Max),
            ("GPU Maximum Warps Per Scheduler", other("warp"), RollUp::Max),
            ("Executed Instructions", other("inst"), RollUp::Sum),
            ("Avg. Executed Instructions Per Scheduler", other("inst"), RollUp::Sum),
            ("Warp Cycles Per Issued Instruction", other("cycle"), RollUp::TimeWeightedMean),
            ("# SMs", other("SM"), RollUp::Max),
            ("dram__bytes.sum", CounterUnit::Bytes, RollUp::Sum),
        ];
        for (name, unit, rule) in cases {
            assert_eq!(of_title(name, &unit), rule, "{name}");
        }
    }
}
