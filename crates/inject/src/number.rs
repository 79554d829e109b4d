//! Numbers in settings.

/// A number in decimal.
pub(crate) fn number(text: &[u8]) -> Option<u32> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u32, |number, byte| {
        let digit = u32::from(byte.checked_sub(b'0').filter(|digit| *digit < 10)?);
        number.checked_mul(10)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_digits_and_nothing_else() {
        assert_eq!(number(b"250"), Some(250));
        for text in [&b""[..], b"-1", b"1x", b"99999999999"] {
            assert_eq!(number(text), None);
        }
    }
}
