//! `show --page`: the page of a run, served to a browser of this machine, for timelines that are too large for one file.
//!
//! The page holds the whole timeline with short neighbours merged; of what its reader zooms in on, every event is asked for. Nobody
//! else is answered: the server listens on the loopback address, its path cannot be guessed, and a request under another name than
//! that of this machine, as a page of a stranger would send it, is refused.

use std::borrow::Cow;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

use collect::run::StoredRun;
use report::html::Drawn;
use types::UserError;

use super::to_serve;

/// Bytes of a request that are read; ours are shorter.
const LONGEST_REQUEST: u64 = 16 << 10;
/// A browser opens connections that it then does not use.
const PATIENCE: Duration = Duration::from_secs(20);

/// A page and the server that hands it out.
#[derive(Debug)]
pub struct ServedPage {
    listener: TcpListener,
    /// What addresses of this page begin with.
    secret: String,
    html: String,
    drawn: Drawn,
}

impl ServedPage {
    /// The page of a run, on a port; zero is any that is free. A run without a timeline has a page that is a file.
    pub fn of_run(run: &StoredRun, port: u16) -> Result<Self, UserError> {
        let (html, drawn) = to_serve(run)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port));
        let listener = listener.map_err(|error| {
            UserError::failed(format!("cannot listen on port {port}: {error}"))
                .hint("choose another one with `--port N`")
        })?;
        let random = || RandomState::new().build_hasher().finish();
        let secret = format!("/{:016x}{:016x}/", random(), random());
        Ok(Self { listener, secret, html, drawn })
    }

    /// Where a browser finds it.
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}{}", self.port(), self.secret)
    }

    /// Answers until the program ends.
    pub fn serve(&self) {
        std::thread::scope(|scope| {
            for stream in self.listener.incoming().flatten() {
                // A browser that goes away loses its answer, and nobody else does.
                scope.spawn(move || drop(self.answer(stream)));
            }
        });
    }

    fn port(&self) -> u16 {
        self.listener.local_addr().map_or(0, |address| address.port())
    }

    fn answer(&self, mut stream: TcpStream) -> std::io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut lines = BufReader::new((&stream).take(LONGEST_REQUEST)).lines();
        let first = lines.next().transpose()?.unwrap_or_default();
        let mut host = String::new();
        for line in lines {
            let line = line?;
            if line.is_empty() {
                break;
            }
            if let Some((_, value)) = line.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("host")) {
                host = value.trim().to_owned();
            }
        }
        let (status, kind, body) = self.reply(&first, &host);
        write!(
            stream,
            "HTTP/1.1 {status}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
             X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n",
            body.len()
        )?;
        stream.write_all(body.as_bytes())
    }

    /// Status, type and body of the answer to a request.
    fn reply(&self, request: &str, host: &str) -> (&'static str, &'static str, Cow<'_, str>) {
        let port = self.port();
        if host != format!("127.0.0.1:{port}") && host != format!("localhost:{port}") {
            return ("403 Forbidden", "text/plain", "this page is for this machine only\n".into());
        }
        let target = request.strip_prefix("GET ").and_then(|rest| rest.split(' ').next());
        match target.and_then(|target| target.strip_prefix(self.secret.as_str())) {
            Some("") => ("200 OK", "text/html", self.html.as_str().into()),
            Some(rest) => match rest.strip_prefix("events?").and_then(window) {
                Some([from, to]) => ("200 OK", "application/json", self.drawn.events(from, to).into()),
                None => ("404 Not Found", "text/plain", "no such page\n".into()),
            },
            None => ("404 Not Found", "text/plain", "no such page\n".into()),
        }
    }
}

/// `FROM,TO`, in nanoseconds since the first event.
fn window(text: &str) -> Option<[i64; 2]> {
    let (from, to) = text.split_once(',')?;
    Some([from.parse().ok()?, to.parse().ok()?])
}
