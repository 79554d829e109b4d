//! Interrupts while a process runs. It has a group of its own, so that those at the keyboard do not reach it by themselves.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use super::family::{kill_all, signal_group};

/// Signals that ask a program to end: Ctrl-C, a supervisor, a terminal that is closed.
const SIGNALS: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// Whether this program was asked to end since [`StopRequest::catch`].
static STOP: AtomicBool = AtomicBool::new(false);

/// The user's wish to stop: the first signal is noted, so that work can end in order and what was measured is kept; a second
/// one ends this program at once, and everything it started.
#[derive(Clone, Copy, Debug)]
pub struct StopRequest(());

impl StopRequest {
    /// Takes the signals from here on. A hangup that is ignored already, as `nohup` has it, stays ignored.
    pub fn catch() -> Self {
        let handler = note_stop as extern "C" fn(libc::c_int) as libc::sighandler_t;
        for signal in SIGNALS {
            // SAFETY: the handler only uses atomics, kill and _exit, all of which may be used in a handler.
            let before = unsafe { libc::signal(signal, handler) };
            if is_kept_ignored(signal, before) {
                // SAFETY: the disposition is the one that was there before.
                unsafe { libc::signal(signal, before) };
            }
        }
        Self(())
    }

    /// Whether it was asked to.
    pub fn is_set(&self) -> bool {
        STOP.load(Ordering::SeqCst)
    }
}

/// Whether whoever started this program wants it to outlive its terminal. An ignored SIGINT means no such thing: shells
/// ignore it for what they start in the background.
fn is_kept_ignored(signal: libc::c_int, before: libc::sighandler_t) -> bool {
    signal == libc::SIGHUP && before == libc::SIG_IGN
}

extern "C" fn note_stop(_: libc::c_int) {
    if STOP.swap(true, Ordering::SeqCst) {
        kill_all();
        // SAFETY: _exit may be used in a handler, and does not return.
        unsafe { libc::_exit(130) };
    }
}

/// How the user's wish to stop reaches a process.
#[derive(Clone, Copy)]
pub enum Interrupt<'a> {
    /// It does not: the process ends before anybody could want that.
    Ignored,
    /// Signals to this process are passed on, so that it ends before this process does and what it has written can be kept.
    Forwarded,
    /// The process is asked to end once this answers `true`, and killed where it takes longer than its grace.
    Asked(&'a dyn Fn() -> bool),
}

/// Group that is told of signals; zero where none is. One process at a time gets them.
static GROUP: AtomicI32 = AtomicI32::new(0);

/// Whether one came since the last process started.
static SEEN: AtomicBool = AtomicBool::new(false);

/// SIGINT, SIGTERM and SIGHUP of this process go to the group of another until this is dropped.
pub(super) struct ForwardedSignals {
    before: [(libc::c_int, libc::sighandler_t); 3],
}

impl ForwardedSignals {
    /// Passes signals on to the group that process `id` leads.
    pub(super) fn to_group(id: libc::pid_t) -> Self {
        SEEN.store(false, Ordering::SeqCst);
        GROUP.store(id, Ordering::SeqCst);
        let handler = pass_on as extern "C" fn(libc::c_int) as libc::sighandler_t;
        // SAFETY: the handler only uses atomics and kill, both of which may be used in a handler.
        let before = SIGNALS.map(|signal| (signal, unsafe { libc::signal(signal, handler) }));
        for (signal, handler) in before.into_iter().filter(|(signal, handler)| is_kept_ignored(*signal, *handler)) {
            // SAFETY: the disposition is the one that was there before.
            unsafe { libc::signal(signal, handler) };
        }
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
