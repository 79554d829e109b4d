//! Bodies made ahead of their time, so that making them delays no request.

use std::iter::Chain;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::vec;

use crate::body::Body;
use crate::plan::Plan;

/// Memory for bodies that wait, as far as the first one is typical.
const MEMORY: usize = 256 << 20;
/// The most bodies that wait.
const MOST: usize = 4096;

/// The bodies of a load in order, for whoever asks next.
pub(crate) struct Source(Mutex<Numbered>);

/// Bodies with their numbers: the ones made before the start, then the ones made meanwhile.
type Numbered = std::iter::Enumerate<Chain<vec::IntoIter<Body>, std::sync::mpsc::IntoIter<Body>>>;

/// Makes the bodies that were not made before the start.
pub(crate) struct Maker {
    /// The number of the next one.
    next: usize,
    /// Where they go.
    to: SyncSender<Body>,
}

impl Source {
    /// Makes the first bodies of a plan, and the maker of the others.
    pub(crate) fn new(plan: &Plan) -> (Self, Maker) {
        let size = Body::new(plan, 0).json.len().max(1);
        let ahead = (MEMORY / size).clamp(1, MOST).min(plan.requests);
        let first: Vec<Body> = (0..ahead).map(|index| Body::new(plan, index)).collect();
        let (to, rest): (_, Receiver<Body>) = sync_channel(ahead);
        (Self(Mutex::new(first.into_iter().chain(rest).enumerate())), Maker { next: ahead, to })
    }

    /// The next body and its number; nothing after the last.
    pub(crate) fn next(&self) -> Option<(usize, Body)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).next()
    }
}

impl Maker {
    /// Makes the rest; ends early when nobody asks any more.
    pub(crate) fn work(self, plan: &Plan) {
        let mut rest = (self.next..plan.requests).map(|index| Body::new(plan, index));
        while let Some(body) = rest.next()
            && self.to.send(body).is_ok()
        {}
    }
}
