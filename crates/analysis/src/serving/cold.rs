//! Requests at the start of a load that all wait for its first output, as while a server compiles or uses something first.

use types::{Nanos, RequestLog, RequestRecord};

use crate::pressure::Cold;
use crate::statistics::percentile;

/// Fewer later requests do not show what is usual.
const FEWEST: usize = 20;
/// How many times as long as the longest later wait the first one has to be.
const MUCH_LONGER: f64 = 3.0;

/// The cold start of a load. Later requests show how long a first token takes at most; as many prompts at once as the load starts
/// with, or longer ones, may take that much longer.
pub(super) fn cold(log: &RequestLog) -> Option<Cold> {
    let completed = log.requests.iter().filter(|request| request.succeeded());
    let mut requests: Vec<(Nanos, Nanos, &RequestRecord)> =
        completed.filter_map(|request| Some((request.due_ns?, request.first_token()?, request))).collect();
    requests.sort_by_key(|(due, ..)| *due);
    let first_due = requests.first()?.0;
    let first_output = requests.iter().map(|(due, wait, _)| *due + *wait).min()?;
    let (early, later) = requests.split_at(requests.partition_point(|(due, ..)| *due < first_output));
    let waits = |requests: &[(Nanos, Nanos, &RequestRecord)]| -> Vec<f64> {
        requests.iter().map(|(_, wait, _)| wait.get() as f64).collect()
    };
    let nanos = |time: f64| Nanos::new(time.round() as i64);
    let later_waits = waits(later);
    let (usual, longest) = (percentile(&later_waits, 0.5)?, percentile(&later_waits, 1.0)?);
    let together = requests.partition_point(|(due, ..)| *due <= first_due + nanos(usual));
    let longest_prompt = |requests: &[(Nanos, Nanos, &RequestRecord)]| {
        requests.iter().filter_map(|(.., request)| request.input_tokens).max().unwrap_or(1).max(1) as f64
    };
    let scale = together as f64 * (longest_prompt(early) / longest_prompt(later)).max(1.0);
    let wait = first_output - first_due;
    if later.len() < FEWEST || (wait.get() as f64) < MUCH_LONGER * longest * scale {
        return None;
    }
    let lost = early.iter().map(|(due, ..)| (first_output - *due - nanos(usual)).max(Nanos::ZERO)).sum();
    Some(Cold {
        time: lost,
        latency: requests.iter().filter_map(|(.., request)| request.latency()).sum(),
        requests: early.len(),
        all: requests.len(),
        wait,
        longest: nanos(longest),
        p99: percentile(&waits(&requests), 0.99).map(nanos)?,
        p99_later: percentile(&later_waits, 0.99).map(nanos)?,
    })
}

#[cfg(test)]
mod tests {
    use types::{RequestClock, RequestSource};

    use super::*;

    /// Requests 10 ms apart that each wait so many milliseconds for their only output.
    fn log(waits: impl IntoIterator<Item = i64>, together: usize) -> RequestLog {
        let request = |(place, wait): (usize, i64)| RequestRecord {
            due_ns: Some(Nanos::new(place.saturating_sub(together - 1) as i64 * 10_000_000)),
            chunks_ns: vec![Nanos::new(wait * 1_000_000)],
            input_tokens: Some(100),
            ..RequestRecord::default()
        };
        RequestLog {
            source: RequestSource::LlmPerf,
            clock: RequestClock::Monotonic,
            requests: waits.into_iter().enumerate().map(request).collect(),
            every_chunk: true,
            duration_ns: None,
        }
    }

    #[test]
    fn requests_that_wait_for_a_server_to_compile_are_cold() {
        let waits = || [38, 28, 18].into_iter().chain(vec![8; 41]);
        // Due at 0, 10, 20, ... ms; the first four have their output after 38 ms.
        let found = cold(&log(waits(), 1)).unwrap();
        assert_eq!((found.requests, found.all, found.wait), (4, 44, Nanos::new(38_000_000)));
        assert_eq!((found.longest, found.time), (Nanos::new(8_000_000), Nanos::new((30 + 20 + 10) * 1_000_000)));
        // Two prompts at once may take twice as long, and one that is four times as long four times.
        assert_eq!(cold(&log([38, 38].into_iter().chain(vec![8; 41]), 2)), None);
        let mut long = log(waits(), 1);
        long.requests[0].input_tokens = Some(400);
        assert_eq!(cold(&long), None);
        // Nor is anything said where later requests wait as long, or where there are few.
        assert_eq!(cold(&log(waits().chain([30]), 1)), None);
        assert_eq!(cold(&log(waits().take(20), 1)), None);
    }
}
