//! Values that are set once, without locks.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, Ordering};

/// A value that is written once and then only read.
pub(crate) struct Once<T> {
    ready: AtomicBool,
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: the value is written before `ready` is set and only read afterwards.
unsafe impl<T: Sync> Sync for Once<T> {}

impl<T> Once<T> {
    pub(crate) const fn new() -> Self {
        Self { ready: AtomicBool::new(false), value: UnsafeCell::new(MaybeUninit::uninit()) }
    }

    /// The value, once there is one.
    #[inline]
    pub(crate) fn get(&self) -> Option<&T> {
        // SAFETY: it is ready, so it was written and is written no more.
        self.ready.load(Ordering::Acquire).then(|| unsafe { (*self.value.get()).assume_init_ref() })
    }

    /// Sets the value.
    ///
    /// # Safety
    ///
    /// Nobody else calls this at the same time, and there is no value yet.
    pub(crate) unsafe fn set(&self, value: T) {
        // SAFETY: by the contract, and nobody reads before `ready` is set.
        unsafe { (*self.value.get()).write(value) };
        self.ready.store(true, Ordering::Release);
    }
}
