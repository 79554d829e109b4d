//! Connections to the server: opened when needed, kept for the next request.

use std::error::Error as _;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use hyper::body::{Body as _, Bytes, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::rt::{Read, ReadBufCursor, Write};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use types::Nanos;

use crate::clock::monotonic;

/// The most bytes taken from a socket at once.
const READ: usize = 16 * 1024;
/// How long an unused connection is trusted. Uvicorn, which vLLM and SGLang run on, closes it after 5 s.
const TRUSTED: Nanos = Nanos::new(3_000_000_000);

/// Why there is no response.
#[derive(Debug, Error)]
pub(crate) enum ConnectionError {
    /// No connection.
    #[error("cannot connect to {address}: {reason}")]
    Refused {
        /// The first address that was tried.
        address: SocketAddr,
        /// What the system said.
        reason: io::Error,
    },
    /// A connection that broke, or that does not speak HTTP.
    #[error("the connection failed: {}", innermost(.0))]
    Broken(#[from] hyper::Error),
}

/// The reason at the bottom of an error; the ones above it only say that there is one.
fn innermost(error: &hyper::Error) -> String {
    let mut reason: &dyn std::error::Error = error;
    while let Some(source) = reason.source() {
        reason = source;
    }
    reason.to_string()
}

impl ConnectionError {
    /// Whether the server closed the connection before the end of its response.
    pub(crate) fn is_early_end(&self) -> bool {
        let Self::Broken(error) = self else { return false };
        let system = error.source().and_then(|source| source.downcast_ref::<io::Error>());
        error.is_incomplete_message() || system.is_some_and(|reason| reason.kind() == ErrorKind::UnexpectedEof)
    }
}

/// The connections of one event loop.
pub(crate) struct Pool {
    /// Where the server listens.
    addresses: Vec<SocketAddr>,
    /// Unused ones, with the time of their last use.
    idle: Mutex<Vec<(Connection, Nanos)>>,
}

/// A connection that carries one request at a time.
pub(crate) struct Connection {
    sender: SendRequest<String>,
    /// When the socket last had data.
    last_read: Arc<AtomicI64>,
    /// Whether it carried a request before.
    used: bool,
}

/// A response whose body is still arriving.
pub(crate) struct Response {
    /// Status and headers.
    pub(crate) head: hyper::http::response::Parts,
    body: Incoming,
    connection: Connection,
}

impl Pool {
    /// Of connections to these addresses.
    pub(crate) fn new(addresses: Vec<SocketAddr>) -> Self {
        Self { addresses, idle: Mutex::default() }
    }

    /// Sends a request. A kept connection that the server has closed in the meantime is replaced by a new one.
    pub(crate) async fn send(&self, request: hyper::Request<String>) -> Result<Response, ConnectionError> {
        let mut connection = self.take().await?;
        let again = connection.used.then(|| request.clone());
        match (connection.sender.send_request(request).await, again) {
            (Err(error), Some(request)) if is_stale(&error) => {
                connection = self.open().await?;
                let (head, body) = connection.sender.send_request(request).await?.into_parts();
                Ok(Response { head, body, connection })
            }
            (response, _) => {
                let (head, body) = response?.into_parts();
                Ok(Response { head, body, connection })
            }
        }
    }

    /// Keeps the connection of a response that was read to its end.
    pub(crate) fn keep(&self, response: Response) {
        let mut connection = response.connection;
        connection.used = true;
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push((connection, monotonic()));
    }

    /// A kept connection, or a new one.
    async fn take(&self) -> Result<Connection, ConnectionError> {
        while let Some((mut connection, since)) = self.pop() {
            if monotonic() - since < TRUSTED && connection.sender.ready().await.is_ok() {
                return Ok(connection);
            }
        }
        self.open().await
    }

    /// The connection that was kept last.
    fn pop(&self) -> Option<(Connection, Nanos)> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// A new connection, driven by a task of its own.
    async fn open(&self) -> Result<Connection, ConnectionError> {
        let refused = |reason| ConnectionError::Refused { address: self.addresses[0], reason };
        let socket = TcpStream::connect(self.addresses.as_slice()).await.map_err(refused)?;
        socket.set_nodelay(true).map_err(refused)?;
        let last_read = Arc::new(AtomicI64::new(monotonic().get()));
        let (sender, driver) = handshake(StampedSocket { socket, last_read: last_read.clone() }).await?;
        tokio::spawn(async move {
            // Whoever waits for the response learns of an error too.
            let _ = driver.await;
        });
        Ok(Connection { sender, last_read, used: false })
    }
}

/// Whether a request failed because the connection had been closed before the request arrived.
fn is_stale(error: &hyper::Error) -> bool {
    let broken = |reason: &io::Error| matches!(reason.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe);
    let system = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    error.is_canceled() || error.is_closed() || error.is_incomplete_message() || system.is_some_and(broken)
}

impl Response {
    /// The next bytes and when they arrived; nothing at the end. Where the socket was read again before this call, the later time
    /// is given, which is still earlier than this call.
    pub(crate) async fn read(&mut self) -> Result<Option<(Bytes, Nanos)>, ConnectionError> {
        loop {
            let frame = std::future::poll_fn(|context| Pin::new(&mut self.body).poll_frame(context)).await;
            let Some(frame) = frame else { return Ok(None) };
            if let Ok(data) = frame?.into_data() {
                return Ok(Some((data, Nanos::new(self.connection.last_read.load(Ordering::Relaxed)))));
            }
        }
    }

    /// The body as text, up to so many bytes of it.
    pub(crate) async fn text(&mut self, most: usize) -> Result<String, ConnectionError> {
        let mut bytes = Vec::new();
        while bytes.len() < most
            && let Some((data, _)) = self.read().await?
        {
            bytes.extend_from_slice(&data);
        }
        bytes.truncate(most);
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// A socket that knows when it last had data: right after the system call, before any other task runs.
struct StampedSocket {
    socket: TcpStream,
    last_read: Arc<AtomicI64>,
}

impl Read for StampedSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut to: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let mut bytes = [0; READ];
        let mut buffer = ReadBuf::new(&mut bytes[..READ.min(to.remaining())]);
        ready!(Pin::new(&mut self.socket).poll_read(context, &mut buffer))?;
        self.last_read.store(monotonic().get(), Ordering::Relaxed);
        to.put_slice(buffer.filled());
        Poll::Ready(Ok(()))
    }
}

impl Write for StampedSocket {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write_vectored(context, parts)
    }
}
