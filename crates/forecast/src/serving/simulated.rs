//! What became of a load.

use super::clients::Answer;
use super::moments::Moments;

/// What became of a load.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Simulated {
    /// Requests in their order; absent for those that were refused.
    pub answers: Vec<Option<Answer>>,
    /// Times between tokens of one request, microseconds.
    pub gaps: Vec<f32>,
    /// Requests whose keys and values were dropped.
    pub preemptions: u64,
    /// Steps of all servers.
    pub steps: u64,
    /// Sum of the sequences of all steps.
    pub sequences: u64,
    /// Sum of the tokens that all steps processed.
    pub tokens: u64,
    /// Time of a device's work, microseconds: the mean of the servers.
    pub busy: f64,
    /// The part of it that steps take longer because of prompts.
    pub prompting: f64,
    /// Most of the KV blocks of a server that were in use at once, as a share.
    pub kv_peak: f64,
    /// Servers as their steps began, evenly thinned.
    pub moments: Moments,
}
