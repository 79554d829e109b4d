//! Numbers as people read them.

use types::Seconds;

/// Stands where there is no number.
pub(crate) const UNKNOWN: &str = "-";

/// The number with a comma at every thousand.
pub(crate) fn grouped(number: impl Into<u128>) -> String {
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
    format!("{} {noun}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// A modelled time given in milliseconds, in the unit that keeps it readable.
pub(crate) fn milliseconds(time: f64) -> String {
    Seconds::new(time / 1e3).to_string()
}

/// A rate of tokens.
pub(crate) fn tokens_per_second(rate: f64) -> String {
    match rate {
        rate if rate >= 100.0 => format!("{} tokens/s", grouped(rate.round() as u128)),
        rate => format!("{rate:.1} tokens/s"),
    }
}

/// How much of `whole` is `part`; nothing of nothing is unknown.
pub(crate) fn share(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// A share in percent, with one decimal.
pub(crate) fn percent(share: Option<f64>) -> String {
    match share {
        None => UNKNOWN.to_owned(),
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
        assert_eq!(percent(share(999_999.0, 1e6)), ">99.9%");
        assert_eq!(percent(share(1.0, 1.0)), "100.0%");
        assert_eq!(percent(share(1.0, 1e6)), "<0.1%");
        assert_eq!(percent(share(0.0, 1.0)), "0.0%");
        assert_eq!(percent(share(0.0, 0.0)), "-");
        assert_eq!(percent(share(1.0, 3.0)), "33.3%");
    }

    #[test]
    fn rates_have_their_unit() {
        assert_eq!(tokens_per_second(2261.7), "2,262 tokens/s");
        assert_eq!(tokens_per_second(7.25), "7.2 tokens/s");
    }
}
