//! Calls that return only when the device has got somewhere: synchronisations, blocking copies, launches into a full queue.

use std::collections::HashMap;

use types::timeline::{NameId, Timeline, WorkKind};
use types::{IdleCause, Nanos};

use super::latency::Latencies;
use super::node::{Behind, CallNode, NodePlace, Wait};
use super::queues::Queues;

/// Clocks of host and device differ by at most about this.
const SKEW: Nanos = Nanos::new(5_000);
/// With more queues than this, a wait for a device is a wait for the work that it ended with.
const MOST_QUEUES: usize = 32;
/// How many pieces of work are looked at for the one that a call waited for.
const BACK: usize = 64;
/// The part of a copy's call that its last piece may take after it, as one in this many.
const LAST_PIECE: i64 = 100;
/// Pieces of work that wait in a queue before it can be full. CUDA holds 1,024 entries, and a kernel of a graph takes several: queues
/// of graph launches were seen full with 310 kernels.
const DEEP: usize = 200;
/// A full queue holds about as much as it ever does: this share of the most.
const NEARLY: f64 = 0.75;
/// A launch that takes this many times as long as into a short queue waits for room.
const SLOW: i64 = 4;

/// Adds what calls waited for.
pub(super) fn fill(
    timeline: &Timeline,
    queues: &Queues,
    calls: &mut [CallNode],
    launched: &[Option<u32>],
    usual: &Latencies,
) -> HashMap<u32, Vec<u32>> {
    let quick = quickest(timeline, calls);
    copies(timeline, queues, calls, launched);
    synchronisations(timeline, calls, launched, &quick, usual);
    full_queues(timeline, queues, calls, launched);
    waits_for_all(timeline, queues, calls, launched)
}

/// Calls that wait for a whole device, each with the last work of every queue that it had been launched into and that had ended
/// when it returned.
fn waits_for_all(
    timeline: &Timeline,
    queues: &Queues,
    calls: &[CallNode],
    launched: &[Option<u32>],
) -> HashMap<u32, Vec<u32>> {
    let is_device = |name: &str| name.contains("DeviceSynchronize") || name.contains("CtxSynchronize");
    let devices: Vec<bool> = timeline.names.iter().map(|(_, name)| is_device(name)).collect();
    let mut waits = HashMap::new();
    if timeline.queues.len() < 2 || timeline.queues.len() > MOST_QUEUES {
        return waits;
    }
    let is_meant = |call: &CallNode| call.wait.is_some() && devices[timeline.calls[call.row as usize].name.index()];
    for (place, call) in calls.iter().enumerate().filter(|(_, call)| is_meant(call)) {
        let before = |row: u32| {
            launched[row as usize].is_some_and(|launch| calls[launch as usize].span.start <= call.span.start)
        };
        let last = (0..queues.rows.len()).filter_map(|queue| queues.ended(timeline, queue, call.span.end, before));
        waits.insert(place as u32, last.collect());
    }
    waits
}

/// The shortest recorded call of each function: what it costs where it waits for nothing.
fn quickest(timeline: &Timeline, calls: &[CallNode]) -> HashMap<NameId, Nanos> {
    let mut quick: HashMap<NameId, Nanos> = HashMap::new();
    for call in calls {
        let least = quick.entry(timeline.calls[call.row as usize].name).or_insert(call.own);
        *least = call.own.min(*least);
    }
    quick
}

/// A copy that had ended when its call returned kept the host until then. Of pageable memory the last piece may still be under way.
/// What the call costs by itself comes before the copy, once the work before it has ended.
fn copies(timeline: &Timeline, queues: &Queues, calls: &mut [CallNode], launched: &[Option<u32>]) {
    for (row, call) in launched.iter().enumerate().filter_map(|(row, call)| Some((row, (*call)? as usize))) {
        let (work, node) = (&timeline.work[row], &mut calls[call]);
        let is_copy = matches!(work.kind, WorkKind::Copy(_)) && node.kind == Some(IdleCause::Copying);
        let nearly = node.span.end + Nanos::new(node.span.length().get() / LAST_PIECE);
        if is_copy && work.end() <= nearly && work.start >= node.span.start {
            let lag = node.span.end - work.end();
            let ahead = queues.ended(timeline, work.queue.0 as usize, work.start, |other| other != row as u32);
            let free = ahead.map_or(node.span.start, |ahead| timeline.work[ahead as usize].end().max(node.span.start));
            let before = work.start - free;
            let work = Behind { node: NodePlace::new(row as u32), lag };
            // Of several copies of one call the last one counts.
            if node.wait.is_none_or(|wait| wait.work.lag >= lag) {
                node.own = before.min(node.span.length());
                node.wait = Some(Wait { work, until_end: true });
            }
        }
    }
}

