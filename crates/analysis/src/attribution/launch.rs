//! From device work to the call that launched it, and from that call to the operator around it.

use types::Nanos;
use types::timeline::{OperatorKind, ThreadId, Timeline};

use super::nesting::{ByThread, Open};

/// Stands for "none" in the four-byte places kept per launch and per range.
pub(super) const NONE: u32 = u32::MAX;

/// Which call launched each piece of work.
pub(super) struct Join {
    /// Per work: place in `timeline.calls`.
    pub(super) call: Vec<Option<u32>>,
    /// Work whose number belongs to calls of several processes, with nothing that tells which.
    pub(super) ambiguous: u64,
}

/// Joins work to calls by process and correlation number.
///
/// Some sources number the process of a queue and some do not; an unknown process agrees with any, as long as only one
/// has that number.
pub(super) fn join(timeline: &Timeline) -> Join {
    let correlated = timeline.calls.iter().enumerate();
    let mut calls: Vec<(u64, u32)> =
        correlated.filter_map(|(place, call)| Some((call.correlation?.0.get(), place as u32))).collect();
    if !calls.is_sorted() {
        calls.sort_unstable();
    }
    let mut ambiguous = 0;
    let mut hint = 0;
    let mut find = |work: &types::timeline::DeviceWork| {
        let number = work.correlation?.0.get();
        hint = seek(&calls, hint, number);
        let queue = &timeline.queues[work.queue.0 as usize];
        let mut found: Option<u32> = None;
        for (_, place) in calls[hint..].iter().take_while(|(other, _)| *other == number) {
            let thread = thread_of(timeline, timeline.calls[*place as usize].thread);
            if !(agree(thread.process, queue.process) && agree(thread.rank, queue.rank)) {
                continue;
            }
            match found {
                None => found = Some(*place),
                // A runtime call and the driver call inside it may share the number: the one that began first.
                Some(first) => {
                    let (earlier, other) = (&timeline.calls[first as usize], &timeline.calls[*place as usize]);
                    let process = thread_of(timeline, earlier.thread).process;
                    if process != thread.process {
                        ambiguous += 1;
                        return None;
                    }
                    if other.start < earlier.start {
                        found = Some(*place);
                    }
                }
            }
        }
        found
    };
    let call = timeline.work.iter().map(&mut find).collect();
    Join { call, ambiguous }
}

fn thread_of(timeline: &Timeline, thread: ThreadId) -> &types::timeline::HostThread {
    &timeline.threads[thread.0 as usize]
}

fn agree(one: Option<u32>, other: Option<u32>) -> bool {
    one.is_none() || other.is_none() || one == other
}

/// First place whose number is not below `number`. Work follows its calls, so the search gallops on from the last find.
fn seek(calls: &[(u64, u32)], hint: usize, number: u64) -> usize {
    let mut low = if calls.get(hint).is_some_and(|(first, _)| *first <= number) { hint } else { 0 };
    // Equal numbers before the hint belong to the same group.
    while low > 0 && calls[low - 1].0 == number {
        low -= 1;
    }
    let mut step = 1;
    while calls.get(low + step).is_some_and(|(other, _)| *other < number) {
        low += step;
        step *= 2;
    }
    let high = (low + step).min(calls.len());
    low + calls[low..high].partition_point(|(other, _)| *other < number)
}

/// Calls that launched work, by thread and begin.
#[derive(Clone, Debug)]
pub(super) struct Launches {
    /// Place of each in `timeline.calls`.
    pub(super) calls: ByThread,
    /// Begin of each.
    pub(super) starts: Vec<Nanos>,
    /// Per work: place of its launch here, or [`NONE`].
    pub(super) of_work: Vec<u32>,
}

impl Launches {
    pub(super) fn new(timeline: &Timeline, call_of_work: &[Option<u32>]) -> Self {
        let mut place_of_call = vec![NONE; timeline.calls.len()];
        for call in call_of_work.iter().flatten() {
            place_of_call[*call as usize] = 0;
        }
        let launching = (0..timeline.calls.len() as u32).filter(|call| place_of_call[*call as usize] != NONE);
        let calls = ByThread::new(
            timeline.threads.len(),
            launching.map(|call| (call, timeline.calls[call as usize].thread.0)),
            |call| timeline.calls[call as usize].start,
        );
        for (place, call) in calls.rows.iter().enumerate() {
            place_of_call[*call as usize] = place as u32;
        }
        let starts = calls.rows.iter().map(|call| timeline.calls[*call as usize].start).collect();
        let of_work = call_of_work.iter().map(|call| call.map_or(NONE, |call| place_of_call[call as usize])).collect();
        Self { calls, starts, of_work }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.starts.len()
    }

    /// What each piece of work gets from its launch.
    pub(super) fn per_work<'a>(&'a self, per_launch: &'a [u32]) -> impl Iterator<Item = Option<u32>> + 'a {
        let of_launch = |launch: &u32| Some(*per_launch.get(*launch as usize)?).filter(|place| *place != NONE);
        self.of_work.iter().map(of_launch)
    }
}

/// Per work: the innermost operator of a kind around its launch. Where the launch is not in the trace, the operator the
/// source names for the work itself.
pub(super) fn operators(
    timeline: &Timeline,
    launches: &Launches,
    call_of_work: &[Option<u32>],
    kind: OperatorKind,
) -> Vec<Option<u32>> {
    let of_kind = || {
        let rows = timeline.operators.iter().enumerate().filter(move |(_, row)| row.kind == kind);
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
    if kind == OperatorKind::Framework {
        by_number(timeline, call_of_work, &mut found);
    }
    found
}

/// Fills in, for work without a call in the trace, the operator whose number it carries.
fn by_number(timeline: &Timeline, call_of_work: &[Option<u32>], found: &mut [Option<u32>]) {
    let orphans = timeline.work.iter().zip(call_of_work).any(|(work, call)| call.is_none() && work.operator.is_some());
    if !orphans {
        return;
    }
    let numbered = timeline.operators.iter().enumerate();
    let mut operators: Vec<(u64, u32)> =
        numbered.filter_map(|(place, row)| Some((row.call?.0.get(), place as u32))).collect();
    operators.sort_unstable();
    for ((work, call), found) in timeline.work.iter().zip(call_of_work).zip(found) {
        let (None, None, Some(number)) = (*call, *found, work.operator) else { continue };
        let number = number.0.get();
        let first = operators.partition_point(|(other, _)| *other < number);
        let queue = &timeline.queues[work.queue.0 as usize];
        let mut same = operators[first..].iter().take_while(|(other, _)| *other == number).filter(|(_, place)| {
            agree(thread_of(timeline, timeline.operators[*place as usize].thread).process, queue.process)
        });
        // Two operators with one number in two processes: nothing tells which, so neither.
        if let (Some((_, place)), None) = (same.next(), same.next()) {
            *found = Some(*place);
        }
    }
}
