//! Files of other tools, read into records: one module per format.
//!
//! A reader takes text and gives back what the text says. It opens nothing, starts nothing and joins nothing; what the
//! records mean for a model or a run is decided elsewhere.
//!
//! ```
//! use llm_perf_ingest::detect::{Format, identify};
//! use llm_perf_ingest::torch::{TorchSettings, read};
//!
//! let bytes = br#"{"schemaVersion": 1, "traceEvents": [
//!     {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 10, "dur": 4,
//!         "args": {"correlation": 7}},
//!     {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 20, "dur": 30,
//!         "args": {"correlation": 7, "device": 0, "stream": 7}}]}"#;
//! assert_eq!(identify(bytes).format, Some(Format::TorchProfiler));
//!
//! let timeline = read("trace.json", bytes, &TorchSettings::default())?.timeline;
//! let kernel = &timeline.work[0];
//! assert_eq!((timeline.name(kernel.name), kernel.duration.get()), ("gemm", 30_000));
//!
//! // What is missing is counted, and what is no trace is refused by name.
//! let cut = read("trace.json", &bytes[..bytes.len() - 20], &TorchSettings::default())?;
//! assert!(cut.loss.is_some());
//! assert!(read("notes.txt", b"hello", &TorchSettings::default()).unwrap_err().to_string().starts_with("notes.txt"));
//! # Ok::<(), llm_perf_ingest::IngestError>(())
//! ```

mod capture;
pub mod compressed;
mod csv;
mod cuda;
mod decimal;
mod demangle;
pub mod detect;
mod error;
pub mod gguf;
mod json;
pub mod ncu;
pub mod nsys;
pub mod requests;
pub mod torch;
pub mod torchinfo;
pub mod wire;

pub use error::IngestError;
