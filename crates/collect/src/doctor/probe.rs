//! The facts the checks judge.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use types::{Bytes, Calibration, Nanos};

use crate::calibrate::{self, Store};
use crate::environment::EnvironmentFacts;

/// Everything the checks may look at.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    /// The machine. Whoever knows the catalogue has put each GPU's entry into it.
    pub capture: EnvironmentFacts,
    /// Whether counters may be read.
    pub counters: CounterFacts,
    /// Where runs are written.
    pub output: OutputFacts,
    /// Whether our own collector loads, or why not.
    pub collector: Result<(), String>,
    /// Processes that wanted to run during the last minute.
    pub load_average: Option<f64>,
    /// The clock.
    pub clock: ClockFacts,
    /// Threads work is spread over.
    pub threads: usize,
    /// The kept rates for this processor and these threads, or why they cannot be read.
    pub calibration: Result<Option<Calibration>, CalibrationProblem>,
}

/// Why kept rates cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CalibrationProblem {
    /// What is wrong.
    pub reason: String,
    /// What to do about it, where that is known.
    pub hint: Option<String>,
}

/// What decides whether GPU counters may be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CounterFacts {
    /// Whether the kernel module keeps counters to administrators; absent when it does not say.
    pub restricted: Option<bool>,
    /// Whether this process has `CAP_SYS_ADMIN`.
    pub system_administrator: bool,
    /// Whether this process has `CAP_PERFMON`.
    pub performance_monitor: bool,
    /// Whether this process is in a user namespace of its own, where capabilities do not reach the host.
    pub user_namespace: bool,
}

/// What decides whether a run can be written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutputFacts {
    /// The folder runs go to.
    pub root: PathBuf,
    /// The nearest part of it that exists.
    pub existing: PathBuf,
    /// Whether that part is a folder.
    pub is_folder: bool,
    /// Whether this user may write there.
    pub writable: bool,
    /// Room there for this user.
    pub free: Option<Bytes>,
}

/// What decides whether short times can be measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClockFacts {
    /// What the kernel counts with.
    pub source: Option<String>,
    /// What reading the clock costs.
    pub cost: Nanos,
}

impl Probe {
    /// Gathers what the capture does not hold.
    pub fn gather(capture: EnvironmentFacts, output_root: &Path) -> Self {
        let threads = calibrate::threads();
        let calibration = Store::of_this_user()
            .and_then(|store| store.read(&calibrate::processor_name(), threads))
            .map_err(|error| CalibrationProblem { reason: error.message, hint: error.hints.into_iter().next() });
        Self {
            capture,
            counters: CounterFacts::of_this_process(),
            output: OutputFacts::of(output_root),
            collector: collector(),
            load_average: read("/proc/loadavg").and_then(|text| text.split(' ').next()?.parse().ok()),
            clock: ClockFacts::of_this_machine(),
            threads,
            calibration,
        }
    }
}

impl CounterFacts {
    fn of_this_process() -> Self {
        let status = read("/proc/self/status").unwrap_or_default();
        let capabilities = read_capabilities(&status).unwrap_or_default();
        Self {
            restricted: read("/proc/driver/nvidia/params").and_then(|text| read_restriction(&text)),
            // Numbers of linux/capability.h.
            system_administrator: capabilities & (1 << 21) != 0,
            performance_monitor: capabilities & (1 << 38) != 0,
            user_namespace: read("/proc/self/uid_map").is_some_and(|text| is_own_namespace(&text)),
        }
    }
}

impl OutputFacts {
    fn of(root: &Path) -> Self {
        // A relative path ends in an empty one, which means the current folder.
        let existing = root.ancestors().find(|path| path.symlink_metadata().is_ok() || path.as_os_str().is_empty());
        let existing = existing.filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let is_folder = existing.is_dir();
        let (writable, free) =
            CString::new(existing.as_os_str().as_bytes()).map_or((false, None), |path| (may_write(&path), room(&path)));
        Self { root: root.to_owned(), existing: existing.to_owned(), is_folder, writable, free }
    }
}

