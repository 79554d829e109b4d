//! Version numbers that can be compared.

use std::fmt;

/// The leading numbers of a version: `2025.3.1.90-253135822126v0` is 2025, 3, 1, 90.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version(Vec<u32>);

impl Version {
    /// The numbers at the start of `text`; `None` when there is none.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let mut numbers = Vec::new();
        for part in text.trim().split('.') {
            let digits: &str = &part[..part.bytes().take_while(u8::is_ascii_digit).count()];
            let Ok(number) = digits.parse() else { break };
            numbers.push(number);
            if digits.len() < part.len() {
                break;
            }
        }
        (!numbers.is_empty()).then_some(Self(numbers))
    }

    /// A version known beforehand.
    pub(crate) fn of(numbers: &[u32]) -> Self {
        Self(numbers.to_vec())
    }

    /// The first number.
    pub(crate) fn major(&self) -> u32 {
        self.0.first().copied().unwrap_or_default()
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<String> = self.0.iter().map(u32::to_string).collect();
        f.write_str(&numbers.join("."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_as_numbers() {
        let read = |text| Version::read(text).unwrap();
        assert!(read("2023.4.4") < read("2025.3"));
        assert!(read("9.10") > read("9.9"));
        assert!(read("2025.3.1") > Version::of(&[2025, 3]), "a longer version of the same release is newer");
        assert_eq!(read("580.159.04").major(), 580);
    }

    #[test]
    fn what_follows_the_numbers_is_left_out() {
        assert_eq!(Version::read("2025.3.1.90-253135822126v0").unwrap().to_string(), "2025.3.1.90");
        assert_eq!(Version::read("2.11.0+cu130").unwrap().to_string(), "2.11.0");
        assert_eq!(Version::read("v1"), None);
        assert_eq!(Version::read(""), None);
        assert_eq!(Version::read("99999999999.1"), None, "a number that does not fit is no version");
    }
}
