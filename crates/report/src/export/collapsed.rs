//! Collapsed stacks, one on a line with its time in nanoseconds, as `inferno-flamegraph` and `flamegraph.pl` read them.

use std::collections::BTreeMap;
use std::fmt::Write;

use types::timeline::Timeline;

use super::stacks::Stacks;

/// Device time by the stack that launched it; host time where no device did anything.
pub fn collapsed_stacks(timeline: &Timeline) -> String {
    let stacks = Stacks::of(timeline);
    let of_device = stacks.tracks.iter().any(|track| track.is_device);
    let mut sums: BTreeMap<String, i64> = BTreeMap::new();
    for track in stacks.tracks.iter().filter(|track| track.is_device == of_device) {
        let mut times: BTreeMap<u32, i64> = BTreeMap::new();
        for span in &track.spans {
            *times.entry(span.stack).or_default() += (span.end - span.start).get();
        }
        for (stack, time) in times {
            let frames = stacks.frames(stack).into_iter().map(|name| frame(timeline.name(name)));
            let line = std::iter::once(frame(&track.name)).chain(frames).collect::<Vec<_>>().join(";");
            *sums.entry(line).or_default() += time;
        }
    }
    let mut text = String::new();
    for (stack, time) in sums {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{stack} {time}");
    }
    text
}

/// A semicolon or a line break would end the frame.
fn frame(name: &str) -> String {
    name.chars()
        .map(|c| {
            if c == ';' {
                ':'
            } else if c.is_control() {
                ' '
            } else {
                c
            }
        })
        .collect()
}
