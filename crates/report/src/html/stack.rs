//! Frames in frames: time by path. Numbers in a path are put together, so that all layers are one frame with their count.
//!
//! It is drawn as the timeline is: a frame starts where the longer ones beside it end, and its width is its time.

use std::collections::{BTreeMap, BTreeSet};

use types::Nanos;

use super::columns::{Event, Lane, Lanes};
use super::gather::LEVELS;
use super::names::Names;
use super::palette::Colour;

/// A frame and the frames inside it.
#[derive(Default)]
pub(super) struct Frame {
    /// Its time with everything inside it, where the run says; and on the other side of a comparison.
    time: Option<[Nanos; 2]>,
    /// Numbers that were put together.
    numbers: BTreeSet<String>,
    inside: BTreeMap<String, Frame>,
}

/// How a frame is coloured: by its name and the times of both sides.
pub(super) type Paint = fn(&str, [Nanos; 2]) -> Colour<'static>;

impl Frame {
    /// Adds the time of a path.
    pub(super) fn add<'a>(&mut self, path: impl Iterator<Item = &'a str>, time: Option<[Nanos; 2]>) {
        let frame = path.fold(self, Self::enter);
        frame.time = match (frame.time, time) {
            (Some(before), Some(more)) => Some([before[0] + more[0], before[1] + more[1]]),
            (before, more) => before.or(more),
        };
    }

    /// The frame of a part; parts that are numbers are one.
    fn enter(&mut self, part: &str) -> &mut Self {
        let is_number = part.parse::<u32>().is_ok();
        let frame = self.inside.entry(if is_number { "*" } else { part }.to_owned()).or_default();
        if is_number {
            frame.numbers.insert(part.to_owned());
        }
        frame
    }

    /// Its time, never less than what is inside: parts of one module may be told apart that overlap in time.
    fn whole(&self) -> [Nanos; 2] {
        let inside = self.inside.values().map(Self::whole).fold([Nanos::ZERO; 2], |a, b| [a[0] + b[0], a[1] + b[1]]);
        self.time.map_or(inside, |time| [time[0].max(inside[0]), time[1].max(inside[1])])
    }

    /// The same time the other way round: what takes it is at the top, what called that is below.
    pub(super) fn inverted(&self) -> Self {
        let mut turned = Self::default();
        self.turn(&mut Vec::new(), &mut turned);
        turned
    }

    fn turn(&self, path: &mut Vec<String>, into: &mut Self) {
        let whole = self.whole();
        let inside = self.inside.values().map(Self::whole).fold([Nanos::ZERO; 2], |a, b| [a[0] + b[0], a[1] + b[1]]);
        let own = [whole[0] - inside[0], whole[1] - inside[1]];
        if own != [Nanos::ZERO; 2] && !path.is_empty() {
            let mut frame = &mut *into;
            for part in path.iter().rev() {
                frame = frame.inside.entry(part.clone()).or_default();
                let before = frame.time.unwrap_or_default();
                frame.time = Some([before[0] + own[0], before[1] + own[1]]);
            }
        }
        for (name, frame) in &self.inside {
            path.push(frame.shown(name));
            frame.turn(path, into);
            path.pop();
        }
    }

    /// Its name, with how many were put together.
    fn shown(&self, name: &str) -> String {
        if self.numbers.len() > 1 { format!("{name} ({} together)", self.numbers.len()) } else { name.to_owned() }
    }

    fn place(&self, start: i64, depth: u32, names: &mut Names, paint: Paint, events: &mut Vec<Event>) {
        let width = |frame: &Self| frame.whole().into_iter().max().unwrap_or_default().get();
        let mut inside: Vec<_> = self.inside.iter().map(|(name, frame)| (name, frame, width(frame))).collect();
        inside.sort_by_key(|(name, _, time)| (std::cmp::Reverse(*time), *name));
        let mut at = start;
        for (name, frame, length) in inside.into_iter().filter(|(.., time)| *time > 0) {
            let times = frame.whole();
            let shown = frame.shown(name);
            let shown = if times[0] == times[1] { shown } else { format!("{shown}: {} → {}", times[0], times[1]) };
            let name = names.text(&shown, &paint(name, times));
            events.push(Event { start: at, length, name, depth, count: 1, busy: length, ..Event::default() });
            if depth < LEVELS {
                frame.place(at, depth + 1, names, paint, events);
            }
            at += length;
        }
    }
}