fn synchronisations(
    timeline: &Timeline,
    calls: &mut [CallNode],
    launched: &[Option<u32>],
    quick: &HashMap<NameId, Nanos>,
    usual: &Latencies,
) {
    let on_event: Vec<bool> = timeline.names.iter().map(|(_, name)| name.contains("EventSynchronize")).collect();
    let mut ends: Vec<u32> = (0..timeline.work.len() as u32).collect();
    ends.sort_by_key(|row| timeline.work[*row as usize].end());
    // What each call launched last, so that a synchronisation finds what its thread launched before.
    let mut last_of_call: Vec<Option<u32>> = vec![None; calls.len()];
    for (row, call) in launched.iter().enumerate() {
        if let Some(call) = call {
            let last = &mut last_of_call[*call as usize];
            let is_later = |last: u32| timeline.work[last as usize].end() <= timeline.work[row].end();
            if last.is_none_or(is_later) {
                *last = Some(row as u32);
            }
        }
    }
    let process_of = |call: &CallNode| {
        let thread = timeline.calls[call.row as usize].thread;
        timeline.threads[thread.0 as usize].process
    };
    let mut latest: Option<u32> = None;
    for place in 0..calls.len() {
        if calls[place].before.is_none() {
            latest = None;
        }
        if calls[place].kind != Some(IdleCause::Synchronising) {
            latest = last_of_call[place].or(latest);
            continue;
        }
        let (span, process) = (calls[place].span, process_of(&calls[place]));
        let called_before = |row: &u32| match launched[*row as usize].map(|call| &calls[call as usize]) {
            Some(call) => call.span.start <= span.start && process_of(call) == process,
            // Launched before the recording: a call that outlasts it waits for it all the same.
            None => timeline.queues[timeline.work[*row as usize].queue.0 as usize].process == process,
        };
        let until = ends.partition_point(|row| timeline.work[*row as usize].end() <= span.end + SKEW);
        let within = ends[until.saturating_sub(BACK)..until].iter().rev().copied();
        let within = within.take_while(|row| timeline.work[*row as usize].end() > span.start);
        let name = timeline.calls[calls[place].row as usize].name;
        let waited = within.into_iter().find(called_before);
        let found = match waited {
            Some(row) => {
                // What it costs by itself is at most what it takes to return, and what the quickest one took.
                let lag = span.end - timeline.work[row as usize].end();
                let own = quick.get(&name).copied().unwrap_or_default().min(lag.max(Nanos::ZERO));
                Some((row, lag, own.min(span.length())))
            }
            // It did not wait, and would where the host came sooner.
            None if !on_event[name.index()] => latest.and_then(|row| {
                let after = span.end - timeline.work[row as usize].end();
                (after >= Nanos::ZERO).then_some((row, after.min(usual.launch), span.length()))
            }),
            None => None,
        };
        if let Some((row, lag, own)) = found {
            calls[place].own = own;
            calls[place].wait = Some(Wait { work: Behind { node: NodePlace::new(row), lag }, until_end: true });
        }
    }
}

/// A call that launches work, and how much of its queue had not started when it returned.
struct QueuedLaunch {
    call: usize,
    queue: usize,
    depth: usize,
    /// The last work of the queue that had started by then.
    front: Option<u32>,
}

/// Launches into a queue as deep as it ever gets that took far longer than the same launch into a short one: they returned when the
/// device had made room. By itself such a call costs what it costs in a short queue.
fn full_queues(timeline: &Timeline, queues: &Queues, calls: &mut [CallNode], launched: &[Option<u32>]) {
    let launches = queued_launches(timeline, queues, calls, launched);
    let deepest = launches.iter().fold(vec![0; queues.rows.len()], |mut deepest, launch| {
        deepest[launch.queue] = launch.depth.max(deepest[launch.queue]);
        deepest
    });
    let kind = |call: &CallNode| (timeline.calls[call.row as usize].name, call.launched);
    // What each kind of launch takes into short queues; the quickest where none was short.
    let mut costs: HashMap<(NameId, u32), [Vec<Nanos>; 2]> = HashMap::new();
    for launch in &launches {
        let call = &calls[launch.call];
        costs.entry(kind(call)).or_default()[usize::from(launch.depth >= DEEP)].push(call.span.length());
    }
    let cost = |[short, deep]: &mut [Vec<Nanos>; 2]| {
        let middle = short.len().checked_sub(1).map(|last| last / 2);
        middle.map(|middle| *short.select_nth_unstable(middle).1).or(deep.iter().min().copied())
    };
    let costs: HashMap<_, _> = costs.iter_mut().map(|(kind, times)| (*kind, cost(times))).collect();
    for QueuedLaunch { call, queue, depth, front } in launches {
        let (Some(front), Some(own)) = (front, costs[&kind(&calls[call])]) else { continue };
        let is_full = depth >= DEEP && depth as f64 >= NEARLY * deepest[queue] as f64;
        let span = calls[call].span;
        if is_full && span.length().get() > own.get().saturating_mul(SLOW) {
            let lag = span.end - timeline.work[front as usize].start;
            calls[call].own = own;
            calls[call].wait = Some(Wait { work: Behind { node: NodePlace::new(front), lag }, until_end: false });
        }
    }
}

/// Every call that launches, once, with the queue of its first work.
fn queued_launches(
    timeline: &Timeline,
    queues: &Queues,
    calls: &[CallNode],
    launched: &[Option<u32>],
) -> Vec<QueuedLaunch> {
    let mut seen = vec![false; calls.len()];
    let mut launches = Vec::new();
    for (queue, rows) in queues.rows.iter().enumerate() {
        for (place, row) in rows.iter().enumerate() {
            let Some(call) = launched[*row as usize].map(|call| call as usize) else { continue };
            if calls[call].kind.is_some() || std::mem::replace(&mut seen[call], true) {
                continue;
            }
            let end = calls[call].span.end;
            let started = rows.partition_point(|row| timeline.work[*row as usize].start <= end);
            let front = started.min(place).checked_sub(1).map(|front| rows[front]);
            launches.push(QueuedLaunch { call, queue, depth: place.saturating_sub(started), front });
        }
    }
    launches
}
