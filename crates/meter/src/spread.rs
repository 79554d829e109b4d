//! Tokens spread over experts.

use types::Bytes;

/// How many tokens were spread over how many experts: what weight traffic inside experts is expected from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// Experts to choose from.
    pub experts: u64,
    /// Experts each token goes to.
    pub per_token: u64,
    /// Tokens.
    pub tokens: u64,
    /// Devices the experts are dealt out to.
    pub devices: u64,
}

impl Spread {
    /// Distinct experts expected to be touched when each token chooses `k` of `E` independently and evenly:
    /// `E * (1 - (1 - k / E)^T)`. One token touches exactly `k`.
    pub fn distinct(&self) -> f64 {
        let (experts, per_token) = (self.experts as f64, self.per_token as f64);
        let missed = (1.0 - per_token / experts).powf(self.tokens as f64);
        experts * (1.0 - missed)
    }

    /// Weight traffic of all experts touched on one device, given that of one expert.
    pub fn weights(&self, of_one: Bytes) -> Bytes {
        Bytes::new((of_one.as_f64() * self.distinct() / self.devices as f64).round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_token_touches_exactly_its_own_experts() {
        let spread = Spread { experts: 64, per_token: 6, tokens: 1, devices: 1 };
        assert!((spread.distinct() - 6.0).abs() < 1e-12);
        assert_eq!(spread.weights(Bytes::new(1000)), Bytes::new(6000));
        assert_eq!(Spread { devices: 2, ..spread }.weights(Bytes::new(1000)), Bytes::new(3000));
    }

    #[test]
    fn many_tokens_touch_every_expert_and_never_more() {
        let spread = Spread { experts: 64, per_token: 6, tokens: 10_000, devices: 1 };
        assert!(spread.distinct() <= 64.0 && spread.distinct() > 63.999);
        // Two tokens: 64 * (1 - (58 / 64)^2) = 11.4375, worked by hand.
        let two = Spread { tokens: 2, ..spread };
        assert!((two.distinct() - 11.4375).abs() < 1e-12);
    }
}
