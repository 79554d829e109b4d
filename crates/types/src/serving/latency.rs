//! What requests of a load add up to, with the names and definitions of `vllm bench serve`.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Joules, JsonSchema, Nanos};

/// The load on a server and how it was served.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServedLoad {
    /// Requests that were sent.
    pub requests: u64,
    /// Requests that ran to their end; only these count below.
    pub completed: u64,
    /// Requests that failed.
    pub failed: u64,
    /// From the first request to the last answer.
    pub duration_ns: Option<Nanos>,
    /// Tokens of prompts, of requests that say.
    pub input_tokens: u64,
    /// Tokens of outputs, of requests that say.
    pub output_tokens: u64,
    /// Requests a second, as they were due.
    pub request_rate: Option<f64>,
    /// Requests answered a second.
    pub request_throughput: Option<f64>,
    /// Tokens of prompts a second.
    pub input_throughput: Option<f64>,
    /// Tokens of outputs a second.
    pub output_throughput: Option<f64>,
    /// Most requests in flight at once.
    pub max_concurrency: Option<u64>,
    /// Time to first token.
    pub ttft: Option<Latency>,
    /// Time per output token after the first.
    pub tpot: Option<Latency>,
    /// Time between chunks of output.
    pub itl: Option<Latency>,
    /// End to end.
    pub e2el: Option<Latency>,
    /// Requests that met the objective, where one was given.
    pub goodput: Option<Goodput>,
    /// Energy of the GPUs meanwhile, where they are on the client's machine and count it.
    pub energy: Option<LoadEnergy>,
    /// That energy per token of output.
    pub joules_per_output_token: Option<Joules>,
}

/// Energy that GPUs took during a load, counted by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadEnergy {
    /// Energy.
    pub joules: Joules,
    /// How many GPUs.
    pub gpus: u64,
}

/// A distribution of latencies. Intervals are of 95%, resampled by request.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// Arithmetic mean.
    pub mean: Quantile,
    /// Median.
    pub p50: Quantile,
    /// 90th percentile.
    pub p90: Quantile,
    /// 99th percentile.
    pub p99: Quantile,
    /// Values it is of.
    pub n: u64,
    /// Means of the first and of the second half of the requests, which tell how steady the load was; absent for few.
    pub halves_ns: Option<[Nanos; 2]>,
}

/// A figure of a distribution with its interval; absent where there are too few requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Quantile {
    /// The figure.
    pub ns: Nanos,
    /// Lower end.
    pub low_ns: Option<Nanos>,
    /// Upper end.
    pub high_ns: Option<Nanos>,
}

/// Requests that met an objective.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Goodput {
    /// The objective.
    pub objective: Objective,
    /// Requests that met all of it.
    pub requests: u64,
    /// Of all requests sent.
    pub share: f64,
    /// Those a second.
    pub per_second: Option<f64>,
}

/// The longest latencies that are acceptable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Objective {
    /// Time to first token.
    pub ttft_ns: Option<Nanos>,
    /// Time per output token.
    pub tpot_ns: Option<Nanos>,
    /// Mean time between chunks of one request.
    pub itl_ns: Option<Nanos>,
    /// End to end.
    pub e2el_ns: Option<Nanos>,
}

impl FromStr for Objective {
    type Err = String;

    /// `ttft=200ms,itl=30ms`: names as in `vllm bench serve --goodput`, times with a unit or in milliseconds.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut objective = Self::default();
        for part in text.split([',', ' ']).filter(|part| !part.is_empty()) {
            let (name, time) = part.split_once(['=', ':']).ok_or_else(|| format!("`{part}` has no `=`"))?;
            let limit = Some(milliseconds(time)?);
            match name {
                "ttft" => objective.ttft_ns = limit,
                "tpot" => objective.tpot_ns = limit,
                "itl" => objective.itl_ns = limit,
                "e2el" => objective.e2el_ns = limit,
                _ => return Err(format!("unknown latency `{name}`; expected ttft, tpot, itl or e2el")),
            }
        }
        if objective == Self::default() { Err("name a latency, such as ttft=200ms".to_owned()) } else { Ok(objective) }
    }
}

fn milliseconds(text: &str) -> Result<Nanos, String> {
    let (number, unit) = match (text.strip_suffix("ms"), text.strip_suffix("us"), text.strip_suffix('s')) {
        (Some(number), ..) => (number, 1e6),
        (None, Some(number), _) => (number, 1e3),
        (None, None, Some(number)) => (number, 1e9),
        (None, None, None) => (text, 1e6),
    };
    let nanos =
        number.trim().parse::<f64>().ok().map(|number| number * unit).filter(|nanos| (1.0..1e15).contains(nanos));
    nanos
        .map(|nanos| Nanos::new(nanos.round() as i64))
        .ok_or_else(|| format!("`{text}` is not a time; expected one such as 200ms or 0.2s"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objectives_have_names_and_units() {
        let objective: Objective = "ttft=200ms,itl=0.03s".parse().unwrap();
        assert_eq!(
            (objective.ttft_ns, objective.itl_ns),
            (Some(Nanos::new(200_000_000)), Some(Nanos::new(30_000_000)))
        );
        assert_eq!("e2el:1500".parse::<Objective>().unwrap().e2el_ns, Some(Nanos::new(1_500_000_000)));
        for wrong in ["", "ttft", "ttft=", "ttft=-1ms", "ttft=nan", "speed=1ms", "ttft=1e30s"] {
            assert!(wrong.parse::<Objective>().is_err(), "{wrong}");
        }
    }
}
