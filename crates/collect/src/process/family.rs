//! The processes of this program: those it started and, because it adopts orphans, whatever those left behind.
//!
//! A process ends with its group, but a program may leave the group: a daemon does. Linux hands such orphans to the nearest
//! ancestor that asks for them, which this program does before it starts anything. Children that it had before that, because
//! it replaced a shell that had some, are never touched.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::guard::{Guard, VARIABLE};

/// How long what a program left behind may take to end by itself: helpers of Python and of profilers end moments after it.
const PATIENCE: Duration = Duration::from_millis(200);

/// How long the system may take to end what was killed.
const LONGEST_KILL: Duration = Duration::from_secs(5);

/// Pause between two looks at what is left.
const PAUSE: Duration = Duration::from_millis(2);

/// Groups that run, where a signal handler can see them; zero is a free place.
static GROUPS: [AtomicI32; 64] = [const { AtomicI32::new(0) }; 64];

static FAMILY: Mutex<Family> =
    Mutex::new(Family { adopts: false, guard: None, strangers: BTreeSet::new(), own: BTreeSet::new() });

/// Who is whose.
#[derive(Debug)]
pub(super) struct Family {
    adopts: bool,
    guard: Option<Guard>,
    /// Children from before the first start, and the guard.
    strangers: BTreeSet<libc::pid_t>,
    /// Started here and not collected.
    own: BTreeSet<libc::pid_t>,
}

impl Family {
    /// Locked, so that nobody takes a process for an orphan between its start and [`Family::add`].
    pub(super) fn lock() -> MutexGuard<'static, Self> {
        let mut family = FAMILY.lock().unwrap_or_else(PoisonError::into_inner);
        if !family.adopts {
            family.strangers = children().into_iter().map(|(id, _)| id).collect();
            // SAFETY: prctl takes plain numbers. Where it is refused, orphans go to init as they always did.
            unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
            family.guard = Guard::start();
            let guard = family.guard.as_ref().map(Guard::id);
            family.strangers.extend(guard);
            family.adopts = true;
        }
        family
    }

    /// Whether what runs ends with us, however we end.
    pub(super) fn is_guarded(&self) -> bool {
        self.guard.is_some() && self.own.len() < Guard::MOST
    }

    /// A process is about to be started; what it is to have in its environment.
    pub(super) fn expect(&mut self) -> Option<(&'static str, &str)> {
        let guard = self.guard.as_mut()?;
        guard.expect();
        Some((VARIABLE, guard.mark()))
    }

    /// It was not.
    pub(super) fn expect_none(&mut self) {
        if let Some(guard) = &mut self.guard {
            guard.expect_none();
        }
    }

    /// Processes that others started.
    #[cfg(test)]
    pub(super) fn leave_alone(&mut self, ids: &[u32]) {
        self.strangers.extend(ids.iter().map(|id| id.cast_signed()));
    }

    /// A process was started.
    pub(super) fn add(&mut self, id: libc::pid_t) {
        self.own.insert(id);
        if let Some(guard) = &mut self.guard {
            guard.add(id);
        }
        let take = |place: &&AtomicI32| place.compare_exchange(0, id, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        GROUPS.iter().find(take);
    }

    /// A process was collected. Ends what it left behind, at once unless it ended well, and says how many that were. While
    /// others run, whose orphan is whose cannot be told: the last to end takes all.
    pub(super) fn remove(&mut self, id: libc::pid_t, ended_well: bool) -> u32 {
        self.own.remove(&id);
        if let Some(guard) = &mut self.guard {
            guard.remove(id);
        }
        for place in &GROUPS {
            let _ = place.compare_exchange(id, 0, Ordering::SeqCst, Ordering::SeqCst);
        }
        if self.own.is_empty() { self.end_orphans(ended_well) } else { 0 }
    }

    fn end_orphans(&self, ended_well: bool) -> u32 {
        let is_known = |id: &libc::pid_t| self.strangers.contains(id);
        if ended_well && listed_children().is_some_and(|listed| listed.iter().all(is_known)) {
            return 0;
        }
        let start = Instant::now();
        let mut killed = BTreeSet::new();
        loop {
            let orphans: Vec<_> = children().into_iter().filter(|(id, _)| !is_known(id)).collect();
            if orphans.is_empty() || start.elapsed() > LONGEST_KILL {
                break;
            }
            let may_end_alone = ended_well && start.elapsed() < PATIENCE;
            for (id, is_zombie) in orphans {
                if !is_zombie && !may_end_alone {
                    // SAFETY: kill takes plain numbers, and a child that is not collected keeps its own.
                    unsafe { libc::kill(id, libc::SIGKILL) };
                    killed.insert(id);
                }
                // SAFETY: a child that nobody else waits for; no status is asked for.
                unsafe { libc::waitpid(id, std::ptr::null_mut(), libc::WNOHANG) };
            }
            std::thread::sleep(PAUSE);
        }
        u32::try_from(killed.len()).unwrap_or(u32::MAX)
    }
}

/// Kills every group that runs; may be used in a signal handler.
pub(super) fn kill_all() {
    for place in &GROUPS {
        signal_group(place.load(Ordering::SeqCst), libc::SIGKILL);
    }
}

/// Sends a signal to everything in the group that a process leads. The process has not been collected, so that its number is
/// still its own.
pub(super) fn signal_group(group: libc::pid_t, signal: libc::c_int) {
    // Zero and one would mean our own group and everything.
    if group > 1 {
        // SAFETY: kill takes plain numbers.
        unsafe { libc::kill(-group, signal) };
    }
}

/// Children of this process as the system lists them by thread, which is quick, and complete unless some end meanwhile;
/// absent where it does not.
fn listed_children() -> Option<Vec<libc::pid_t>> {
    let mut children = Vec::new();
    for thread in std::fs::read_dir("/proc/self/task").ok()? {
        let text = std::fs::read_to_string(thread.ok()?.path().join("children")).ok()?;
        children.extend(text.split_whitespace().filter_map(|word| word.parse::<libc::pid_t>().ok()));
    }
    Some(children)
}

/// Children of this process, and whether each has ended.
fn children() -> Vec<(libc::pid_t, bool)> {
    let us = std::process::id();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<libc::pid_t>().ok());
    ids.filter_map(|id| {
        let text = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        let (parent, is_zombie) = parent(&text)?;
        (parent == us).then_some((id, is_zombie))
    })
    .collect()
}

/// The parent in `/proc/PID/stat`, and whether the process has ended: `7 (a name) S 1 ...`, where the name may hold anything.
fn parent(stat: &str) -> Option<(u32, bool)> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    Some((fields.next()?.parse().ok()?, state == "Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_is_found_whatever_the_process_calls_itself() {
        assert_eq!(parent("7 (sh) S 1 7 7 0"), Some((1, false)));
        assert_eq!(parent("7 (a) Z 3 (b) Z 12 7 7"), Some((12, true)));
        assert_eq!(parent("7"), None);
    }
}
