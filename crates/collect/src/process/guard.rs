//! A process that outlives this one by a moment: where this program is killed, it ends the groups that still run.
//!
//! `PR_SET_PDEATHSIG` would end the program that was started, and not what that one has started. The guard holds the end of a pipe
//! whose other end is ours alone, so that it sees our death however it comes. There is one for all groups, forked before the
//! first of them, so that it takes no time from any.

use std::io::{PipeWriter, Write};
use std::os::fd::AsRawFd;

/// A guard that waits.
#[derive(Debug)]
pub(super) struct Guard {
    id: libc::pid_t,
    pipe: PipeWriter,
}

impl Guard {
    /// Groups that are guarded at a time; further ones have `PR_SET_PDEATHSIG` alone.
    pub(super) const MOST: usize = 64;

    /// Starts it. Absent where the system allows no further process.
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
    pub(super) fn add(&mut self, leader: libc::pid_t) {
        // Where it is gone, the group is left to the system, as without it.
        let _ = self.pipe.write_all(&leader.to_ne_bytes());
    }

    /// The group has ended.
    pub(super) fn remove(&mut self, leader: libc::pid_t) {
        let _ = self.pipe.write_all(&(-leader).to_ne_bytes());
    }
}

/// The new process: keeps a list of groups until our end, and ends those that are left.
fn guard(reader: libc::c_int) -> ! {
    let mut groups: [libc::pid_t; Guard::MOST] = [0; Guard::MOST];
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
        while let Some(word) = read() {
            let (from, to) = if word > 0 { (0, word) } else { (-word, 0) };
            if let Some(place) = groups.iter_mut().find(|group| **group == from) {
                *place = to;
            }
        }
        for group in groups.into_iter().filter(|group| *group > 1) {
            libc::kill(-group, libc::SIGKILL);
        }
        libc::_exit(0)
    }
}

/// The next word of the pipe, which are written whole; none at its end, and so ours.
fn read() -> Option<libc::pid_t> {
    let mut word: libc::pid_t = 0;
    loop {
        // SAFETY: the pointer is to a local of that size.
        let count = unsafe { libc::read(0, (&raw mut word).cast(), size_of::<libc::pid_t>()) };
        match count {
            -1 if std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted => {}
            count => return (count == size_of::<libc::pid_t>() as isize).then_some(word),
        }
    }
}
