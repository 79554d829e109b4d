//! Times that differ from the likely ones: between simulations, and from step to step.

use types::Random;

/// By how much times differ from the likely ones: factors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Draw {
    /// Matrices and what is around them.
    pub dense: f64,
    /// Attention.
    pub attention: f64,
    /// What devices send to each other.
    pub links: f64,
    /// The engine's host.
    pub host: f64,
    /// The way in and out.
    pub way: f64,
    /// Seed of what differs from step to step and from request to request; absent for times without any.
    pub noise: Option<u64>,
}

impl Default for Draw {
    fn default() -> Self {
        Self { dense: 1.0, attention: 1.0, links: 1.0, host: 1.0, way: 1.0, noise: None }
    }
}

/// By how much a launch takes longer than the quickest, on average: threads of the engine's process take turns, and other processes
/// of the machine run too. From the median of 66 launches behind a step that decodes, at 8 requests a second (0.15, of an exponential
/// distribution); 38 others at 40 a second then have 0.17 at the median and 0.60 at the 90th percentile, where it says 0.15 and 0.48.
const LAUNCH_NOISE: f64 = 0.21;

/// Standard deviation, in logarithms, of a request's way to the scheduler.
const WAY_NOISE: f64 = 0.3;

/// What differs from step to step.
pub(crate) struct Noise(Option<Random>);

impl Noise {
    pub(crate) fn new(draw: Draw) -> Self {
        Self(draw.noise.map(Random::scattered))
    }

    /// A factor for a launch.
    pub(crate) fn launch(&mut self) -> f64 {
        self.0.as_mut().map_or(1.0 + LAUNCH_NOISE, |dice| 1.0 - LAUNCH_NOISE * (1.0 - dice.unit()).ln())
    }

    /// A factor for a request's way.
    pub(crate) fn way(&mut self) -> f64 {
        self.factor(WAY_NOISE)
    }

    /// A factor that is 1 on average and whose logarithm deviates by so much.
    pub(crate) fn factor(&mut self, deviation: f64) -> f64 {
        let dice = self.0.as_mut().filter(|_| deviation > 0.0);
        dice.map_or(1.0, |dice| (deviation * (dice.normal() - deviation / 2.0)).exp())
    }
}
