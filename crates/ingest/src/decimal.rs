//! Decimal numbers as tools print them, turned into another unit without a rounding of its own.
//!
//! A prefix such as `K` moves the decimal point. It is moved before the digits become a binary number, so `1.001` in
//! kilobytes is exactly 1001 bytes, which `1.001 * 1000.0` is not.

/// Powers of ten that a double holds exactly.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];
/// Whole numbers up to here are exact as doubles.
const EXACT: u64 = 1 << 53;

/// Digits and the place of the point: `digits * 10^exponent`.
struct Decimal {
    negative: bool,
    digits: u64,
    exponent: i32,
    /// Whether `digits` has all of them.
    complete: bool,
}

/// The number in `text` times ten to the `power`, or `None` where it is no finite number. Thousands may be separated
/// by commas.
#[inline]
pub(crate) fn number(text: &[u8], power: i32) -> Option<f64> {
    match short(text) {
        Some((digits, exponent)) => value(digits, exponent + power),
        None => {
            let decimal = scan(text)?;
            let size = value(decimal.digits, decimal.exponent + power)?;
            Some(if decimal.negative { -size } else { size })
        }
    }
}

/// Digits and exponent of the form that nearly all numbers have, for which this is twice as fast as [`scan`]: digits and
/// perhaps a point, few enough for 64 bits.
#[inline]
fn short(text: &[u8]) -> Option<(u64, i32)> {
    if text.is_empty() || text.len() > 18 {
        return None;
    }
    let mut digits = 0;
    let mut point = text.len();
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'0'..=b'9' => digits = digits * 10 + u64::from(byte - b'0'),
            b'.' if at > 0 && at + 1 < text.len() && point == text.len() => point = at + 1,
            _ => return None,
        }
    }
    Some((digits, point as i32 - text.len() as i32))
}

#[inline]
fn value(digits: u64, exponent: i32) -> Option<f64> {
    let value = match POWERS.get(exponent.unsigned_abs() as usize) {
        // Both sides are exact, so this one operation rounds as reading the decimal text would.
        Some(step) if digits <= EXACT && exponent < 0 => digits as f64 / step,
        Some(step) if digits <= EXACT => digits as f64 * step,
        _ => format!("{digits}e{exponent}").parse().ok()?,
    };
    value.is_finite().then_some(value)
}

/// The number in `text` times ten to the `power` where that is a whole number of 64 bits, with every digit kept.
pub(crate) fn whole(text: &[u8], power: i32) -> Option<i64> {
    let decimal = scan(text).filter(|decimal| decimal.complete)?;
    let mut size = i64::try_from(decimal.digits).ok()?;
    let mut exponent = decimal.exponent + power;
    while exponent < 0 && size != 0 {
        if size % 10 != 0 {
            return None;
        }
        size /= 10;
        exponent += 1;
    }
    while exponent > 0 && size != 0 {
        size = size.checked_mul(10)?;
        exponent -= 1;
    }
    Some(if decimal.negative { -size } else { size })
}

/// A number that is not negative and has no fraction.
pub(crate) fn count(text: &[u8]) -> Option<u64> {
    u64::try_from(whole(text, 0)?).ok()
}

