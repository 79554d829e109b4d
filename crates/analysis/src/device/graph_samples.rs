//! Kernels of CUDA graphs whose launches were sampled: some were recorded kernel by kernel, the others as a whole. What was
//! recorded is scaled to all launches of the same graph in the same stage, with an interval.
//!
//! Launches are recorded in blocks, and those of a block resemble each other, so that blocks are the sample: with `C` blocks of
//! `n_c` launches that took `y_c`, of `N` launches in total and `n` recorded, the ratio estimate of the total is
//! `N r`, `r = sum(y_c) / sum(n_c)`, and its standard error `N sqrt(1 - n / N) sqrt(s^2 / C) / (n / C)` with
//! `s^2 = sum((y_c - r n_c)^2) / (C - 1)` (Cochran, Sampling Techniques, 3rd edition, section 6.3). The interval is Student's, 95%.

use std::collections::{BTreeMap, HashMap};

use types::timeline::{NameId, WorkKind};
use types::{DeviceId, KernelEstimate, KernelSummary, Nanos, Stage};

use crate::evidence::PlacedTimeline;
use crate::statistics::student_quantile;

/// Share of cases outside the interval.
const OUTSIDE: f64 = 0.05;

/// A graph in a stage: its process, CUPTI's number of it, stage and device.
type GraphKey = (Option<u32>, u64, Option<Stage>, u32);

/// The launches of a graph in a stage.
#[derive(Default)]
struct Launches {
    whole: Vec<Nanos>,
    /// By the number of the launching call.
    sampled: BTreeMap<u64, SampledLaunch>,
}

/// A launch that was recorded kernel by kernel.
struct SampledLaunch {
    start: Nanos,
    /// Launches and time of each kernel.
    kernels: HashMap<NameId, (u64, i64)>,
}

/// A kernel's share in what its row is scaled to.
#[derive(Clone, Copy, Default)]
struct Scaled {
    calls: f64,
    time: f64,
    /// Square of the standard error; absent where one graph's is.
    variance: Option<f64>,
    freedom: f64,
}

