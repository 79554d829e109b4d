//! What a forecast of a load says: its assumptions, what limits it, and how its load arrives.

use types::{Capacity, CapacityAssumption, LimitedLatency, LoadArrivals};

use super::kind::Phrase;
use super::number::{count, decimal};

/// An assumption as a sentence.
impl Phrase for CapacityAssumption {
    fn phrase(self) -> &'static str {
        match self {
            Self::NotCalibrated => {
                "Device times rest on fixed shares of the peak rates. Calibrate the device: `llm-perf doctor --calibrate`."
            }
            Self::PartlyCalibrated => {
                "More than a fifth of the device time is not in the calibration and rests on fixed shares of the peak rates."
            }
            Self::Host => {
                "The host was not measured; it is assumed to be as fast as the one whose engine times are built in \
                 (vLLM 0.24 beside an H200)."
            }
            Self::EngineHost => "SGLang's host times were not measured; they are assumed to be those of vLLM.",
            Self::PagedAttention => {
                "Attention over a paged KV cache takes 1.33 times the calibrated library call plus 4.5 us a layer, as measured \
                 for FlashAttention 3 in vLLM 0.24."
            }
            Self::FusedDequantisation => {
                "Weights in fewer bits are read as they are stored and unpacked by the kernel that multiplies, unless it is \
                 compute-bound."
            }
            Self::Reserve => {
                "Libraries and captured graphs take 1 GiB of device memory beside weights and activations. --kv-blocks sets \
                 the number of blocks that the server logs."
            }
            Self::Links => "Links between devices reach 80% of the catalogue's bandwidth.",
            Self::WarmServer => "The server ran before and has loaded every kernel.",
            Self::UnknownStart => {
                "It is not known which kernels the server had loaded before the load; each simulation assumes another share."
            }
            Self::Lengths => "Outputs have exactly the length that is asked for.",
            Self::PowerLimit => {
                "Devices draw the limit of their power for the whole time, idle time included: an upper bound of their energy."
            }
            Self::Router => {
                "Servers are alike and independent; their router costs no time and knows every answer once it is made."
            }
            Self::KvTransfer => {
                "Keys and values go to the server that decodes over the given link once the prompt is processed, and transfers \
                 do not wait for each other. The first token reaches its client from there."
            }
            Self::Power => "Devices draw the given power for the whole time, idle time included.",
        }
    }
}

/// Behind "limited by".
impl Phrase for LimitedLatency {
    fn phrase(self) -> &'static str {
        match self {
            Self::Ttft => "TTFT",
            Self::Tpot => "TPOT",
            Self::Itl => "mean ITL",
            Self::E2el => "E2EL",
            Self::Throughput => "the server's throughput: requests pile up beyond it",
            Self::NotReached => "nothing within what was searched",
        }
    }
}

/// `100 requests at 8 a second, 512 tokens in and 128 out on average`.
pub(crate) fn load(capacity: &Capacity) -> String {
    let load = &capacity.load;
    let requests = count(load.requests, "request");
    let arriving = match load.arrivals {
        LoadArrivals::Rate { per_second: Some(rate) } => format!("at {} a second", decimal(rate)),
        LoadArrivals::File { per_second: Some(rate) } => format!("of a file, {} a second on average", decimal(rate)),
        LoadArrivals::Ramp { from, to } => format!("at {} to {} a second", decimal(from), decimal(to)),
        LoadArrivals::Concurrency { requests } => format!("{requests} at a time"),
        LoadArrivals::Rate { per_second: None } | LoadArrivals::File { per_second: None } => "all at once".to_owned(),
    };
    let [input, output] = [load.input_tokens, load.output_tokens].map(|sum| decimal(mean(sum, load.requests)));
    format!("{requests} {arriving}, {input} tokens in and {output} out on average")
}

fn mean(sum: u64, count: u64) -> f64 {
    (sum as f64 / count.max(1) as f64 * 10.0).round() / 10.0
}
