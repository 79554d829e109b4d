//! A load from its first request to its last record.
//!
//! Four kinds of threads: one makes bodies ahead of their time, one waits until requests are due (the timers of an event loop
//! count in milliseconds), two have requests in flight, and the caller's collects records and reports progress.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use types::{Nanos, RequestClock, RequestLog, RequestRecord, RequestSource};

use crate::arrivals::Schedule;
use crate::client::{Client, DueRequest};
use crate::clock::{ClockPair, monotonic};
use crate::outcome::{Outcome, doubts};
use crate::plan::Plan;
use crate::source::Source;
use crate::worker::{Work, Worker, WorkerHealth, event_loop};
use crate::{LoadError, open_files};

/// Threads that have requests in flight.
const WORKERS: usize = 2;
/// How often progress is reported and the stop flag read.
const REPORT: Duration = Duration::from_millis(100);
/// The longest sleep without a look at the stop flag.
const NAP: Nanos = Nanos::new(20_000_000);
/// Time for threads to start before the first request is due.
const LEAD: Nanos = Nanos::new(5_000_000);

/// How far a load is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Requests of the plan.
    pub planned: usize,
    /// Requests that ended, failed ones included.
    pub ended: usize,
    /// Requests that failed.
    pub failed: usize,
}

/// What the calling thread watches while the load runs.
struct Watched<'a> {
    /// Whether the caller wants to stop.
    stop: &'a AtomicBool,
    /// Tells the workers.
    stopper: watch::Sender<bool>,
    /// Records and their numbers; ends with the last worker.
    records: Receiver<(usize, RequestRecord)>,
}

/// Sends a load and waits for its responses. Requests that fail are records with an error; only a load that cannot be sent at
/// all is an error.
///
/// Progress is reported ten times a second on the calling thread. A stop flag that turns true ends the load within a tenth of
/// a second: requests in flight are recorded as stopped, later ones not at all.
pub fn run(plan: &Plan, stop: &AtomicBool, progress: &mut dyn FnMut(Progress)) -> Result<Outcome, LoadError> {
    let schedule = plan.schedule()?;
    open_files::allow(if let Schedule::Slots(slots) = schedule { slots } else { 1 })?;
    let addresses = plan.server.resolve()?;
    let event_loops = (0..WORKERS).map(|_| event_loop()).collect::<Result<Vec<_>, _>>()?;
    let (source, maker) = Source::new(plan);

    let clocks = ClockPair::read();
    let (stopper, stopped) = watch::channel(false);
    let (sender, records) = channel();
    let client = Client::new(plan, clocks.epoch_ns, stopped);
    let watched = Watched { stop, stopper, records };
    let new_worker = || Worker::new(client.clone(), &addresses, sender.clone());
    let workers: Vec<Worker> = (0..WORKERS).map(|_| new_worker()).collect();
    drop(sender);

    let start = monotonic() + LEAD;
    let (records, health) = thread::scope(|scope| {
        scope.spawn(|| maker.work(plan));
        let work = divide(scope, schedule, source, start, stop);
        let parts = workers.into_iter().zip(event_loops).zip(work);
        let start_worker = |((worker, events), work): ((Worker, _), _)| scope.spawn(move || worker.run(&events, work));
        let threads: Vec<_> = parts.map(start_worker).collect();
        let records = watched.collect(plan.requests, progress);
        (records, threads.into_iter().map(|thread| thread.join().expect("workers do not panic")).collect::<Vec<_>>())
    });
    Ok(outcome(records, &health, start, clocks))
}

/// The work of each worker. Where requests have times of their own, a thread waits for them.
fn divide<'scope>(
    scope: &'scope Scope<'scope, '_>,
    schedule: Schedule,
    source: Source,
    start: Nanos,
    stop: &'scope AtomicBool,
) -> Vec<Work> {
    match schedule {
        Schedule::Slots(slots) => {
            let source = Arc::new(source);
            let part = |worker| (slots + worker) / WORKERS;
            (0..WORKERS).map(|worker| Work::Slots(part(worker), source.clone())).collect()
        }
        Schedule::Due(due) => {
            let (senders, receivers): (Vec<_>, Vec<_>) = (0..WORKERS).map(|_| unbounded_channel()).unzip();
            scope.spawn(move || pace(&source, &due, start, &senders, stop));
            receivers.into_iter().map(Work::Due).collect()
        }
    }
}

/// Passes requests to the workers when they are due, in turn.
fn pace(source: &Source, due: &[Nanos], start: Nanos, workers: &[UnboundedSender<DueRequest>], stop: &AtomicBool) {
    for due in due {
        let Some((index, body)) = source.next() else { return };
        let request = DueRequest { index, body, due: start + *due };
        if !sleep_until(request.due, stop) || workers[index % WORKERS].send(request).is_err() {
            return;
        }
    }
}

/// Sleeps until a time; false where the load was stopped before.
fn sleep_until(time: Nanos, stop: &AtomicBool) -> bool {
    while !stop.load(Ordering::Relaxed) {
        let left = (time - monotonic()).min(NAP).get();
        let Some(left) = u64::try_from(left).ok().filter(|left| *left > 0) else { return true };
        thread::sleep(Duration::from_nanos(left));
    }
    false
}

impl Watched<'_> {
    /// Collects records until the last worker ends, in the order of their numbers.
    fn collect(&self, planned: usize, report: &mut dyn FnMut(Progress)) -> Vec<RequestRecord> {
        let mut reported = Instant::now();
        let mut records = Vec::new();
        let mut progress = Progress { planned, ..Progress::default() };
        loop {
            match self.records.recv_timeout(REPORT) {
                Ok(record) => {
                    progress.failed += usize::from(!record.1.succeeded());
                    records.push(record);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if self.stop.load(Ordering::Relaxed) {
                self.stopper.send_replace(true);
            }
            if reported.elapsed() >= REPORT {
                reported = Instant::now();
                report(Progress { ended: records.len(), ..progress });
            }
        }
        report(Progress { ended: records.len(), ..progress });
        records.sort_unstable_by_key(|(index, _)| *index);
        records.into_iter().map(|(_, record)| record).collect()
    }
}

/// What the records and the workers add up to.
fn outcome(records: Vec<RequestRecord>, workers: &[WorkerHealth], start: Nanos, clocks: ClockPair) -> Outcome {
    let doubts = doubts(workers, &records);
    let first = records.iter().filter_map(|record| record.due_ns).fold(start, Nanos::min);
    let last = records.iter().filter_map(|record| Some(record.due_ns? + record.end_ns?)).max();
    Outcome {
        log: RequestLog {
            source: RequestSource::LlmPerf,
            clock: RequestClock::Monotonic,
            requests: records,
            every_chunk: true,
            duration_ns: last.map(|last| last - first),
        },
        clocks,
        doubts,
    }
}
