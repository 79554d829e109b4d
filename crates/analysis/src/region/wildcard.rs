//! Patterns with `*` for any text and `?` for any letter.

/// Whether a text fits a pattern with `*` and `?`. Keeps the last star to go back to, so that it takes no more than the
/// product of both lengths.
pub(super) fn wildcard(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut place, mut star) = (0, 0, None);
    while place < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, place));
                at += 1;
            }
            Some(sign) if *sign == '?' || *sign == text[place] => (at, place) = (at + 1, place + 1),
            _ => match star {
                Some((from, taken)) => {
                    star = Some((from, taken + 1));
                    (at, place) = (from + 1, taken + 1);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|sign| *sign == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_pattern_takes_no_longer_than_it_must() {
        let (pattern, text) = ("*a".repeat(2_000), "a".repeat(1_500));
        assert!(!wildcard(&format!("{pattern}b"), &text));
    }
}
