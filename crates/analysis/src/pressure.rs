//! What requests of a load waited for, beyond what one alone would.

use types::{Base, Facts, Nanos};

use crate::statistics::share;

/// The facts that every finding about the latency of requests has; `None` where the time is less than a share of it.
pub(crate) fn latency_facts(time: Nanos, latency: Nanos, least: f64) -> Option<Facts> {
    let part = share(time.get() as f64, latency.get() as f64).filter(|part| *part >= least)?;
    Some(Facts::new().with("time", time).with_share("latency_share", part, Base::Latency))
}

/// Requests at the start of a load that all wait for its first output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cold {
    /// What they wait beyond the usual.
    pub(crate) time: Nanos,
    /// Latency of all requests.
    pub(crate) latency: Nanos,
    /// Requests due before the first output.
    pub(crate) requests: usize,
    /// All requests that were answered.
    pub(crate) all: usize,
    /// From when the first was due to the first output.
    pub(crate) wait: Nanos,
    /// The longest time to first token of later ones.
    pub(crate) longest: Nanos,
    /// The 99th percentile of the time to first token, and that of later requests.
    pub(crate) p99: Nanos,
    pub(crate) p99_later: Nanos,
}

/// What held requests up.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pressure {
    /// Latency of all joined requests.
    pub(crate) latency: Nanos,
    /// Joined requests.
    pub(crate) requests: usize,
    /// Prompts of others in steps of requests that decode.
    pub(crate) interrupted: Interrupted,
    /// Waiting for a first step.
    pub(crate) queue: Queue,
    /// Requests that lost their place in the cache.
    pub(crate) preempted: Preempted,
    /// Output on its way back.
    pub(crate) back: WayBack,
    /// The GPU idle between steps.
    pub(crate) between: Between,
}

/// Decoding held up by prompts of other requests.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Interrupted {
    pub(crate) time: Nanos,
    /// Requests that it concerns.
    pub(crate) requests: usize,
    /// Steps with both.
    pub(crate) steps: usize,
    /// Median device time of these.
    pub(crate) mixed_step: Option<Nanos>,
    /// Median device time of steps without prompts.
    pub(crate) decode_step: Option<Nanos>,
    /// Share of their device time in which nothing runs.
    pub(crate) idle: Option<f64>,
    /// Prompt tokens that take as long as a step without prompts.
    pub(crate) chunk: Option<u64>,
    /// The 99th percentile of the time between two outputs of a request, and the same without what prompts take of their steps.
    pub(crate) gap: Option<Nanos>,
    pub(crate) gap_alone: Option<Nanos>,
}

/// Waiting for a first step.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Queue {
    /// Beyond the shortest, which is the way to the server.
    pub(crate) time: Nanos,
    /// The shortest.
    pub(crate) shortest: Nanos,
    /// The longest.
    pub(crate) longest: Nanos,
    /// Requests that waited longer than a step without prompts takes.
    pub(crate) requests: usize,
    /// What was full meanwhile.
    pub(crate) limit: Option<Limit>,
}

/// What a scheduler has no more of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// Sequences of a step.
    Sequences(u64),
    /// Tokens of a step.
    Tokens(u64),
}

/// Requests that lost their place in the cache.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Preempted {
    pub(crate) time: Nanos,
    pub(crate) requests: usize,
    /// How often.
    pub(crate) times: usize,
    /// Tokens processed again.
    pub(crate) tokens: u64,
}

/// From the last step to the client.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WayBack {
    /// Beyond the shortest.
    pub(crate) time: Nanos,
    pub(crate) shortest: Nanos,
    pub(crate) longest: Nanos,
}

/// Between steps, while requests have steps to come.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Between {
    /// What requests wait for the host while nothing runs.
    pub(crate) time: Nanos,
    /// Pauses in which some request waits.
    pub(crate) pauses: usize,
    /// Idle time of a pause, median.
    pub(crate) median: Option<Nanos>,
    /// The most.
    pub(crate) longest: Nanos,
}
