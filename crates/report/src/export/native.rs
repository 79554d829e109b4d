//! The operators of our own engine as trace events: lanes for stages, modules, operators and lost time.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use types::timeline::{HostThread, ThreadId, Timeline};
use types::{Nanos, OperatorRecord, Stage};

use super::perfetto::{Arguments, Event, Row, document};
use crate::ReportError;

/// Process that the lanes are shown in.
const ENGINE: u64 = 1;
/// Lanes, in the order they are shown.
const LANES: [(u64, &str); 4] = [(1, "stages"), (2, "modules"), (3, "operators"), (4, "lost time")];

/// What the lane of each thread is called, in a timeline that was read from such a document. No other has ranges on its first two
/// threads alone and operators on its third alone.
pub(crate) fn native_lanes(timeline: &Timeline) -> Option<Vec<&'static str>> {
    let lane = |thread: &HostThread| {
        let is_ours = thread.process.map(u64::from) == Some(ENGINE);
        LANES.iter().find(|(lane, _)| is_ours && thread.thread == Some(*lane)).copied()
    };
    let lanes: Vec<_> = timeline.threads.iter().map(lane).collect::<Option<_>>()?;
    let number = |thread: ThreadId| lanes.get(thread.0 as usize).map_or(0, |(lane, _)| *lane);
    let is_ours = timeline.work.is_empty()
        && timeline.calls.is_empty()
        && timeline.operators.iter().all(|one| number(one.thread) == 3)
        && timeline.ranges.iter().all(|one| [1, 2].contains(&number(one.thread)))
        && lanes.iter().any(|(lane, _)| *lane == 1);
    is_ours.then(|| lanes.into_iter().map(|(_, name)| name).collect())
}

/// One call of an operator.
#[derive(Clone, Copy, Debug)]
pub struct TracedOperator<'a> {
    /// The call.
    pub record: &'a OperatorRecord,
    /// Class of its module.
    pub class: &'a str,
    /// Its roofline time; absent where the device's rates are not known.
    pub roofline: Option<Nanos>,
}

