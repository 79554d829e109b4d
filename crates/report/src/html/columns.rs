//! Events as columns of whole numbers (differences of starts, durations, names by number), deflated and in base64: some five
//! bytes an event. The script draws them; what they are events of is left to others.

use std::collections::HashMap;
use std::io::Write;

use base64::prelude::{BASE64_STANDARD, Engine};
use serde::Serialize;

/// An event in nanoseconds since the first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Event {
    pub(super) start: i64,
    pub(super) length: i64,
    pub(super) name: u32,
    pub(super) depth: u32,
    /// How many were put together.
    pub(super) count: u32,
    /// Of its length: the time of the events in it.
    pub(super) busy: i64,
    /// What else is known of it: its place among the details; zero where nothing is.
    pub(super) detail: u32,
    /// The row of a call; of device work, that of the call that launched it.
    pub(super) row: u32,
}

/// Lanes with events by start.
#[derive(Clone, Debug, Default)]
pub(super) struct Lanes {
    /// When the first event starts, on the clock of the recording.
    pub(super) origin: i64,
    pub(super) span: i64,
    pub(super) names: Vec<String>,
    /// The colour of each name: its place among the classes.
    pub(super) colours: Vec<u32>,
    pub(super) classes: Vec<Class>,
    pub(super) lanes: Vec<Lane>,
    /// Events there are, whether or not some of them are put together.
    pub(super) events: usize,
    /// Events of each name; empty where none are put together.
    pub(super) counts: Vec<u32>,
    /// What the details are made of; the first is empty.
    pub(super) texts: Vec<String>,
    /// Places among the texts: family, stage, operator, shapes, range, launch shape and module.
    pub(super) details: Vec<[u32; 7]>,
    /// Names of device work with its time and calls, longest first.
    pub(super) ranking: Vec<(u32, i64, u64)>,
    /// The run, for what is copied.
    pub(super) reference: String,
    /// What is said below the drawing.
    pub(super) note: String,
}

/// What has a colour of its own, with its words in the legend.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Class {
    pub(super) name: String,
    pub(super) label: String,
}

/// A lane. Its kind says how it is drawn.
#[derive(Clone, Debug, Default)]
pub(super) struct Lane {
    pub(super) name: String,
    pub(super) kind: &'static str,
    /// The rank it is of, by its place.
    pub(super) source: usize,
    /// Its device, where it is of one.
    pub(super) device: Option<u32>,
    pub(super) events: Vec<Event>,
}

impl Lane {
    /// The lane without its events.
    pub(super) fn empty(&self) -> Self {
        let Self { name, kind, source, device, events: _ } = self;
        Self { name: name.clone(), kind, source: *source, device: *device, events: Vec::new() }
    }
}

#[derive(Serialize)]
struct Document<'a> {
    origin: i64,
    span: i64,
    names: &'a [String],
    colours: &'a [u32],
    classes: &'a [Class],
    lanes: Vec<Columns<'a>>,
    events: usize,
    gathered: bool,
    counts: &'a [u32],
    texts: &'a [String],
    details: &'a [[u32; 7]],
    ranking: &'a [(u32, i64, u64)],
    reference: &'a str,
    note: &'a str,
}

#[derive(Serialize)]
struct Columns<'a> {
    name: &'a str,
    kind: &'static str,
    source: usize,
    device: Option<u32>,
    start: Vec<i64>,
    length: Vec<i64>,
    names: Vec<u32>,
    depth: Vec<u32>,
    /// Empty where every event stands for itself, as is `busy`.
    count: Vec<u32>,
    busy: Vec<i64>,
    /// Empty where nothing is known of any.
    detail: Vec<u32>,
    /// Per event of a device: the number of the event that launched it and one, counted through all lanes; else zero.
    link: Vec<i64>,
}

impl Lanes {
    /// The text that goes into the page.
    pub(super) fn encoded(&self) -> Option<String> {
        encoded(&Document {
            origin: self.origin,
            span: self.span,
            names: &self.names,
            colours: &self.colours,
            classes: &self.classes,
            lanes: all_columns(&self.lanes),
            events: self.events,
            gathered: self.lanes.iter().flat_map(|lane| &lane.events).any(|event| event.count > 1),
            counts: &self.counts,
            texts: &self.texts,
            details: &self.details,
            ranking: &self.ranking,
            reference: &self.reference,
            note: &self.note,
        })
    }
}

/// Lanes alone, as JSON.
pub(super) fn json(lanes: &[Lane]) -> String {
    serde_json::json!({ "lanes": all_columns(lanes) }).to_string()
}

/// The lanes, with device work tied to the calls that stand for themselves.
fn all_columns(lanes: &[Lane]) -> Vec<Columns<'_>> {
    let mut numbers: HashMap<(usize, u32), i64> = HashMap::new();
    let mut number = 0;
    for lane in lanes {
        for event in &lane.events {
            number += 1;
            if lane.kind == "calls" && event.count == 1 {
                numbers.insert((lane.source, event.row), number);
            }
        }
    }
    let link = |lane: &Lane| -> Vec<i64> {
        if !["kernels", "copies"].contains(&lane.kind) {
            return Vec::new();
        }
        let launch = |event: &Event| numbers.get(&(lane.source, event.row)).filter(|_| event.count == 1);
        let found: Vec<i64> = lane.events.iter().map(|event| launch(event).copied().unwrap_or_default()).collect();
        if found.iter().any(|number| *number > 0) { found } else { Vec::new() }
    };
    lanes.iter().map(|lane| columns(lane, link(lane))).collect()
}

/// A document as text for the page.
pub(super) fn encoded(document: &impl Serialize) -> Option<String> {
    let json = serde_json::to_vec(document).ok()?;
    let mut deflated = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
    deflated.write_all(&json).ok()?;
    Some(BASE64_STANDARD.encode(deflated.finish().ok()?))
}

/// Each value less the one before it, the first less zero.
pub(super) fn differences(values: impl Iterator<Item = i64>) -> Vec<i64> {
    let mut before = 0;
    values.map(|value| value - std::mem::replace(&mut before, value)).collect()
}

fn columns(lane: &Lane, link: Vec<i64>) -> Columns<'_> {
    let events = &lane.events;
    let gathered = events.iter().any(|event| event.count > 1);
    let detailed = events.iter().any(|event| event.detail > 0);
    Columns {
        name: &lane.name,
        kind: lane.kind,
        source: lane.source,
        device: lane.device,
        start: differences(events.iter().map(|event| event.start)),
        length: events.iter().map(|event| event.length).collect(),
        names: events.iter().map(|event| event.name).collect(),
        depth: events.iter().map(|event| event.depth).collect(),
        count: if gathered { events.iter().map(|event| event.count).collect() } else { Vec::new() },
        busy: if gathered { events.iter().map(|event| event.busy).collect() } else { Vec::new() },
        detail: if detailed { events.iter().map(|event| event.detail).collect() } else { Vec::new() },
        link: differences(link.into_iter()),
    }
}
