//! The `llm-perf` program: everything is in the library, so that tests can reach it.

use std::process::ExitCode;

/// Rows of a trace that is larger than memory go to files; see `import --memory`.
#[global_allocator]
static ALLOCATOR: flow::SpillingAllocator = flow::SpillingAllocator;

fn main() -> ExitCode {
    llm_perf::run(std::env::args_os().collect())
}
