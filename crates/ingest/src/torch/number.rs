//! Numbers of a trace, without ever passing through a double: a timestamp of 1.8e18 ns does not fit its 53 bits.

use types::{Nanos, timeline::Timeline};

use super::lexer::inside;

/// Why a token is no time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotATime {
    /// It is no decimal number.
    NotANumber,
    /// It is one, past [`Timeline::LARGEST_TIME`].
    TooLarge,
}

/// A whole number that is not negative.
pub(crate) fn whole<T: TryFrom<u64>>(token: &[u8]) -> Option<T> {
    let digits = inside(token);
    if digits.is_empty() {
        return None;
    }
    let add = |sum: u64, digit: &u8| {
        digit.is_ascii_digit().then(|| sum.checked_mul(10)?.checked_add(u64::from(digit - b'0')))?
    };
    T::try_from(digits.iter().try_fold(0, add)?).ok()
}

/// A whole number with a sign.
pub(crate) fn integer(token: &[u8]) -> Option<i64> {
    match inside(token).strip_prefix(b"-") {
        Some(rest) if !rest.starts_with(b"\"") => 0_i64.checked_sub_unsigned(whole::<u64>(rest)?),
        _ => whole::<i64>(token),
    }
}

/// The nanoseconds of a decimal number of microseconds, exact to the third decimal and rounded there.
#[inline]
pub(crate) fn nanoseconds(token: &[u8]) -> Result<Nanos, NotATime> {
    let nanoseconds = match usual(token) {
        Some(nanoseconds) => nanoseconds,
        None => unusual(inside(token))?,
    };
    Timeline::time(nanoseconds).ok_or(NotATime::TooLarge)
}

/// Up to 15 digits, then nothing or up to three decimals: what the torch profiler writes.
#[inline]
fn usual(token: &[u8]) -> Option<i64> {
    let mut sum = 0_i64;
    let mut at = 0;
    while let Some(digit @ b'0'..=b'9') = token.get(at) {
        sum = sum.wrapping_mul(10).wrapping_add(i64::from(digit - b'0'));
        at += 1;
    }
    if at == 0 || at > 15 {
        return None;
    }
    match token.get(at..)? {
        [] => Some(sum * 1_000),
        [b'.', a @ b'0'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9'] => {
            let thousandths = [a, b, c].iter().fold(0, |part, digit| part * 10 + i64::from(**digit - b'0'));
            Some(sum * 1_000 + thousandths)
        }
        [b'.', a @ b'0'..=b'9', b @ b'0'..=b'9'] => {
            Some(sum * 1_000 + i64::from(a - b'0') * 100 + i64::from(b - b'0') * 10)
        }
        [b'.', a @ b'0'..=b'9'] => Some(sum * 1_000 + i64::from(a - b'0') * 100),
        _ => None,
    }
}

/// Any decimal number.
fn unusual(digits: &[u8]) -> Result<i64, NotATime> {
    let (negative, digits) = match digits {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, digits),
    };
    let (mut mantissa, mut power, mut seen, mut fraction) = (0_i128, 3_i32, false, false);
    let mut at = 0;
    loop {
        match digits.get(at) {
            Some(digit @ b'0'..=b'9') => {
                seen = true;
                // More digits than fit only move the point; what they add is far below a nanosecond or far above it.
                if mantissa < i128::MAX / 100 {
                    mantissa = mantissa * 10 + i128::from(digit - b'0');
                    power = power.saturating_sub(i32::from(fraction));
                } else {
                    power = power.saturating_add(i32::from(!fraction));
                }
            }
            Some(b'.') if !fraction => fraction = true,
            Some(b'e' | b'E') if seen => {
                power = power.saturating_add(exponent(&digits[at + 1..])?);
                break;
            }
            None if seen => break,
            _ => return Err(NotATime::NotANumber),
        }
        at += 1;
    }
    let size = scale(mantissa, power).ok_or(NotATime::TooLarge)?;
    Ok(if negative { -size } else { size })
}

