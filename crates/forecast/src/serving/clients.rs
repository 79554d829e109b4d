//! The clients of a load: what they send and when, and what reaches them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::load::{Arrivals, Load};
use super::scheduler::Asked;

/// Requests, or servers, by the time something happens to them.
#[derive(Default)]
pub(crate) struct Queue(BinaryHeap<Reverse<(u64, usize)>>);

impl Queue {
    /// Times are not negative: their bits are in their order.
    pub(crate) fn push(&mut self, time: f64, place: usize) {
        self.0.push(Reverse((time.to_bits(), place)));
    }

    /// When something happens next.
    pub(crate) fn next(&self) -> Option<f64> {
        self.0.peek().map(|Reverse((time, _))| f64::from_bits(*time))
    }

    pub(crate) fn pop(&mut self) -> Option<(f64, usize)> {
        self.0.pop().map(|Reverse((time, place))| (f64::from_bits(time), place))
    }

    /// The next one, where it happens by `now`.
    pub(crate) fn due(&mut self, now: f64) -> Option<(f64, usize)> {
        if self.next()? <= now { self.pop() } else { None }
    }
}

/// One request, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Answer {
    /// When it was sent.
    pub sent: f64,
    /// From then to when it was first scheduled.
    pub scheduled: f64,
    /// To the first token of its output.
    pub first: f64,
    /// To the last.
    pub last: f64,
    /// Tokens of its output.
    pub tokens: u64,
}

/// The clients.
pub(crate) struct Clients<'a> {
    asked: &'a [Asked],
    /// Requests that are sent, by time.
    pub(crate) sent: Queue,
    /// Requests that wait for a slot.
    held: std::ops::Range<usize>,
    /// What became of every request; absent for those that were refused.
    pub(crate) answers: Vec<Option<Answer>>,
    /// Times between tokens of one request, microseconds.
    pub(crate) gaps: Vec<f32>,
}

impl<'a> Clients<'a> {
    pub(crate) fn new(load: &'a Load) -> Self {
        let count = load.asked.len();
        let (sent, answers) = (Queue::default(), vec![None; count]);
        let mut clients = Self { asked: &load.asked, sent, held: count..count, answers, gaps: Vec::new() };
        match &load.arrivals {
            Arrivals::Due(times) => {
                times.iter().take(count).enumerate().for_each(|(request, time)| clients.send(request, *time));
            }
            Arrivals::Slots(slots) => {
                clients.held = (*slots).min(count)..count;
                (0..clients.held.start).for_each(|request| clients.send(request, 0.0));
            }
        }
        clients
    }

    fn send(&mut self, request: usize, time: f64) {
        self.answers[request] = Some(Answer { sent: time, first: -1.0, scheduled: -1.0, ..Answer::default() });
        self.sent.push(time, request);
    }

    /// A server refuses a request.
    pub(crate) fn refuse(&mut self, request: usize, now: f64) {
        self.answers[request] = None;
        self.release(now);
    }

    /// A step that begins has a part of a request.
    pub(crate) fn schedule(&mut self, request: usize, now: f64) {
        if let Some(answer) = self.answers[request].as_mut().filter(|answer| answer.scheduled < 0.0) {
            answer.scheduled = now - answer.sent;
        }
    }

    /// A token arrives; whether it was the last.
    pub(crate) fn answered(&mut self, request: usize, at: f64) -> bool {
        let Some(answer) = &mut self.answers[request] else { return false };
        let since = at - answer.sent;
        if answer.first < 0.0 {
            answer.first = since;
        } else {
            self.gaps.push((since - answer.last) as f32);
        }
        answer.last = since;
        answer.tokens += 1;
        let is_last = answer.tokens == self.asked[request].output;
        if is_last {
            self.release(at);
        }
        is_last
    }

    /// A slot is free.
    fn release(&mut self, at: f64) {
        if let Some(request) = self.held.next() {
            self.send(request, at);
        }
    }
}
