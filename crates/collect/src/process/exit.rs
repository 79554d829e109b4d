//! The end of a process, seen when it happens.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use types::Nanos;

use super::Ending;

/// The end of a process. It is still there to be asked what it used, and its number, which is also that of the group it
/// leads, cannot be given to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exit {
    pub(super) ending: Ending,
    /// When it was seen, by [`monotonic`].
    pub(super) at: Nanos,
}

/// What a process is watched by.
#[derive(Debug)]
pub(super) enum ExitWatch {
    /// A descriptor that becomes readable when it ends.
    Descriptor(OwnedFd),
    /// Before Linux 5.3: a thread that waits for it.
    Thread(Receiver<Exit>),
}

impl ExitWatch {
    /// Watches a child that nobody else waits for.
    pub(super) fn of(id: libc::pid_t) -> Self {
        // SAFETY: it takes plain numbers.
        let number = unsafe { libc::syscall(libc::SYS_pidfd_open, id, 0) };
        match libc::c_int::try_from(number) {
            // SAFETY: the system has just given it to us.
            Ok(number) if number >= 0 => Self::Descriptor(unsafe { OwnedFd::from_raw_fd(number) }),
            _ => Self::Thread(wait_in_thread(id)),
        }
    }

    /// Waits for its end for so long at most. The error is that nothing can see the process.
    pub(super) fn wait(&self, id: libc::pid_t, most: Duration) -> std::io::Result<Option<Exit>> {
        match self {
            Self::Descriptor(descriptor) => {
                let mut asked = libc::pollfd { fd: descriptor.as_raw_fd(), events: libc::POLLIN, revents: 0 };
                let most = libc::timespec {
                    tv_sec: libc::time_t::try_from(most.as_secs()).unwrap_or(libc::time_t::MAX),
                    tv_nsec: most.subsec_nanos().into(),
                };
                // SAFETY: the pointers are to locals of the right types; no signal mask is given.
                match unsafe { libc::ppoll(&raw mut asked, 1, &raw const most, std::ptr::null()) } {
                    1.. => ended(id, monotonic(), 0),
                    0 => Ok(None),
                    _ => match std::io::Error::last_os_error() {
                        error if error.kind() == std::io::ErrorKind::Interrupted => Ok(None),
                        error => Err(error),
                    },
                }
            }
            Self::Thread(exit) => match exit.recv_timeout(most) {
                Ok(exit) => Ok(Some(exit)),
                Err(RecvTimeoutError::Timeout) => Ok(None),
                Err(RecvTimeoutError::Disconnected) => Err(std::io::Error::from_raw_os_error(libc::ECHILD)),
            },
        }
    }
}

/// Whether a child has ended, without waiting.
pub(super) fn has_ended(id: libc::pid_t) -> bool {
    !matches!(ended(id, Nanos::ZERO, libc::WNOHANG), Ok(None))
}

/// How a child ended, where it has; it is left to be collected.
fn ended(id: libc::pid_t, at: Nanos, options: libc::c_int) -> std::io::Result<Option<Exit>> {
    let mut info = std::mem::MaybeUninit::<libc::siginfo_t>::zeroed();
    let options = libc::WEXITED | libc::WNOWAIT | options;
    // SAFETY: the pointer is to a local of the right type; the process is a child that nobody else waits for.
    while unsafe { libc::waitid(libc::P_PID, id.unsigned_abs(), info.as_mut_ptr(), options) } != 0 {
        let error = std::io::Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    // SAFETY: waitid filled it in, or left it all zero, which is valid.
    let info = unsafe { info.assume_init() };
    // SAFETY: after waitid the fields of a child's end are the valid ones.
    let (process, status) = unsafe { (info.si_pid(), info.si_status()) };
    let ending = if info.si_code == libc::CLD_EXITED { Ending::Code(status) } else { Ending::Signal(status) };
    Ok((process != 0).then_some(Exit { ending, at }))
}

fn wait_in_thread(id: libc::pid_t) -> Receiver<Exit> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        if let Ok(Some(exit)) = ended(id, Nanos::ZERO, 0) {
            // Nobody listens any more where the process was given up.
            let _ = sender.send(Exit { at: monotonic(), ..exit });
        }
    });
    receiver
}

/// The clock that processes are timed by, which all of them share. May be asked between fork and exec.
pub(super) fn monotonic() -> Nanos {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a local of the right type, and every system has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    Nanos::new(time.tv_sec * 1_000_000_000 + time.tv_nsec)
}
