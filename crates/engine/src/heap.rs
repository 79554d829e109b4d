//! What becomes of memory that an operation's result no longer needs.

/// Keeps freed memory for the next result instead of giving it back to the system.
///
/// Results are large and live shortly. The C library's default maps each anew, and the system then clears pages that are
/// about to be overwritten anyway: a tenth to a fifth of the processor's time in a forward pass. Asked once, it holds for the
/// whole process; elsewhere than on Linux with the GNU library nothing is changed.
pub(crate) fn keep_freed() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: `mallopt` takes numbers only and may be called at any time.
        unsafe {
            libc::mallopt(libc::M_MMAP_MAX, 0);
            libc::mallopt(libc::M_TRIM_THRESHOLD, libc::c_int::MAX);
        }
    }
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::*;

    const LARGE: usize = 16 << 20;

    fn faults() -> i64 {
        // SAFETY: all zeroes is a valid `rusage`, and the call only fills it.
        unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            assert_eq!(libc::getrusage(libc::RUSAGE_THREAD, &mut usage), 0);
            usage.ru_minflt
        }
    }

    fn touch_fresh_block() -> i64 {
        let before = faults();
        std::hint::black_box(vec![1u8; LARGE]);
        faults() - before
    }

    #[test]
    fn a_large_block_is_reused_without_new_pages() {
        keep_freed();
        touch_fresh_block();
        let again = touch_fresh_block();
        assert!(again < 16, "{again} pages were fetched anew");
    }
}
