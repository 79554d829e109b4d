//! A recording that somebody outside asks for while the library waits: `llm-perf attach` leaves a file and sends a signal.
//!
//! The file is `/tmp/llm-perf-attach-PROCESS/request`. It holds the milliseconds to record, as `5000`, or as `5000 graphs` where only
//! launches of graphs are to be timed; it is removed when the recording is over. Files are written next to it. Only the process's own user can send the
//! signal, and that user's program makes the folder for nobody else.

use core::ffi::c_void;

use crate::number::number;
use crate::path::Path;
use crate::system;

/// The signal: a real-time one far from both ends, where libraries take theirs. It is left alone where the application has taken it.
pub(crate) const SIGNAL: i32 = 47;

/// Longest recording, in milliseconds: an hour.
const LONGEST: u32 = 3_600_000;

/// The folder of requests for this process.
pub(crate) fn folder() -> Path {
    let mut path = Path::new();
    path.append(b"/tmp/llm-perf-attach-");
    path.append_number(system::processes().0);
    path
}

fn file(folder: &Path) -> Path {
    let mut path = Path::of(folder.bytes());
    path.append(b"/request");
    path
}

/// What to record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) milliseconds: u32,
    /// Only launches of graphs are timed, without CUPTI.
    pub(crate) graphs_only: bool,
}

/// What is asked for in a folder; nothing inside where that is not understood, and nothing at all where nobody asks.
pub(crate) fn read(folder: &Path) -> Option<Option<Request>> {
    let mut room = [0; 64];
    let path = file(folder);
    let text = system::read_small(path.as_c()?, &mut room);
    (!text.is_empty()).then(|| parse(text.trim_ascii_end()))
}

/// The recording is over.
pub(crate) fn done(folder: &Path) {
    if let Some(path) = file(folder).as_c() {
        system::remove(path);
    }
}

fn parse(text: &[u8]) -> Option<Request> {
    let (time, graphs_only) = text.strip_suffix(b" graphs").map_or((text, false), |time| (time, true));
    let milliseconds = number(time).filter(|time| (1..=LONGEST).contains(time))?;
    Some(Request { milliseconds, graphs_only })
}

/// Whether the thread that the signal has interrupted holds no lock that starting a thread needs: it sleeps in a system call that
/// no allocator and no loader makes while it holds one.
///
/// # Safety
///
/// `context` is what the system passes to a handler of signals.
#[cfg(target_arch = "x86_64")]
pub(crate) unsafe fn may_start(context: *const c_void) -> bool {
    /// Places in `ucontext_t` of `<sys/ucontext.h>`, in words: `uc_mcontext.gregs` and registers in it.
    const REGISTERS: usize = 5;
    const RSI: usize = REGISTERS + 9;
    const RAX: usize = REGISTERS + 13;
    const RIP: usize = REGISTERS + 16;
    const SYSCALL: [u8; 2] = [0x0f, 0x05];
    const EINTR: i64 = -4;
    // SAFETY: by the contract; the words are inside the structure, and code that was running can be read.
    let (call, operation, next, last) = unsafe {
        let word = |place: usize| context.cast::<i64>().add(place).read();
        let at = word(RIP) as usize as *const [u8; 2];
        (word(RAX), word(RSI), at.read_unaligned(), at.cast::<u8>().sub(2).cast::<[u8; 2]>().read_unaligned())
    };
    // Calls with a time limit are interrupted; the others are made again.
    (last == SYSCALL && call == EINTR) || (next == SYSCALL && sleeps(call, operation))
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) unsafe fn may_start(_: *const c_void) -> bool {
    false
}

/// Whether a system call waits for what others send, or for a condition. glibc's own locks, malloc's too, wait by `FUTEX_WAIT`;
/// conditions by `FUTEX_WAIT_BITSET`.
#[cfg(target_arch = "x86_64")]
fn sleeps(call: i64, operation: i64) -> bool {
    const CALLS: [i64; 8] = [0, 43, 45, 47, 61, 247, 281, 288];
    const FUTEX: i64 = 202;
    const WAIT_BITSET: i64 = 9;
    CALLS.contains(&call) || (call == FUTEX && operation & 0x7f == WAIT_BITSET)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_says_how_long() {
        let asked = |milliseconds, graphs_only| Some(Request { milliseconds, graphs_only });
        assert_eq!((parse(b"5000"), parse(b"1")), (asked(5000, false), asked(1, false)));
        assert_eq!(parse(b"3600000 graphs"), asked(LONGEST, true));
        for text in [&b""[..], b"0", b"3600001", b"-1", b"x", b"5000 whole", b" graphs"] {
            assert_eq!(parse(text), None);
        }
    }

    #[test]
    fn a_lock_is_no_sleep() {
        const FUTEX: i64 = 202;
        assert!(sleeps(0, 0) && sleeps(FUTEX, 128 | 9) && sleeps(FUTEX, 256 | 128 | 9));
        assert!(!sleeps(FUTEX, 128) && !sleeps(9, 0) && !sleeps(1, 0));
    }
}
