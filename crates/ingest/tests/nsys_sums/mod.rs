//! Sums over a timeline as the tables of `nsys stats` have them, and what must never be in one.
#![allow(dead_code, reason = "each suite takes what it needs")]

use std::collections::BTreeMap;

use llm_perf_ingest::nsys::stats::{StatsKind, StatsTable};
use types::Nanos;
use types::timeline::{Range, RangeStyle, Timeline, WorkKind};

/// Instances, total, shortest and longest by name.
pub(crate) type Sums = BTreeMap<String, (u64, i64, i64, i64)>;

/// Sums as a table of `nsys stats` has them.
pub(crate) fn nvidia(csv: &str) -> Sums {
    let mut lines = csv.lines();
    let header: Vec<_> = lines.next().unwrap().split(',').collect();
    let place = |names: &[&str]| header.iter().position(|column| names.contains(column)).unwrap();
    let (total, least, most) = (place(&["Total Time (ns)"]), place(&["Min (ns)"]), place(&["Max (ns)"]));
    let instances = place(&["Instances", "Num Calls"]);
    let mut sums = Sums::new();
    for line in lines {
        // The name is last, and the only field with quotes or commas.
        let fields: Vec<_> = line.splitn(header.len(), ',').collect();
        let name = fields[header.len() - 1];
        let name = name.strip_prefix('"').and_then(|name| name.strip_suffix('"')).unwrap_or(name).replace("\"\"", "\"");
        let number = |place: usize| fields[place].parse::<i64>().unwrap();
        sums.insert(name, (number(instances) as u64, number(total), number(least), number(most)));
    }
    sums
}

pub(crate) fn sums(rows: impl Iterator<Item = (String, Nanos)>) -> Sums {
    let mut sums = Sums::new();
    for (name, duration) in rows {
        let duration = duration.get();
        let sum = sums.entry(name).or_insert((0, 0, i64::MAX, i64::MIN));
        *sum = (sum.0 + 1, sum.1 + duration, sum.2.min(duration), sum.3.max(duration));
    }
    sums
}

pub(crate) fn kernel_sums(timeline: &Timeline) -> Sums {
    let kernels = timeline.work.iter().filter(|work| work.kind == WorkKind::Kernel);
    sums(kernels.map(|work| (timeline.name(work.name).to_owned(), work.duration)))
}

pub(crate) fn call_sums(timeline: &Timeline) -> Sums {
    sums(timeline.calls.iter().map(|call| (timeline.name(call.name).to_owned(), call.duration)))
}

/// `name` says how NVIDIA spells domain and range.
pub(crate) fn push_pop_sums(timeline: &Timeline, name: impl Fn(&str, &str) -> String) -> Sums {
    let closed = |range: &Range| {
        let domain = range.domain.map_or("", |domain| timeline.name(domain));
        Some((name(domain, timeline.name(range.name)), range.end? - range.start))
    };
    sums(timeline.ranges.iter().filter(|range| range.style == RangeStyle::PushPop).filter_map(closed))
}

/// NVIDIA's table of calls has launches, copies and the like, and leaves queries out.
pub(crate) fn assert_calls(timeline: &Timeline, csv: &str) {
    let calls = call_sums(timeline);
    for (name, sum) in nvidia(csv) {
        let bare = name.split("_v1").next().unwrap();
        assert_eq!(calls.get(bare), Some(&sum), "{name}");
    }
}

/// Every text of a timeline, wherever it is.
pub(crate) fn texts(timeline: &Timeline) -> String {
    format!(
        "{:?}{:?}{:?}{:?}{:?}",
        timeline.names, timeline.tool, timeline.devices, timeline.quality, timeline.signatures
    )
}

pub(crate) fn assert_private(timeline: &Timeline, secrets: &[&str]) {
    let texts = texts(timeline).to_lowercase();
    for secret in secrets {
        assert!(!texts.contains(&secret.to_lowercase()), "{secret}");
    }
}

/// Rows, nanoseconds and launches of a table of kernels, after the parts of each row are compared with each other.
pub(crate) fn totals(table: &StatsTable) -> (usize, i64, u64) {
    let kernels = &table.kernels;
    assert_eq!((table.kind, table.rows), (StatsKind::Kernels, kernels.len() as u64));
    for kernel in kernels {
        let (total, count) = (kernel.total.get(), kernel.count as i64);
        let (min, max) = (kernel.min.unwrap().get(), kernel.max.unwrap().get());
        assert!(min * count <= total && total <= max * count, "{kernel:?}");
    }
    let total = kernels.iter().map(|kernel| kernel.total).sum::<Nanos>();
    (kernels.len(), total.get(), kernels.iter().map(|kernel| kernel.count).sum())
}
