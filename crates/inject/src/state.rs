//! What the library is doing in this process, in one place: whether it collects, whether CUPTI is attached, whether a window is
//! open. Callbacks and ranges write it, the writer thread reads it; it calls nothing but the system.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::system;

/// What becomes of the process.
pub(crate) const IDLE: u32 = 0;
pub(crate) const STARTING: u32 = 1;
pub(crate) const RUNNING: u32 = 2;
pub(crate) const OFF: u32 = 3;
/// Nothing happens until somebody asks for a recording.
pub(crate) const WAITING: u32 = 4;

pub(crate) struct State {
    /// [`IDLE`], [`STARTING`], [`RUNNING`], [`OFF`] or [`WAITING`].
    pub(crate) life: AtomicU32,
    /// How far CUPTI is attached; the numbers are those of `attachment`.
    pub(crate) attachment: AtomicU32,
    /// Whether functions of CUPTI may be called.
    pub(crate) attached: AtomicBool,
    /// Whether the driver has started in this process, or CUPTI was attached, which starts it.
    pub(crate) driver: AtomicBool,
    /// Whether trying again is of no use: CUPTI was not found or refused.
    pub(crate) hopeless: AtomicBool,
    /// Whether this is the child of a fork whose parent had started the driver, which does not survive that.
    pub(crate) orphaned: AtomicBool,
    /// Whether calls are recorded right now.
    pub(crate) collecting: AtomicBool,
    /// Whether a recording that was asked for times launches of graphs alone, and whether that is done right now.
    pub(crate) graphs_only: AtomicBool,
    pub(crate) timing: AtomicBool,
    /// Windows that are open.
    pub(crate) open: AtomicU32,
    /// When the last one closed; zero while one is open.
    pub(crate) closed: AtomicU64,
    /// Whether somebody has asked for a recording, and when it ends by the monotonic clock; zero where nobody has.
    pub(crate) asked: AtomicBool,
    pub(crate) until: AtomicU64,
    /// Launches of graphs of which one is recorded by its nodes: 1 for all of them, 0 for none.
    pub(crate) graphs: AtomicU32,
    /// Launches of graphs since recording was switched on, and whether they are recorded by their nodes just now, where they are sampled.
    pub(crate) graph_launches: AtomicU32,
    pub(crate) sampling: AtomicBool,
    /// Whether the program has started the CUDA profiler, and whether a window is open for that.
    pub(crate) profiled: AtomicBool,
    pub(crate) profile_open: AtomicBool,
    /// The monotonic clock when the driver started; zero before.
    pub(crate) driver_since: AtomicU64,
    /// The device clock when recording was switched on; no record is older.
    pub(crate) since: AtomicU64,
    /// Rung when the writer thread has something to do at once.
    pub(crate) bell: AtomicU32,
    /// Whether the writer thread is to finish, and whether it has.
    pub(crate) leaving: AtomicBool,
    pub(crate) left: AtomicBool,
}

// SAFETY: numbers of zero, and nothing that is so.
pub(crate) static STATE: State = unsafe { core::mem::zeroed() };

impl State {
    /// Whether this process is collected.
    #[inline]
    pub(crate) fn is_running(&self) -> bool {
        self.life.load(Ordering::Acquire) == RUNNING
    }

    /// No more collecting; whether there was any.
    pub(crate) fn stop(&self) -> bool {
        self.life.compare_exchange(RUNNING, OFF, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// A recording that was asked for takes nothing more; whether it did.
    pub(crate) fn end_recording(&self) -> bool {
        self.life.compare_exchange(RUNNING, STARTING, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Whether functions of CUPTI may be called.
    #[inline]
    pub(crate) fn is_attached(&self) -> bool {
        self.attached.load(Ordering::Acquire)
    }

    /// Whether calls are recorded right now.
    #[inline]
    pub(crate) fn is_collecting(&self) -> bool {
        self.collecting.load(Ordering::Relaxed)
    }

    /// Whether launches of graphs are timed right now.
    #[inline]
    pub(crate) fn is_timing(&self) -> bool {
        self.timing.load(Ordering::Acquire)
    }

    /// Whether this recording times launches of graphs alone, without CUPTI.
    pub(crate) fn times_graphs_only(&self) -> bool {
        self.graphs_only.load(Ordering::Relaxed)
    }

    /// Whether CUPTI can never be attached to this process.
    pub(crate) fn is_hopeless(&self) -> bool {
        self.hopeless.load(Ordering::Acquire) || self.orphaned.load(Ordering::Relaxed)
    }

    /// Whether a window is open.
    pub(crate) fn any_open(&self) -> bool {
        self.open.load(Ordering::Acquire) > 0
    }

    /// No window is open any more, in the child of a fork or at the end.
    pub(crate) fn close_windows(&self) {
        self.collecting.store(false, Ordering::Relaxed);
        self.timing.store(false, Ordering::Relaxed);
        self.open.store(0, Ordering::Relaxed);
        self.closed.store(0, Ordering::Relaxed);
        self.profiled.store(false, Ordering::Relaxed);
        self.profile_open.store(false, Ordering::Relaxed);
    }

    /// Wakes the writer thread: CUPTI records, or the process leaves.
    pub(crate) fn wake_writer(&self) {
        system::ring(&self.bell);
    }

    /// In the child of a fork: nothing is open, and where the driver had started nothing of CUPTI may be called any more.
    pub(crate) fn forget(&self, life: u32) {
        self.attached.store(false, Ordering::Relaxed);
        self.orphaned.fetch_or(self.driver.load(Ordering::Relaxed), Ordering::Relaxed);
        self.asked.store(false, Ordering::Relaxed);
        self.until.store(0, Ordering::Relaxed);
        self.attachment.store(0, Ordering::Relaxed);
        self.close_windows();
        self.leaving.store(false, Ordering::Relaxed);
        self.left.store(false, Ordering::Relaxed);
        self.life.store(life, Ordering::Release);
    }
}
