//! Whether timelines can be ranks of one job, and which ranks are missing.

use std::collections::BTreeSet;

use types::timeline::{Job, Timeline};
use types::{DeviceId, Facts, Nanos, QualityCounter, Severity};

/// Clocks of hosts differ, and ranks enter the profiler one after the other; jobs are started further apart.
const SAME_TIME: Nanos = Nanos::new(60_000_000_000);

/// Rank of a timeline, where all of its threads agree.
pub(super) fn rank(timeline: &Timeline) -> Option<u32> {
    let first = timeline.threads.first()?.rank?;
    timeline.threads.iter().all(|thread| thread.rank == Some(first)).then_some(first)
}

/// Why two timelines cannot be of one job; `None` where they can.
pub(super) fn apart(one: &Timeline, other: &Timeline) -> Option<String> {
    if one.format != other.format {
        return Some(format!(
            "a {} and a {} trace cannot come from one process",
            one.format.name(),
            other.format.name()
        ));
    }
    let (first, second) = (rank(one), rank(other));
    if let (Some(first), Some(second)) = (first, second)
        && first == second
    {
        return Some(format!("both are rank {first}"));
    }
    let job = |timeline: &Timeline| timeline.job.clone().unwrap_or_default();
    let (this, that) = (job(one), job(other));
    if let (Some(this), Some(that)) = (this.world_size, that.world_size)
        && this != that
    {
        return Some(format!("one is from a job with {this} ranks, the other from a job with {that}"));
    }
    if let (Some(this), Some(that)) = (&this.backend, &that.backend)
        && this != that
    {
        return Some(format!("one communicates with {this}, the other with {that}"));
    }
    let (these, those) = (models(one), models(other));
    if !these.is_empty() && !those.is_empty() && these.is_disjoint(&those) {
        let list = |names: BTreeSet<&str>| names.into_iter().collect::<Vec<_>>().join(", ");
        return Some(format!("one ran on {}, the other on {}", list(these), list(those)));
    }
    match (span(one), span(other)) {
        (Some((start, end)), Some((begin, close))) => {
            let gap = (begin - end).max(start - close);
            if gap > Nanos::ZERO && (first.is_none() || second.is_none()) {
                let reason = "nothing shows that they are from one job: they have no ranks and were recorded one after the other";
                return Some(reason.to_owned());
            }
            (gap > SAME_TIME).then(|| format!("they were recorded {} apart", length(gap)))
        }
        _ if first.is_none() || second.is_none() => {
            Some("nothing shows that they are from one job: they have neither ranks nor wall-clock times".to_owned())
        }
        _ => None,
    }
}

/// Why a capture of graphs and a replay cannot be of one process; `None` where they can. A server captures when it starts and
/// may be recorded much later.
pub(super) fn other_process(replay: &Timeline, capture: &Timeline) -> Option<String> {
    let (one, other) = (rank(replay), rank(capture));
    if let (Some(one), Some(other)) = (one, other)
        && one != other
    {
        return Some(format!("the other is from rank {one}, this from rank {other}"));
    }
    let world = |timeline: &Timeline| timeline.job.as_ref().and_then(|job| job.world_size);
    if let (Some(one), Some(other)) = (world(replay), world(capture))
        && one != other
    {
        return Some(format!("the other is from a job with {one} ranks, this from a job with {other}"));
    }
    let callers = |timeline: &Timeline| -> BTreeSet<u32> {
        let process = |thread: u32| timeline.threads.get(thread as usize)?.process;
        timeline.calls.iter().filter_map(|call| process(call.thread.0)).collect()
    };
    let (one, other) = (callers(replay), callers(capture));
    if !one.is_empty() && !other.is_empty() && one.is_disjoint(&other) {
        return Some("the other is from another process".to_owned());
    }
    match (span(replay), span(capture)) {
        (Some((start, _)), Some((_, end))) if end > start + SAME_TIME => Some("it is newer than the replay".to_owned()),
        _ => None,
    }
}

/// Names of the devices that did something.
fn models(timeline: &Timeline) -> BTreeSet<&str> {
    let used = analysis::time::devices(timeline);
    let listed = |ordinal: u32| timeline.devices.iter().find(move |device| device.id == DeviceId::cuda(ordinal));
    let named = used.into_iter().filter_map(listed).map(|device| device.name.as_str());
    named.filter(|name| !name.is_empty()).collect()
}

/// When it was recorded, in nanoseconds since 1970; `None` where the times are relative to nothing.
fn span(timeline: &Timeline) -> Option<(Nanos, Nanos)> {
    let work = timeline.work.iter().map(|work| (work.start, work.start + work.duration));
    let operators = timeline.operators.iter().map(|operator| (operator.start, operator.end()));
    let (start, end) = work.chain(operators).reduce(|one, two| (one.0.min(two.0), one.1.max(two.1)))?;
    let zero = analysis::time::unix_zero(timeline)?;
    Some((start + zero, end + zero))
}

