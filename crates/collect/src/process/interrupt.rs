//! Interrupts while a process runs. It has a group of its own, so that those at the keyboard do not reach it by themselves.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// How the user's wish to stop reaches a process.
#[derive(Clone, Copy)]
pub enum Interrupt<'a> {
    /// It does not: the process ends before anybody could want that.
    Ignored,
    /// Signals to this process are passed on, so that it ends before this process does and what it has written can be kept.
    Forwarded,
    /// The process is killed once this answers `true`.
    Asked(&'a dyn Fn() -> bool),
}

/// Group that is told of signals; zero where none is. One process at a time gets them.
static GROUP: AtomicI32 = AtomicI32::new(0);

/// Whether one came since the last process started.
static SEEN: AtomicBool = AtomicBool::new(false);

/// SIGINT and SIGTERM of this process go to the group of another until this is dropped.
pub(super) struct ForwardedSignals {
    before: [(libc::c_int, libc::sighandler_t); 2],
}

impl ForwardedSignals {
    /// Passes signals on to the group that process `id` leads.
    pub(super) fn to_group(id: libc::pid_t) -> Self {
        SEEN.store(false, Ordering::SeqCst);
        GROUP.store(id, Ordering::SeqCst);
        let handler = pass_on as extern "C" fn(libc::c_int) as libc::sighandler_t;
        // SAFETY: the handler only uses atomics and kill, both of which may be used in a handler.
        let before = [libc::SIGINT, libc::SIGTERM].map(|signal| (signal, unsafe { libc::signal(signal, handler) }));
        Self { before }
    }

    /// Whether one came.
    pub(super) fn came(&self) -> bool {
        SEEN.load(Ordering::SeqCst)
    }
}

impl Drop for ForwardedSignals {
    fn drop(&mut self) {
        GROUP.store(0, Ordering::SeqCst);
        for (signal, handler) in self.before {
            if handler != libc::SIG_ERR {
                // SAFETY: the handler is the one that was there before.
                unsafe { libc::signal(signal, handler) };
            }
        }
    }
}

extern "C" fn pass_on(signal: libc::c_int) {
    // Who asks twice does not want to wait for files to be written.
    let signal = if SEEN.swap(true, Ordering::SeqCst) { libc::SIGKILL } else { signal };
    signal_group(GROUP.load(Ordering::SeqCst), signal);
}

/// Sends a signal to everything in the group that a process leads. The process has not been collected, so that its number is
/// still its own.
pub(super) fn signal_group(group: libc::pid_t, signal: libc::c_int) {
    // Zero and one would mean our own group and everything.
    if group > 1 {
        // SAFETY: kill takes plain numbers.
        unsafe { libc::kill(-group, signal) };
    }
}
