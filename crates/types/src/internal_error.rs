//! A panic: a fault of ours, or of a library on a damaged file. It is told in one line, and ends the run as failed.
//!
//! What a panic says may quote a file or a command line, and with them a secret: only a message that is part of the program is
//! shown, and the place.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::{Mutex, PoisonError};

use crate::UserError;

/// A panic on its way.
#[derive(Debug)]
pub struct CaughtPanic {
    said: String,
    payload: Box<dyn Any + Send>,
}

thread_local! {
    /// Whether a panic of this thread is an answer of a library, and nothing to tell.
    static IS_EXPECTED: Cell<bool> = const { Cell::new(false) };
}

/// What the last panic that was not expected said, on whichever thread it was.
static LAST: Mutex<Option<String>> = Mutex::new(None);

/// Has every panic from here on told by `report`, and nothing else, except where a backtrace is wanted.
pub fn report_panics(wants_backtrace: bool, report: impl Fn(&UserError) + Send + Sync + 'static) {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if IS_EXPECTED.get() {
            return;
        }
        let told = told(info);
        if wants_backtrace {
            usual(info);
        }
        report(
            &UserError::failed(&told)
                .hint("this is a bug in llm-perf; report it with the command and, if you can, the file"),
        );
        *LAST.lock().unwrap_or_else(PoisonError::into_inner) = Some(told);
    }));
}

/// Runs a library on what may make it panic; `None` where it did.
pub fn guarded<T>(work: impl FnOnce() -> T) -> Option<T> {
    let before = IS_EXPECTED.replace(true);
    let done = panic::catch_unwind(AssertUnwindSafe(work));
    IS_EXPECTED.set(before);
    done.ok()
}

/// Runs `work`, and gives back its panic, where there is one, to be written down before it goes on.
pub fn catching<T>(work: impl FnOnce() -> T) -> Result<T, CaughtPanic> {
    panic::catch_unwind(AssertUnwindSafe(work)).map_err(|payload| {
        let last = LAST.lock().unwrap_or_else(PoisonError::into_inner).clone();
        CaughtPanic { said: last.unwrap_or_else(|| "internal error".to_owned()), payload }
    })
}

impl CaughtPanic {
    /// What was told of it.
    pub fn said(&self) -> &str {
        &self.said
    }

    /// Lets it go on.
    pub fn resume(self) -> ! {
        panic::resume_unwind(self.payload)
    }
}

fn told(info: &PanicHookInfo<'_>) -> String {
    let place = info.location().map(|place| format!(" at {}:{}", place.file(), place.line())).unwrap_or_default();
    let message = info.payload().downcast_ref::<&'static str>().map(|message| format!(": {message}"));
    format!("internal error{place}{}", message.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_may_panic_and_the_run_goes_on() {
        assert_eq!(guarded(|| 3), Some(3));
        assert_eq!(guarded(|| -> u8 { panic!("a damaged page") }), None);
        assert!(!IS_EXPECTED.get());
    }

    #[test]
    fn a_panic_is_told_before_it_goes_on() {
        assert_eq!(catching(|| 3).ok(), Some(3));
        let caught = catching(|| -> u8 { panic!("on purpose") }).expect_err("it panics");
        assert!(caught.said().starts_with("internal error"), "{}", caught.said());
        assert!(catching(|| -> u8 { caught.resume() }).is_err());
    }
}
