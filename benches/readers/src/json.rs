//! A torch profiler trace through a JSON crate: events deserialised one after the other, their fields into columns.
//!
//! Values stay tokens until a category needs them, and names are compared by their bytes, as our reader does it; a tree of
//! values would take many times the memory. Times are taken from their text, because a double does not hold them.

use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A value as it stands in the text.
trait Token<'t>: Deserialize<'t> {
    fn text(&self) -> &str;
}

impl<'t> Token<'t> for &'t serde_json::value::RawValue {
    fn text(&self) -> &str {
        self.get()
    }
}

impl<'t> Token<'t> for sonic_rs::LazyValue<'t> {
    fn text(&self) -> &str {
        self.as_raw_str()
    }
}

#[derive(serde::Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
struct Event<T> {
    ph: Option<T>,
    cat: Option<T>,
    name: Option<T>,
    pid: Option<T>,
    tid: Option<T>,
    ts: Option<T>,
    dur: Option<T>,
    args: Option<Arguments<T>>,
}

#[derive(serde::Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
struct Arguments<T> {
    #[serde(rename = "External id", alias = "external id")]
    external_id: Option<T>,
    correlation: Option<T>,
    #[serde(alias = "Device Id")]
    device: Option<T>,
    context: Option<T>,
    stream: Option<T>,
    #[serde(rename = "registers per thread")]
    registers: Option<T>,
    grid: Option<T>,
    block: Option<T>,
    #[serde(alias = "Bytes")]
    bytes: Option<T>,
    #[serde(rename = "Input Dims")]
    shapes: Option<T>,
    #[serde(rename = "Input type")]
    types: Option<T>,
    #[serde(rename = "Input Strides")]
    strides: Option<T>,
}

/// Values kept once, by their text.
#[derive(Default)]
struct Table {
    places: HashMap<Box<str>, u32>,
    scratch: String,
}

impl Table {
    fn place<'p>(&mut self, parts: impl IntoIterator<Item = &'p str>) -> u32 {
        self.scratch.clear();
        for part in parts {
            self.scratch.push_str(part);
            self.scratch.push('\0');
        }
        if let Some(place) = self.places.get(self.scratch.as_str()) {
            return *place;
        }
        let place = self.places.len() as u32;
        self.places.insert(self.scratch.as_str().into(), place);
        place
    }
}

/// What is kept of a trace.
#[derive(Default)]
pub(crate) struct Columns {
    kinds: Vec<Kind>,
    starts: Vec<i64>,
    durations: Vec<i64>,
    event_names: Vec<u32>,
    event_threads: Vec<u32>,
    event_queues: Vec<u32>,
    event_signatures: Vec<u32>,
    correlations: Vec<u32>,
    external_ids: Vec<u32>,
    bytes: Vec<i64>,
    names: Table,
    threads: Table,
    queues: Table,
    signatures: Table,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Kernel,
    CopyOrMemset,
    Call,
    Operator,
    Range,
    Memory,
}

impl Columns {
    fn add<'t, T: Token<'t>>(&mut self, event: &Event<T>) {
        fn text<'e, 't, T: Token<'t>>(token: &'e Option<T>) -> &'e str {
            token.as_ref().map_or("", T::text)
        }
        let kind = match (text(&event.ph), text(&event.cat)) {
            (r#""X""#, r#""kernel""#) => Kind::Kernel,
            (r#""X""#, r#""gpu_memcpy""# | r#""gpu_memset""#) => Kind::CopyOrMemset,
            (r#""X""#, r#""cuda_runtime""# | r#""cuda_driver""#) => Kind::Call,
            (r#""X""#, r#""cpu_op""# | r#""python_function""#) => Kind::Operator,
            (r#""X""#, r#""user_annotation""#) => Kind::Range,
            (r#""i""#, _) if text(&event.name) == r#""[memory]""# => Kind::Memory,
            _ => return,
        };
        let Some(start) = nanoseconds(text(&event.ts)) else { return };
        self.kinds.push(kind);
        self.starts.push(start);
        self.durations.push(nanoseconds(text(&event.dur)).unwrap_or(0));
        self.event_names.push(self.names.place([text(&event.name)]));
        self.event_threads.push(self.threads.place([text(&event.pid), text(&event.tid)]));
        let Some(arguments) = &event.args else { return };
        self.correlations.push(text(&arguments.correlation).parse().unwrap_or(0));
        self.external_ids.push(text(&arguments.external_id).parse().unwrap_or(0));
        self.bytes.push(text(&arguments.bytes).parse().unwrap_or(0));
        let queue = [&arguments.device, &arguments.context, &arguments.stream].map(text);
        self.event_queues.push(self.queues.place(queue));
        let signature = match kind {
            Kind::Kernel => [&arguments.grid, &arguments.block, &arguments.registers].map(text),
            _ => [&arguments.shapes, &arguments.types, &arguments.strides].map(text),
        };
        self.event_signatures.push(self.signatures.place(signature));
    }
}

/// Microseconds with up to three decimals.
fn nanoseconds(text: &str) -> Option<i64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let part: i64 = format!("{part:0<3}").get(..3)?.parse().ok()?;
    whole.parse::<i64>().ok()?.checked_mul(1000)?.checked_add(part)
}

/// The document: an object whose `traceEvents` are read, and nothing else.
struct Document<'c, T>(&'c mut Columns, PhantomData<T>);

/// The list of events.
struct Events<'c, T>(&'c mut Columns, PhantomData<T>);

impl<'t, T: Token<'t>> Visitor<'t> for Document<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a trace")
    }

    fn visit_map<A: MapAccess<'t>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if key == "traceEvents" {
                map.next_value_seed(Events::<T>(self.0, PhantomData))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

impl<'t, T: Token<'t>> DeserializeSeed<'t> for Events<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'t>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'t, T: Token<'t>> Visitor<'t> for Events<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of events")
    }

    fn visit_seq<A: SeqAccess<'t>>(self, mut events: A) -> Result<(), A::Error> {
        while let Some(event) = events.next_element::<Event<T>>()? {
            self.0.add(&event);
        }
        Ok(())
    }
}

pub(crate) fn with_serde_json(bytes: &[u8]) -> Result<Columns, serde_json::Error> {
    let mut columns = Columns::default();
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    deserializer.deserialize_map(Document::<&serde_json::value::RawValue>(&mut columns, PhantomData))?;
    Ok(columns)
}

pub(crate) fn with_sonic_rs(bytes: &[u8]) -> Result<Columns, sonic_rs::Error> {
    let mut columns = Columns::default();
    let mut deserializer = sonic_rs::Deserializer::from_slice(bytes);
    deserializer.deserialize_map(Document::<sonic_rs::LazyValue<'_>>(&mut columns, PhantomData))?;
    Ok(columns)
}

pub(crate) fn print(columns: &Columns) {
    let of = |kind: Kind| columns.kinds.iter().filter(|other| **other == kind).count();
    let kernels = columns.kinds.iter().zip(&columns.durations).filter(|(kind, _)| **kind == Kind::Kernel);
    println!("kernels {}", of(Kind::Kernel));
    println!("kernel_ns {}", kernels.map(|(_, duration)| duration).sum::<i64>());
    println!("calls {}", of(Kind::Call));
    println!("operators {}", of(Kind::Operator));
    println!("ranges {}", of(Kind::Range));
    // Nothing read may be optimised away.
    std::hint::black_box(columns);
}
