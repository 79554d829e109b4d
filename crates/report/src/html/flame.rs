//! The flame graphs of a run: time by module path, time by what launched it, and the same inverted; and that of a comparison, in the
//! colours of change.

use std::collections::{BTreeMap, HashMap};

use types::timeline::{NameId, Timeline};
use types::view::{RunView, TimelineView};
use types::{Change, Nanos, Stage};

use super::palette::Colour;
use super::stack::{Frame, counted, encoded, modules, shade};
use crate::export::{Stacks, native_lanes};

/// Rows of timelines up to which what launched their work is drawn: more would take long to sum.
const MOST_ROWS: usize = 3_000_000;
/// Fewer frames than this are no picture.
const LEAST_FRAMES: usize = 3;
/// Changes up to which a frame counts as unchanged, and from which it has the strongest colour.
const UNCHANGED: f64 = 0.02;
const STRONG: f64 = 0.15;

/// Columns of the flame graph of modules or, without any, of regions, and of the same inverted; absent where too few have a time.
pub(super) fn flames(run: &RunView<'_>, or_regions: bool) -> Option<[String; 2]> {
    let breakdown = &run.metrics.breakdown;
    let mut roots: BTreeMap<String, Frame> = BTreeMap::new();
    let both = |time: Option<Nanos>| time.map(|time| [time; 2]);
    for module in breakdown.modules.iter().filter(|module| !module.path.is_empty()) {
        let stage: Stage = module.stage.top();
        roots.entry(stage.to_string()).or_default().add(modules(&module.path), both(module.measured_ns));
    }
    if roots.is_empty() && or_regions {
        for region in breakdown.regions.iter().filter(|region| !region.segments.is_empty()) {
            let device = region.device.as_ref().map_or("no device".to_owned(), ToString::to_string);
            let root = roots.entry(device).or_default();
            let path = region.segments.iter().map(|part| (counted(part), part.as_str()));
            root.add(path, both(region.total_ns_inclusive));
        }
    }
    both_ways(roots)
}

/// Columns of the flame graph of what launched the work of devices: ranges, operators and, where they were recorded, Python functions;
/// of a host alone, of what ran there. And the same inverted. Absent where nothing is in anything else.
pub(super) fn stacks(ranks: &[(&Timeline, &TimelineView<'_>)]) -> Option<[String; 2]> {
    let rows = |timeline: &Timeline| timeline.work.len() + timeline.operators.len() + timeline.ranges.len();
    if ranks.iter().map(|(timeline, _)| rows(timeline)).sum::<usize>() > MOST_ROWS {
        return None;
    }
    let mut roots: BTreeMap<String, Frame> = BTreeMap::new();
    let mut is_deep = false;
    for (timeline, _) in ranks {
        // Our own engine names modules, which have a graph of their own.
        if native_lanes(timeline).is_some() {
            return None;
        }
        let found = Stacks::of(timeline);
        let of_device = found.tracks.iter().any(|track| track.is_device);
        for track in found.tracks.iter().filter(|track| track.is_device == of_device) {
            let mut times: HashMap<u32, Nanos> = HashMap::new();
            for span in &track.spans {
                *times.entry(span.stack).or_default() += span.end - span.start;
            }
            // Streams of one device are together.
            let root = track.name.split(", stream").next().unwrap_or_default();
            let root = roots.entry(root.to_owned()).or_default();
            for (stack, time) in times {
                let frames = found.frames(stack);
                is_deep |= frames.len() > 1;
                // A kernel is told from its like by every number in its name.
                let last = frames.len().saturating_sub(1);
                let part = |(place, name): (usize, NameId)| match timeline.name(name) {
                    kernel if place == last => (kernel.into(), kernel),
                    name => (counted(name), name),
                };
                root.add(frames.into_iter().enumerate().map(part), Some([time; 2]));
            }
        }
    }
    both_ways(roots).filter(|_| is_deep)
}

/// Columns of frames and of the same inverted.
fn both_ways(roots: BTreeMap<String, Frame>) -> Option<[String; 2]> {
    let roots: Vec<_> = roots.into_iter().map(|(name, root)| (name, root.joined())).collect();
    let inverted: Vec<_> = roots.iter().map(|(name, root)| (name.clone(), root.inverted())).collect();
    Some([encoded(&roots, shade, LEAST_FRAMES)?, encoded(&inverted, shade, LEAST_FRAMES)?])
}

/// Columns of the flame graph of a comparison: as wide as the longer side, in the colour of the change.
pub(super) fn difference(changes: &[Change]) -> Option<String> {
    let mut roots: BTreeMap<String, Frame> = BTreeMap::new();
    for change in changes.iter().filter(|change| !change.name.is_empty()) {
        let root = change.stage.map_or("modules".to_owned(), |stage| stage.top().to_string());
        let [base, with] = [change.base.time_ns, change.with.time_ns].map(Option::unwrap_or_default);
        roots.entry(root).or_default().add(modules(&change.name), Some([base, with]));
    }
    // Modules that one side does not name did not get faster.
    let has = |side: fn(&Change) -> Option<Nanos>| changes.iter().any(|change| side(change).is_some());
    if !has(|change| change.base.time_ns) || !has(|change| change.with.time_ns) {
        return None;
    }
    encoded(&roots.into_iter().map(|(name, root)| (name, root.joined())).collect::<Vec<_>>(), change, LEAST_FRAMES)
}

fn change(_: &str, [base, with]: [Nanos; 2]) -> Colour<'static> {
    let share = (with - base).get() as f64 / base.get().max(1) as f64;
    Colour::Kind(match share {
        _ if base == Nanos::ZERO => "with-only",
        _ if with == Nanos::ZERO => "base-only",
        share if share.abs() < UNCHANGED => "same",
        share if share >= STRONG => "slower-2",
        share if share > 0.0 => "slower-1",
        share if share <= -STRONG => "faster-2",
        _ => "faster-1",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_has_the_colour_of_its_sign_and_size() {
        let colour = |base: i64, with: i64| change("", [Nanos::new(base), Nanos::new(with)]).class();
        let found =
            [(100, 101), (100, 105), (100, 150), (100, 95), (100, 20), (0, 7)].map(|(base, with)| colour(base, with));
        assert_eq!(found, ["k-same", "k-slower-1", "k-slower-2", "k-faster-1", "k-faster-2", "k-with-only"]);
    }
}
