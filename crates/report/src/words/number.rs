//! Numbers as people read them.

use types::{Nanos, Seconds};

/// Stands where there is no number.
pub(crate) const UNKNOWN: &str = "-";

/// The number with a comma at every thousand.
pub fn grouped(number: impl Into<u128>) -> String {
    let digits = number.into().to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// That many of something, in the plural where there are more or none.
pub(crate) fn count(number: u64, noun: &str) -> String {
    let noun = if number == 1 { noun.to_owned() } else { plural(noun) };
    format!("{} {noun}", grouped(number))
}

/// The plural of a noun; of several words, that of the last.
pub(crate) fn plural(noun: &str) -> String {
    match noun {
        noun if noun.ends_with("ch") || noun.ends_with('s') || noun.ends_with('x') => format!("{noun}es"),
        noun if ["cy", "py", "ry"].iter().any(|end| noun.ends_with(end)) => format!("{}ies", &noun[..noun.len() - 1]),
        noun => format!("{noun}s"),
    }
}

/// A mean or a rate: whole where it is large or whole, else with one decimal.
pub(crate) fn decimal(number: f64) -> String {
    match number {
        number if number >= 100.0 || number.fract() == 0.0 => grouped(number.round().max(0.0) as u128),
        number => format!("{number:.1}"),
    }
}

/// A change with its sign.
pub(crate) fn signed(share: f64) -> String {
    match share * 100.0 {
        percent if percent.abs() >= 999.5 => format!("{:+.0}x", share + 1.0),
        0.0 => "0%".to_owned(),
        percent if percent.abs() < 0.05 => "<0.1%".to_owned(),
        percent => format!("{percent:+.1}%"),
    }
}

/// Numbers in order, runs of them by their ends: `0-3, 7`.
pub(crate) fn ranges(ranks: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for rank in ranks {
        match runs.last_mut() {
            Some((_, end)) if *end + 1 == *rank => *end = *rank,
            _ => runs.push((*rank, *rank)),
        }
    }
    let text = |(start, end): &(u32, u32)| if start == end { start.to_string() } else { format!("{start}-{end}") };
    runs.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// Anything that may be unknown, or a dash.
pub(crate) fn known(value: Option<impl ToString>) -> String {
    value.map_or(UNKNOWN.to_owned(), |value| value.to_string())
}

/// A time in milliseconds to the nanosecond, so that rows add up to what the source says.
pub(crate) fn exact_milliseconds(time: Nanos) -> String {
    let (whole, rest) = (time.get().unsigned_abs() / 1_000_000, time.get().unsigned_abs() % 1_000_000);
    format!("{}.{rest:06}", grouped(whole))
}

/// A modelled time given in milliseconds, in the unit that keeps it readable.
pub(crate) fn milliseconds(time: f64) -> String {
    Seconds::new(time / 1e3).to_string()
}

/// A rate without its unit.
pub(crate) fn rate(rate: f64) -> String {
    if rate >= 100.0 { grouped(rate.round() as u128) } else { format!("{rate:.1}") }
}

/// A rate of tokens.
pub(crate) fn tokens_per_second(tokens: f64) -> String {
    rate(tokens) + " tokens/s"
}

/// How much of `whole` is `part`; a share of nothing is unknown.
pub(crate) fn share(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// How much of a time another is.
pub(crate) fn time_share(part: Nanos, whole: Nanos) -> Option<f64> {
    share(part.get() as f64, whole.get() as f64)
}

/// Time of one of `calls`.
pub(crate) fn mean(total: Nanos, calls: u64) -> Option<Nanos> {
    Some(Nanos::new(total.get().checked_div(i64::try_from(calls).ok()?)?))
}

/// A share in percent, with one decimal.
pub(crate) fn percent(share: Option<f64>) -> String {
    match share {
        None => UNKNOWN.to_owned(),
        Some(0.0) => "0%".to_owned(),
        Some(1.0) => "100%".to_owned(),
        Some(share) if share > 0.0 && share < 0.000_5 => "<0.1%".to_owned(),
        Some(share) if (0.999_5..1.0).contains(&share) => ">99.9%".to_owned(),
        Some(share) => format!("{:.1}%", share * 100.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        let numbers = [0u128, 999, 1_000, 1_677_721_600, 55_340_232_221_128_654_845];
        assert_eq!(numbers.map(grouped), ["0", "999", "1,000", "1,677,721,600", "55,340,232,221,128,654,845"]);
    }

    #[test]
    fn a_small_share_is_not_none_a_large_one_not_all_and_an_unknown_one_neither() {
        let shares = [Some(0.999_999), Some(1.0), Some(1e-6), Some(0.0), None, Some(1.0 / 3.0)];
        assert_eq!(shares.map(percent), [">99.9%", "100%", "<0.1%", "0%", "-", "33.3%"]);
    }

    #[test]
    fn nouns_have_their_plural_and_means_no_needless_decimals() {
        assert_eq!([count(1, "launch"), count(2, "launch"), count(0, "pass")], ["1 launch", "2 launches", "0 passes"]);
        assert_eq!([1280.0, 12.54, 7.0].map(decimal), ["1,280", "12.5", "7"]);
    }

    #[test]
    fn rates_have_their_unit() {
        assert_eq!(tokens_per_second(2261.7), "2,262 tokens/s");
        assert_eq!(tokens_per_second(7.25), "7.2 tokens/s");
    }
}