/// A long time in the largest unit that fits.
fn length(time: Nanos) -> String {
    let seconds = time.get() / 1_000_000_000;
    match seconds {
        0..120 => format!("{seconds} seconds"),
        120..7_200 => format!("{} minutes", seconds / 60),
        7_200..172_800 => format!("{} hours", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// Ranks of the job that are in none of the timelines.
pub(super) fn missing_ranks<'a>(timelines: impl Iterator<Item = &'a Timeline>) -> Option<QualityCounter> {
    let (mut here, mut world) = (0_u32, None);
    for timeline in timelines {
        here += 1;
        world = world.max(timeline.job.as_ref().and_then(|Job { world_size, .. }| *world_size));
    }
    let world = world.filter(|world| *world > here)?;
    let counter = QualityCounter::new("ranks_missing", Severity::Warning, u64::from(world - here));
    Some(counter.of(world.into()).facts(Facts::new().with("here", here).with("world", world)))
}

#[cfg(test)]
mod tests {
    use types::timeline::{HostThread, TraceFormat};
    use types::{Clock, ClockId, ClockKind, Device};

    use super::*;

    fn timeline(rank: u32, world_size: u32, device: &str, unix_seconds: i64) -> Timeline {
        let clock = Clock { id: ClockId(0), kind: ClockKind::Trace, unix_ns_at_zero: None, uncertainty_ns: None };
        let mut timeline = Timeline::new(TraceFormat::TorchProfiler, clock);
        timeline.clock.unix_ns_at_zero = Some(Nanos::new(unix_seconds * 1_000_000_000));
        timeline.threads.push(HostThread { process: Some(1), rank: Some(rank), thread: Some(1) });
        timeline.job = Some(Job { rank: Some(rank), world_size: Some(world_size), ..Job::default() });
        timeline.devices.push(Device {
            id: DeviceId::cuda(0),
            name: device.to_owned(),
            uuid: None,
            hardware: None,
            memory_bytes: None,
            multiprocessors: None,
        });
        timeline.queues.push(types::timeline::DeviceQueue {
            process: None,
            rank: None,
            device: 0,
            context: None,
            stream: None,
        });
        let name = timeline.names.place("kernel");
        timeline.work.push(types::timeline::DeviceWork {
            kind: types::timeline::WorkKind::Kernel,
            name,
            queue: types::timeline::QueueId(0),
            start: Nanos::new(1_000),
            duration: Nanos::new(1_000),
            correlation: None,
            operator: None,
            launch: None,
            bytes: None,
            graph_node: None,
        });
        timeline
    }

    #[test]
    fn only_what_can_be_one_job_is_joined() {
        let one = timeline(0, 8, "NVIDIA A100", 1_000_000_000);
        assert_eq!(apart(&one, &timeline(1, 8, "NVIDIA A100", 1_000_000_005)), None);
        let why = |other: &Timeline| apart(&one, other).unwrap_or_default();
        assert_eq!(why(&timeline(0, 8, "NVIDIA A100", 1_000_000_000)), "both are rank 0");
        let other = timeline(1, 2, "NVIDIA A100", 1_000_000_000);
        assert_eq!(why(&other), "one is from a job with 8 ranks, the other from a job with 2");
        let other = timeline(1, 8, "Tesla V100", 1_000_000_000);
        assert_eq!(why(&other), "one ran on NVIDIA A100, the other on Tesla V100");
        let other = timeline(1, 8, "NVIDIA A100", 1_000_864_100);
        assert_eq!(why(&other), "they were recorded 10 days apart");
        let unranked = |seconds: i64| {
            let mut timeline = timeline(0, 8, "NVIDIA A100", seconds);
            (timeline.threads[0].rank, timeline.job) = (None, None);
            timeline
        };
        let alone = unranked(1_000_000_000);
        assert_eq!(apart(&alone, &unranked(1_000_000_000)), None, "recorded at the same time");
        let why = apart(&alone, &unranked(1_000_000_005)).unwrap();
        assert!(why.ends_with("they have no ranks and were recorded one after the other"), "{why}");
    }

    #[test]
    fn missing_ranks_are_counted() {
        let two = [timeline(0, 128, "A", 1), timeline(1, 128, "A", 1)];
        let counter = missing_ranks(two.iter()).unwrap();
        assert!(
            counter.value == 126 && counter.quantities == Facts::new().with("here", 2_u32).with("world", 128_u32),
            "{counter:?}"
        );
        assert_eq!(missing_ranks([timeline(0, 1, "A", 1)].iter()), None);
    }
}
