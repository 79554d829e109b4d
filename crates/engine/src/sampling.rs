//! Which token comes next: the most likely one, or one drawn by its probability.
//!
//! Follows the order of Hugging Face's generation: repeated n-grams are ruled out first, then temperature, then top-p.

use types::{Random, UserError};

/// How tokens are chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SamplingSettings {
    /// Divides the logits; 0: the most likely token each time.
    pub temperature: f64,
    /// Share of probability that is drawn from, most likely tokens first; 1: all.
    pub top_p: f64,
    /// No run of this many tokens comes twice, the prompt included; 0: off.
    pub no_repeat_ngram_size: usize,
    /// Of the random numbers.
    pub seed: u64,
}

impl Default for SamplingSettings {
    /// The most likely token each time.
    fn default() -> Self {
        Self { temperature: 0.0, top_p: 1.0, no_repeat_ngram_size: 0, seed: 0 }
    }
}

/// Chooses tokens. The same settings and logits give the same tokens, on every machine.
#[derive(Clone, Debug)]
pub struct Sampler {
    settings: SamplingSettings,
    numbers: Random,
}

impl Sampler {
    /// A sampler with these settings.
    pub fn new(settings: SamplingSettings) -> Result<Self, UserError> {
        let SamplingSettings { temperature, top_p, seed, .. } = settings;
        if !temperature.is_finite() || temperature < 0.0 {
            return Err(UserError::failed(format!("temperature is {temperature}; expected 0 or more")));
        }
        if !(top_p > 0.0 && top_p <= 1.0) {
            return Err(UserError::failed(format!("top_p is {top_p}; expected above 0, at most 1")));
        }
        Ok(Self { settings, numbers: Random::new(seed) })
    }

    /// The token that follows `history` (prompt and generated tokens); of equally likely ones the lowest id.
    pub fn next(&mut self, logits: &[f32], history: &[i64]) -> Result<i64, UserError> {
        if let Some(token) = logits.iter().position(|logit| logit.is_nan() || *logit == f32::INFINITY) {
            let (value, position) = (logits[token], history.len());
            return Err(UserError::failed(format!("the logit of token {token} at position {position} is {value}"))
                .hint("the weights are damaged, or too large for the element type; try float32"));
        }
        let banned = banned(history, self.settings.no_repeat_ngram_size);
        let best = most_likely(logits, &banned).ok_or_else(|| {
            let position = history.len();
            UserError::failed(format!(
                "no token can be sampled at position {position}: all are excluded or have zero probability"
            ))
            .hint("raise no_repeat_ngram_size, or set it to 0")
        })?;
        let chosen = if self.settings.temperature == 0.0 { best } else { self.draw(logits, &banned, best) };
        Ok(chosen as i64)
    }

    /// Draws from the tokens that top-p leaves.
    fn draw(&mut self, logits: &[f32], banned: &[i64], best: usize) -> usize {
        let SamplingSettings { temperature, top_p, .. } = self.settings;
        let highest = f64::from(logits[best]);
        // The most likely token weighs 1, so nothing overflows.
        let weight = |logit: f32| ((f64::from(logit) - highest) / temperature).exp();
        let weighed = logits.iter().enumerate().map(|(token, logit)| (token, weight(*logit)));
        let mut likely: Vec<(usize, f64)> =
            weighed.filter(|(token, weight)| *weight > 0.0 && !is_banned(banned, *token)).collect();
        let mut total: f64 = likely.iter().map(|(_, weight)| weight).sum();
        if top_p < 1.0 {
            likely.sort_by(|(a, a_weight), (b, b_weight)| b_weight.total_cmp(a_weight).then(a.cmp(b)));
            // A token is kept as long as those before it do not reach the share: never none.
            let wanted = top_p * total;
            let (mut kept, mut count) = (0.0, 0);
            while let Some((_, weight)) = likely.get(count).filter(|_| kept < wanted) {
                kept += weight;
                count += 1;
            }
            likely.truncate(count);
            total = kept;
        }
        let mut left = self.numbers.unit() * total;
        for (token, weight) in &likely {
            left -= weight;
            if left < 0.0 {
                return *token;
            }
        }
        // Reached only when rounding leaves a crumb.
        likely.last().map_or(best, |(token, _)| *token)
    }
}