fn exponent(digits: &[u8]) -> Result<i32, NotATime> {
    let (negative, digits) = match digits {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(NotATime::NotANumber);
    }
    let size = whole::<i32>(digits).unwrap_or(i32::MAX / 2);
    Ok(if negative { -size } else { size })
}

/// `mantissa * 10^power`, rounded to a whole number.
fn scale(mantissa: i128, power: i32) -> Option<i64> {
    if mantissa == 0 {
        return Some(0);
    }
    let by = 10_i128.checked_pow(power.unsigned_abs());
    let scaled = match (by, power < 0) {
        (Some(by), false) => mantissa.checked_mul(by)?,
        (Some(by), true) => (mantissa + by / 2) / by,
        (None, false) => return None,
        (None, true) => 0,
    };
    i64::try_from(scaled).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn microseconds_become_nanoseconds_to_the_last_digit() {
        for (token, nanos) in [
            ("3847402573159.520", 3_847_402_573_159_520),
            ("1661203462598738", 1_661_203_462_598_738_000),
            ("1661203462598738.1", 1_661_203_462_598_738_100),
            ("0.736", 736),
            ("338.5", 338_500),
            ("1.25", 1_250),
            ("0.0004", 0),
            ("0.0005", 1),
            ("-1.5", -1_500),
            ("1.5e3", 1_500_000),
            ("15E-1", 1_500),
            ("\"12\"", 12_000),
            ("0e999999999999", 0),
            ("1e-999999999999", 0),
            ("0.000000000000000000000000000000000000000000000000001e51", 1_000),
        ] {
            assert_eq!(nanoseconds(token.as_bytes()), Ok(Nanos::new(nanos)), "{token}");
        }
    }

    #[test]
    fn what_is_no_time_is_told_apart_from_what_is_too_large() {
        for token in ["", "null", "inf", "-nan", "1.2.3", "1e", "1e+", "--1", ".", "e5", "\"\"", "1_0"] {
            assert_eq!(nanoseconds(token.as_bytes()), Err(NotATime::NotANumber), "{token}");
        }
        for token in ["2305843009213693.952", "-1e99", "1e999999999999", &"9".repeat(400)] {
            assert_eq!(nanoseconds(token.as_bytes()), Err(NotATime::TooLarge), "{token}");
        }
        assert_eq!(nanoseconds(b"2305843009213693.951"), Ok(Nanos::new(Timeline::LARGEST_TIME - 1)));
    }

    #[test]
    fn whole_numbers_are_refused_past_their_type() {
        assert_eq!((whole::<u32>(b"4294967295"), whole::<u32>(b"4294967296")), (Some(u32::MAX), None));
        assert_eq!((whole::<u64>(b"18446744073709551616"), whole::<u64>(b"\"7\"")), (None, Some(7)));
        assert_eq!((whole::<u64>(b""), whole::<u64>(b"-1"), whole::<u64>(b"1.0")), (None, None, None));
        assert_eq!((integer(b"-1"), integer(b"9223372036854775808")), (Some(-1), None));
        assert_eq!(integer(b"-9223372036854775808"), Some(i64::MIN));
    }

    proptest! {
        #[test]
        fn both_ways_to_read_a_number_agree(micros in 0..2_000_000_000_000_000_i64, thousandths in 0..1_000_u32, decimals in 0_usize..7) {
            let fraction = &format!("{thousandths:03}000")[..decimals];
            let token = if decimals == 0 { micros.to_string() } else { format!("{micros}.{fraction}") };
            let part: i64 = format!("{fraction:0<3}")[..3].parse().unwrap();
            prop_assert_eq!(nanoseconds(token.as_bytes()), Ok(Nanos::new(micros * 1_000 + part)));
            prop_assert_eq!(unusual(token.as_bytes()), Ok(micros * 1_000 + part));
        }
    }
}
