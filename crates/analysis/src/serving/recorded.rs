//! Loads on vLLM with the log of its scheduler, recorded on an H200 (`tests/live/h200_serve.sh`, then `tests/live/serving_truth.py`);
//! and one on a server that annotates nothing (`tests/live/h200_plain_server.sh`).

use std::io::Read;

use flate2::read::GzDecoder;
use serde_json::Value;
use types::{Nanos, RequestClock, RequestLog, RequestRecord, RequestSource};

use super::server_steps::{Group, ServerStep, ServerSteps};
use super::simulated::TruePart;
use crate::time::{Span, Spans};

/// A load, and which request got how many tokens in which step.
pub(super) struct Recorded {
    pub(super) steps: ServerSteps,
    pub(super) log: RequestLog,
    /// Of every request: its steps and their tokens.
    pub(super) truth: Vec<Vec<TruePart>>,
    pub(super) preemptions: u64,
}

impl Recorded {
    pub(super) fn read(bytes: &[u8]) -> Self {
        let mut text = String::new();
        GzDecoder::new(bytes).read_to_string(&mut text).unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        let list = |value: &Value| value.as_array().unwrap().clone();
        let time = |value: &Value| Nanos::new(value.as_i64().unwrap());
        let group = |value: &Value| Group { sequences: value[0].as_u64().unwrap(), tokens: value[1].as_u64().unwrap() };
        let step = |(index, row): (usize, Value)| ServerStep {
            index: index as u64,
            host: Span::new(time(&row[0]), time(&row[0]) + time(&row[1])),
            device: Span::new(time(&row[2]), time(&row[3])),
            context: group(&row[4]),
            generation: group(&row[5]),
        };
        // As long as it was busy, as far as that is known.
        let busy = |row: &Value| {
            let (start, end) = (time(&row[2]), time(&row[3]));
            Span::new(row[6].as_i64().map_or(start, |busy| end - Nanos::new(busy)), end)
        };
        let request = |row: Value| RequestRecord {
            due_ns: Some(time(&row[0])),
            chunks_ns: list(&row[1]).iter().map(time).collect(),
            input_tokens: row[2].as_u64(),
            output_tokens: row[3].as_u64(),
            ..RequestRecord::default()
        };
        let steps: Vec<_> = list(&document["steps"]).into_iter().enumerate().map(step).collect();
        let requests: Vec<_> = list(&document["requests"]).into_iter().map(request).collect();
        let mut truth = vec![Vec::new(); requests.len()];
        for (place, step) in list(&document["truth"]).iter().enumerate() {
            for row in list(step) {
                truth[row[0].as_u64().unwrap() as usize].push((place, row[1].as_u64().unwrap(), None));
            }
        }
        Self {
            steps: ServerSteps {
                busy: Spans::union(list(&document["steps"]).iter().map(busy)),
                list: steps,
                ..ServerSteps::default()
            },
            log: RequestLog {
                source: RequestSource::LlmPerf,
                clock: RequestClock::Epoch,
                requests,
                every_chunk: true,
                duration_ns: None,
            },
            truth,
            preemptions: document["preempted"].as_u64().unwrap(),
        }
    }
}
