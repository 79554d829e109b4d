//! Several servers behind a router: each does everything, or some prefill and others decode.

use std::str::FromStr;

/// Servers that share a load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fleet {
    /// Servers that take requests.
    pub servers: usize,
    /// Which of them a request goes to.
    pub router: Router,
    /// Servers that decode what those have prefilled; absent where each does both.
    pub apart: Option<Apart>,
}

/// Servers that decode, apart from those that prefill.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Apart {
    /// How many.
    pub servers: usize,
    /// Microseconds that the keys and values of a token take from one server to another.
    pub token: f64,
}

types::named! {
    /// How requests are shared out, with its name on the command line.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Router {
        /// One after the other.
        #[default]
        RoundRobin = "round-robin",
        /// To the server with the fewest requests that are not answered.
        LeastLoaded = "least-loaded",
    }
}

impl Fleet {
    /// A single server.
    pub const ONE: Self = Self { servers: 1, router: Router::RoundRobin, apart: None };

    /// All servers.
    pub fn servers(&self) -> usize {
        self.servers + self.apart.map_or(0, |apart| apart.servers)
    }

    /// Servers that decode.
    pub fn decoding(&self) -> usize {
        self.apart.map_or(self.servers, |apart| apart.servers)
    }
}

impl FromStr for Router {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|router| router.name() == text);
        found.ok_or_else(|| "expected round-robin or least-loaded".to_owned())
    }
}

/// Servers of one kind, as their router sees them.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    router: Router,
    /// The first of them.
    first: usize,
    /// Requests of each that are not answered.
    open: Vec<usize>,
    next: usize,
}

impl Pool {
    pub(crate) fn new(router: Router, first: usize, servers: usize) -> Self {
        Self { router, first, open: vec![0; servers.max(1)], next: 0 }
    }

    /// The server that the next request goes to.
    pub(crate) fn route(&mut self) -> usize {
        let least = || (0..self.open.len()).min_by_key(|server| self.open[*server]).unwrap_or(0);
        let server = match self.router {
            Router::RoundRobin => self.next % self.open.len(),
            Router::LeastLoaded => least(),
        };
        self.next += 1;
        self.open[server] += 1;
        self.first + server
    }

    /// A request of a server is answered, or goes on elsewhere.
    pub(crate) fn leave(&mut self, server: usize) {
        if let Some(open) = server.checked_sub(self.first).and_then(|place| self.open.get_mut(place)) {
            *open -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_router_takes_turns_or_looks_for_the_least_load() {
        let mut turns = Pool::new(Router::RoundRobin, 2, 3);
        assert_eq!([0; 4].map(|_| turns.route()), [2, 3, 4, 2]);
        let mut least = Pool::new(Router::LeastLoaded, 0, 2);
        assert_eq!([0; 3].map(|_| least.route()), [0, 1, 0]);
        // The first server has two requests and the second one; without its first it has as many.
        least.leave(1);
        assert_eq!([0; 2].map(|_| least.route()), [1, 1]);
    }
}