/// The document, compressed as it is kept.
pub fn native_packed(calls: &[TracedOperator<'_>]) -> Result<Vec<u8>, ReportError> {
    let failed = |error: std::io::Error| ReportError::NotWritable { format: "gzip", reason: error.to_string() };
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(native_json(calls)?.as_bytes()).map_err(failed)?;
    packed.finish().map_err(failed)
}

/// What [`native_packed`] packed; the error is that it did not.
pub fn native_unpacked(packed: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    GzDecoder::new(packed).read_to_end(&mut text)?;
    Ok(text)
}

/// The document. Calls are in the order of time. Modules are as long as their operators take from the first to the last; what an
/// operator takes beyond its roofline time is lost, and is shown at its end.
fn native_json(calls: &[TracedOperator<'_>]) -> Result<String, ReportError> {
    let mut events = vec![Event::row_name("process_name", ENGINE, None, "native engine".to_owned())];
    events.extend(LANES.map(|(lane, name)| Event::row_name("thread_name", ENGINE, Some(lane), name.to_owned())));
    let mut stages = Spans::default();
    let mut modules = Spans::default();
    let mut top = None;
    for call in calls {
        let TracedOperator { record, class, roofline } = *call;
        let (start, duration) = (record.start_ns, record.duration_ns);
        let (stage, module) = (record.stage.map(stage_path), record.module.as_deref());
        stages.visit(&stage.unwrap_or_default(), [start, duration]);
        // What decode visits again is not what prefill visited, however soon.
        let within = record.stage.map(Stage::top);
        if std::mem::replace(&mut top, within) != within {
            modules.close(0);
        }
        modules.visit(&module.map(prefixes).unwrap_or_default(), [start, duration]);
        let arguments = Arguments::of_call(module, Some(class), Some(&record.shapes));
        events.push(Event::complete("cpu_op", record.name.as_str().into(), row(3), [start, duration], arguments));
        if let Some(lost) = roofline.map(|least| duration - least).filter(|lost| *lost > Nanos::ZERO) {
            let span = [start + duration - lost, lost];
            let arguments = Arguments::of_call(module, None, None);
            events.push(Event::complete("lost", record.name.as_str().into(), row(4), span, arguments));
        }
    }
    for (lane, spans) in [(1, stages.finish()), (2, modules.finish())] {
        events.extend(spans.into_iter().map(|(name, span)| {
            Event::complete("user_annotation", name.into(), row(lane), span, Arguments::default())
        }));
    }
    document(events, None)
}

fn row(thread: u64) -> Row {
    Row { process: ENGINE, thread }
}

/// A stage within those it is a part of, the outermost first.
fn stage_path(stage: Stage) -> Vec<String> {
    let mut path: Vec<String> =
        std::iter::successors(Some(stage), |stage| stage.parent()).map(|stage| stage.to_string()).collect();
    path.reverse();
    path
}

/// `a.b.c` as `a`, `a.b` and `a.b.c`.
fn prefixes(path: &str) -> Vec<String> {
    let ends = path.match_indices('.').map(|(at, _)| at).chain([path.len()]);
    ends.filter(|end| *end > 0).map(|end| path[..end].to_owned()).collect()
}

/// Nested spans that grow with what is visited in them, and end when something outside of them is.
#[derive(Default)]
struct Spans {
    open: Vec<(String, Nanos)>,
    end: Nanos,
    closed: Vec<(String, [Nanos; 2])>,
}

impl Spans {
    fn visit(&mut self, path: &[String], [start, duration]: [Nanos; 2]) {
        let same = self.open.iter().zip(path).take_while(|((name, _), wanted)| name == *wanted).count();
        self.close(same);
        self.open.extend(path[same..].iter().map(|name| (name.clone(), start)));
        self.end = start + duration;
    }

    fn close(&mut self, keep: usize) {
        let end = self.end;
        let ended = self.open.drain(keep..).rev();
        self.closed.extend(ended.map(|(name, start)| (name, [start, end - start])));
    }

    /// All of them, the outer before the inner: of two as long as each other, viewers take the first for the outer one.
    fn finish(mut self) -> Vec<(String, [Nanos; 2])> {
        self.close(0);
        self.closed.reverse();
        self.closed.sort_by_key(|(_, [start, duration])| (*start, std::cmp::Reverse(*duration)));
        self.closed
    }
}

#[cfg(test)]
mod tests {
    use types::ClockId;

    use super::*;

    fn record(module: &str, stage: Stage, start: i64, duration: i64) -> OperatorRecord {
        OperatorRecord {
            name: "matmul".to_owned(),
            module: Some(module.to_owned()),
            stage: Some(stage),
            shapes: vec![vec![2, 3]],
            dtype: None,
            clock: ClockId(0),
            start_ns: Nanos::new(start),
            duration_ns: Nanos::new(duration),
            bytes_allocated: None,
        }
    }

    #[test]
    fn stages_modules_operators_and_lost_time_have_lanes() {
        let records = [
            record("model.sam", Stage::Sam, 1_000, 4_000),
            record("model.layers.0.mlp", Stage::Prefill, 6_000, 2_000),
            record("model.layers.1.mlp", Stage::Prefill, 9_000, 1_000),
            record("model.layers.0.mlp", Stage::Decode, 20_000, 1_000),
        ];
        let call = |record| TracedOperator { record, class: "MLP", roofline: Some(Nanos::new(1_000)) };
        let calls: Vec<_> = records.iter().map(call).collect();
        let text = native_json(&calls).unwrap();
        assert_eq!(native_unpacked(&native_packed(&calls).unwrap()).unwrap(), text.as_bytes());
        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
        let lane = |lane: u64| -> Vec<(String, f64, f64)> {
            let events = document["traceEvents"].as_array().unwrap().iter();
            let found = events.filter(|event| event["ph"] == "X" && event["tid"] == lane);
            let mut found: Vec<_> = found
                .map(|event| {
                    let number = |key: &str| event[key].as_f64().unwrap();
                    (event["name"].as_str().unwrap().to_owned(), number("ts"), number("dur"))
                })
                .collect();
            found.sort_by(|one, other| one.1.total_cmp(&other.1).then(other.2.total_cmp(&one.2)));
            found
        };
        let named = |name: &str, start, duration| (name.to_owned(), start, duration);
        assert_eq!(
            lane(1),
            [named("prefill", 1.0, 9.0), named("vision", 1.0, 4.0), named("sam", 1.0, 4.0), named("decode", 20.0, 1.0)]
        );
        let modules = lane(2);
        assert!(modules.contains(&named("model.layers", 6.0, 4.0)), "{modules:?}");
        assert!(modules.contains(&named("model.layers.1.mlp", 9.0, 1.0)), "{modules:?}");
        assert_eq!(lane(3).len(), 4);
        assert_eq!(lane(4), [named("matmul", 2.0, 3.0), named("matmul", 7.0, 1.0)]);
    }
}
