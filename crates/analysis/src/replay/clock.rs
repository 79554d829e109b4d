//! Moments of the recording, carried over to a replay.

use types::Nanos;

use super::graph::Graph;
use super::node::CallNode;
use super::schedule::Schedule;
use crate::time::{Span, Spans};

/// Where each of these moments is in a replay. A moment keeps its distance to what started or ended last before it, be it a call of a
/// launching thread or device work.
pub(crate) fn moments(graph: &Graph, schedule: &Schedule, moments: &[Nanos]) -> Vec<Nanos> {
    let mut order: Vec<usize> = (0..moments.len()).collect();
    order.sort_by_key(|place| moments[*place]);
    let sorted: Vec<Nanos> = order.iter().map(|place| moments[*place]).collect();
    // Of what ended before the first moment, between the first and the second, and so on: the last.
    let mut last: Vec<Option<(Nanos, Nanos)>> = vec![None; moments.len()];
    let mut latest: Vec<Nanos> = vec![Nanos::new(i64::MIN); moments.len()];
    let mut add = |ended: Nanos, replayed: Nanos| {
        let place = sorted.partition_point(|moment| *moment < ended);
        if let Some(last) = last.get_mut(place) {
            *last = (*last).max(Some((ended, replayed)));
            latest[place] = latest[place].max(replayed);
        }
    };
    let matters = |call: &CallNode| call.launched > 0 || call.wait.is_some();
    for (call, replayed) in graph.calls.iter().zip(&schedule.calls).filter(|(call, _)| matters(call)) {
        add(call.span.start, replayed.start);
        add(call.span.end, replayed.end);
    }
    for (work, replayed) in graph.work.iter().zip(&schedule.work) {
        add(work.span.start, replayed.start);
        add(work.span.end, replayed.end);
    }
    let mut found = vec![Nanos::ZERO; moments.len()];
    let (mut reached, mut floor) = (None, Nanos::new(i64::MIN));
    for (((place, moment), last), latest) in order.into_iter().zip(sorted).zip(last).zip(latest) {
        reached = last.or(reached);
        let replayed = reached.map_or(moment, |(ended, replayed)| replayed + (moment - ended));
        // Time does not run backwards, and what had ended by then has.
        floor = floor.max(replayed).max(latest);
        found[place] = floor;
    }
    found
}

/// How long devices work in a replay on what spans hold: spans cannot take less, wherever they come to lie.
pub(crate) fn busy(graph: &Graph, schedule: &Schedule, spans: &[Span]) -> Nanos {
    let mut order: Vec<Span> = spans.to_vec();
    order.sort_by_key(|span| span.start);
    let held = |recorded: Span| {
        let place = order.partition_point(|span| span.start <= recorded.start);
        place.checked_sub(1).is_some_and(|place| recorded.end <= order[place].end)
    };
    let inside = graph.work.iter().zip(&schedule.work).filter(|(work, _)| held(work.span));
    Spans::union(inside.map(|(_, replayed)| *replayed)).total()
}

/// How long spans take in a replay, all together.
pub(crate) fn total(graph: &Graph, schedule: &Schedule, spans: &[Span]) -> Nanos {
    let ends: Vec<Nanos> = spans.iter().flat_map(|span| [span.start, span.end]).collect();
    moments(graph, schedule, &ends).chunks_exact(2).map(|pair| pair[1] - pair[0]).sum()
}
