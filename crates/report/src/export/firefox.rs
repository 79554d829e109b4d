//! A timeline as <https://profiler.firefox.com> opens it: its processed format, version 47, which later ones read.

use std::collections::HashMap;

use serde_json::{Value, json};
use types::timeline::{NameId, Timeline};

use super::stacks::{Stacks, Track};
use crate::ReportError;

const VERSION: u32 = 47;
const HOST: usize = 0;
const DEVICE: usize = 1;

/// The document.
pub fn firefox_json(timeline: &Timeline, name: &str) -> Result<String, ReportError> {
    let stacks = Stacks::of(timeline);
    let first = stacks.tracks.iter().flat_map(|track| &track.spans).map(|span| span.start.get()).min();
    let first = first.unwrap_or_default();
    let threads = stacks.tracks.iter().enumerate();
    let threads: Vec<Value> = threads.map(|(index, track)| thread(timeline, &stacks, track, index, first)).collect();
    let started = timeline.clock.unix_ns_at_zero.map_or(0.0, |zero| (zero.get().saturating_add(first)) as f64 / 1e6);
    let document = json!({
        "meta": {
            "version": 27,
            "preprocessedProfileVersion": VERSION,
            "product": format!("llm-perf {name}"),
            "interval": 1,
            "startTime": started,
            "processType": 0,
            "stackwalk": 1,
            "symbolicationNotSupported": true,
            "usesOnlyOneStackType": true,
            "doesNotUseFrameImplementation": true,
            "sourceCodeIsNotOnSearchfox": true,
            "sampleUnits": { "time": "ms", "eventDelay": "ms", "threadCPUDelta": "ns" },
            "extensions": { "id": [], "name": [], "baseURL": [], "length": 0 },
            "categories": [
                { "name": "Host", "color": "green", "subcategories": ["Other"] },
                { "name": "Device", "color": "blue", "subcategories": ["Other"] },
            ],
            "markerSchema": [],
        },
        "libs": [],
        "pages": [],
        "threads": threads,
    });
    serde_json::to_string(&document)
        .map_err(|error| ReportError::NotWritable { format: "Firefox profiler", reason: error.to_string() })
}

/// The stacks of one track, with numbers of their own.
#[derive(Default)]
struct Local {
    texts: Vec<NameId>,
    text_numbers: HashMap<NameId, usize>,
    prefixes: Vec<Option<usize>>,
    frames: Vec<usize>,
    stack_numbers: HashMap<u32, usize>,
}

impl Local {
    fn stack(&mut self, stacks: &Stacks, number: u32) -> usize {
        // From the outermost frame that is not there yet inwards.
        let mut missing = Vec::new();
        let mut next = Some(number);
        while let Some(one) = next.filter(|one| !self.stack_numbers.contains_key(one)) {
            missing.push(one);
            next = stacks.table[one as usize].outer;
        }
        for one in missing.into_iter().rev() {
            let stack = stacks.table[one as usize];
            let text = *self.text_numbers.entry(stack.name).or_insert_with(|| {
                self.texts.push(stack.name);
                self.texts.len() - 1
            });
            self.prefixes.push(stack.outer.and_then(|outer| self.stack_numbers.get(&outer).copied()));
            self.frames.push(text);
            self.stack_numbers.insert(one, self.frames.len() - 1);
        }
        self.stack_numbers[&number]
    }
}

fn thread(timeline: &Timeline, stacks: &Stacks, track: &Track, index: usize, first: i64) -> Value {
    let mut local = Local::default();
    let (mut numbers, mut times, mut weights) = (Vec::new(), Vec::new(), Vec::new());
    for span in &track.spans {
        numbers.push(local.stack(stacks, span.stack));
        times.push((span.start.get() - first) as f64 / 1e6);
        weights.push((span.end - span.start).get() as f64 / 1e6);
    }
    let category = if track.is_device { DEVICE } else { HOST };
    let (texts, stacked) = (local.texts.len(), local.frames.len());
    let all = |value: Value, length: usize| vec![value; length];
    let names: Vec<&str> = local.texts.iter().map(|name| timeline.name(*name)).collect();
    // One function and one frame for each text.
    let places: Vec<usize> = (0..texts).collect();
    json!({
        "name": track.name,
        "isMainThread": index == 0,
        "processType": "default",
        "processName": if track.is_device { "devices" } else { "host" },
        "processStartupTime": 0,
        "processShutdownTime": null,
        "registerTime": 0,
        "unregisterTime": null,
        "pausedRanges": [],
        "pid": format!("{}{}", track.process, if track.is_device { " devices" } else { "" }),
        "tid": index,
        "samples": {
            "weightType": "tracing-ms",
            "stack": numbers,
            "time": times,
            "weight": weights,
            "length": track.spans.len(),
        },
        "markers": { "data": [], "name": [], "startTime": [], "endTime": [], "phase": [], "category": [], "length": 0 },
        "stackTable": {
            "frame": local.frames,
            "prefix": local.prefixes,
            "category": all(json!(category), stacked),
            "subcategory": all(json!(0), stacked),
            "length": stacked,
        },
        "frameTable": {
            "address": all(json!(-1), texts),
            "inlineDepth": all(json!(0), texts),
            "category": all(json!(category), texts),
            "subcategory": all(json!(0), texts),
            "func": places,
            "nativeSymbol": all(Value::Null, texts),
            "innerWindowID": all(json!(0), texts),
            "implementation": all(Value::Null, texts),
            "line": all(Value::Null, texts),
            "column": all(Value::Null, texts),
            "length": texts,
        },
        "funcTable": {
            "name": places,
            "isJS": all(json!(false), texts),
            "relevantForJS": all(json!(false), texts),
            "resource": all(json!(-1), texts),
            "fileName": all(Value::Null, texts),
            "lineNumber": all(Value::Null, texts),
            "columnNumber": all(Value::Null, texts),
            "length": texts,
        },
        "resourceTable": { "lib": [], "name": [], "host": [], "type": [], "length": 0 },
        "nativeSymbols": { "libIndex": [], "address": [], "name": [], "functionSize": [], "length": 0 },
        "stringArray": names,
    })
}
