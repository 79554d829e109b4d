//! A server that answers as an OpenAI-compatible one does, or fails in a way that a test chose.

use std::io::Result;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use llm_perf_load::Server;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufStream};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

/// How a server behaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Behaviour {
    /// Tokens of every response.
    pub(crate) tokens: usize,
    /// Time before each of them.
    pub(crate) interval: Duration,
    /// What goes wrong.
    pub(crate) fault: Fault,
    /// How often `/health` answers 503 first.
    pub(crate) loading: usize,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    Status,
    HalfAStream,
    HalfAStreamCleanly,
    Hang,
    HangInTheMiddle,
    NoUsage,
    SlowAccept,
    NoStream,
    ErrorEvent,
    NoOutput,
    CloseAfterEach,
    NoHealth,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self { tokens: 4, interval: Duration::from_millis(2), fault: Fault::None, loading: 0 }
    }
}

/// A server that runs until the process ends.
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    state: Arc<State>,
}

/// What connections share.
struct State {
    behaviour: Behaviour,
    requests: Mutex<Vec<(String, Value)>>,
    connections: AtomicUsize,
    health_checks: AtomicUsize,
}

impl TestServer {
    /// Starts one.
    pub(crate) fn start(behaviour: Behaviour) -> Self {
        let (requests, zero) = (Mutex::default(), AtomicUsize::default);
        let state = Arc::new(State { behaviour, requests, connections: zero(), health_checks: zero() });
        let (sender, address) = std::sync::mpsc::channel();
        let shared = state.clone();
        std::thread::spawn(move || {
            let event_loop = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            event_loop.block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                sender.send(listener.local_addr().unwrap()).unwrap();
                accept(listener, shared).await;
            });
        });
        Self { address: address.recv().unwrap(), state }
    }

    /// Its address, for a client.
    pub(crate) fn server(&self) -> Server {
        Server::new(&format!("http://{}", self.address)).unwrap()
    }

    /// Paths and bodies of the requests so far.
    pub(crate) fn requests(&self) -> Vec<(String, Value)> {
        self.state.requests.lock().unwrap().clone()
    }

    /// How many connections it accepted.
    pub(crate) fn connections(&self) -> usize {
        self.state.connections.load(Ordering::Relaxed)
    }
}

/// Accepts connections.
async fn accept(listener: TcpListener, state: Arc<State>) {
    loop {
        if state.behaviour.fault == Fault::SlowAccept {
            sleep(Duration::from_millis(50)).await;
        }
        let Ok((socket, _)) = listener.accept().await else { continue };
        state.connections.fetch_add(1, Ordering::Relaxed);
        let state = state.clone();
        tokio::spawn(async move { serve(socket, &state).await });
    }
}

/// Answers the requests of one connection.
async fn serve(socket: TcpStream, state: &State) -> Result<()> {
    socket.set_nodelay(true)?;
    let mut stream = BufStream::new(socket);
    while let Some((path, body)) = request(&mut stream).await? {
        let json = serde_json::from_slice(&body).unwrap_or_default();
        state.requests.lock().unwrap().push((path.clone(), json));
        match path.as_str() {
            "/health" => health(&mut stream, state).await?,
            "/v1/models" => {
                let models = r#"{"object": "list", "data": [{"id": "tiny", "max_model_len": 4096}]}"#;
                answer(&mut stream, "200 OK", models).await?;
            }
            "/metrics" => answer(&mut stream, "200 OK", "vllm:num_requests_running 3.0\n").await?,
            "/start_profile" => answer(&mut stream, "200 OK", "").await?,
            path if complete(&mut stream, state.behaviour, path.contains("chat")).await? => return Ok(()),
            _ => {}
        }
        if state.behaviour.fault == Fault::CloseAfterEach {
            return Ok(());
        }
    }
    Ok(())
}

/// The path and the body of the next request.
async fn request(stream: &mut BufStream<TcpStream>) -> Result<Option<(String, Vec<u8>)>> {
    let (mut path, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await? == 0 {
            return Ok(None);
        }
        if path.is_empty() {
            path = line.split(' ').nth(1).unwrap_or_default().to_owned();
        }
        if let Some((_, value)) = line.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("content-length")) {
            length = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(Some((path, body)))
}

/// A plain answer.
async fn answer(stream: &mut BufStream<TcpStream>, status: &str, body: &str) -> Result<()> {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.flush().await
}

/// Whether the server is ready.
async fn health(stream: &mut BufStream<TcpStream>, state: &State) -> Result<()> {
    let check = state.health_checks.fetch_add(1, Ordering::Relaxed);
    match state.behaviour {
        Behaviour { fault: Fault::NoHealth, .. } => answer(stream, "404 Not Found", "").await,
        Behaviour { loading, .. } if check < loading => answer(stream, "503 Service Unavailable", "loading").await,
        _ => answer(stream, "200 OK", "").await,
    }
}

/// Answers a completion; true where the connection is to be closed in the middle.
async fn complete(stream: &mut BufStream<TcpStream>, behaviour: Behaviour, chat: bool) -> Result<bool> {
    match behaviour.fault {
        Fault::Status => answer(stream, "500 Internal Server Error", &format!("no\nluck{}", "!".repeat(500))).await?,
        Fault::NoStream => answer(stream, "200 OK", r#"{"choices": [{"text": "all"}]}"#).await?,
        Fault::Hang => sleep(Duration::from_secs(3600)).await,
        _ => return send_stream(stream, behaviour, chat).await,
    }
    Ok(false)
}

/// Sends tokens one by one.
async fn send_stream(stream: &mut BufStream<TcpStream>, behaviour: Behaviour, chat: bool) -> Result<bool> {
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await?;
    if chat {
        event(stream, r#"{"choices": [{"delta": {"role": "assistant", "content": ""}}]}"#).await?;
    }
    let tokens = if behaviour.fault == Fault::NoOutput { 0 } else { behaviour.tokens };
    for token in 0..tokens {
        sleep(behaviour.interval).await;
        match behaviour.fault {
            Fault::HalfAStream if token == tokens / 2 => return Ok(true),
            Fault::HalfAStreamCleanly if token == tokens / 2 => return end(stream).await,
            Fault::HangInTheMiddle if token == tokens / 2 => sleep(Duration::from_secs(3600)).await,
            Fault::ErrorEvent if token == tokens / 2 => event(stream, r#"{"error": {"message": "lost"}}"#).await?,
            _ if chat => event(stream, r#"{"choices": [{"delta": {"content": " é"}}]}"#).await?,
            _ => event(stream, r#"{"id": "cmpl-x", "choices": [{"text": " é", "finish_reason": null}]}"#).await?,
        }
    }
    event(stream, r#"{"choices": [{"delta": {}, "finish_reason": "length"}]}"#).await?;
    if behaviour.fault != Fault::NoUsage {
        let usage = format!(r#"{{"prompt_tokens": 9, "completion_tokens": {}}}"#, behaviour.tokens);
        event(stream, &format!(r#"{{"choices": [], "usage": {usage}}}"#)).await?;
    }
    event(stream, "[DONE]").await?;
    end(stream).await
}

/// One event as one HTTP chunk.
async fn event(stream: &mut BufStream<TcpStream>, data: &str) -> Result<()> {
    let text = format!("data: {data}\n\n");
    stream.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes()).await?;
    stream.flush().await
}

/// The end of a response.
async fn end(stream: &mut BufStream<TcpStream>) -> Result<bool> {
    stream.write_all(b"0\r\n\r\n").await?;
    stream.flush().await?;
    Ok(false)
}
