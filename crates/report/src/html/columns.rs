//! Events as columns of whole numbers (differences of starts, durations, names by number), deflated and in base64: some five
//! bytes an event. The script draws them; what they are events of is left to others.

use std::io::Write;

use base64::prelude::{BASE64_STANDARD, Engine};
use serde::Serialize;

/// An event in nanoseconds since the first.
#[derive(Clone, Copy)]
pub(super) struct Event {
    pub(super) start: i64,
    pub(super) length: i64,
    pub(super) name: u32,
    pub(super) depth: u32,
    /// How many were put together.
    pub(super) count: u32,
}

/// Lanes with events by start.
pub(super) struct Lanes<'a> {
    /// When the first event starts, on the clock of the recording.
    pub(super) origin: i64,
    pub(super) span: i64,
    pub(super) names: Vec<&'a str>,
    pub(super) lanes: Vec<Lane>,
    /// Events there are, whether or not some of them are put together.
    pub(super) events: usize,
    /// The first of the names that are causes of idle time, which have colours of their own.
    pub(super) first_cause: Option<u32>,
}

/// A lane. Its kind is its colour.
pub(super) struct Lane {
    pub(super) name: String,
    pub(super) kind: &'static str,
    pub(super) events: Vec<Event>,
}

#[derive(Serialize)]
struct Document<'a> {
    origin: i64,
    span: i64,
    names: &'a [&'a str],
    lanes: Vec<Columns<'a>>,
    events: usize,
    first_cause: Option<u32>,
    gathered: bool,
}

#[derive(Serialize)]
struct Columns<'a> {
    name: &'a str,
    kind: &'static str,
    start: Vec<i64>,
    length: Vec<i64>,
    names: Vec<u32>,
    depth: Vec<u32>,
    /// Empty where every event stands for itself.
    count: Vec<u32>,
}

impl Lanes<'_> {
    /// The text that goes into the page.
    pub(super) fn encoded(&self) -> Option<String> {
        encoded(&Document {
            origin: self.origin,
            span: self.span,
            names: &self.names,
            lanes: self.lanes.iter().map(columns).collect(),
            events: self.events,
            first_cause: self.first_cause,
            gathered: self.lanes.iter().flat_map(|lane| &lane.events).any(|event| event.count > 1),
        })
    }
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

fn columns(lane: &Lane) -> Columns<'_> {
    let events = &lane.events;
    let gathered = events.iter().any(|event| event.count > 1);
    Columns {
        name: &lane.name,
        kind: lane.kind,
        start: differences(events.iter().map(|event| event.start)),
        length: events.iter().map(|event| event.length).collect(),
        names: events.iter().map(|event| event.name).collect(),
        depth: events.iter().map(|event| event.depth).collect(),
        count: if gathered { events.iter().map(|event| event.count).collect() } else { Vec::new() },
    }
}