/// Tokens that would complete a run of `size` tokens that is already in `history`, in order.
fn banned(history: &[i64], size: usize) -> Vec<i64> {
    if size == 0 || history.len() + 1 < size {
        return Vec::new();
    }
    let recent = &history[history.len() + 1 - size..];
    let runs = history.windows(size).filter(|run| run[..size - 1] == *recent);
    let mut banned: Vec<i64> = runs.map(|run| run[size - 1]).collect();
    banned.sort_unstable();
    banned.dedup();
    banned
}

fn is_banned(banned: &[i64], token: usize) -> bool {
    banned.binary_search(&(token as i64)).is_ok()
}

/// The most likely token that is not banned; `None` when nothing has any probability.
fn most_likely(logits: &[f32], banned: &[i64]) -> Option<usize> {
    let mut best = None;
    let mut highest = f32::NEG_INFINITY;
    for (token, logit) in logits.iter().enumerate() {
        if *logit > highest && !is_banned(banned, token) {
            (best, highest) = (Some(token), *logit);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn sampler(settings: SamplingSettings) -> Sampler {
        Sampler::new(settings).unwrap()
    }

    fn warm(top_p: f64, seed: u64) -> SamplingSettings {
        SamplingSettings { temperature: 1.0, top_p, seed, ..SamplingSettings::default() }
    }

    #[test]
    fn of_equal_logits_the_lowest_id_is_taken() {
        let mut greedy = sampler(SamplingSettings::default());
        assert_eq!(greedy.next(&[0.5, 2.0, 2.0, -1.0], &[]).unwrap(), 1);
    }

    #[test]
    fn logits_that_are_no_numbers_are_an_error() {
        let mut greedy = sampler(SamplingSettings::default());
        let error = greedy.next(&[0.0, f32::NAN], &[4, 5, 6]).unwrap_err();
        assert_eq!(error.to_string(), "the logit of token 1 at position 3 is NaN");
        assert!(greedy.next(&[f32::INFINITY], &[]).is_err());
        assert!(greedy.next(&[f32::NEG_INFINITY; 4], &[]).is_err());
        assert!(greedy.next(&[], &[]).is_err());
    }

    #[test]
    fn settings_out_of_range_are_named() {
        for (temperature, top_p, message) in [
            (-1.0, 1.0, "temperature is -1; expected 0 or more"),
            (f64::NAN, 1.0, "temperature is NaN; expected 0 or more"),
            (1.0, 0.0, "top_p is 0; expected above 0, at most 1"),
            (1.0, 1.5, "top_p is 1.5; expected above 0, at most 1"),
        ] {
            let settings = SamplingSettings { temperature, top_p, ..SamplingSettings::default() };
            assert_eq!(Sampler::new(settings).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn a_run_of_tokens_does_not_come_twice() {
        // 1 2 was followed by 3, so after 1 2 the 3 is ruled out; with runs of four nothing is.
        let history = [1, 2, 3, 1, 2];
        assert_eq!(banned(&history, 3), [3]);
        assert!(banned(&history, 4).is_empty());
        assert!(banned(&history, 0).is_empty());
        assert_eq!(banned(&history, 1), [1, 2, 3]);
        assert!(banned(&[7], 3).is_empty());
        let settings = SamplingSettings { no_repeat_ngram_size: 3, ..SamplingSettings::default() };
        assert_eq!(sampler(settings).next(&[0.0, 1.0, 2.0, 9.0], &history).unwrap(), 2);
    }

    #[test]
    fn drawn_tokens_come_as_often_as_they_are_likely() {
        // Probabilities 1/2, 1/4, 1/4; standard deviation of 20,000 draws is 0.35%.
        let logits = [2.0_f32.ln(), 0.0, f32::NEG_INFINITY, 0.0];
        let mut sampler = sampler(warm(1.0, 11));
        let mut counts = [0; 4];
        for _ in 0..20_000 {
            counts[sampler.next(&logits, &[]).unwrap() as usize] += 1;
        }
        for (count, share) in counts.into_iter().zip([0.5, 0.25, 0.0, 0.25]) {
            assert!((f64::from(count) / 20_000.0 - share).abs() < 0.015, "{counts:?}");
        }
    }

    #[test]
    fn top_p_keeps_the_fewest_tokens_that_reach_the_share() {
        // Probabilities 0.5, 0.3, 0.2.
        let logits: Vec<f32> = [0.2_f32, 0.5, 0.3].iter().map(|share| share.ln()).collect();
        for (top_p, kept) in [(0.4, vec![1]), (0.6, vec![1, 2]), (0.79, vec![1, 2]), (0.9, vec![0, 1, 2])] {
            let mut sampler = sampler(warm(top_p, 3));
            let drawn: BTreeSet<i64> = (0..500).map(|_| sampler.next(&logits, &[]).unwrap()).collect();
            assert_eq!(drawn.into_iter().collect::<Vec<_>>(), kept, "{top_p}");
        }
    }

    #[test]
    fn a_low_temperature_draws_the_most_likely() {
        let settings = SamplingSettings { temperature: 1e-300, ..warm(1.0, 5) };
        assert_eq!(sampler(settings).next(&[1.0, 1.5, 1.4], &[]).unwrap(), 1);
    }

    proptest! {
        #[test]
        fn greedy_takes_the_highest(logits in prop::collection::vec(-50.0_f32..50.0, 1..200)) {
            let token = sampler(SamplingSettings::default()).next(&logits, &[]).unwrap() as usize;
            prop_assert!(logits.iter().all(|logit| *logit <= logits[token]));
            prop_assert!(logits[..token].iter().all(|logit| *logit < logits[token]));
        }

        #[test]
        fn the_same_seed_draws_the_same(
            logits in prop::collection::vec(-5.0_f32..5.0, 1..50), seed: u64, top_p in 0.05_f64..1.0,
        ) {
            let (mut first, mut second) = (sampler(warm(top_p, seed)), sampler(warm(top_p, seed)));
            for _ in 0..20 {
                prop_assert_eq!(first.next(&logits, &[]).unwrap(), second.next(&logits, &[]).unwrap());
            }
        }

        #[test]
        fn tokens_before_a_drawn_one_never_reach_the_share(
            logits in prop::collection::vec(-5.0_f32..5.0, 1..50), seed: u64, top_p in 0.05_f64..1.0,
        ) {
            let token = sampler(warm(top_p, seed)).next(&logits, &[]).unwrap() as usize;
            let total: f64 = logits.iter().map(|logit| f64::from(*logit).exp()).sum();
            let before: f64 =
                logits.iter().filter(|logit| **logit > logits[token]).map(|logit| f64::from(*logit).exp()).sum();
            prop_assert!(before / total < top_p + 1e-9);
        }

        #[test]
        fn no_run_repeats_while_anything_else_is_left(
            size in 2_usize..4, temperature in prop::sample::select(vec![0.0, 1.0]), seed: u64,
        ) {
            let settings = SamplingSettings { temperature, no_repeat_ngram_size: size, ..warm(1.0, seed) };
            let mut sampler = sampler(settings);
            let mut history = vec![0];
            // Six tokens: 36 pairs can follow one another before every continuation is ruled out.
            while history.len() < 60 {
                match sampler.next(&[3.0, 2.5, 2.0, 1.5, 1.0, 0.5], &history) {
                    Ok(token) => history.push(token),
                    Err(error) => {
                        prop_assert!(error.message.starts_with("no token can be sampled"), "{}", error);
                        break;
                    }
                }
            }
            let mut runs = BTreeSet::new();
            prop_assert!(history.windows(size).all(|run| runs.insert(run.to_vec())), "{:?}", history);
        }
    }
}
