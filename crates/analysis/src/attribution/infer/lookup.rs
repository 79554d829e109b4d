//! Forward passes from the look-up of token embeddings, where the trace has shapes.

use std::collections::BTreeSet;

use types::timeline::{HostOperator, OperatorKind, ThreadId, Timeline};
use types::{Facts, Nanos, Remark};

use super::forward::{Forward, Forwards, Kind, is_sampling};
use crate::time::Span;

/// Passes of growing length that show that nothing is kept of the tokens before.
const FEWEST_GROWING: usize = 3;

/// One look-up: when, in which table, and how many positions of each sequence.
struct Lookup {
    start: Nanos,
    /// Rows and columns.
    table: (u64, u64),
    positions: u64,
    /// Positions of all sequences in one row, as serving engines do.
    flat: bool,
}

/// Look-ups of one model and what else is known of the thread that makes them.
struct Lookups {
    thread: ThreadId,
    of_model: Vec<Lookup>,
    /// In other tables with as many rows.
    others: Vec<Lookup>,
    /// When tokens were chosen, in order.
    chosen: Vec<Nanos>,
}

/// Forward passes; `None` where the trace has no look-up with shapes, a reason where they cannot be told apart.
pub(super) fn find(timeline: &Timeline, last: Nanos) -> Option<Result<Forwards, Remark>> {
    let lookups = Lookups::of(timeline)?;
    let refused = lookups.mixed().or_else(|| lookups.several_models()).or_else(|| lookups.recomputed());
    let refused = refused.or_else(|| lookups.unproven()).or_else(|| lookups.continued(timeline));
    Some(refused.map_or_else(|| Ok(lookups.forwards(last)), Err))
}

impl Lookups {
    /// In the largest tables of the busiest thread: position tables are smaller than vocabularies.
    fn of(timeline: &Timeline) -> Option<Self> {
        let name = timeline.names.find("aten::embedding")?;
        let calls = || {
            let embeddings =
                timeline.operators.iter().filter(|row| row.name == name && row.kind == OperatorKind::Framework);
            embeddings.filter_map(|row| {
                let shapes = &timeline.signatures.get(row.signature?).shapes;
                let (table, index) = (shapes.first()?, shapes.get(1)?);
                // A nested tensor is recorded without sides.
                let [rows, columns] = table[..] else { return None };
                let positions = *index.last()?;
                Some((row, Lookup { start: row.start, table: (rows, columns), positions, flat: index.len() == 1 }))
            })
        };
        let (row, largest) = calls().max_by_key(|(_, lookup)| lookup.table)?;
        let thread = row.thread;
        let mut all: Vec<Lookup> = calls()
            .filter(|(row, lookup)| row.thread == thread && lookup.table.0 == largest.table.0)
            .map(|(_, lookup)| lookup)
            .collect();
        all.sort_by_key(|lookup| lookup.start);
        let (of_model, others) = all.into_iter().partition(|lookup| lookup.table == largest.table);
        Some(Self { thread, of_model, others, chosen: choices(timeline, thread) })
    }

    /// The last choice after one moment and until another.
    fn last_choice(&self, from: Nanos, to: Nanos) -> Option<Nanos> {
        let before = self.chosen.partition_point(|end| *end <= to);
        before.checked_sub(1).map(|place| self.chosen[place]).filter(|end| *end > from)
    }

    fn chooses(&self, from: Nanos, to: Nanos) -> bool {
        self.last_choice(from, to).is_some()
    }

    /// Positions of several requests in one row. One row may also be one prompt, then one token at a time: no more than a first long
    /// one.
    fn mixed(&self) -> Option<Remark> {
        let long = self.of_model.iter().skip(1).filter(|lookup| lookup.flat && lookup.positions > 1).count();
        let facts = || Facts::new().with("mixed", long).with("passes", self.of_model.len());
        (long > 0).then(|| Remark::new("stages.mixed-batches", facts()))
    }

    /// Another model that reads the same tokens and chooses some itself, as a draft model does.
    fn several_models(&self) -> Option<Remark> {
        let in_turn = self.others.iter().find(|other| {
            let before = self.of_model.partition_point(|lookup| lookup.start < other.start);
            before.checked_sub(1).is_some_and(|place| self.chooses(self.of_model[place].start, other.start))
        })?;
        let ((rows, width), other) = (self.of_model.first()?.table, in_turn.table.1);
        let facts = Facts::new().with("rows", rows).with("width", width).with("other", other);
        Some(Remark::new("stages.several-models", facts))
    }

