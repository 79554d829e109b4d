//! Names that differ only in numbers: programs count their steps, layers and requests.

/// The name with an `N` in place of every number.
pub(crate) fn kind(name: &str) -> String {
    let mut kind = String::with_capacity(name.len());
    let mut before = None;
    for letter in name.chars() {
        match (letter.is_ascii_digit(), before.is_some_and(|before: char| before.is_ascii_digit())) {
            (true, true) => {}
            (true, false) => kind.push('N'),
            (false, _) => kind.push(letter),
        }
        before = Some(letter);
    }
    kind
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_one_letter_however_long() {
        assert_eq!(kind("token_128_processing"), "token_N_processing");
        assert_eq!(kind("step[FOO bs=3 toks=77]"), "step[FOO bs=N toks=N]");
        assert_eq!(kind("decode"), "decode");
    }
}
