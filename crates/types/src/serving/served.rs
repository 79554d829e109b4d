//! Requests joined to the steps of the server.

use serde::{Deserialize, Serialize};

use super::latency::ServedLoad;
use super::request_log::{RequestClock, RequestSource};
use crate::sums::fieldwise_add;
use crate::{JsonSchema, Nanos};

/// A load on a server, and its requests one by one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Served {
    /// The load; absent where no requests are known.
    pub serving: Option<Serving>,
    /// Every request, in the order of the client's file.
    #[serde(default)]
    pub requests: Vec<ServedRequest>,
}

/// A load, as its client and the server's trace show it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Serving {
    /// What wrote the requests.
    pub source: RequestSource,
    /// The clock of the client's times.
    pub clock: RequestClock,
    /// What the requests add up to.
    pub load: ServedLoad,
    /// The same of the load that was recorded, which the requests are of; absent where that is `load` itself.
    pub recorded: Option<ServedLoad>,
    /// How requests were joined to steps; absent where no trace has steps.
    pub join: Option<RequestJoin>,
    /// The parts of all joined requests, added up.
    pub parts: Option<RequestParts>,
}

/// How requests and steps were joined.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestJoin {
    /// What is added to the client's times to get the trace's.
    pub offset_ns: Nanos,
    /// The least it can be: the quickest output then takes no time to arrive. `offset_ns` itself where that is known.
    pub offset_low_ns: Nanos,
    /// The most it can be: no request is served before it is due.
    pub offset_high_ns: Nanos,
    /// Where the offset comes from.
    pub basis: OffsetBasis,
    /// Requests joined to steps, in whole or in part.
    pub requests: u64,
    /// Requests during the trace.
    pub requests_in_trace: u64,
    /// Chunks of output joined to a step, of joined requests.
    pub tokens: u64,
    /// Steps of the engine that processed something.
    pub steps: u64,
    /// Steps whose annotated number of sequences equals that of the requests joined to them; absent where steps are not annotated,
    /// and what they process is inferred from when output arrived.
    pub steps_agreeing: Option<u64>,
}

/// Where the offset between two clocks comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OffsetBasis {
    /// Both say the same clock, and nothing contradicts it.
    SameClock,
    /// Fitted: outputs arrive as shortly after their steps as is assumed for the way back.
    Fitted,
}

/// One request, as its client saw it and as the server served it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServedRequest {
    /// Its id, where the client says.
    pub id: Option<String>,
    /// When it was due, on the clock of the client.
    pub due_ns: Option<Nanos>,
    /// Time to first token.
    pub ttft_ns: Option<Nanos>,
    /// End to end.
    pub latency_ns: Option<Nanos>,
    /// Tokens of the prompt.
    pub input_tokens: Option<u64>,
    /// Tokens of the output.
    pub output_tokens: Option<u64>,
    /// Why it failed; absent where it did not.
    pub error: Option<String>,
    /// Its latency, divided; absent where it was not joined.
    pub parts: Option<RequestParts>,
    /// The steps that processed it, in order.
    #[serde(default)]
    pub steps: Vec<RequestStep>,
}

/// One step of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RequestStep {
    /// Index into `steps.list`.
    pub step: u64,
    /// Its tokens that the step processed: of the prompt, or one that decodes.
    pub tokens: u64,
    /// What the step did for it.
    pub work: RequestWork,
}

/// What a step does for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RequestWork {
    /// Tokens of its prompt.
    Prefill,
    /// The next token.
    Decode,
    /// Tokens that were processed before, and dropped when it was preempted.
    Recompute,
}

/// The latency of a request, divided. The parts add up to what the client measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RequestParts {
    /// From when it was due until the engine prepares its first step; the way to the server is part of it.
    pub queue_ns: Nanos,
    /// Steps that process its prompt, without what other prompts take of them.
    pub own_prefill_ns: Nanos,
    /// What prompts of other requests take of its steps, and of steps that leave it out.
    pub other_prefill_ns: Nanos,
    /// Decode on the device.
    pub decode_ns: Nanos,
    /// The device waits for the host between its steps.
    pub host_ns: Nanos,
    /// Processing again what a preemption dropped, and waiting for it.
    pub recompute_ns: Nanos,
    /// From the end of its last step until its client has the last output.
    pub return_ns: Nanos,
    /// What the trace does not show.
    pub unexplained_ns: Nanos,
}

impl RequestParts {
    /// Everything.
    pub fn sum(&self) -> Nanos {
        self.named().iter().map(|(_, part)| *part).sum()
    }

    /// The parts with their names in files, in the order a request goes through them.
    pub fn named(&self) -> [(&'static str, Nanos); 8] {
        [
            ("queue", self.queue_ns),
            ("own_prefill", self.own_prefill_ns),
            ("other_prefill", self.other_prefill_ns),
            ("decode", self.decode_ns),
            ("host", self.host_ns),
            ("recompute", self.recompute_ns),
            ("return", self.return_ns),
            ("unexplained", self.unexplained_ns),
        ]
    }
}

fieldwise_add! {
    RequestParts { queue_ns, own_prefill_ns, other_prefill_ns, decode_ns, host_ns, recompute_ns, return_ns, unexplained_ns }
}