fn scan(text: &[u8]) -> Option<Decimal> {
    let (negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    let mut digits = 0_u64;
    // Digits past what 64 bits hold only move the point; what they add is below the last digit of a double.
    let mut dropped = 0_i32;
    let mut add = |byte: u8| {
        let more = digits.checked_mul(10).and_then(|digits| digits.checked_add(u64::from(byte - b'0')));
        match more {
            Some(more) if dropped == 0 => digits = more,
            _ => dropped += 1,
        }
    };
    let mut at = 0;
    // Digits since the last comma, and whether there was one.
    let (mut group, mut grouped) = (0, false);
    while let Some(byte) = text.get(at) {
        match byte {
            b'0'..=b'9' => {
                add(*byte);
                group += 1;
            }
            b',' if (grouped && group == 3) || (!grouped && (1..=3).contains(&group)) => {
                grouped = true;
                group = 0;
            }
            _ => break,
        }
        at += 1;
    }
    if group == 0 || (grouped && group != 3) {
        return None;
    }
    let mut fraction = 0;
    if text.get(at) == Some(&b'.') {
        at += 1;
        let start = at;
        while let Some(byte @ b'0'..=b'9') = text.get(at) {
            add(*byte);
            at += 1;
        }
        fraction = i32::try_from(at - start).ok()?;
        if fraction == 0 {
            return None;
        }
    }
    let mut exponent = 0_i32;
    if matches!(text.get(at), Some(b'e' | b'E')) {
        let written = std::str::from_utf8(&text[at + 1..]).ok()?;
        exponent = written.parse::<i32>().ok().filter(|exponent| exponent.abs() <= 400)?;
        at = text.len();
    }
    let complete = dropped == 0;
    (at == text.len()).then_some(Decimal { negative, digits, exponent: exponent + dropped - fraction, complete })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_separated_by_commas_in_groups_of_three() {
        assert_eq!(number(b"1,980,000", 0), Some(1_980_000.0));
        assert_eq!(number(b"141,104,166,666.67", 0), Some(141_104_166_666.67));
        for wrong in ["", ",", "1,98", "1,9800", ",980", "1,", "1980,000", "1.5,0", "1,,000", "1.", ".5", "--1", "1 2"]
        {
            assert_eq!(number(wrong.as_bytes(), 0), None, "{wrong}");
        }
    }

    #[test]
    fn a_prefix_moves_the_point_and_rounds_nothing() {
        assert_eq!(number(b"6.016000", 3), Some(6016.0));
        assert_eq!(number(b"9.860000", -3), Some(0.00986));
        assert_eq!(number(b"-1.5", 9), Some(-1.5e9));
        assert_ne!(1.001_f64 * 1000.0, 1001.0, "multiplying rounds here");
        assert_eq!(number(b"1.001", 3), Some(1001.0));
    }

    #[test]
    fn long_and_large_numbers_are_read_as_the_standard_library_reads_them() {
        for text in ["123456789012345678", "0.12345678901234567", "1e22", "1.5e-9", "9007199254740993", "1e300"] {
            assert_eq!(number(text.as_bytes(), 0), text.parse().ok(), "{text}");
        }
        let long = "3.14159265358979323846264338327950288419716939937510";
        assert_eq!(number(long.as_bytes(), 0), Some(std::f64::consts::PI));
    }

    #[test]
    fn the_short_way_reads_as_the_long_one() {
        for text in ["0", "7", "1.5", "0.000030", "18.528000", "123456789012345678", "1.", ".5", "", ".", "1.2.3", "1-"]
        {
            let long = scan(text.as_bytes()).map(|decimal| (decimal.digits, decimal.exponent));
            assert_eq!(short(text.as_bytes()), long, "{text}");
        }
    }

    #[test]
    fn what_is_no_finite_number_is_none() {
        for text in ["nan", "inf", "-inf", "1e999", "0x10", "12abc", "n/a", "1e400", "5e"] {
            assert_eq!(number(text.as_bytes(), 0), None, "{text}");
        }
    }

    #[test]
    fn whole_numbers_keep_every_digit() {
        assert_eq!(whole(b"1773703924", 0), Some(1_773_703_924));
        assert_eq!(whole(b"9007199254740993", 0), Some(9_007_199_254_740_993));
        assert_eq!(whole(b"4000.603", 3), Some(4_000_603));
        assert_eq!(whole(b"4000.6030", 2), None, "a tenth would be lost");
        assert_eq!(whole(b"9223372036854775808", 0), None);
        assert_eq!(whole(b"0.000", -3), Some(0));
        assert_eq!(count(b"-1"), None);
    }

    proptest::proptest! {
        #[test]
        fn any_number_is_read_as_the_standard_library_reads_it(text in "-?[0-9]{1,20}(\\.[0-9]{1,12})?", power in -12..12) {
            let expected = format!("{text}e{power}").parse::<f64>().ok();
            // Past nineteen digits the last ones only move the point.
            if text.bytes().filter(u8::is_ascii_digit).count() <= 19 {
                proptest::prop_assert_eq!(number(text.as_bytes(), power), expected);
            } else {
                let (found, expected) = (number(text.as_bytes(), power).unwrap(), expected.unwrap());
                proptest::prop_assert!((found - expected).abs() <= 1e-15 * expected.abs());
            }
        }
    }
}
