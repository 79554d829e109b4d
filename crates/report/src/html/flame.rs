//! The flame graph: time by module path, or by region where a run has no modules.
//!
//! It is drawn as the timeline is: a frame starts where the longer ones beside it end, and its width is its time.

use std::collections::BTreeMap;

use types::view::RunView;
use types::{Nanos, Stage};

use super::columns::{Event, Lane, Lanes};

/// Fewer frames than this are no picture.
const LEAST_FRAMES: usize = 3;

/// A frame and the frames inside it.
#[derive(Default)]
struct Frame<'a> {
    /// Its time with everything inside it, where the run says.
    time: Option<Nanos>,
    inside: BTreeMap<&'a str, Frame<'a>>,
}

impl<'a> Frame<'a> {
    fn add(&mut self, path: impl Iterator<Item = &'a str>, time: Option<Nanos>) {
        let frame = path.fold(self, |frame, name| frame.inside.entry(name).or_default());
        frame.time = match (frame.time, time) {
            (Some(before), Some(more)) => Some(before + more),
            (before, more) => before.or(more),
        };
    }

    /// Never less than what is inside: parts of one module may be told apart that overlap in time.
    fn whole(&self) -> Nanos {
        let inside = self.inside.values().map(Frame::whole).sum();
        self.time.map_or(inside, |time| time.max(inside))
    }
}

/// Columns of the flame graph; absent where too few modules and regions have a time.
pub(super) fn flame(run: &RunView<'_>) -> Option<String> {
    let breakdown = &run.metrics.breakdown;
    let mut roots: BTreeMap<String, Frame<'_>> = BTreeMap::new();
    for module in breakdown.modules.iter().filter(|module| !module.path.is_empty()) {
        let stage: Stage = module.stage.top();
        roots.entry(format!("{stage}, modules")).or_default().add(module.path.split('.'), module.measured_ns);
    }
    if roots.is_empty() {
        for region in breakdown.regions.iter().filter(|region| !region.segments.is_empty()) {
            let device = region.device.as_ref().map_or("no device".to_owned(), ToString::to_string);
            let root = roots.entry(format!("{device}, kernels in ranges")).or_default();
            root.add(region.segments.iter().map(String::as_str), region.total_ns_inclusive);
        }
    }
    let mut names: Vec<&str> = Vec::new();
    let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
    let mut number = |name| {
        *numbers.entry(name).or_insert_with(|| {
            names.push(name);
            names.len() as u32 - 1
        })
    };
    let mut lanes = Vec::new();
    for (name, root) in &roots {
        let mut events = Vec::new();
        place(root, 0, 0, &mut number, &mut events);
        // Frames at one place are drawn from the outermost in.
        events.sort_by_key(|event| (event.start, event.depth));
        lanes.push(Lane { name: name.clone(), kind: "frames", events });
    }
    lanes.retain(|lane| lane.events.iter().any(|event| event.length > 0));
    let span = lanes.iter().flat_map(|lane| &lane.events).map(|event| event.start + event.length).max()?;
    let events = lanes.iter().map(|lane| lane.events.len()).sum();
    if events < LEAST_FRAMES {
        return None;
    }
    Lanes { origin: 0, span, names, lanes, events, first_cause: None }.encoded()
}

fn place<'a>(
    frame: &Frame<'a>,
    start: i64,
    depth: u32,
    number: &mut impl FnMut(&'a str) -> u32,
    events: &mut Vec<Event>,
) {
    let mut inside: Vec<_> = frame.inside.iter().map(|(name, frame)| (*name, frame, frame.whole().get())).collect();
    inside.sort_by_key(|(name, _, time)| (std::cmp::Reverse(*time), *name));
    let mut at = start;
    for (name, frame, time) in inside.into_iter().filter(|(.., time)| *time > 0) {
        events.push(Event { start: at, length: time, name: number(name), depth, count: 1 });
        place(frame, at, depth + 1, number, events);
        at += time;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_lie_inside_the_frame_around_them_and_the_longest_comes_first() {
        let mut root = Frame::default();
        let time = |time| Some(Nanos::new(time));
        root.add(["model"].into_iter(), time(10));
        root.add(["model", "mlp"].into_iter(), time(3));
        root.add(["model", "attention"].into_iter(), time(5));
        root.add(["head"].into_iter(), None);
        root.add(["head", "norm"].into_iter(), time(2));
        let (mut events, mut names) = (Vec::new(), Vec::new());
        let mut number = |name| {
            names.push(name);
            names.len() as u32 - 1
        };
        place(&root, 0, 0, &mut number, &mut events);
        let placed: Vec<_> =
            events.iter().map(|event| (names[event.name as usize], event.start, event.length, event.depth)).collect();
        assert_eq!(
            placed,
            [("model", 0, 10, 0), ("attention", 0, 5, 1), ("mlp", 5, 3, 1), ("head", 10, 2, 0), ("norm", 10, 2, 1)]
        );
    }
}
