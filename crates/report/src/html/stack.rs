//! Frames in frames: time by path. Parts of a path that differ by a number are put together, so that all layers are one frame with
//! their count.
//!
//! It is drawn as the timeline is: a frame starts where the longer ones beside it end, and its width is its time.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use types::Nanos;

use super::columns::{Event, Lane, Lanes};
use super::gather::LEVELS;
use super::names::Names;
use super::palette::Colour;

/// Frames with less than this part of all time are not seen.
const SMALLEST: i64 = 10_000;

/// Frames in frames that are told apart: of deeper paths, the outermost and the innermost. More are not drawn, and a path may be as
/// long as a file wants.
const DEEPEST: usize = LEVELS as usize;

/// A frame and the frames inside it.
#[derive(Default)]
pub(super) struct Frame {
    /// Its time with everything inside it, where the run says; and on the other side of a comparison.
    time: Option<[Nanos; 2]>,
    /// Parts that were put together.
    alike: BTreeSet<String>,
    inside: BTreeMap<String, Frame>,
}

/// A part of a path, after what it has in common with others: stars in place of numbers.
pub(super) type Part<'a> = (Cow<'a, str>, &'a str);

/// The parts of a module's path: numbers of layers and experts are alike.
pub(super) fn modules(path: &str) -> impl Iterator<Item = Part<'_>> {
    path.split('.').map(|part| (if part.parse::<u32>().is_ok() { "*".into() } else { part.into() }, part))
}

/// A range or an operator: numbers that count something are alike, those that are part of a name are not. `step 3` is `step *`;
/// `conv2d` and lines of a file stay.
pub(super) fn counted(part: &str) -> Cow<'_, str> {
    const BEFORE_COUNTS: [char; 8] = [' ', '#', '_', '(', '[', '=', '.', ':'];
    if part.contains(".py") || !part.contains(|c: char| c.is_ascii_digit()) {
        return part.into();
    }
    let (mut kind, mut before, mut in_count) = (String::new(), ' ', false);
    for letter in part.chars() {
        let is_digit = letter.is_ascii_digit();
        let begins = is_digit && !in_count && BEFORE_COUNTS.contains(&before);
        in_count = is_digit && (in_count || begins);
        if begins {
            kind.push('*');
        } else if !in_count {
            kind.push(letter);
        }
        before = letter;
    }
    kind.into()
}

/// How a frame is coloured: by its name and the times of both sides.
pub(super) type Paint = fn(&str, [Nanos; 2]) -> Colour<'static>;

