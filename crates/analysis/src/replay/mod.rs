//! Replay: the dependencies of a timeline, and how long it would take if some of its parts took another time.
//!
//! A `graph` of `node`s holds what waited for what: calls in the order of their thread, device work behind its launch, its
//! stream and its events, blocking calls behind the work they waited for (`host`, `device_order`, `blocking`, with the usual
//! `latency` of this trace). `schedule` walks it once, in linear time, and gives every part its start; unchanged, that is the
//! recorded one. A [`Change`] edits the `costs` before the walk (`capture`, `fusion`, `hardware`); several are replayed together. `path` is the critical path,
//! `clock` carries moments of the recording over to the replay. Which part is meant by a finding is decided in `finding`.

mod blocking;
mod bound;
mod capture;
mod change;
mod chosen;
mod clock;
mod costs;
mod device_order;
mod fusion;
mod graph;
mod hardware;
mod host;
mod latency;
mod node;
mod path;
mod queues;
mod refusal;
mod replays;
mod schedule;
mod setting;
#[cfg(test)]
mod tests;
mod trace_replay;
mod what_if;

pub use change::{Change, CopyFate, Pace};
pub use chosen::Chosen;
pub use path::PathCause;
pub use refusal::Refusal;
pub use replays::Replays;
pub(crate) use trace_replay::Basis;
pub use trace_replay::{Outcome, TraceReplay};
pub use what_if::{Question, what_if};
