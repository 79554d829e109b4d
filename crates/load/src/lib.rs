//! Requests sent to an OpenAI-compatible server: when they are due, what they ask, what came back.
//!
//! [`run`] sends a [`Plan`] and returns an [`Outcome`]; [`wait_until_ready`], [`post`] and [`get_text`] are single requests. Every
//! call blocks and has an event loop of its own, so calls from several threads do not disturb each other. Traces, run folders and
//! arguments are left to others.

pub mod replay;

mod arrivals;
mod body;
mod client;
mod clock;
mod connection;
mod error;
mod lengths;
mod open_files;
mod outcome;
mod plan;
mod prompts;
mod ready;
mod reply;
mod run;
mod server;
mod source;
mod stream;
mod worker;

pub use arrivals::{Arrivals, Schedule};
pub use clock::ClockPair;
pub use error::LoadError;
pub use lengths::{LONGEST, Lengths};
pub use outcome::{ClientDoubt, Outcome};
pub use plan::Plan;
pub use prompts::{Ask, BLOCK, Image, Prompt, Prompts};
pub use ready::{Answer, get_text, post, wait_until_ready};
pub use run::{Progress, run};
pub use server::Server;