impl Frame {
    /// Adds the time of a path of parts, each with its kind.
    pub(super) fn add<'a>(&mut self, path: impl Iterator<Item = Part<'a>>, time: Option<[Nanos; 2]>) {
        let path: Vec<_> = path.collect();
        let outer = path.len().min(DEEPEST - 1);
        let inner = path.len().saturating_sub(1).max(outer);
        let frame = path.into_iter().enumerate().filter(|(place, _)| *place < outer || *place >= inner);
        let frame = frame.map(|(_, part)| part).fold(self, Self::enter);
        frame.time = match (frame.time, time) {
            (Some(before), Some(more)) => Some([before[0] + more[0], before[1] + more[1]]),
            (before, more) => before.or(more),
        };
    }

    fn enter(&mut self, (kind, part): Part<'_>) -> &mut Self {
        let is_alike = kind != part;
        let frame = self.inside.entry(kind.into_owned()).or_default();
        if is_alike {
            frame.alike.insert(part.to_owned());
        }
        frame
    }

    /// The same with lists that hold nothing but their items in one frame with them: `layers.*`.
    pub(super) fn joined(self) -> Self {
        let join = |(name, frame): (String, Self)| {
            let mut frame = frame.joined();
            match frame.inside.remove("*") {
                Some(items) if frame.inside.is_empty() => {
                    let time = Some(frame.time.unwrap_or_else(|| items.whole()));
                    (format!("{name}.*"), Self { time, ..items })
                }
                items => {
                    frame.inside.extend(items.map(|items| ("*".to_owned(), items)));
                    (name, frame)
                }
            }
        };
        let inside = self.inside.into_iter().map(join).collect();
        Self { inside, ..self }.summed()
    }

    /// With its time, never less than what is inside: parts of one module may be told apart that overlap in time.
    fn summed(mut self) -> Self {
        let [inside, own] = [self.inside(), self.whole()];
        self.time = Some([own[0].max(inside[0]), own[1].max(inside[1])]);
        self
    }

    /// The time of the frames inside it.
    fn inside(&self) -> [Nanos; 2] {
        self.inside.values().map(Self::whole).fold([Nanos::ZERO; 2], |a, b| [a[0] + b[0], a[1] + b[1]])
    }

    /// Its time, which is known of every frame once they are joined.
    fn whole(&self) -> [Nanos; 2] {
        self.time.unwrap_or_else(|| self.inside())
    }

    /// The same time the other way round: what takes it is at the top, what called that is below.
    pub(super) fn inverted(&self) -> Self {
        let mut turned = Self::default();
        self.turn(&mut Vec::new(), &mut turned);
        turned
    }

    fn turn(&self, path: &mut Vec<String>, into: &mut Self) {
        let (whole, inside) = (self.whole(), self.inside());
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
        if self.alike.len() > 1 { format!("{name} ({} together)", self.alike.len()) } else { name.to_owned() }
    }

    /// Frames of at least this time, from the longest on.
    fn place(&self, [start, least]: [i64; 2], depth: u32, names: &mut Names, paint: Paint, events: &mut Vec<Event>) {
        let width = |frame: &Self| frame.whole().into_iter().max().unwrap_or_default().get();
        let mut inside: Vec<_> = self.inside.iter().map(|(name, frame)| (name, frame, width(frame))).collect();
        inside.sort_by_key(|(name, _, time)| (std::cmp::Reverse(*time), *name));
        let mut at = start;
        for (name, frame, length) in inside.into_iter().filter(|(.., time)| *time > least) {
            let times = frame.whole();
            let shown = frame.shown(name);
            let shown = if times[0] == times[1] { shown } else { format!("{shown}: {} → {}", times[0], times[1]) };
            let name = names.text(&shown, &paint(name, times));
            events.push(Event { start: at, length, name, depth, count: 1, busy: length, ..Event::default() });
            if depth < LEVELS {
                frame.place([at, least], depth + 1, names, paint, events);
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
        let whole = root.whole().into_iter().max().unwrap_or_default().get();
        root.place([0, whole / SMALLEST], 0, &mut names, paint, &mut events);
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
        root.place([0, 0], 0, &mut names, shade, &mut events);
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
            root.add(modules(path), time);
        }
        root.add(modules("head.norm"), both(2));
        let expected =
            [("model", 0, 10, 0), ("attention", 0, 5, 1), ("mlp", 5, 3, 1), ("head", 10, 2, 0), ("norm", 10, 2, 1)];
        assert_eq!(placed(&root), rows(&expected));
    }

    #[test]
    fn of_a_path_as_deep_as_a_file_wants_both_ends_are_frames() {
        let path: Vec<String> = (0..100_000).map(|depth| format!("range{depth}")).collect();
        let mut root = Frame::default();
        root.add(modules(&path.join(".")), both(7));
        let frames = placed(&root);
        assert_eq!((frames.len(), frames[0].0.as_str()), (DEEPEST, "range0"));
        assert_eq!(frames[DEEPEST - 1].0, "range99999");
        assert_eq!(placed(&root.joined().inverted())[0].0, "range99999");
    }

    #[test]
    fn layers_are_one_frame_with_their_count_and_the_inverted_graph_has_the_same_time() {
        let mut root = Frame::default();
        for layer in 0..3 {
            root.add(modules(&format!("layers.{layer}.mlp")), both(4));
            root.add(modules(&format!("layers.{layer}.norm")), both(1));
        }
        let root = root.joined();
        let expected = [("layers.* (3 together)", 0, 15, 0), ("mlp", 0, 12, 1), ("norm", 12, 3, 1)];
        assert_eq!(placed(&root), rows(&expected));
        let inverted = root.inverted();
        assert_eq!(inverted.whole(), root.whole());
        let tops: Vec<_> = placed(&inverted).into_iter().filter(|(.., depth)| *depth == 0).collect();
        assert_eq!(tops, rows(&[("mlp", 0, 12, 0), ("norm", 12, 3, 0)]));
    }

    #[test]
    fn a_list_with_time_of_its_own_keeps_it_and_one_that_holds_more_stays_a_frame() {
        let mut root = Frame::default();
        for (path, time) in
            [("layers", 10), ("layers.0", 4), ("layers.1", 4), ("head", 9), ("head.0", 4), ("head.a", 3)]
        {
            root.add(modules(path), both(time));
        }
        let found = placed(&root.joined());
        let expected = [("layers.* (2 together)", 0, 10, 0), ("head", 10, 9, 0), ("*", 10, 4, 1), ("a", 14, 3, 1)];
        assert_eq!(found, rows(&expected));
    }

    #[test]
    fn numbers_that_count_are_alike_and_numbers_of_a_name_are_not() {
        let kinds =
            ["ProfilerStep#12", "execute_context_0(0)_generation_4(17)", "layers.3.mlp", "aten::conv2d"].map(counted);
        assert_eq!(kinds, ["ProfilerStep#*", "execute_context_*(*)_generation_*(*)", "layers.*.mlp", "aten::conv2d"]);
        assert_eq!(counted("model.py(12): forward"), "model.py(12): forward");
    }
}
