//! Interrupts at the keyboard while a child runs: passed on to its group, so that it ends before this process does and
//! what it has written can be kept.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// Group that is told of interrupts; zero where none is. One child runs at a time.
static GROUP: AtomicI32 = AtomicI32::new(0);

/// Whether one came since the last child started.
static SEEN: AtomicBool = AtomicBool::new(false);

/// The process group of a running child. Interrupts go to it until this is dropped.
pub(super) struct Group {
    id: libc::pid_t,
    before: [(libc::c_int, libc::sighandler_t); 2],
}

impl Group {
    /// Passes interrupts on to the group that process `id` leads.
    pub(super) fn watch(id: u32) -> Self {
        let id = libc::pid_t::try_from(id).unwrap_or_default();
        SEEN.store(false, Ordering::SeqCst);
        GROUP.store(id, Ordering::SeqCst);
        let handler = pass_on as extern "C" fn(libc::c_int) as libc::sighandler_t;
        // SAFETY: the handler only uses atomics and kill, both of which may be used in a handler.
        let before = [libc::SIGINT, libc::SIGTERM].map(|signal| (signal, unsafe { libc::signal(signal, handler) }));
        Self { id, before }
    }

    /// Whether an interrupt came.
    pub(super) fn interrupted(&self) -> bool {
        SEEN.load(Ordering::SeqCst)
    }

    /// Asks everything in the group to end.
    pub(super) fn ask_to_end(&self) {
        signal_group(self.id, libc::SIGTERM);
    }

    /// Ends everything in the group.
    pub(super) fn end(&self) {
        signal_group(self.id, libc::SIGKILL);
    }
}

impl Drop for Group {
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

fn signal_group(group: libc::pid_t, signal: libc::c_int) {
    // Zero and one would mean our own group and everything.
    if group > 1 {
        // SAFETY: kill takes plain numbers. A group whose leader has ended keeps its id while anything is left in it;
        // in the moment after, nothing is there to be told.
        unsafe { libc::kill(-group, signal) };
    }
}
