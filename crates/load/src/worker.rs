//! One thread with an event loop, which has a part of the requests in flight.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;
use types::RequestRecord;

use crate::client::{Client, DueRequest};
use crate::clock::{monotonic, thread_time};
use crate::connection::Pool;
use crate::source::Source;

/// How often the event loop is asked whether it is on time.
const TICK: Duration = Duration::from_millis(1);

/// How late a tick must be to count as a stall: several times the timer's resolution of 1 ms.
const STALL: i64 = 5_000_000;

/// What a worker does, shared by the requests it has in flight.
#[derive(Clone)]
pub(crate) struct Worker {
    /// What requests have in common.
    client: Client,
    /// Its connections.
    pool: Arc<Pool>,
    /// Where records go, with their numbers.
    records: Sender<(usize, RequestRecord)>,
}

/// Where a worker's requests come from.
pub(crate) enum Work {
    /// As they become due.
    Due(UnboundedReceiver<DueRequest>),
    /// The next one whenever one of so many slots is free.
    Slots(usize, Arc<Source>),
}

/// How well a worker kept up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct WorkerHealth {
    /// The share of its time that stalls took.
    pub(crate) stalled: f64,
    /// Processor time of its thread, as a share of the time it ran.
    pub(crate) busy: f64,
}

/// An event loop on the calling thread.
pub(crate) fn event_loop() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_io().enable_time().build()
}

/// Adds up how many nanoseconds the event loop was late. The timer counts in milliseconds, so up to one of them is its own.
async fn watch(stalls: Arc<AtomicI64>) {
    loop {
        let before = monotonic();
        tokio::time::sleep(TICK).await;
        let late = (monotonic() - before).get() - TICK.as_nanos() as i64;
        if late > STALL {
            stalls.fetch_add(late, Ordering::Relaxed);
        }
    }
}

impl Worker {
    /// A worker with connections of its own.
    pub(crate) fn new(client: Client, addresses: &[SocketAddr], records: Sender<(usize, RequestRecord)>) -> Self {
        Self { client, pool: Arc::new(Pool::new(addresses.to_vec())), records }
    }

    /// Works on the calling thread until every request has ended.
    pub(crate) fn run(self, event_loop: &Runtime, work: Work) -> WorkerHealth {
        let (start, start_busy) = (monotonic(), thread_time());
        let stalls = Arc::<AtomicI64>::default();
        event_loop.block_on(async {
            let ticker = tokio::spawn(watch(stalls.clone()));
            match work {
                Work::Due(requests) => self.open(requests).await,
                Work::Slots(slots, source) => self.closed(slots, source).await,
            }
            ticker.abort();
        });
        let wall = (monotonic() - start).get().max(1) as f64;
        WorkerHealth {
            stalled: stalls.load(Ordering::Relaxed) as f64 / wall,
            busy: (thread_time() - start_busy).get() as f64 / wall,
        }
    }

    /// Sends requests as they become due.
    async fn open(&self, mut requests: UnboundedReceiver<DueRequest>) {
        let mut tasks = JoinSet::new();
        while let Some(request) = requests.recv().await {
            let worker = self.clone();
            tasks.spawn(async move { worker.perform(request).await });
            while tasks.try_join_next().is_some() {}
        }
        while tasks.join_next().await.is_some() {}
    }

    /// Keeps so many requests in flight.
    async fn closed(&self, slots: usize, source: Arc<Source>) {
        let mut tasks = JoinSet::new();
        for _ in 0..slots {
            let (worker, source) = (self.clone(), source.clone());
            tasks.spawn(async move { worker.fill_slot(&source).await });
        }
        while tasks.join_next().await.is_some() {}
    }

    /// Sends one request after the other; each is due when the one before it has ended.
    async fn fill_slot(&self, source: &Source) {
        let mut due = monotonic();
        while !*self.client.stop.borrow()
            && let Some((index, body)) = source.next()
        {
            self.perform(DueRequest { index, body, due }).await;
            due = monotonic();
        }
    }

    /// Sends one request and passes on its record.
    async fn perform(&self, request: DueRequest) {
        let index = request.index;
        let record = self.client.perform(&self.pool, request).await;
        // Nobody listens only where the load was given up.
        let _ = self.records.send((index, record));
    }
}
