//! How many tokens prompts and outputs have.

use types::Random;

use crate::LoadError;

/// The longest prompt or output, twice the longest context any published model has: a larger number is a mistake.
pub const LONGEST: u32 = 1 << 24;

/// A distribution of lengths in tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lengths {
    /// Always the same.
    Fixed(u32),
    /// Any from the first to the second, both included, equally likely.
    Uniform(u32, u32),
    /// One after the other, from the start again after the last.
    Listed(Vec<u32>),
}

impl Lengths {
    /// Whether every length can be sent.
    pub fn check(&self, name: &'static str) -> Result<(), LoadError> {
        let wrong = match self {
            Self::Fixed(length) => !fits(*length),
            Self::Uniform(least, most) => !fits(*least) || !fits(*most) || least > most,
            Self::Listed(lengths) => lengths.is_empty() || !lengths.iter().copied().all(fits),
        };
        if !wrong {
            return Ok(());
        }
        Err(LoadError::Setting {
            name,
            expected: "from 1 to 16777216 tokens, the smaller number first",
            got: self.shown(),
        })
    }

    /// The length of one request.
    pub(crate) fn draw(&self, index: usize, random: &mut Random) -> u32 {
        match self {
            Self::Fixed(length) => *length,
            Self::Uniform(least, most) => least + random.below((most - least) as usize + 1) as u32,
            Self::Listed(lengths) => lengths[index % lengths.len()],
        }
    }

    /// As an error shows it.
    fn shown(&self) -> String {
        match self {
            Self::Fixed(length) => length.to_string(),
            Self::Uniform(least, most) => format!("{least} to {most}"),
            Self::Listed(lengths) => match lengths.iter().find(|length| !fits(**length)) {
                Some(length) => format!("a list with {length}"),
                None => "an empty list".to_owned(),
            },
        }
    }
}

/// Whether a server can be asked for so many tokens.
fn fits(length: u32) -> bool {
    (1..=LONGEST).contains(&length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_follow_their_distribution() {
        let mut random = Random::new(1);
        let drawn: Vec<u32> = (0..1000).map(|index| Lengths::Uniform(3, 5).draw(index, &mut random)).collect();
        assert!(drawn.iter().all(|length| (3..=5).contains(length)));
        assert!((3..=5).all(|length| drawn.iter().filter(|drawn| **drawn == length).count() > 280), "{drawn:?}");
        let listed = Lengths::Listed(vec![9, 8]);
        assert_eq!([0, 1, 2].map(|index| listed.draw(index, &mut random)), [9, 8, 9]);
        assert_eq!(Lengths::Fixed(4).draw(17, &mut random), 4);
    }

    #[test]
    fn lengths_that_no_server_takes_are_rejected() {
        let wrong = [
            (Lengths::Fixed(0), "0"),
            (Lengths::Fixed(LONGEST + 1), "16777217"),
            (Lengths::Uniform(5, 3), "5 to 3"),
            (Lengths::Listed(Vec::new()), "an empty list"),
            (Lengths::Listed(vec![1, 0]), "a list with 0"),
        ];
        for (lengths, shown) in wrong {
            let error = lengths.check("the input length").unwrap_err().to_string();
            assert_eq!(
                error,
                format!("the input length must be from 1 to 16777216 tokens, the smaller number first, not {shown}")
            );
        }
    }
}
