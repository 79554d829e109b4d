//! Single requests: whether a server is ready, what it serves, and what it is told beside the load.

use std::thread;
use std::time::{Duration, Instant};

use hyper::Method;
use serde::Deserialize;
use tokio::time::timeout;

use crate::connection::Pool;
use crate::reply::start_of;
use crate::worker::event_loop;
use crate::{LoadError, Server};

/// How long one attempt may take, and how long to wait before the next.
const ATTEMPT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(200);
/// The longest answer: the metrics of a server are a thousandth of it.
const LONGEST: usize = 64 << 20;

/// An answer of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The body.
    pub body: String,
}

/// The answer of `/v1/models`.
#[derive(Deserialize)]
struct ModelList {
    data: Vec<ServedModel>,
}

#[derive(Deserialize)]
struct ServedModel {
    id: Option<String>,
}

/// Waits until a server answers `/health` with 200 or, where it has no such path, `/v1/models`, and tells the first model it names. Ends
/// early when `still_alive` says that the server's process is gone.
pub fn wait_until_ready(
    server: &Server,
    limit: Duration,
    still_alive: &mut dyn FnMut() -> bool,
) -> Result<Option<String>, LoadError> {
    let start = Instant::now();
    server.resolve()?;
    loop {
        let last = match is_ready(server, limit.min(ATTEMPT)) {
            Ok(()) => return served_model(server),
            Err(last) => last,
        };
        if !still_alive() {
            return Err(LoadError::Exited { server: server.to_string(), last });
        }
        if start.elapsed() >= limit {
            return Err(LoadError::NotReady { server: server.to_string(), waited: limit, last });
        }
        thread::sleep(PAUSE.min(limit.saturating_sub(start.elapsed())));
    }
}

/// Sends JSON to a path, such as `/start_profile`, and waits for the answer.
pub fn post(server: &Server, path: &str, json: &str, limit: Duration) -> Result<Answer, LoadError> {
    ask(server, Method::POST, path, json, limit)
}

/// The answer of a path, such as `/metrics`.
pub fn get_text(server: &Server, path: &str, limit: Duration) -> Result<Answer, LoadError> {
    ask(server, Method::GET, path, "", limit)
}

/// Whether a server is ready, and if not, why. llama.cpp lists its models while it still loads them, so that `/v1/models`
/// decides only where there is no `/health`.
fn is_ready(server: &Server, limit: Duration) -> Result<(), String> {
    let status = |path| get_text(server, path, limit).map(|answer| answer.status).map_err(|error| error.to_string());
    let (path, status) = match status("/health")? {
        404 | 405 | 501 => ("/v1/models", status("/v1/models")?),
        status => ("/health", status),
    };
    if status == 200 { Ok(()) } else { Err(format!("{path} answers with HTTP status {status}")) }
}

/// The first model of a server that is ready.
fn served_model(server: &Server) -> Result<Option<String>, LoadError> {
    let answer = get_text(server, "/v1/models", ATTEMPT)?;
    let models = serde_json::from_str(&answer.body).map(|models: ModelList| models.data).unwrap_or_default();
    Ok(models.into_iter().next().and_then(|model| model.id))
}

/// One request on a connection and an event loop of its own.
fn ask(server: &Server, method: Method, path: &str, json: &str, limit: Duration) -> Result<Answer, LoadError> {
    let silent = |reason: String| LoadError::NoAnswer {
        server: server.to_string(),
        path: path.to_owned(),
        reason: start_of(&reason),
    };
    let request = server.request(method, path, json.to_owned())?;
    let pool = Pool::new(server.resolve()?);
    let exchange = async {
        let mut response = pool.send(request).await?;
        Ok(Answer { status: response.head.status.as_u16(), body: response.text(LONGEST).await? })
    };
    match event_loop()?.block_on(async { timeout(limit, exchange).await }) {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(silent(crate::connection::ConnectionError::to_string(&error))),
        Err(_) => Err(silent(format!("timed out after {} s", limit.as_secs_f64()))),
    }
}
