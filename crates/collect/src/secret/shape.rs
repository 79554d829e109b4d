//! Tokens that say what they are, by the letters that their services begin them with, and words that only a machine makes up.
//!
//! One line for each shape, after the public rules of gitleaks (<https://github.com/gitleaks/gitleaks>, MIT), whose lengths are
//! taken as the least: a token that was cut is still one.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

use super::MASK;

/// Who issues it, and what it looks like.
fn shapes() -> impl Iterator<Item = (&'static str, &'static str)> {
    include_str!("shapes.txt").lines().filter_map(|line| line.split_once(": ").filter(|_| !line.starts_with('#')))
}

/// All of them, at the start of a word.
static TOKEN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let shapes: Vec<String> = shapes().map(|(_, shape)| format!("(?:{shape})")).collect();
    super::regex(&format!(r"(?P<before>^|[^A-Za-z0-9])(?:{})", shapes.join("|")))
});

/// A run of letters and digits that nothing divides, as names of files and models never have.
static RUN: LazyLock<Option<Regex>> = LazyLock::new(|| super::regex(r"[A-Za-z0-9+]{24,}"));

/// Digits, places with capitals, and changes between kinds for each letter, that a key has at least.
const FEWEST_DIGITS: usize = 3;
const FEWEST_CAPITALS: usize = 3;
const FEWEST_CHANGES: f64 = 0.3;
/// Bits that a letter of it tells, in its own distribution; gitleaks asks for 3 to 4.
const LEAST_ENTROPY: f64 = 3.6;

/// The text without tokens.
pub(super) fn masked(text: &str) -> Cow<'_, str> {
    let steps: [super::Step<'_>; 2] = [
        (&TOKEN, &|found| format!("{}{MASK}", &found["before"])),
        (&RUN, &|found| if is_random(&found[0]) { MASK.to_owned() } else { found[0].to_owned() }),
    ];
    super::in_turn(text, &steps)
}

/// Whether a word looks drawn at random: capitals, small letters and digits mixed, and no letter preferred. What has
/// hexadecimal digits only is the checksum of something.
fn is_random(word: &str) -> bool {
    let kind = |byte: u8| match byte {
        b'0'..=b'9' => 0,
        b'a'..=b'z' => 1,
        b'A'..=b'Z' => 2,
        _ => 3,
    };
    let kinds: Vec<u8> = word.bytes().map(kind).collect();
    // Names of kernels mix small letters and digits, and have their capitals in one place.
    let capitals = kinds.chunk_by(|one, other| one == other).filter(|run| run[0] == 2).count();
    let digits = kinds.iter().filter(|kind| **kind == 0).count();
    // A small letter behind a capital is how names in camel case begin their words.
    let changes = kinds.windows(2).filter(|pair| pair[0] != pair[1] && *pair != [2, 1]).count() as f64;
    kinds.contains(&1)
        && capitals >= FEWEST_CAPITALS
        && digits >= FEWEST_DIGITS
        && changes >= FEWEST_CHANGES * kinds.len() as f64
        && entropy(word) >= LEAST_ENTROPY
}

/// Bits a letter tells, after Shannon.
fn entropy(word: &str) -> f64 {
    let mut counts = [0_u32; 256];
    word.bytes().for_each(|byte| counts[usize::from(byte)] += 1);
    let share = |count: u32| f64::from(count) / word.len() as f64;
    counts.into_iter().filter(|count| *count > 0).map(|count| -share(count) * share(count).log2()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_compiles_and_the_list_is_sorted() {
        assert!(TOKEN.is_some() && RUN.is_some());
        for (issuer, shape) in shapes() {
            assert!(Regex::new(shape).is_ok(), "{issuer}");
        }
        assert!(shapes().is_sorted_by_key(|(issuer, _)| issuer.to_lowercase()) && shapes().count() > 50);
    }

    #[test]
    fn what_is_drawn_at_random_is_told_from_names_and_checksums() {
        for (word, random) in [
            ("b8JxT1qL5vR0nGz7KwY3mC9dHsP2uF4a", true),
            ("Zx81kQp02LmvT7yWq3RbN6cHd", true),
            ("DeepSeekV3Base0324InstructAWQ", false),
            ("d41d8cd98f00b204e9800998ecf8427e", false),
            ("nvjetsm90tst8x64x16x4x1vbzTNN", false),
            ("aaaaaaaaaaaaaaaaaaaaaaaaA1B2c3", false),
            ("20260101T120000Z20260101T130000Z", false),
        ] {
            assert_eq!(is_random(word), random, "{word}: {}", entropy(word));
        }
    }
}
