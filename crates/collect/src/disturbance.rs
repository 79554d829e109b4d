//! How busy the machine was with other things while something was measured: counters of the system, read before and after.

use std::sync::LazyLock;
use std::time::Instant;

use serde::Deserialize;
use types::{DeviceUse, Disturbance, Nanos};

/// Share of the time they wanted to run that threads must have run. An idle machine gives them nearly all of it.
pub(crate) const UNDISTURBED: f64 = 0.9;
/// Share of all processors that others may take before waiting is their doing; a program with more threads than
/// processors waits for itself.
const OTHERS_IDLE: f64 = 0.02;
/// Share of all processors that others may take while no processor is free.
const OTHERS_BESIDE: f64 = 0.1;
/// Share of all processors in use from which on none is free.
const FULL: f64 = 0.95;
/// Share of all processors that a hypervisor may give to others.
const STOLEN: f64 = 0.02;
/// Share of the time a control group may be held back.
const THROTTLED: f64 = 0.01;
/// Ticks below which shares of the machine are noise: it counts in hundredths of a second.
const ENOUGH_TICKS: u64 = 20;

/// What the scheduler has counted for some threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SchedulerTimes {
    pub(crate) ran: u64,
    pub(crate) waited: u64,
}

impl SchedulerTimes {
    /// Of all threads of this process; nothing where the kernel does not count.
    pub(crate) fn of_this_process() -> Self {
        let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
        Self::sum(threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("schedstat")).ok()))
    }

    /// Of threads, as the system writes them.
    fn sum(texts: impl Iterator<Item = impl AsRef<str>>) -> Self {
        texts
            .filter_map(|text| Self::read(text.as_ref()))
            .fold(Self::default(), |sum, thread| Self { ran: sum.ran + thread.ran, waited: sum.waited + thread.waited })
    }

    /// Of the first thread of a process, which may have ended as long as nobody has collected it.
    pub(crate) fn of_first_thread(process: u32) -> Option<Self> {
        Self::read(&std::fs::read_to_string(format!("/proc/{process}/schedstat")).ok()?)
    }

    /// `ran waited slices`, in nanoseconds: waiting is being ready to run on a processor that runs something else. A
    /// thread that sleeps until others have finished does not wait.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let mut numbers = text.split_whitespace().map(str::parse);
        Some(Self { ran: numbers.next()?.ok()?, waited: numbers.next()?.ok()? })
    }

    /// The share of the time since `before` that was not spent waiting, to whole percents.
    pub(crate) fn share_since(self, before: Self) -> Option<f64> {
        let ran = self.ran.checked_sub(before.ran).filter(|ran| *ran > 0)? as f64;
        let waited = self.waited.checked_sub(before.waited)? as f64;
        Some((ran / (ran + waited) * 100.0).round() / 100.0)
    }
}

/// What readings of this process are timed from.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Counters of the machine at one moment.
#[derive(Clone, Copy, Debug)]
pub struct MachineReading {
    /// By any clock that goes on steadily.
    at: Nanos,
    ticks: Option<Ticks>,
    stalled_us: Option<u64>,
    throttled_us: Option<u64>,
}

/// What a program used between two readings.
#[derive(Clone, Copy, Debug, Default)]
pub struct OwnTimes {
    /// Processor time.
    pub cpu: Nanos,
    /// Time spent ready to run; absent where it is not known.
    pub waited: Option<Nanos>,
    /// Processor time of the thread that waited, where that is not all of it.
    pub cpu_of_waiting: Option<Nanos>,
    /// Involuntary switches; absent where they are not known.
    pub switches: Option<u64>,
}

/// This process while it does something: all of its threads.
#[derive(Clone, Copy, Debug)]
pub struct OwnWatch {
    machine: MachineReading,
    threads: SchedulerTimes,
    switches: Option<u64>,
}

impl OwnWatch {
    /// From here on.
    pub fn start() -> Self {
        let (threads, switches) = (SchedulerTimes::of_this_process(), Some(switches()));
        Self { machine: MachineReading::now(), threads, switches }
    }

    /// What it got since. Threads that ended meanwhile are not seen.
    pub fn finish(self) -> Disturbance {
        Self::start().since(&self)
    }

