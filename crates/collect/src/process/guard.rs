//! A process that outlives this one by a moment: where this program is killed, it ends the group that another leads.
//!
//! `PR_SET_PDEATHSIG` ends the program that was started, and not what that one has started. The guard holds the end of a pipe
//! whose other end is ours alone, so that it sees our death however it comes.

use std::io::{PipeWriter, Write};
use std::os::fd::AsRawFd;

/// A guard that waits.
#[derive(Debug)]
pub(super) struct Guard {
    id: libc::pid_t,
    pipe: PipeWriter,
}

impl Guard {
    /// Starts it; without a group it does nothing. Absent where the system allows no further process.
    pub(super) fn start() -> Option<Self> {
        let (reader, pipe) = std::io::pipe().ok()?;
        // SAFETY: the new process makes system calls only, and never comes back from `guard`.
        match unsafe { libc::fork() } {
            -1 => None,
            0 => guard(reader.as_raw_fd()),
            id => Some(Self { id, pipe }),
        }
    }

    /// Its number.
    pub(super) fn id(&self) -> libc::pid_t {
        self.id
    }

    /// From here on it guards the group that process `leader` leads.
    pub(super) fn watch(&mut self, leader: libc::pid_t) {
        // Where it is gone, the group is left to the system, as without it.
        let _ = self.pipe.write_all(&leader.to_ne_bytes());
    }
}

impl Drop for Guard {
    /// Sends it away.
    fn drop(&mut self) {
        let _ = self.pipe.write_all(&[0]);
        // SAFETY: a child that nobody else waits for; no status is asked for.
        while unsafe { libc::waitpid(self.id, std::ptr::null_mut(), 0) } == -1
            && std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted
        {}
    }
}

/// The new process: waits for our death, or for a word that all is well.
fn guard(reader: libc::c_int) -> ! {
    // SAFETY: plain system calls on numbers and on a local. Everything but the pipe is let go of, so that nobody waits for
    // the end of a stream that only a guard holds open.
    unsafe {
        libc::setpgid(0, 0);
        libc::dup2(reader, 0);
        if libc::syscall(libc::SYS_close_range, 1, libc::c_uint::MAX, 0) != 0 {
            (1..1024).for_each(|number| {
                libc::close(number);
            });
        }
        let (mut leader, mut word): (libc::pid_t, libc::pid_t) = (0, 0);
        let whole = size_of::<libc::pid_t>();
        if read(&raw mut leader, whole) == whole as isize && read(&raw mut word, 1) == 0 && leader > 1 {
            libc::kill(-leader, libc::SIGKILL);
        }
        libc::_exit(0)
    }
}

/// Reads up to `most` bytes of the pipe; zero is its end, and so ours.
///
/// # Safety
/// `to` has room for `most` bytes.
unsafe fn read(to: *mut libc::pid_t, most: usize) -> isize {
    loop {
        // SAFETY: as promised by the caller.
        let count = unsafe { libc::read(0, to.cast(), most) };
        if count != -1 || std::io::Error::last_os_error().kind() != std::io::ErrorKind::Interrupted {
            return count;
        }
    }
}
