//! The user asking the program to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Set by the first interrupt, so that work can end in order; a second one ends the program at once.
#[derive(Debug)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Takes interrupts from here on.
    pub(crate) fn catch() -> Self {
        let stopped = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stopped);
        let handler = move || {
            if flag.swap(true, Ordering::Relaxed) {
                std::process::exit(130);
            }
        };
        // Without a handler an interrupt ends the program, and the folder says so by itself.
        let _ = ctrlc::set_handler(handler);
        Self(stopped)
    }

    /// Whether the user asked.
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