    fn since(&self, before: &Self) -> Disturbance {
        let since = |now: u64, then: u64| Nanos::new(i64::try_from(now.saturating_sub(then)).unwrap_or(i64::MAX));
        let counts = self.threads != SchedulerTimes::default();
        let own = OwnTimes {
            cpu: since(self.threads.ran, before.threads.ran),
            waited: counts.then(|| since(self.threads.waited, before.threads.waited)),
            cpu_of_waiting: None,
            switches: self.switches.zip(before.switches).map(|(now, then)| now.saturating_sub(then)),
        };
        self.machine.since(&before.machine, own)
    }
}

/// Counters that a process of another language read for itself, as the system writes them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Counters {
    /// When.
    pub at_ns: Nanos,
    /// `schedstat` of its threads.
    pub threads: Vec<String>,
    /// Times a processor was taken from it.
    pub switches: Option<u64>,
    /// First line of `/proc/stat`.
    pub processors: String,
    /// `/proc/pressure/cpu`.
    pub pressure: Option<String>,
    /// `cpu.stat` of its control group.
    pub limit: Option<String>,
}

impl Counters {
    /// What the process got since `before`.
    pub fn since(&self, before: &Self) -> Disturbance {
        self.watch().since(&before.watch())
    }

    fn watch(&self) -> OwnWatch {
        OwnWatch {
            machine: MachineReading {
                at: self.at_ns,
                ticks: Ticks::read(&self.processors),
                stalled_us: self.pressure.as_deref().and_then(stalled),
                throttled_us: self.limit.as_deref().and_then(throttled),
            },
            threads: SchedulerTimes::sum(self.threads.iter()),
            switches: self.switches,
        }
    }
}

/// Times a processor was taken from a thread of this process.
fn switches() -> u64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a local of the right type; all-zero is valid where the call fails.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    u64::try_from(usage.ru_nivcsw).unwrap_or_default()
}

/// Hundredths of a second that all processors spent since the machine started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ticks {
    busy: u64,
    stolen: u64,
    total: u64,
}

impl MachineReading {
    /// The counters now; those that this system does not have are absent.
    pub fn now() -> Self {
        let text = |path: &str| std::fs::read_to_string(path).ok();
        // The group's own limit, as version 2 and version 1 of control groups show it to those inside.
        let limits = ["/sys/fs/cgroup/cpu.stat", "/sys/fs/cgroup/cpu/cpu.stat"];
        Self {
            at: Nanos::new(i64::try_from(START.elapsed().as_nanos()).unwrap_or(i64::MAX)),
            ticks: text("/proc/stat").and_then(|text| Ticks::read(&text)),
            stalled_us: text("/proc/pressure/cpu").and_then(|text| stalled(&text)),
            throttled_us: limits.into_iter().find_map(|path| throttled(&text(path)?)),
        }
    }

    /// What a program that used `own` since `before` got.
    pub fn since(&self, before: &Self, own: OwnTimes) -> Disturbance {
        let wall = (self.at - before.at).get() as f64 / 1e9;
        let shares =
            self.ticks.zip(before.ticks).and_then(|(now, then)| now.since(then)).map(|ticks| ticks.shares(own.cpu));
        let increase =
            |now: Option<u64>, then: Option<u64>| now.zip(then).and_then(|(now, then)| now.checked_sub(then));
        let stalled = increase(self.stalled_us, before.stalled_us);
        let throttled = increase(self.throttled_us, before.throttled_us);
        let mut disturbance = Disturbance {
            cpu_ns: Some(own.cpu),
            waited_ns: own.waited,
            switches_involuntary: own.switches,
            others_share: shares.map(|shares| shares.others),
            steal_share: shares.map(|shares| shares.stolen),
            stalled_share: stalled.filter(|_| wall > 0.0).map(|time| (time as f64 / 1e6 / wall).min(1.0)),
            throttled_ns: throttled.and_then(|time| i64::try_from(time.saturating_mul(1_000)).ok()).map(Nanos::new),
            causes: Vec::new(),
        };
        disturbance.causes = causes(&disturbance, own, shares.map(|shares| shares.busy), wall);
        disturbance
    }
}

