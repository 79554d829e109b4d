//! A load on a server: requests as their client saw them, what they add up to, and the steps of the server they took.

pub(crate) mod capacity;
pub(crate) mod json_lines;
pub(crate) mod latency;
pub(crate) mod request_log;
pub(crate) mod served;