/// Launches that were recorded kernel by kernel, and all launches, of the graphs of which some were not.
pub(crate) fn share(timelines: &[PlacedTimeline<'_>]) -> (u64, u64) {
    let all = timelines.iter().map(graphs).flat_map(BTreeMap::into_values);
    let counts = all.map(|one| (one.sampled.len() as u64, (one.sampled.len() + one.whole.len()) as u64));
    counts.fold((0, 0), |(one, all), (sampled, launches)| (one + sampled, all + launches))
}

/// Adds to each kernel what all launches would add up to, where launches of its graphs were sampled.
pub(crate) fn estimate(kernels: &mut [KernelSummary], timelines: &[PlacedTimeline<'_>]) {
    // By name, stage and device: what to add to what was recorded.
    let mut missing: HashMap<(&str, Option<Stage>, DeviceId), Scaled> = HashMap::new();
    for placed in timelines {
        for ((_, _, stage, ordinal), launches) in graphs(placed) {
            for (name, scaled) in launches.missing() {
                let key = (placed.timeline.name(name), stage, placed.device(ordinal));
                missing.entry(key).and_modify(|sum| sum.add(scaled)).or_insert(scaled);
            }
        }
    }
    for kernel in kernels {
        let Some(scaled) = missing.get(&(kernel.name.as_str(), kernel.stage, kernel.device.clone())) else { continue };
        let total = kernel.total_ns.get() as f64 + scaled.time;
        let reach = scaled.variance.map(|variance| student_quantile(OUTSIDE, scaled.freedom) * variance.sqrt());
        // What was recorded is known.
        let low = reach.map(|reach| (total - reach).max(kernel.total_ns.get() as f64));
        kernel.estimate = Some(KernelEstimate {
            calls: kernel.calls + scaled.calls.round() as u64,
            total_ns: Nanos::new(total.round() as i64),
            low_ns: low.map(|low| Nanos::new(low.round() as i64)),
            high_ns: reach.map(|reach| Nanos::new((total + reach).round() as i64)),
        });
    }
}

/// Graphs of which some launches were recorded kernel by kernel and some were not.
fn graphs(placed: &PlacedTimeline<'_>) -> BTreeMap<GraphKey, Launches> {
    let PlacedTimeline { timeline, attribution, .. } = placed;
    let mut found: BTreeMap<GraphKey, Launches> = BTreeMap::new();
    let rows = || timeline.work.iter().enumerate().filter(|(place, _)| !attribution.is_aside(*place));
    let key = |place: usize, graph: u64| {
        let queue = &timeline.queues[timeline.work[place].queue.0 as usize];
        (queue.process, graph, attribution.stage[place], queue.device)
    };
    for (place, work) in rows().filter(|(_, work)| work.kind == WorkKind::Graph) {
        if let Some(graph) = number(timeline.name(work.name)) {
            found.entry(key(place, graph)).or_default().whole.push(work.start);
        }
    }
    if found.is_empty() {
        return found;
    }
    for (place, work) in rows().filter(|(_, work)| work.kind == WorkKind::Kernel) {
        let (Some(node), Some(launch)) = (work.graph_node, work.correlation) else { continue };
        // The upper half of a node's number is that of its graph.
        let Some(launches) = found.get_mut(&key(place, node.get() >> 32)) else { continue };
        let fresh = || SampledLaunch { start: work.start, kernels: HashMap::new() };
        let launch = launches.sampled.entry(launch.0.get()).or_insert_with(fresh);
        launch.start = work.start.min(launch.start);
        let kernel = launch.kernels.entry(work.name).or_default();
        *kernel = (kernel.0 + 1, kernel.1 + work.duration.get());
    }
    found.retain(|_, launches| !launches.sampled.is_empty());
    found
}

/// The graph in the name of a launch as a whole: `[CUDA graph 2]`.
fn number(name: &str) -> Option<u64> {
    name.strip_prefix("[CUDA graph ")?.strip_suffix(']')?.parse().ok()
}

impl Launches {
    /// What the launches recorded as a whole did, by those recorded kernel by kernel.
    fn missing(&self) -> Vec<(NameId, Scaled)> {
        let blocks = self.blocks();
        let (recorded, whole) = (self.sampled.len() as f64, self.whole.len() as f64);
        let mut names: Vec<NameId> = self.sampled.values().flat_map(|launch| launch.kernels.keys().copied()).collect();
        names.sort_unstable();
        names.dedup();
        let of = |name: NameId| {
            let mut blocks_of: Vec<(f64, f64)> = vec![(0.0, 0.0); blocks.last().map_or(0, |last| last + 1)];
            let (mut calls, mut time) = (0.0, 0.0);
            for (launch, block) in self.sampled.values().zip(&blocks) {
                let (more, duration) = launch.kernels.get(&name).copied().unwrap_or_default();
                calls += more as f64;
                time += duration as f64;
                if let Some(sum) = blocks_of.get_mut(*block) {
                    *sum = (sum.0 + 1.0, sum.1 + duration as f64);
                }
            }
            let rate = time / recorded;
            let count = blocks_of.len() as f64;
            let variance = (count > 1.0).then(|| {
                let squares: f64 = blocks_of.iter().map(|(launches, time)| (time - rate * launches).powi(2)).sum();
                let all = recorded + whole;
                let error =
                    all * (1.0 - recorded / all).sqrt() * (squares / (count - 1.0) / count).sqrt() / (recorded / count);
                error.powi(2)
            });
            (
                name,
                Scaled {
                    calls: calls * whole / recorded,
                    time: rate * whole,
                    variance,
                    freedom: (count - 1.0).max(1.0),
                },
            )
        };
        names.into_iter().map(of).collect()
    }

    /// For each sampled launch, in their order here, its block: a block ends where a launch was recorded as a whole.
    fn blocks(&self) -> Vec<usize> {
        let mut whole = self.whole.clone();
        whole.sort_unstable();
        let before: Vec<usize> =
            self.sampled.values().map(|launch| whole.partition_point(|other| *other < launch.start)).collect();
        let mut distinct = before.clone();
        distinct.sort_unstable();
        distinct.dedup();
        before.iter().map(|place| distinct.partition_point(|other| other < place)).collect()
    }
}

impl Scaled {
    fn add(&mut self, other: Self) {
        self.calls += other.calls;
        self.time += other.time;
        self.variance = self.variance.zip(other.variance).map(|(one, two)| one + two);
        // The fewer blocks, the wider: never too narrow.
        self.freedom = self.freedom.min(other.freedom);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launches(blocks: &[&[i64]], whole_between: usize) -> Launches {
        let mut made = Launches::default();
        let name = types::timeline::Table::<str>::default().place("gemm");
        let (mut time, mut call) = (0, 0);
        for block in blocks {
            for duration in *block {
                (time, call) = (time + 1000, call + 1);
                let kernels = HashMap::from([(name, (2, *duration))]);
                made.sampled.insert(call, SampledLaunch { start: Nanos::new(time), kernels });
            }
            for _ in 0..whole_between {
                time += 1000;
                made.whole.push(Nanos::new(time));
            }
        }
        made
    }

    #[test]
    fn blocks_end_at_launches_recorded_as_a_whole() {
        assert_eq!(launches(&[&[1, 1], &[1, 1, 1], &[1]], 3).blocks(), [0, 0, 1, 1, 1, 2]);
        assert_eq!(launches(&[&[1, 1]], 0).blocks(), [0, 0]);
    }

    #[test]
    fn equal_launches_scale_exactly_and_have_no_width() {
        let [(_, scaled)] = launches(&[&[10, 10], &[10, 10]], 6).missing()[..] else { panic!("one kernel") };
        assert_eq!((scaled.calls, scaled.time, scaled.variance), (24.0, 120.0, Some(0.0)));
    }

    #[test]
    fn blocks_that_differ_give_the_published_error() {
        // n = 4, N = 16, C = 2, r = 15, y = 20 and 40, n_c = 2: residuals -10 and 10, s^2 = 200;
        // error = 16 sqrt(3/4) sqrt(200 / 2) / 2 = 69.28.
        let [(_, scaled)] = launches(&[&[10, 10], &[20, 20]], 6).missing()[..] else { panic!("one kernel") };
        assert_eq!(scaled.time, 180.0);
        assert!((scaled.variance.unwrap().sqrt() - 69.282).abs() < 1e-3, "{:?}", scaled.variance);
        assert_eq!(scaled.freedom, 1.0);
    }

    #[test]
    fn one_block_has_no_interval() {
        let [(_, scaled)] = launches(&[&[10, 20]], 6).missing()[..] else { panic!("one kernel") };
        assert_eq!((scaled.time, scaled.variance), (90.0, None));
    }

    #[test]
    fn a_graph_is_known_by_its_name() {
        assert_eq!((number("[CUDA graph 2]"), number("[CUDA graph x]"), number("gemm")), (Some(2), None, None));
    }
}
