//! A process that outlives this one by a moment: where this program is killed, it ends the groups that still run.
//!
//! `PR_SET_PDEATHSIG` would end the program that was started, and not what that one has started. The guard holds the end of a pipe
//! whose other end is ours alone, so that it sees our death however it comes. There is one for all groups, forked before the
//! first of them, so that it takes no time from any.
//!
//! A program may run before whoever started it comes to write down its number, may leave its group, and may clear its
//! environment. So the guard is told beforehand that one is about to start, and finds what is left by two marks that all of
//! them inherit: a variable, and a limit that limits nothing.

use std::io::{PipeWriter, Write};
use std::os::fd::AsRawFd;

/// A guard that waits.
#[derive(Debug)]
pub(super) struct Guard {
    id: libc::pid_t,
    pipe: PipeWriter,
    mark: String,
}

/// The variable by which the guard knows what was started here.
pub(super) const VARIABLE: &str = "LLM_PERF_GUARDED_BY";

/// Microseconds that a program with real-time priority may compute without pause, from here on up a mark: 146,000 years. What has
/// no environment and no open file of ours still has its limits, and whoever may end a process may read them.
const UNLIMITED: libc::rlim_t = 1 << 62;

/// What was started here has one of these.
struct Marks<'a> {
    /// In its environment.
    entry: &'a [u8],
    /// As its limit; absent where somebody has set one already.
    limit: Option<libc::rlim_t>,
}

impl Guard {
    /// Groups that are guarded at a time; further ones have `PR_SET_PDEATHSIG` alone.
    pub(super) const MOST: usize = 64;

    /// Starts it. Absent where the system allows no further process.
    pub(super) fn start() -> Option<Self> {
        let (reader, pipe) = std::io::pipe().ok()?;
        let reading = reader.as_raw_fd();
        let since = std::time::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_nanos());
        let mark = format!("{}.{since}", std::process::id());
        let entry = format!("{VARIABLE}={mark}");
        let limit = UNLIMITED | libc::rlim_t::try_from(since % u128::from(UNLIMITED)).unwrap_or(0);
        let marks = Marks { entry: entry.as_bytes(), limit: limit_self(limit).then_some(limit) };
        // SAFETY: the new process makes system calls only, and never comes back from `guard`.
        match unsafe { libc::fork() } {
            -1 => None,
            0 => guard(&marks, reading),
            id => Some(Self { id, pipe, mark }),
        }
    }

    /// Its number.
    pub(super) fn id(&self) -> libc::pid_t {
        self.id
    }

    /// What every program has in [`VARIABLE`]: a number that no other guard has before the system starts anew.
    pub(super) fn mark(&self) -> &str {
        &self.mark
    }

    /// A process that leads a group is about to start.
    pub(super) fn expect(&mut self) {
        self.tell(EXPECTED);
    }

    /// It did not start.
    pub(super) fn expect_none(&mut self) {
        self.tell(0);
    }

    /// From here on it guards the group that process `leader` leads, the one that was expected.
    pub(super) fn add(&mut self, leader: libc::pid_t) {
        self.tell(i64::from(leader));
    }

    /// The group has ended.
    pub(super) fn remove(&mut self, leader: libc::pid_t) {
        self.tell(-i64::from(leader));
    }

    fn tell(&mut self, word: i64) {
        // Where it is gone, the group is left to the system, as without it.
        let _ = self.pipe.write_all(&word.to_ne_bytes());
    }
}

/// A word above all numbers of processes.
const EXPECTED: i64 = 1 << 32;

/// Sets the mark of this process, which its children inherit, unless somebody limits it in earnest.
fn limit_self(mark: libc::rlim_t) -> bool {
    limit(0).is_some_and(|mut limit| {
        limit.rlim_cur = mark;
        // SAFETY: the pointer is to a local.
        limit.rlim_max > mark && unsafe { libc::setrlimit(libc::RLIMIT_RTTIME, &raw const limit) } == 0
    })
}

/// The limit that serves as a mark, of a process or, by zero, of this one.
fn limit(id: libc::pid_t) -> Option<libc::rlimit> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointers are to nothing and to a local.
    let answer = unsafe { libc::prlimit(id, libc::RLIMIT_RTTIME, std::ptr::null(), &raw mut limit) };
    (answer == 0).then_some(limit)
}