impl ClockFacts {
    fn of_this_machine() -> Self {
        const READS: u32 = 1000;
        // The best of some rounds: a round in which this process had to wait says nothing about the clock.
        let round = || {
            let started = Instant::now();
            (1..READS).for_each(|_| _ = std::hint::black_box(Instant::now()));
            started.elapsed() / READS
        };
        let cost = (0..5).map(|_| round()).min().and_then(Nanos::from_duration).unwrap_or_default();
        Self { source: read("/sys/devices/system/clocksource/clocksource0/current_clocksource"), cost }
    }
}

/// Loads the collector from a folder of its own, as a CUDA process would.
fn collector() -> Result<(), String> {
    // A library is loaded from it: nobody else may know its name before, nor write to it.
    let chance = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), std::process::id());
    let folder = std::env::temp_dir().join(format!("llm-perf-doctor-{chance:016x}"));
    std::fs::DirBuilder::new()
        .mode(0o700)
        .create(&folder)
        .map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    let checked = crate::tool::inject::self_check(&folder);
    let _ = std::fs::remove_dir(&folder);
    checked
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn may_write(path: &CString) -> bool {
    // SAFETY: `path` is a C string that outlives the call.
    unsafe { libc::access(path.as_ptr(), libc::W_OK | libc::X_OK) == 0 }
}

/// Room for a user without privileges.
fn room(path: &CString) -> Option<Bytes> {
    let mut data = std::mem::MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: `path` is a C string and `data` has room for the structure; both outlive the call.
    let failed = unsafe { libc::statvfs(path.as_ptr(), data.as_mut_ptr()) } != 0;
    if failed {
        return None;
    }
    // SAFETY: the call succeeded and filled the structure, which was zeroed before and has no invalid bit patterns.
    let data = unsafe { data.assume_init() };
    data.f_bavail.checked_mul(data.f_frsize).map(Bytes::new)
}

/// `CapEff: 000001ffffffffff` in `/proc/self/status`.
fn read_capabilities(status: &str) -> Option<u64> {
    let text = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(text.trim(), 16).ok()
}

/// `RmProfilingAdminOnly: 1` in `/proc/driver/nvidia/params`.
fn read_restriction(parameters: &str) -> Option<bool> {
    let value = parameters.lines().find_map(|line| line.strip_prefix("RmProfilingAdminOnly:"))?;
    match value.trim() {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

/// The first namespace maps every user to itself: `0 0 4294967295`.
fn is_own_namespace(uid_map: &str) -> bool {
    uid_map.split_whitespace().collect::<Vec<_>>() != ["0", "0", "4294967295"]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_module_says_about_counters_is_read() {
        let text = "ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 1\nTemporaryFilePath: \"\"\n";
        assert_eq!(read_restriction(text), Some(true));
        assert_eq!(read_restriction("RmProfilingAdminOnly: 0"), Some(false));
        assert_eq!(read_restriction("ResmanDebugLevel: 1"), None);
    }

    #[test]
    fn capabilities_are_read_as_bits() {
        let all = read_capabilities("Name:\tx\nCapEff:\t000001ffffffffff\n").unwrap();
        assert!(all & (1 << 21) != 0 && all & (1 << 38) != 0);
        let docker = read_capabilities("CapEff:\t00000000a80425fb\n").unwrap();
        assert!(docker & (1 << 21) == 0 && docker & (1 << 38) == 0, "a container's root is no administrator");
    }

    #[test]
    fn the_first_user_namespace_maps_everyone_to_themselves() {
        assert!(!is_own_namespace("         0          0 4294967295\n"));
        assert!(is_own_namespace("         0       1000          1\n         1     100000      65536\n"));
    }

    #[test]
    fn the_nearest_existing_part_of_the_output_folder_decides() {
        let folder = tempfile::tempdir().unwrap();
        let facts = OutputFacts::of(&folder.path().join("not/yet/there"));
        assert_eq!(facts.existing, folder.path());
        assert!(facts.is_folder && facts.writable);
        assert!(facts.free.is_some());
        let relative = OutputFacts::of(Path::new("no-such-folder-here/runs"));
        assert_eq!(relative.existing, Path::new("."));
        assert!(relative.is_folder);

        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let blocked = OutputFacts::of(&file.join("runs"));
        assert_eq!((blocked.existing, blocked.is_folder), (file, false));
    }
}
