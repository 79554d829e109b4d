//! One request, from its sending to the last byte of its response.

use std::future::Future;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use hyper::Method;
use hyper::header::CONTENT_TYPE;
use thiserror::Error;
use tokio::sync::watch;
use tokio::time::timeout;
use types::{Nanos, RequestRecord};

use crate::body::Body;
use crate::clock::monotonic;
use crate::connection::{ConnectionError, Pool, Response};
use crate::plan::Plan;
use crate::reply::{Reply, start_of};
use crate::stream::{EventTooLong, Events};
use crate::{LoadError, Server};

/// How long the body of a response may stay open after its last event.
const LINGER: Duration = Duration::from_secs(1);

/// Everything that requests have in common.
#[derive(Clone)]
pub(crate) struct Client {
    /// Where they go.
    server: Server,
    /// How long one may take.
    timeout: Duration,
    /// What their ids start with, different for every load.
    id_prefix: String,
    /// Turns true when the load is stopped.
    pub(crate) stop: watch::Receiver<bool>,
}

/// A request whose time has come.
pub(crate) struct DueRequest {
    /// Its number.
    pub(crate) index: usize,
    /// What it sends.
    pub(crate) body: Body,
    /// When it was due.
    pub(crate) due: Nanos,
}

/// Why a request failed, as its record says.
#[derive(Debug, Error)]
enum RequestError {
    #[error("{0}")]
    Request(#[from] LoadError),
    #[error("{0}")]
    Connection(#[from] ConnectionError),
    #[error("HTTP status {status}: {body}")]
    Status { status: u16, body: String },
    #[error("the response is not a stream of events but `{kind}`: {body}")]
    NotAStream { kind: String, body: String },
    #[error("{0}")]
    TooLong(#[from] EventTooLong),
    #[error("{0}")]
    Reported(String),
    #[error("the stream ended in the middle")]
    Cut,
    #[error("the response has no output")]
    NoOutput,
    #[error("timed out after {} s", .0.as_secs_f64())]
    Timeout(Duration),
    #[error("stopped before the response ended")]
    Stopped,
}

impl Client {
    /// The client of a plan that starts at this Unix time.
    pub(crate) fn new(plan: &Plan, now: Nanos, stop: watch::Receiver<bool>) -> Self {
        let (server, id_prefix) = (plan.server.clone(), format!("llm-perf-{:x}", now.get()));
        Self { server, timeout: plan.timeout, id_prefix, stop }
    }

    /// Sends a request and keeps what came back, however it ends.
    pub(crate) async fn perform(&self, pool: &Pool, request: DueRequest) -> RequestRecord {
        let (due, sent) = (request.due, monotonic());
        let mut record = RequestRecord {
            id: Some(format!("{}-{}", self.id_prefix, request.index)),
            due_ns: Some(due),
            sent_ns: Some(sent),
            input_tokens: request.body.input_tokens,
            ..RequestRecord::default()
        };
        let mut stop = self.stop.clone();
        let exchange = timeout(self.timeout, self.exchange(pool, request, &mut record));
        let ended = match until(exchange, stop.wait_for(|stop| *stop)).await {
            Some(Ok(ended)) => ended,
            Some(Err(_)) => Err(RequestError::Timeout(self.timeout)),
            None => Err(RequestError::Stopped),
        };
        record.end_ns.get_or_insert(monotonic() - due);
        record.error = ended.err().map(|error| error.to_string());
        record
    }

    /// Sends a request and reads the response into its record.
    async fn exchange(&self, pool: &Pool, request: DueRequest, record: &mut RequestRecord) -> Result<(), RequestError> {
        let mut message = self.server.request(Method::POST, request.body.path, request.body.json)?;
        if let Some(id) = record.id.as_ref().and_then(|id| id.parse().ok()) {
            message.headers_mut().insert("x-request-id", id);
        }
        let mut response = pool.send(message).await?;
        if response.head.status != 200 {
            let status = response.head.status.as_u16();
            return Err(RequestError::Status { status, body: start_of(&response.text(1 << 16).await?) });
        }
        let kind = response.head.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("").to_owned();
        if !kind.starts_with("text/event-stream") {
            return Err(RequestError::NotAStream { kind, body: start_of(&response.text(1 << 16).await?) });
        }
        let reply = read_stream(&mut response, request.due, record).await;
        finish(pool, response, reply?, record).await
    }
}

/// Reads events until the last one.
async fn read_stream(response: &mut Response, due: Nanos, record: &mut RequestRecord) -> Result<Reply, RequestError> {
    let (mut events, mut reply) = (Events::default(), Reply::default());
    let mut latest = Nanos::ZERO;
    loop {
        match response.read().await {
            Ok(Some((bytes, time))) => {
                latest = time - due;
                events.push(&bytes, |data| reply.add(data, latest, record))?;
            }
            Ok(None) => break,
            // What came before may have been all of it.
            Err(_) if reply.finished => break,
            Err(error) if error.is_early_end() => return Err(RequestError::Cut),
            Err(error) => return Err(error.into()),
        }
        if reply.done || reply.error.is_some() {
            break;
        }
    }
    events.finish(|data| reply.add(data, latest, record));
    reply.end(record);
    record.end_ns = Some(latest);
    Ok(reply)
}

/// Keeps the connection where it can be used again, and decides whether the request succeeded.
async fn finish(pool: &Pool, mut response: Response, reply: Reply, record: &RequestRecord) -> Result<(), RequestError> {
    if let Some(error) = reply.error {
        return Err(RequestError::Reported(error));
    }
    if !reply.done && !reply.finished {
        return Err(RequestError::Cut);
    }
    if let Ok(Ok(None)) = timeout(LINGER, response.read()).await {
        pool.keep(response);
    }
    if record.chunks_ns.is_empty() { Err(RequestError::NoOutput) } else { Ok(()) }
}

/// What `work` gives, or nothing where `end` comes first.
async fn until<W: Future>(work: W, end: impl Future) -> Option<W::Output> {
    let (mut work, mut end) = (pin!(work), pin!(end));
    std::future::poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => end.as_mut().poll(context).map(|_| None),
    })
    .await
}
