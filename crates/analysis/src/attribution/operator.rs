//! The operator around each launch.

use types::timeline::{OperatorKind, Timeline};

use super::correlation::NumberIndex;
use super::launch::{Launches, NONE};
use super::nesting::{ByThread, Open};

/// Per work: the innermost framework operator around its launch. Where the launch is not in the trace, the operator the
/// source names for the work itself.
pub(super) fn innermost(timeline: &Timeline, launches: &Launches, call_of_work: &[Option<u32>]) -> Vec<Option<u32>> {
    let of_kind = || {
        let rows = timeline.operators.iter().enumerate().filter(|(_, row)| row.kind == OperatorKind::Framework);
        rows.map(|(place, row)| (place as u32, row.thread.0))
    };
    if of_kind().next().is_none() {
        return vec![None; timeline.work.len()];
    }
    let row = |place: u32| &timeline.operators[place as usize];
    let order = ByThread::new(timeline.threads.len(), of_kind(), |place| {
        (row(place).start, std::cmp::Reverse(row(place).end()))
    });
    let mut innermost = vec![NONE; launches.len()];
    for thread in 0..timeline.threads.len() {
        let mut open = Open::default();
        let mut next = order.of(thread).iter().peekable();
        for place in launches.calls.span(thread) {
            let moment = launches.starts[place];
            while let Some(operator) = next.next_if(|operator| row(**operator).start <= moment) {
                open.open(*operator, row(*operator).start, row(*operator).end());
            }
            innermost[place] = open.innermost(moment).unwrap_or(NONE);
        }
    }
    let mut found: Vec<Option<u32>> = launches.per_work(&innermost).collect();
    by_number(timeline, call_of_work, &mut found);
    found
}

/// Fills in, for work without a call in the trace, the operator whose number it carries. Two operators with one number:
/// nothing tells which, so neither.
fn by_number(timeline: &Timeline, call_of_work: &[Option<u32>], found: &mut [Option<u32>]) {
    let orphans = timeline.work.iter().zip(call_of_work).any(|(work, call)| call.is_none() && work.operator.is_some());
    if !orphans {
        return;
    }
    let rows = timeline.operators.iter().enumerate();
    let rows = rows.filter_map(|(place, row)| Some((row.call?.0.get(), row.thread, place as u32)));
    let mut operators = NumberIndex::new(timeline, rows, |_, _| NONE);
    for ((work, call), found) in timeline.work.iter().zip(call_of_work).zip(found) {
        let (None, None, Some(number)) = (*call, *found, work.operator) else { continue };
        let mut same = operators.of(number.0.get(), work.queue).filter(|place| *place != NONE);
        if let (Some(place), None) = (same.next(), same.next()) {
            *found = Some(place);
        }
    }
}