/// Takes the marks of a guard further out off this one: it must outlive what it guards.
fn unmark_self() {
    limit_self(UNLIMITED);
    unsafe extern "C" {
        static mut environ: *mut *mut libc::c_char;
    }
    // SAFETY: a list of texts that ends in null, in a process of one thread; each is longer than the name that it begins with.
    unsafe {
        let mut entry = environ;
        while !entry.is_null() && !(*entry).is_null() {
            if libc::strncmp(*entry, VARIABLE.as_ptr().cast(), VARIABLE.len()) == 0 {
                **entry = 0;
            }
            entry = entry.add(1);
        }
    }
}

/// The new process: keeps a list of groups until our end, and ends those that are left.
fn guard(marks: &Marks<'_>, reader: libc::c_int) -> ! {
    unmark_self();
    let mut is_expected = false;
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
            is_expected = word == EXPECTED;
            let number = libc::pid_t::try_from(word).unwrap_or(0);
            let (from, to) = if number > 0 { (0, number) } else { (-number, 0) };
            if let Some(place) = groups.iter_mut().find(|group| **group == from) {
                *place = to;
            }
        }
        let is_all = !is_expected && groups.iter().all(|group| *group == 0);
        for group in groups.into_iter().filter(|group| *group > 1) {
            libc::kill(-group, libc::SIGKILL);
        }
        // Whatever starts another one meanwhile is ended in the next round, and what takes long to end is not waited for.
        for _ in 0..1000 {
            if is_all || end_marked(marks) == 0 {
                break;
            }
            libc::usleep(2000);
        }
        libc::_exit(0)
    }
}

/// Kills every process that has a mark, and says how many ran. Without a heap, whose lock another thread may have held at the fork.
fn end_marked(marks: &Marks<'_>) -> usize {
    let mut ended = 0;
    let mut names = [0_u8; 8192];
    // SAFETY: a path that ends in zero.
    let folder = unsafe { libc::open(c"/proc".as_ptr(), libc::O_RDONLY | libc::O_DIRECTORY) };
    loop {
        // SAFETY: a buffer of that size.
        let count = unsafe { libc::syscall(libc::SYS_getdents64, folder, names.as_mut_ptr(), names.len()) };
        let Some(mut rest) =
            usize::try_from(count).ok().filter(|count| *count > 0).and_then(|count| names.get(..count))
        else {
            break;
        };
        // Of an entry: two numbers of eight bytes, its length in two, its kind in one, and its name up to a zero.
        while let Some((one, others)) =
            rest.get(16..18).and_then(|length| rest.split_at_checked(u16::from_ne_bytes([length[0], length[1]]).into()))
        {
            rest = others;
            let name = one.get(19..).and_then(|name| name.split(|byte| *byte == 0).next());
            let id = name.and_then(|name| std::str::from_utf8(name).ok()?.parse::<libc::pid_t>().ok());
            if let Some(id) = id.filter(|id| is_marked(*id, marks)) {
                // SAFETY: plain numbers.
                unsafe { libc::kill(id, libc::SIGKILL) };
                ended += 1;
            }
        }
    }
    // SAFETY: a number that is ours.
    unsafe { libc::close(folder) };
    ended
}

/// Whether a process runs and has a mark.
fn is_marked(id: libc::pid_t, marks: &Marks<'_>) -> bool {
    let is_limited = || marks.limit.is_some_and(|mark| limit(id).is_some_and(|limit| limit.rlim_cur == mark));
    begins_with(id, marks.entry) || is_limited() && !is_zombie(id)
}

/// Whether a process has ended and is not collected: `7 (a name) Z 1 ...`, where the name may hold anything.
fn is_zombie(id: libc::pid_t) -> bool {
    let mut text = [0_u8; 128];
    let count = open_of(id, "stat").map_or(0, |file| {
        // SAFETY: a buffer of that size, and a number that is ours.
        unsafe {
            let count = libc::read(file, text.as_mut_ptr().cast(), text.len());
            libc::close(file);
            usize::try_from(count).unwrap_or(0)
        }
    });
    let text = &text[..count];
    text.iter().rposition(|byte| *byte == b')').and_then(|at| text.get(at + 2)) == Some(&b'Z')
}

/// What the system tells of a process.
fn open_of(id: libc::pid_t, name: &str) -> Option<libc::c_int> {
    let mut path = [0_u8; 32];
    write!(&mut path[..31], "/proc/{id}/{name}").ok()?;
    // SAFETY: a path that ends in zero.
    let file = unsafe { libc::open(path.as_ptr().cast(), libc::O_RDONLY) };
    (file >= 0).then_some(file)
}