/// What others did to a device.
pub fn of_device(device: &DeviceUse) -> Vec<String> {
    let mut causes = Vec::new();
    if !device.throttle_reasons.is_empty() {
        causes.push(format!("the clocks of {} were throttled ({})", device.device, device.throttle_reasons.join(", ")));
    }
    if let Some(others) = device.other_processes.filter(|others| *others > 0) {
        let processes = if others == 1 { "process" } else { "processes" };
        causes.push(format!("{others} other {processes} used {}", device.device));
    }
    causes
}

/// Why it counts as disturbed.
fn causes(found: &Disturbance, own: OwnTimes, busy: Option<f64>, wall: f64) -> Vec<String> {
    let mut causes = Vec::new();
    let percent = |share: f64| format!("{:.0}%", share * 100.0);
    let ran = own.cpu_of_waiting.unwrap_or(own.cpu).get() as f64;
    let got = found.waited_ns.map(|waited| ran / (ran + waited.get() as f64)).filter(|got| got.is_finite());
    let is_alone = found.others_share.is_some_and(|share| share < OTHERS_IDLE);
    match got.filter(|got| *got < UNDISTURBED && !is_alone) {
        Some(got) => causes.push(format!("its threads ran for only {} of their runnable time", percent(got))),
        None => {
            let others = found.others_share.filter(|share| *share > OTHERS_BESIDE);
            if let Some(others) = others.filter(|_| busy.is_some_and(|busy| busy > FULL)) {
                causes.push(format!("other processes used {} of the CPUs, and none was idle", percent(others)));
            }
        }
    }
    if let Some(stolen) = found.steal_share.filter(|share| *share > STOLEN) {
        causes.push(format!("the hypervisor gave {} of CPU time to other VMs", percent(stolen)));
    }
    let throttled = found.throttled_ns.map(|time| time.get() as f64 / 1e9 / wall);
    if throttled.is_some_and(|share| share > THROTTLED) {
        causes.push("its cgroup CPU limit throttled it".to_owned());
    }
    causes
}

/// Shares of all processors.
#[derive(Clone, Copy, Debug)]
struct Shares {
    busy: f64,
    others: f64,
    stolen: f64,
}

impl Ticks {
    /// The first line of `/proc/stat`: `cpu user nice system idle iowait irq softirq steal ...`.
    fn read(text: &str) -> Option<Self> {
        let line = text.lines().next()?.strip_prefix("cpu ")?;
        let numbers: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).take(8).collect();
        let [user, nice, system, idle, waiting, interrupt, soft, stolen] = numbers[..] else { return None };
        let busy = user + nice + system + interrupt + soft;
        Some(Self { busy, stolen, total: busy + idle + waiting + stolen })
    }

    fn since(self, before: Self) -> Option<Self> {
        let total = self.total.checked_sub(before.total).filter(|ticks| *ticks >= ENOUGH_TICKS)?;
        Some(Self { busy: self.busy.checked_sub(before.busy)?, stolen: self.stolen.checked_sub(before.stolen)?, total })
    }

    fn shares(self, own: Nanos) -> Shares {
        let share = |ticks: f64| (ticks / self.total as f64).clamp(0.0, 1.0);
        // A tick is a hundredth of a second on every system Linux runs on.
        let own = own.get() as f64 / 1e7;
        Shares {
            busy: share((self.busy + self.stolen) as f64),
            others: share(self.busy as f64 - own),
            stolen: share(self.stolen as f64),
        }
    }
}

/// Microseconds of `some avg10=0.00 avg60=0.00 avg300=0.00 total=1234`.
fn stalled(text: &str) -> Option<u64> {
    text.lines().find(|line| line.starts_with("some "))?.rsplit_once("total=")?.1.trim().parse().ok()
}