    /// Each pass over one position more than the one before: the tokens before are processed again for every token.
    fn recomputed(&self) -> Option<Remark> {
        let grows = |one: &Lookup, two: &Lookup| {
            one.positions > 1 && two.positions == one.positions + 1 && self.chooses(one.start, two.start)
        };
        let row =
            self.of_model.chunk_by(grows).max_by_key(|row| row.len()).filter(|row| row.len() >= FEWEST_GROWING)?;
        let facts = Facts::new().with("passes", row.len()).with("first", row[0].positions);
        Some(Remark::new("stages.recomputed", facts.with("last", row[row.len() - 1].positions)))
    }

    /// Why the look-ups show no generation, if they do not: a token that one pass chooses must be looked up by the next.
    fn unproven(&self) -> Option<Remark> {
        let is_next = |pair: &[Lookup]| pair[1].positions == 1 && self.chooses(pair[0].start, pair[1].start);
        let passes = self.of_model.len();
        (!self.of_model.windows(2).any(is_next)).then(|| match passes {
            1 => Remark::new("stages.one-pass", Facts::new()),
            _ => Remark::new("stages.unconnected-passes", Facts::new().with("passes", passes)),
        })
    }

    /// Passes over several positions that attend to more keys than they bring, so that they begin no sequence. Caches of one
    /// length for all passes tell nothing.
    fn continued(&self, timeline: &Timeline) -> Option<Remark> {
        let attention = attention(timeline, self.thread);
        let lengths: BTreeSet<u64> = attention.iter().map(|(_, _, keys)| *keys).collect();
        let is_continued = |place: usize| {
            let (this, next) = (&self.of_model[place], self.of_model.get(place + 1));
            let inside = attention.iter().filter(|(start, queries, _)| {
                *queries == this.positions && *start >= this.start && next.is_none_or(|next| *start < next.start)
            });
            let mut keys = inside.map(|(.., keys)| *keys).peekable();
            this.positions > 1 && keys.peek().is_some() && keys.all(|keys| keys > this.positions)
        };
        let continued = (0..self.of_model.len()).filter(|place| is_continued(*place)).count();
        let facts = || Facts::new().with("continued", continued).with("passes", self.of_model.len());
        (continued > 0 && lengths.len() > 1).then(|| Remark::new("stages.continued", facts()))
    }

    /// A pass over many positions that chooses no token belongs to the pass that does: it is an encoder, or a part of a prompt.
    fn forwards(self, last: Nanos) -> Forwards {
        let boundaries = self.boundaries(last);
        let mut forwards: Vec<Forward> = Vec::new();
        let mut open = None;
        for (place, (lookup, bounds)) in self.of_model.iter().zip(boundaries.windows(2)).enumerate() {
            let start = open.take().unwrap_or(bounds[0]);
            let is_prefill = lookup.positions > 1 || start < bounds[0];
            let next = self.of_model.get(place + 1);
            if lookup.positions > 1 && next.is_some_and(|next| !self.chooses(lookup.start, next.start)) {
                open = Some(start);
                continue;
            }
            let kind = if is_prefill { Kind::Prefill } else { Kind::Decode };
            forwards.push(Forward { kind, span: Span::new(start, bounds[1]) });
        }
        let prefills = forwards.iter().filter(|forward| forward.kind == Kind::Prefill).count();
        let facts = Facts::new().with_known("prefills", (prefills > 0).then_some(prefills as u64));
        let facts = facts.with("decodes", forwards.len() - prefills);
        Forwards { forwards, thread: self.thread, evidence: Remark::new("stages.tokens", facts) }
    }

    /// Where forward passes start, and the end of the last. One starts where the token before it was chosen, else with its
    /// look-up.
    fn boundaries(&self, trace_end: Nanos) -> Vec<Nanos> {
        let mut boundaries: Vec<Nanos> = self.of_model.first().map(|lookup| lookup.start).into_iter().collect();
        for pair in self.of_model.windows(2) {
            boundaries.push(self.last_choice(pair[0].start, pair[1].start).unwrap_or(pair[1].start));
        }
        let last = self.of_model.last().map_or(Nanos::ZERO, |lookup| lookup.start);
        boundaries.push(self.last_choice(last, trace_end).unwrap_or(trace_end));
        boundaries
    }
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

/// Attention of a thread: its start, and how many positions attend to how many.
fn attention(timeline: &Timeline, thread: ThreadId) -> Vec<(Nanos, u64, u64)> {
    let Some(name) = timeline.names.find("aten::scaled_dot_product_attention") else { return Vec::new() };
    let rows = timeline.operators.iter().filter(|row| row.name == name && row.thread == thread);
    let lengths = |row: &HostOperator| {
        let shapes = &timeline.signatures.get(row.signature?).shapes;
        let [queries, keys] = [0, 1].map(|place| shapes.get(place)?.iter().rev().nth(1).copied());
        Some((row.start, queries?, keys?))
    };
    rows.filter_map(lengths).collect()
}