/// Whether a process that runs began with an entry in its environment.
fn begins_with(id: libc::pid_t, entry: &[u8]) -> bool {
    let Some(file) = open_of(id, "environ") else { return false };
    // An entry follows the end of another, or is the first.
    let mut text = [0_u8; 8192];
    let mut kept = 1;
    let is_found = loop {
        // SAFETY: the rest of a buffer of that size.
        let count = unsafe { libc::read(file, text[kept..].as_mut_ptr().cast(), text.len() - kept) };
        let Some(end) = usize::try_from(count).ok().filter(|count| *count > 0).map(|count| kept + count) else {
            break false;
        };
        let is_there = |window: &[u8]| window[0] == 0 && window[1..] == *entry;
        if text[..end].windows(entry.len() + 1).any(is_there) {
            break true;
        }
        let overlap = entry.len().min(end);
        text.copy_within(end - overlap..end, 0);
        kept = overlap;
    };
    // SAFETY: a number that is ours.
    unsafe { libc::close(file) };
    is_found
}

/// The next word of the pipe, which are written whole; none at its end, and so ours.
fn read() -> Option<i64> {
    let mut word: i64 = 0;
    loop {
        // SAFETY: the pointer is to a local of that size.
        let count = unsafe { libc::read(0, (&raw mut word).cast(), size_of::<i64>()) };
        match count {
            -1 if std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted => {}
            count => return (count == size_of::<i64>() as isize).then_some(word),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufRead;
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::{Command, Stdio};

    use super::*;
    use crate::process::family::Family;

    const ACCIDENT: &str = "LLM_PERF_TEST_ACCIDENT";

    /// Starts a program and dies before it can be named to the guard. Does nothing unless [`ACCIDENT`] asks for it.
    #[test]
    fn an_accident() {
        if std::env::var_os(ACCIDENT).is_none() {
            return;
        }
        let mut guard = Guard::start().expect("a guard");
        guard.expect();
        let mut program = Command::new("sh");
        program.args([
            "-c",
            "setsid sleep 620 >&- 2>&- & echo $$ $!; env -i setsid sleep 620 >&- 2>&- & echo $$ $!; wait",
        ]);
        program.process_group(0).env(VARIABLE, guard.mark()).stdout(Stdio::piped());
        let mut program = program.spawn().expect("a program");
        let said = program.stdout.take().expect("what it says");
        for numbers in std::io::BufReader::new(said).lines().take(2) {
            println!("\n{}", numbers.expect("its numbers"));
        }
        // Until the second one has no environment any more.
        std::thread::sleep(std::time::Duration::from_millis(100));
        // SAFETY: ends this process.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        program.wait().expect("nobody comes here");
    }

    #[test]
    fn a_program_that_was_not_yet_named_ends_with_us() {
        let mut bystander = Command::new("sleep");
        bystander.arg("621").process_group(0).env(VARIABLE, "1.2").stdout(Stdio::null());
        let test = std::env::current_exe().expect("this test");
        let name = "process::guard::tests::an_accident";
        let mut accident = Command::new(test);
        accident.args([name, "--exact", "--nocapture"]).env(ACCIDENT, "1").stderr(Stdio::null());
        accident.stdout(Stdio::piped());
        // Other tests end what nobody knows.
        let mut family = Family::lock();
        let (mut bystander, accident) =
            (bystander.spawn().expect("a bystander"), accident.spawn().expect("an accident"));
        family.leave_alone(&[bystander.id(), accident.id()]);
        drop(family);
        let output = accident.wait_with_output().expect("its end");
        assert_eq!(output.status.signal(), Some(libc::SIGKILL));
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let numbers = said.lines().filter_map(|line| line.split_once(' '));
        let numbers: Vec<libc::pid_t> =
            numbers.filter_map(|(a, b)| Some([a.parse().ok()?, b.parse().ok()?])).flatten().collect();
        assert_eq!(numbers.len(), 4, "{said}");
        let stat = |id| std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let is_gone = |id| stat(id).is_empty() || stat(id).contains(") Z ");
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while !numbers.iter().all(|id| is_gone(*id)) {
            assert!(std::time::Instant::now() < deadline, "{numbers:?} run on");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert!(bystander.try_wait().expect("its state").is_none(), "a child of another process was ended");
        bystander.kill().and_then(|()| bystander.wait()).expect("its end");
    }
}
