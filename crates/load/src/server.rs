//! The address of a server.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};

use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Method, Request, Uri};

use crate::LoadError;

/// Where a server listens, and what it wants to know of its clients.
#[derive(Clone, PartialEq, Eq)]
pub struct Server {
    /// Its name or address, without the brackets of IPv6.
    host: String,
    /// Its port.
    port: u16,
    /// What precedes every path.
    prefix: String,
    /// The header that names the caller; never shown.
    authorization: Option<HeaderValue>,
}

impl Server {
    /// From `http://HOST:PORT`, optionally with a path, and with or without the `/v1` that clients are often given.
    pub fn new(url: &str) -> Result<Self, LoadError> {
        let wrong = |problem: String| LoadError::Url { url: url.to_owned(), problem };
        let uri: Uri = url.trim().parse().map_err(|error: hyper::http::uri::InvalidUri| wrong(error.to_string()))?;
        match uri.scheme_str() {
            None | Some("http") => {}
            Some("https") => return Err(LoadError::Https { url: url.to_owned() }),
            Some(scheme) => return Err(wrong(format!("unknown scheme `{scheme}`"))),
        }
        let authority = uri.authority().ok_or_else(|| wrong("no host".to_owned()))?;
        if authority.as_str().contains('@') {
            return Err(wrong("user names and passwords are not supported".to_owned()));
        }
        let port = match authority.as_str().strip_prefix(authority.host()).and_then(|rest| rest.strip_prefix(':')) {
            None => 80,
            Some(port) => port.parse().map_err(|_| wrong(format!("`{port}` is not a port")))?,
        };
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        let prefix = uri.path().trim_end_matches('/').trim_end_matches("/v1").to_owned();
        Ok(Self { host, port, prefix, authorization: None })
    }

    /// With a key that is sent as a bearer token.
    pub fn with_key(mut self, key: &str) -> Result<Self, LoadError> {
        let mut value = HeaderValue::from_str(&format!("Bearer {key}")).map_err(|_| LoadError::Setting {
            name: "the API key",
            expected: "printable text",
            got: format!("{} bytes with others", key.len()),
        })?;
        value.set_sensitive(true);
        self.authorization = Some(value);
        Ok(self)
    }

    /// Its port, where it is on this machine.
    pub fn local_port(&self) -> Option<u16> {
        let found = self.resolve().ok()?;
        found.iter().all(|address| address.ip().is_loopback()).then_some(self.port)
    }

    /// The addresses behind its name.
    pub(crate) fn resolve(&self) -> Result<Vec<SocketAddr>, LoadError> {
        let wrong = |problem: String| LoadError::Url { url: self.to_string(), problem };
        let found = (self.host.as_str(), self.port).to_socket_addrs();
        let found: Vec<_> = found.map_err(|reason| wrong(format!("cannot resolve the host: {reason}")))?.collect();
        if found.is_empty() { Err(wrong("the host has no address".to_owned())) } else { Ok(found) }
    }

    /// A request to it; one with a body sends JSON.
    pub(crate) fn request(&self, method: Method, path: &str, json: String) -> Result<Request<String>, LoadError> {
        let request = Request::builder().method(method).uri(format!("{}{path}", self.prefix)).header(HOST, self.host());
        let request = request.header(CONTENT_TYPE, "application/json");
        let request = match &self.authorization {
            Some(value) => request.header(AUTHORIZATION, value),
            None => request,
        };
        let wrong =
            |error: hyper::http::Error| LoadError::Url { url: format!("{self}{path}"), problem: error.to_string() };
        request.body(json).map_err(wrong)
    }

    /// Host and port as a header has them.
    fn host(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.host(), self.prefix)
    }
}

/// Without the key.
impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Server({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_people_write_them() {
        let shown = |url: &str| Server::new(url).unwrap().to_string();
        assert_eq!(shown("http://localhost:8000"), "http://localhost:8000");
        assert_eq!(shown("http://localhost:8000/v1/"), "http://localhost:8000");
        assert_eq!(shown("10.0.0.1:30000"), "http://10.0.0.1:30000");
        assert_eq!(shown("http://[::1]:8000/proxy/v1"), "http://[::1]:8000/proxy");
        assert_eq!(shown("http://server"), "http://server:80");
    }

    #[test]
    fn addresses_that_cannot_be_used_say_why() {
        let error = |url: &str| Server::new(url).unwrap_err().to_string();
        assert_eq!(error("https://a"), "cannot connect to `https://a`: https is not supported");
        assert_eq!(error("ftp://a"), "cannot use the server address `ftp://a`: unknown scheme `ftp`");
        assert!(error("").contains("cannot use the server address ``"));
        assert!(error("/v1").contains("no host"));
        assert!(error("http://user:secret@a").contains("not supported"));
        assert!(error("http://a:99999999").contains("`99999999` is not a port"));
    }

    #[test]
    fn a_key_is_sent_and_not_shown() {
        let server = Server::new("http://a:1/p").unwrap().with_key("secret").unwrap();
        let request = server.request(Method::POST, "/v1/completions", "{}".to_owned()).unwrap();
        assert_eq!(request.headers()[AUTHORIZATION], "Bearer secret");
        assert_eq!(
            (request.uri().path(), &request.headers()[HOST]),
            ("/p/v1/completions", &HeaderValue::from_static("a:1"))
        );
        assert!(!format!("{server:?} {request:?}").contains("secret"));
        assert!(!server.with_key("sec\nret").unwrap_err().to_string().contains("sec"));
    }
}
