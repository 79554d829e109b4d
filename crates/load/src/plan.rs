//! Everything that decides which requests are sent, and when.

use std::ops::Range;
use std::time::Duration;

use crate::arrivals::{Arrivals, Schedule};
use crate::{LoadError, Prompts, Server};

/// The most requests of a load: a record each is kept in memory.
const MOST_REQUESTS: usize = 10_000_000;

/// A load. The same plan sends the same requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Where requests go.
    pub server: Server,
    /// The model's name, as the server knows it.
    pub model: String,
    /// When requests are due.
    pub arrivals: Arrivals,
    /// What they ask.
    pub prompts: Prompts,
    /// How many are sent.
    pub requests: usize,
    /// Token ids that random prompts are drawn from; ids of special tokens are better left out.
    pub vocabulary: Range<u32>,
    /// Whether to ask for exactly `max_tokens`. Servers that do not know the field may reject it.
    pub ignore_eos: bool,
    /// How long a request may take after it was sent.
    pub timeout: Duration,
    /// Decides everything that is random.
    pub seed: u64,
}

impl Plan {
    /// A load with the defaults of everything else: no vocabulary, exact output lengths, an hour per request, seed 0.
    pub fn new(server: Server, model: &str, arrivals: Arrivals, prompts: Prompts, requests: usize) -> Self {
        let (model, timeout) = (model.to_owned(), Duration::from_secs(3600));
        Self { server, model, arrivals, prompts, requests, vocabulary: 0..0, ignore_eos: true, timeout, seed: 0 }
    }

    /// The schedule, where everything else is right too.
    pub(crate) fn schedule(&self) -> Result<Schedule, LoadError> {
        if !(1..=MOST_REQUESTS).contains(&self.requests) {
            let got = self.requests.to_string();
            return Err(LoadError::Setting { name: "the number of requests", expected: "from 1 to 10000000", got });
        }
        self.prompts.check(&self.vocabulary)?;
        self.arrivals.schedule(self.requests, self.seed)
    }
}
