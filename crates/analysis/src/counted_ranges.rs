//! Ranges of a program that mark its steps: `token_12_processing`, `iteration 3`, `batch`.
//!
//! Ranges that differ only in a number are of one kind. A kind marks steps where its name has a word that programs count in
//! time, and where most of the work is launched inside: layers are numbered too, and an optimizer's step is a part of one.

use std::collections::BTreeMap;

use types::Nanos;
use types::timeline::Timeline;

use crate::numbered;
use crate::time::Span;

/// Words that count in time.
const WORDS: [&str; 14] = [
    "step",
    "iter",
    "iteration",
    "token",
    "batch",
    "round",
    "frame",
    "sample",
    "request",
    "pass",
    "loop",
    "trial",
    "repeat",
    "run",
];
/// Fewer show no repetition.
const FEWEST: usize = 3;

/// Ranges of one kind, as places in the timeline.
type Kind = Vec<usize>;

/// The ranges that mark steps, in order of their start; empty where none do. `last` is when the trace ended.
pub(crate) fn counted(timeline: &Timeline, launch: &[Option<u32>], last: Nanos) -> Kind {
    let names: Vec<_> = timeline.names.iter().map(|(_, name)| counts(name).then(|| numbered::kind(name))).collect();
    let mut kinds: BTreeMap<&str, Kind> = BTreeMap::new();
    for (place, range) in timeline.ranges.iter().enumerate() {
        if let Some(kind) = &names[range.name.index()] {
            kinds.entry(kind).or_default().push(place);
        }
    }
    let all: Nanos =
        timeline.work.iter().zip(launch).filter(|(_, call)| call.is_some()).map(|(work, _)| work.duration).sum();
    let found = kinds.into_values().filter_map(|mut kind| {
        kind.sort_by_key(|place| timeline.ranges[*place].start);
        let inside = (kind.len() >= FEWEST).then(|| launched(timeline, launch, &kind, last))??;
        (inside.get() * 2 > all.get()).then_some((kind.len(), inside, kind))
    });
    // The finest: a request has many tokens.
    found.max_by_key(|(count, inside, _)| (*count, *inside)).map(|(.., kind)| kind).unwrap_or_default()
}

/// Whether a name has a word that counts in time.
fn counts(name: &str) -> bool {
    if name.starts_with("Optimizer.") {
        return false;
    }
    let mut words = vec![String::new()];
    let mut before = ' ';
    for letter in name.chars() {
        if !letter.is_ascii_alphabetic() || (letter.is_ascii_uppercase() && before.is_ascii_lowercase()) {
            words.push(String::new());
        }
        if let (true, Some(word)) = (letter.is_ascii_alphabetic(), words.last_mut()) {
            word.push(letter.to_ascii_lowercase());
        }
        before = letter;
    }
    words.iter().any(|word| WORDS.contains(&word.as_str()))
}

/// Time of the work that was launched inside of ranges; `None` where two of a process overlap.
fn launched(timeline: &Timeline, launch: &[Option<u32>], ranges: &[usize], last: Nanos) -> Option<Nanos> {
    let process = |thread: u32| timeline.threads.get(thread as usize).and_then(|thread| thread.process);
    let mut spans: BTreeMap<Option<u32>, Vec<Span>> = BTreeMap::new();
    for range in ranges.iter().map(|place| &timeline.ranges[*place]) {
        let span = Span::new(range.start, range.end.unwrap_or(last));
        spans.entry(process(range.thread.0)).or_default().push(span);
    }
    if spans.values().any(|spans| spans.windows(2).any(|pair| pair[1].start < pair[0].end)) {
        return None;
    }
    let is_inside = |call: u32| {
        let call = &timeline.calls[call as usize];
        let spans = spans.get(&process(call.thread.0)).map(Vec::as_slice).unwrap_or_default();
        let before = spans.partition_point(|span| span.start <= call.start);
        before.checked_sub(1).is_some_and(|place| spans[place].contains(call.start))
    };
    let inside = timeline.work.iter().zip(launch).filter(|(_, call)| call.is_some_and(is_inside));
    Some(inside.map(|(work, _)| work.duration).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_tokens_and_batches_count_in_time_and_layers_do_not() {
        assert!(["token_12_processing", "iteration 3", "TrainStep#4", "batch"].into_iter().all(counts));
        assert!(!["layer_3", "Optimizer.step#SGD.step", "tokenizer_2", "steppe", "decode"].into_iter().any(counts));
    }
}