/// Columns of frames by their root; absent with fewer frames than `least`.
pub(super) fn encoded(roots: &[(String, Frame)], paint: Paint, least: usize) -> Option<String> {
    let mut names = Names::default();
    let mut lanes = Vec::new();
    for (name, root) in roots {
        let mut events = Vec::new();
        root.place(0, 0, &mut names, paint, &mut events);
        // Frames at one place are drawn from the outermost in.
        events.sort_by_key(|event| (event.start, event.depth));
        lanes.push(Lane { name: name.clone(), kind: "frames", events, ..Lane::default() });
    }
    lanes.retain(|lane| !lane.events.is_empty());
    let span = lanes.iter().flat_map(|lane| &lane.events).map(|event| event.start + event.length).max()?;
    let events = lanes.iter().map(|lane| lane.events.len()).sum();
    if events < least {
        return None;
    }
    let (names, colours, classes) = names.finish();
    let names = names.iter().map(String::as_str).collect();
    Lanes { span, names, colours, classes, lanes, events, ..Lanes::default() }.encoded()
}

/// One of four shades, so that neighbours are told apart.
pub(super) fn shade(name: &str, _: [Nanos; 2]) -> Colour<'static> {
    let sum = name.bytes().fold(0u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte)));
    Colour::Kind(["frame-0", "frame-1", "frame-2", "frame-3"][(sum % 4) as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(time: i64) -> Option<[Nanos; 2]> {
        Some([Nanos::new(time); 2])
    }

    fn placed(root: &Frame) -> Vec<(String, i64, i64, u32)> {
        let (mut names, mut events) = (Names::default(), Vec::new());
        root.place(0, 0, &mut names, shade, &mut events);
        let (names, ..) = names.finish();
        let row = |event: &Event| (names[event.name as usize].clone(), event.start, event.length, event.depth);
        events.iter().map(row).collect()
    }

    fn rows(rows: &[(&str, i64, i64, u32)]) -> Vec<(String, i64, i64, u32)> {
        rows.iter().map(|(name, start, length, depth)| ((*name).to_owned(), *start, *length, *depth)).collect()
    }

    #[test]
    fn frames_lie_inside_the_frame_around_them_and_the_longest_comes_first() {
        let mut root = Frame::default();
        for (path, time) in [("model", both(10)), ("model.mlp", both(3)), ("model.attention", both(5)), ("head", None)]
        {
            root.add(path.split('.'), time);
        }
        root.add("head.norm".split('.'), both(2));
        let expected =
            [("model", 0, 10, 0), ("attention", 0, 5, 1), ("mlp", 5, 3, 1), ("head", 10, 2, 0), ("norm", 10, 2, 1)];
        assert_eq!(placed(&root), rows(&expected));
    }

    #[test]
    fn layers_are_one_frame_with_their_count_and_the_inverted_graph_has_the_same_time() {
        let mut root = Frame::default();
        for layer in 0..3 {
            root.add(format!("layers.{layer}.mlp").split('.'), both(4));
            root.add(format!("layers.{layer}.norm").split('.'), both(1));
        }
        let expected = [("layers", 0, 15, 0), ("* (3 together)", 0, 15, 1), ("mlp", 0, 12, 2), ("norm", 12, 3, 2)];
        assert_eq!(placed(&root), rows(&expected));
        let inverted = root.inverted();
        assert_eq!(inverted.whole(), root.whole());
        let tops: Vec<_> = placed(&inverted).into_iter().filter(|(.., depth)| *depth == 0).collect();
        assert_eq!(tops, rows(&[("mlp", 0, 12, 0), ("norm", 12, 3, 0)]));
    }
}
