//! Values of counters as people read them, each in its unit.

use types::{Bytes, BytesPerSecond, Nanos, RegionTotals};

use crate::words::number::{UNKNOWN, grouped};

/// A value with its unit, or a dash.
pub(super) fn value(number: Option<f64>, unit: &str) -> String {
    let Some(number) = number else { return UNKNOWN.to_owned() };
    match unit {
        "byte" if number >= 0.0 => Bytes::new(number.round() as u64).to_string(),
        "byte/s" => BytesPerSecond::new(number).to_string(),
        "ns" => Nanos::new(number.round() as i64).to_string(),
        "hz" => format!("{:.2} GHz", number / 1e9),
        "%" => format!("{number:.2}%"),
        "" => plain(number),
        unit => format!("{} {unit}", plain(number)),
    }
}

/// A number without a unit: whole where it is, else with two decimals.
pub(super) fn plain(number: f64) -> String {
    let sign = if number < 0.0 { "-" } else { "" };
    let size = number.abs();
    if size.fract() == 0.0 || size >= 1e6 {
        return format!("{sign}{}", grouped(size.round() as u128));
    }
    let cents = (size * 100.0).round() as u128;
    format!("{sign}{}.{:02}", grouped(cents / 100), cents % 100)
}

/// How often a region was entered, as far as that is known.
pub(super) fn instances(totals: &RegionTotals) -> String {
    if totals.instances_exact { grouped(totals.instances) } else { format!("at least {}", grouped(totals.instances)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_has_its_form_and_nothing_is_a_dash() {
        let cases = [
            (Some(1_353_447_000.0), "byte", "1.35 GB"),
            (Some(36.5), "%", "36.50%"),
            (Some(1.935e9), "hz", "1.94 GHz"),
            (Some(16_896.0), "inst/cycle", "16,896 inst/cycle"),
            (Some(1.6), "", "1.60"),
            (Some(-2.5), "", "-2.50"),
            (None, "byte", "-"),
        ];
        for (number, unit, text) in cases {
            assert_eq!(value(number, unit), text, "{unit}");
        }
    }
}