/// Microseconds of `throttled_usec 12` (version 2) or of `throttled_time 12000` (version 1, nanoseconds).
fn throttled(text: &str) -> Option<u64> {
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    value("throttled_usec ").or_else(|| value("throttled_time ").map(|time| time / 1_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(others: Option<f64>) -> Disturbance {
        Disturbance { waited_ns: Some(Nanos::new(50)), others_share: others, ..Disturbance::default() }
    }

    #[test]
    fn waiting_is_a_disturbance_unless_the_program_is_alone() {
        let own = OwnTimes { cpu: Nanos::new(50), ..OwnTimes::default() };
        assert_eq!(causes(&found(Some(0.5)), own, None, 1.0), ["its threads ran for only 50% of their runnable time"]);
        assert_eq!(causes(&found(None), own, None, 1.0).len(), 1);
        assert_eq!(causes(&found(Some(0.01)), own, Some(1.0), 1.0), Vec::<String>::new(), "it waited for itself");
        let mostly_ran = OwnTimes { cpu: Nanos::new(5_000), ..OwnTimes::default() };
        assert_eq!(causes(&found(None), mostly_ran, None, 1.0), Vec::<String>::new());
    }

    #[test]
    fn others_disturb_where_no_processor_is_free() {
        let others = |share| Disturbance { others_share: Some(share), ..Disturbance::default() };
        let own = OwnTimes::default();
        assert_eq!(causes(&others(0.5), own, Some(0.7), 1.0), Vec::<String>::new());
        assert_eq!(
            causes(&others(0.5), own, Some(0.99), 1.0),
            ["other processes used 50% of the CPUs, and none was idle"]
        );
    }

    #[test]
    fn shares_of_the_machine_are_what_is_left_of_its_ticks() {
        let then = Ticks::read("cpu  100 0 0 100 0 0 0 0 0 0\ncpu0 1").unwrap();
        let now = Ticks::read("cpu  200 0 50 130 0 0 0 20 0 0\ncpu0 1").unwrap();
        // 200 ticks: 150 busy, 20 stolen, 30 idle; half a second of it is our own.
        let shares = now.since(then).unwrap().shares(Nanos::new(500_000_000));
        assert_eq!((shares.busy, shares.others, shares.stolen), (0.85, 0.5, 0.1));
        assert!(Ticks::since(then, then).is_none(), "too short to tell");
        assert!(Ticks::read("nonsense").is_none());
    }

    #[test]
    fn pressure_and_limits_are_read_as_the_kernel_writes_them() {
        assert_eq!(
            stalled("some avg10=54.87 avg60=77.08 avg300=87.77 total=14868041097\nfull total=0\n"),
            Some(14_868_041_097)
        );
        assert_eq!(throttled("usage_usec 9\nnr_throttled 2\nthrottled_usec 12\n"), Some(12));
        assert_eq!(throttled("nr_periods 0\nthrottled_time 12000\n"), Some(12));
        assert_eq!(throttled("usage_usec 9\n"), None);
    }

    #[test]
    fn a_busy_process_got_processor_time_and_the_reading_says_so() {
        let watch = OwnWatch::start();
        let (start, mut sum) = (Instant::now(), 0_u64);
        while start.elapsed().as_millis() < 30 {
            sum = std::hint::black_box(sum + 1);
        }
        let found = watch.finish();
        assert!(found.cpu_ns.unwrap() > Nanos::ZERO);
        assert!(found.others_share.is_none_or(|share| (0.0..=1.0).contains(&share)));
    }

    #[test]
    fn counters_of_another_process_tell_what_our_own_would() {
        let read = |at: i64, ran: u64, waited: u64, busy: u64| Counters {
            at_ns: Nanos::new(at),
            threads: vec![format!("{ran} {waited} 3\n"), "0 0 0\n".to_owned()],
            switches: Some(busy),
            processors: format!("cpu  {busy} 0 0 100 0 0 0 0 0 0"),
            pressure: None,
            limit: Some("throttled_usec 0\n".to_owned()),
        };
        // A second, of which it ran half and waited the other half, while others kept every processor busy.
        let found = read(1_000_000_000, 500_000_000, 500_000_000, 200).since(&read(0, 0, 0, 0));
        assert_eq!(found.waited_ns, Some(Nanos::new(500_000_000)));
        assert_eq!((found.others_share, found.switches_involuntary), (Some(0.75), Some(200)));
        assert_eq!(found.causes, ["its threads ran for only 50% of their runnable time"]);
        assert!(!Counters::default().since(&Counters::default()).is_disturbed(), "a system that counts nothing");
    }
}
