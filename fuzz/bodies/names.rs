//! Names of kernels, as a compiler or anybody else writes them: read in a trace, made readable, shortened and
//! classified, without growing much.

use analysis::kernel::{classify, function_name, short_name, sums_up_products};
use ingest::torch::{TorchSettings, read};

/// What must hold for any input; whether it became more readable.
pub(crate) fn check(name: &str) -> bool {
    let event = serde_json::json!({
        "ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": 1, "dur": 2,
        "args": {"device": 0, "stream": 7, "correlation": 1},
    });
    let trace = serde_json::json!({"traceEvents": [event]}).to_string();
    let settings = TorchSettings { threads: 1, chunk_bytes: None, largest_event_bytes: 1 << 20 };
    let Ok(trace) = read("trace.json", trace.as_bytes(), &settings) else { return false };
    for (_, readable) in trace.timeline.names.iter() {
        let _ = (classify(readable), sums_up_products(readable), classify(name));
        let (short, function) = (short_name(readable), function_name(readable));
        assert!(short.len() <= readable.len() + LONGER && function.len() <= readable.len(), "{short} of {readable}");
    }
    trace.timeline.names.iter().any(|(_, readable)| name.starts_with("_Z") && !readable.starts_with("_Z"))
}

/// Bytes by which a short name may be longer.
const LONGER: usize = 64;
