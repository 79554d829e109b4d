//! Values of counters as Nsight Compute prints them.

use std::ops::RangeInclusive;
use std::sync::Arc;

use types::counter::{CounterInstance, CounterInstances, CounterValue};

use crate::decimal;

/// What a cell says, its numbers times ten to the `power`. `None` where the tool has no value.
pub(super) fn value(cell: &str, power: i32) -> Option<CounterValue> {
    // A mark that the tool puts before a value it is not sure of.
    let cell = cell.strip_prefix("(!)").unwrap_or(cell).trim();
    if let Some(number) = decimal::number(cell.as_bytes(), power) {
        return Some(CounterValue::Number(number));
    }
    if is_absent(cell) {
        return None;
    }
    if let Some(instances) = instances(cell, power) {
        return Some(CounterValue::Instances(Arc::new(instances)));
    }
    Some(CounterValue::Text(cell.into()))
}

/// Whether a number lies where numbers of its counter can; texts are as they are.
pub(super) fn is_possible(value: &CounterValue, possible: &RangeInclusive<f64>) -> bool {
    match value {
        CounterValue::Number(number) => possible.contains(number),
        CounterValue::Instances(instances) => instances.aggregate.is_none_or(|number| possible.contains(&number)),
        _ => true,
    }
}

/// Whether a cell says that there is no value. A ratio of nothing by nothing is none either.
pub(super) fn is_absent(cell: &str) -> bool {
    matches!(cell, "" | "n/a" | "N/A" | "nan" | "-nan" | "inf" | "-inf")
}

/// Whether a text is a number with a comma before its decimals, as the tool writes where the system's language does. Its
/// points then separate thousands, and numbers that have nothing else cannot be told from ours.
pub(super) fn has_decimal_comma(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let Some((whole, decimals)) = text.strip_prefix('-').unwrap_or(text).split_once(',') else { return false };
    digits(decimals) && whole.split('.').all(digits)
}

/// `16,308 (83; 70)`, and with what each belongs to `16,308 (7350: 83; 7358: 70)`.
fn instances(cell: &str, power: i32) -> Option<CounterInstances> {
    let (aggregate, list) = cell.strip_suffix(')')?.split_once('(')?;
    let number = |text: &str| match decimal::number(text.as_bytes(), power) {
        Some(number) => Some(Some(number)),
        None => is_absent(text).then_some(None),
    };
    let instance = |entry: &str| {
        let (correlation, value) = match entry.rsplit_once(": ") {
            Some((correlation, value)) => (Some(correlation.trim().into()), value),
            None => (None, entry),
        };
        Some(CounterInstance { correlation, value: number(value.trim())? })
    };
    let aggregate = number(aggregate.trim())?;
    let instances = list.split(';').map(instance).collect::<Option<_>>()?;
    Some(CounterInstances { aggregate, instances })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_is_none_and_not_zero() {
        for cell in ["", "n/a", "(!) n/a", "nan", "(!) nan", "inf"] {
            assert_eq!(value(cell, 0), None, "{cell}");
        }
        assert_eq!(value("0", 0), Some(CounterValue::Number(0.0)));
    }

    #[test]
    fn numbers_are_scaled_and_texts_are_kept() {
        assert_eq!(value("62.914560", 6), Some(CounterValue::Number(62_914_560.0)));
        assert_eq!(value("NVIDIA H200", 0), Some(CounterValue::Text("NVIDIA H200".into())));
        assert_eq!(value("kernel(int)", 0), Some(CounterValue::Text("kernel(int)".into())));
        assert_eq!(value("5 (of these)", 0), Some(CounterValue::Text("5 (of these)".into())));
    }

    #[test]
    fn a_decimal_comma_is_recognised() {
        for text in ["2,064192", "1.980.000,5", "-0,5"] {
            assert_eq!(value(text, 0), Some(CounterValue::Text(text.into())));
            assert!(has_decimal_comma(text), "{text}");
        }
        for text in ["580.65.06", "all", "a,b", "1,2,3", ",5", "5,", ""] {
            assert!(!has_decimal_comma(text), "{text}");
        }
    }

    #[test]
    fn instances_follow_the_number_for_the_whole() {
        let Some(CounterValue::Instances(bare)) = value("16.5 (1; 2,000)", 3) else {
            panic!("not read as instances");
        };
        assert_eq!(bare.aggregate, Some(16_500.0));
        let values: Vec<_> = bare.instances.iter().map(|instance| instance.value).collect();
        assert_eq!(values, [Some(1_000.0), Some(2_000_000.0)]);

        let Some(CounterValue::Instances(named)) = value("16,308 (0x7350: 83; ns::f: n/a)", 0) else {
            panic!("not read as instances");
        };
        assert_eq!(named.instances[0], CounterInstance { correlation: Some("0x7350".into()), value: Some(83.0) });
        assert_eq!(named.instances[1], CounterInstance { correlation: Some("ns::f".into()), value: None });
    }
}
