//! Ranges that profilers see: a small NVTX client of our own.
//!
//! Ranges are pushed and popped in the domain `LLM`. A tool such as Nsight Systems names its library in the environment; it
//! is loaded when the first range is pushed. Without a tool a range costs one relaxed atomic load. What the ranges are
//! called and where they start and end is left to those who push them.

#[cfg(unix)]
mod injection;

use std::marker::PhantomData;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(unix)]
use injection::Tool;

/// The domain of all ranges.
#[cfg(unix)]
const DOMAIN: &std::ffi::CStr = c"LLM";

/// Whether it is known that no tool listens. Beginning with false, so that the first range looks for one.
static SILENT: AtomicBool = AtomicBool::new(false);

/// What looking for a tool has found.
static FOUND: OnceLock<Result<Option<Tool>, String>> = OnceLock::new();

/// A system without injection libraries: there is never a tool.
#[cfg(not(unix))]
#[derive(Debug)]
enum Tool {}

/// An open range; it ends when this is dropped, on the thread that pushed it.
#[derive(Debug)]
#[must_use = "a range ends when it is dropped"]
pub struct Range {
    tool: Option<&'static Tool>,
    /// Ranges nest per thread, so this one stays where it started.
    not_send: PhantomData<*const ()>,
}

/// Whether a tool listens. The first call looks for one.
pub fn listening() -> bool {
    tool().is_some()
}

/// Why the tool that the environment names cannot listen; `None` when it can, and when none is named.
pub fn problem() -> Option<&'static str> {
    found().as_ref().err().map(String::as_str)
}

impl Range {
    /// Starts a range inside those that are open on this thread.
    pub fn push(name: &'static str) -> Self {
        let tool = tool();
        #[cfg(unix)]
        if let Some(tool) = tool {
            tool.push(name);
        }
        #[cfg(not(unix))]
        let _ = name;
        Self { tool, not_send: PhantomData }
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Some(tool) = self.tool {
            tool.pop();
        }
    }
}

fn tool() -> Option<&'static Tool> {
    if SILENT.load(Ordering::Relaxed) {
        return None;
    }
    let tool = found().as_ref().ok().and_then(Option::as_ref);
    if tool.is_none() {
        SILENT.store(true, Ordering::Relaxed);
    }
    tool
}

fn found() -> &'static Result<Option<Tool>, String> {
    FOUND.get_or_init(|| {
        #[cfg(unix)]
        return injection::attach(DOMAIN);
        #[cfg(not(unix))]
        return Ok(None);
    })
}
