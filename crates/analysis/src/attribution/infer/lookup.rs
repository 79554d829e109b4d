//! Forward passes from the look-up of token embeddings, where the trace has shapes.

use types::timeline::{HostOperator, OperatorKind, ThreadId, Timeline};
use types::{Facts, Nanos, Remark};

use super::forward::{Forward, Forwards, Kind, is_sampling};
use crate::time::Span;

/// One look-up: when, and how many positions of each sequence.
struct Lookup {
    start: Nanos,
    positions: u64,
    /// Positions of all sequences in one row, as serving engines do.
    flat: bool,
}

/// Forward passes; `None` where the trace has no look-up with shapes, a reason where they cannot be told apart.
pub(super) fn find(timeline: &Timeline, last: Nanos) -> Option<Result<Forwards, Remark>> {
    let (lookups, thread) = lookups(timeline)?;
    let refused = mixed(&lookups).or_else(|| unproven(timeline, &lookups, thread));
    Some(refused.map_or_else(|| Ok(found(timeline, &lookups, thread, last)), Err))
}

/// Why the look-ups show no generation, if they do not: a token that one pass chooses must be looked up by the next.
fn unproven(timeline: &Timeline, lookups: &[Lookup], thread: ThreadId) -> Option<Remark> {
    let chosen = choices(timeline, thread);
    let chooses = |from: Nanos, to: Nanos| chosen.iter().any(|end| *end > from && *end <= to);
    let is_next = |pair: &[Lookup]| pair[1].positions == 1 && chooses(pair[0].start, pair[1].start);
    let passes = lookups.len();
    (!lookups.windows(2).any(is_next)).then(|| match passes {
        1 => Remark::new("stages.one-pass", Facts::new()),
        _ => Remark::new("stages.unconnected-passes", Facts::new().with("passes", passes)),
    })
}

/// When tokens were chosen, in order.
fn choices(timeline: &Timeline, thread: ThreadId) -> Vec<Nanos> {
    let sampling: Vec<bool> = timeline.names.iter().map(|(_, name)| is_sampling(name)).collect();
    let of_thread =
        |row: &&HostOperator| row.thread == thread && row.kind == OperatorKind::Framework && sampling[row.name.index()];
    let mut chosen: Vec<Nanos> = timeline.operators.iter().filter(of_thread).map(|row| row.end()).collect();
    chosen.sort_unstable();
    chosen
}

/// Look-ups in the largest table of the busiest thread: position tables are smaller than vocabularies.
fn lookups(timeline: &Timeline) -> Option<(Vec<Lookup>, ThreadId)> {
    let name = timeline.names.find("aten::embedding")?;
    let calls = || {
        let embeddings =
            timeline.operators.iter().filter(|row| row.name == name && row.kind == OperatorKind::Framework);
        embeddings.filter_map(|row| {
            let shapes = &timeline.signatures.get(row.signature?).shapes;
            let (table, index) = (shapes.first()?, shapes.get(1)?);
            // A nested tensor is recorded without sides.
            let [rows, _] = table[..] else { return None };
            (!index.is_empty()).then_some((row, rows, index))
        })
    };
    let (thread, rows) = calls().map(|(row, rows, _)| (row.thread, rows)).max_by_key(|(_, rows)| *rows)?;
    let of_table = calls().filter(|(row, table, _)| row.thread == thread && *table == rows);
    let mut lookups: Vec<Lookup> = of_table
        .map(|(row, _, index)| Lookup {
            start: row.start,
            positions: index.last().copied().unwrap_or(0),
            flat: index.len() == 1,
        })
        .collect();
    lookups.sort_by_key(|lookup| lookup.start);
    Some((lookups, thread))
}

/// Why the look-ups tell no stages, if they do not.
fn mixed(lookups: &[Lookup]) -> Option<Remark> {
    // One row of positions may be one prompt, then one token at a time: no more than a first long one.
    let long = lookups.iter().skip(1).filter(|lookup| lookup.flat && lookup.positions > 1).count();
    if long == 0 {
        return None;
    }
    Some(Remark::new("stages.mixed-batches", Facts::new().with("mixed", long).with("passes", lookups.len())))
}

fn found(timeline: &Timeline, lookups: &[Lookup], thread: ThreadId, last: Nanos) -> Forwards {
    let boundaries = boundaries(timeline, lookups, thread, last);
    let forwards: Vec<Forward> = lookups
        .iter()
        .zip(boundaries.windows(2))
        .map(|(lookup, bounds)| Forward {
            kind: if lookup.positions > 1 { Kind::Prefill } else { Kind::Decode },
            span: Span::new(bounds[0], bounds[1]),
        })
        .collect();
    let prefills = forwards.iter().filter(|forward| forward.kind == Kind::Prefill).count();
    let facts = Facts::new().with("prefills", prefills).with("decodes", forwards.len() - prefills);
    Forwards { forwards, thread, evidence: Remark::new("stages.tokens", facts) }
}

/// Where forward passes start, and the end of the last. One starts where the token before it was chosen, else with its
/// look-up.
fn boundaries(timeline: &Timeline, lookups: &[Lookup], thread: ThreadId, trace_end: Nanos) -> Vec<Nanos> {
    let chosen = choices(timeline, thread);
    let last_choice = |from: Nanos, to: Nanos| {
        let before = chosen.partition_point(|end| *end <= to);
        before.checked_sub(1).map(|place| chosen[place]).filter(|end| *end > from)
    };
    let mut boundaries: Vec<Nanos> = lookups.first().map(|lookup| lookup.start).into_iter().collect();
    for pair in lookups.windows(2) {
        boundaries.push(last_choice(pair[0].start, pair[1].start).unwrap_or(pair[1].start));
    }
    let last = lookups.last().map_or(Nanos::ZERO, |lookup| lookup.start);
    boundaries.push(last_choice(last, trace_end).unwrap_or(trace_end));
    boundaries
}
