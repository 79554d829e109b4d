//! A timeline as <https://www.speedscope.app> opens it: one profile for each stream and thread, on a common time axis.

use std::collections::HashMap;

use serde::Serialize;
use types::timeline::{NameId, Timeline};

use super::stacks::{Stacks, Track};
use crate::ReportError;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    exporter: String,
    name: &'a str,
    active_profile_index: usize,
    shared: Shared<'a>,
    profiles: Vec<Profile>,
}

#[derive(Serialize)]
struct Shared<'a> {
    frames: Vec<Frame<'a>>,
}

#[derive(Serialize)]
struct Frame<'a> {
    name: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Profile {
    r#type: &'static str,
    name: String,
    unit: &'static str,
    start_value: i64,
    end_value: i64,
    samples: Vec<Vec<u32>>,
    weights: Vec<i64>,
}

/// The document.
pub fn speedscope_json(timeline: &Timeline, name: &str) -> Result<String, ReportError> {
    let stacks = Stacks::of(timeline);
    let mut frames = Frames::default();
    let spans = || stacks.tracks.iter().flat_map(|track| &track.spans);
    let first = spans().map(|span| span.start.get()).min().unwrap_or_default();
    let last = spans().map(|span| span.end.get()).max().unwrap_or_default();
    let profiles = stacks.tracks.iter().map(|track| profile(track, &stacks, &mut frames, [first, last])).collect();
    let document = Document {
        schema: "https://www.speedscope.app/file-format-schema.json",
        exporter: format!("llm-perf {}", env!("CARGO_PKG_VERSION")),
        name,
        active_profile_index: 0,
        profiles,
        shared: Shared { frames: frames.order.iter().map(|name| Frame { name: timeline.name(*name) }).collect() },
    };
    serde_json::to_string(&document)
        .map_err(|error| ReportError::NotWritable { format: "speedscope", reason: error.to_string() })
}

/// Frames in the order they are met.
#[derive(Default)]
struct Frames {
    numbers: HashMap<NameId, u32>,
    order: Vec<NameId>,
}

impl Frames {
    fn number(&mut self, name: NameId) -> u32 {
        *self.numbers.entry(name).or_insert_with(|| {
            self.order.push(name);
            self.order.len() as u32 - 1
        })
    }
}

fn profile(track: &Track, stacks: &Stacks, frames: &mut Frames, [first, last]: [i64; 2]) -> Profile {
    let (mut samples, mut weights) = (Vec::new(), Vec::new());
    let mut at = first;
    for span in &track.spans {
        let (start, end) = (span.start.get(), span.end.get());
        if start > at {
            // Nothing ran: an empty stack keeps the tracks on one time axis.
            samples.push(Vec::new());
            weights.push(start - at);
        }
        samples.push(stacks.frames(span.stack).into_iter().map(|name| frames.number(name)).collect());
        weights.push(end - start);
        at = end;
    }
    Profile {
        r#type: "sampled",
        name: track.name.clone(),
        unit: "nanoseconds",
        start_value: 0,
        end_value: last - first,
        samples,
        weights,
    }
}
