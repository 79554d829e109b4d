//! Events in levels, so that none covers another; and fewer events, where a page would hold too many.

use std::collections::HashMap;

use super::columns::{Event, Lane};

/// Frames of a flame graph lie no deeper than this.
pub(super) const LEVELS: u32 = 63;

/// Events by start, each below those that it lies in, at the first level that is free.
pub(super) fn nested(mut events: Vec<Event>) -> Vec<Event> {
    // There may be millions: neither room to grow nor a second list to sort in.
    events.shrink_to_fit();
    events.sort_unstable_by_key(|event| (event.start, std::cmp::Reverse(event.length), event.row, event.name));
    // Ends of what is open at each level.
    let mut open: Vec<i64> = Vec::new();
    for event in &mut events {
        event.length = event.length.max(0);
        let end = event.start + event.length;
        let around = open.iter().rposition(|until| *until > event.start && *until >= end).map_or(0, |level| level + 1);
        let free = (around..open.len()).find(|level| open[*level] <= event.start).unwrap_or(open.len().max(around));
        open.resize(open.len().max(free + 1), i64::MIN);
        open[free] = end;
        event.depth = free as u32;
    }
    events
}

/// Makes lanes hold no more than so many events together: neighbours too short to be seen apart are put together.
pub(super) fn fewer(lanes: &mut [Lane], span: i64, most: usize) {
    // From a fraction of a pixel on, so that no more is put together than must be.
    let mut resolution = span / 50_000;
    // Events of different levels stay apart, however wide the gaps that are closed.
    while lanes.iter().map(|lane| lane.events.len()).sum::<usize>() > most && resolution <= span.saturating_mul(2) {
        for lane in &mut *lanes {
            gather(&mut lane.events, resolution.max(1));
        }
        resolution = resolution.saturating_mul(2).max(1);
    }
}

/// Puts neighbours at one depth together that are short and near each other. What each was busy is kept.
fn gather(events: &mut Vec<Event>, resolution: i64) {
    let mut kept: Vec<Event> = Vec::with_capacity(events.len() / 2);
    let mut last: HashMap<u32, usize> = HashMap::new();
    for event in events.drain(..) {
        let before = last.get(&event.depth).copied();
        let near = before.filter(|index| {
            let before: &Event = &kept[*index];
            let gap = event.start - (before.start + before.length);
            event.length < resolution
                && gap < resolution
                && before.length + event.length + gap.max(0) < resolution.saturating_mul(4)
        });
        match near {
            Some(index) => {
                let before = &mut kept[index];
                before.length = before.length.max(event.start + event.length - before.start);
                before.count += event.count;
                before.busy += event.busy;
                before.detail = 0;
            }
            None => {
                last.insert(event.depth, kept.len());
                kept.push(event);
            }
        }
    }
    *events = kept;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(times: impl IntoIterator<Item = (i64, i64)>) -> Vec<Event> {
        let event = |(start, length)| Event { start, length, busy: length, count: 1, ..Event::default() };
        times.into_iter().map(event).collect()
    }

    #[test]
    fn nesting_and_gathering_keep_every_event_and_all_of_its_time() {
        let nested_events = nested(events([(0, 100), (10, 20), (40, 5), (120, 1)]));
        assert_eq!(nested_events.iter().map(|event| event.depth).collect::<Vec<_>>(), [0, 1, 1, 0]);
        let mut many = nested(events((0..1000).map(|index| (index * 10, 5))));
        gather(&mut many, 50);
        assert!(many.len() < 100, "{}", many.len());
        assert_eq!(many.iter().map(|event| event.count).sum::<u32>(), 1000);
        assert_eq!(many.iter().map(|event| event.busy).sum::<i64>(), 5000);
        assert!(many.windows(2).all(|pair| pair[0].start + pair[0].length <= pair[1].start));
    }

    #[test]
    fn no_event_covers_another_of_its_level() {
        // The second reaches beyond the first, the third beyond the second.
        let levels = nested(events([(0, 50), (40, 80), (60, 100), (70, 5), (125, 5)]));
        for (index, one) in levels.iter().enumerate() {
            let covers = |other: &&Event| other.depth == one.depth && other.start < one.start + one.length;
            assert_eq!(levels[index + 1..].iter().find(covers).map(|other| other.start), None);
        }
        assert_eq!(levels.iter().map(|event| event.depth).collect::<Vec<_>>(), [0, 1, 0, 2, 1]);
    }
}
