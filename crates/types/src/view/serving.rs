//! A load on a server, as its pages show it.

use crate::{Nanos, RequestParts, ServedRequest, Serving};

/// A load on a server.
#[derive(Clone, Debug)]
pub struct ServingView<'a> {
    /// The load.
    pub serving: &'a Serving,
    /// Mean latency of the requests with parts; absent where there are none.
    pub mean_ns: Option<Nanos>,
    /// Parts of a latency that take any time, in the order a request goes through them.
    pub parts: Vec<PartView>,
    /// Requests that did not fail, the slowest first, each with its place in the document.
    pub slowest: Vec<(usize, &'a ServedRequest)>,
    /// Time per output token of each of them with more than one.
    pub per_token_ns: Vec<Nanos>,
    /// How long the fastest output is assumed to take back to its client; absent where clocks need no fit.
    pub assumed_return_ns: Option<Nanos>,
}

/// A part of the latency of all requests that have parts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PartView {
    /// Its name in files.
    pub name: &'static str,
    /// Sum over the requests.
    pub total_ns: Nanos,
    /// Its share of the latency of all of them.
    pub share: Option<f64>,
    /// Median of a request.
    pub p50_ns: Option<Nanos>,
    /// 99th percentile of a request.
    pub p99_ns: Option<Nanos>,
}

impl PartView {
    /// The same part of one request.
    pub fn of(&self, parts: &RequestParts) -> Nanos {
        parts.named().into_iter().find(|(name, _)| *name == self.name).map_or(Nanos::ZERO, |(_, time)| time)
    }
}
