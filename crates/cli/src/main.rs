//! The `llm-perf` program: everything is in the library, so that tests can reach it.

use std::process::ExitCode;

fn main() -> ExitCode {
    llm_perf::run(std::env::args_os().collect())
}
