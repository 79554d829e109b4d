//! Which kernels are worth counters: those that take most of a stage.

use std::collections::{BTreeSet, HashMap};

use types::timeline::{LaunchShapeId, NameId, RangeStyle, Timeline, WorkKind};
use types::{Nanos, Stage};

use crate::attribution::{Attribution, Inference};
use crate::kernel::{self, Family};

/// Launches of one kernel with one grid and block in one stage on one device.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Full demangled name, as the timeline has it.
    pub name: String,
    /// Its names in the object file, where the timeline has them.
    pub symbols: BTreeSet<String>,
    /// Name without template arguments.
    pub short_name: String,
    /// What kind of work.
    pub family: String,
    /// The stage, in which nested ones are counted; absent where the run has none.
    pub stage: Option<Stage>,
    /// Ordinal of the device.
    pub device: u32,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Launches.
    pub calls: u64,
    /// Time of all.
    pub total: Nanos,
    /// Shortest.
    pub min: Nanos,
    /// Longest.
    pub max: Nanos,
    /// Share of the kernel time of the stage.
    pub share: Option<f64>,
}

/// The range by which a profiler finds a stage again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StageRange {
    /// NVTX domain.
    pub domain: Option<String>,
    /// Name.
    pub name: String,
    /// Whether it is pushed and popped; otherwise it is started and ended.
    pub pushed: bool,
}

/// What was chosen in one stage.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The stage; absent where the run has none.
    pub stage: Option<Stage>,
    /// Kernels, longest first.
    pub kernels: Vec<Candidate>,
    /// Names in the object file of the timeline's other kernels, from which these are to be told.
    pub others: BTreeSet<String>,
    /// Ranges that mark the stage; empty where it was inferred or is the whole run.
    pub ranges: Vec<StageRange>,
    /// Share of the stage's kernel time that the chosen kernels take.
    pub share: Option<f64>,
}

#[derive(Clone, Copy)]
struct Sum {
    calls: u64,
    total: Nanos,
    min: Nanos,
    max: Nanos,
}

/// The `most` kernels that take most time in each of `stages`, those `leave_out` says yes to left out. A run without
/// stages is looked at as a whole. Kernels that wait for those of another device are left out too: replayed alone they
/// would wait for ever.
pub fn choose(
    timeline: &Timeline,
    attribution: &Attribution,
    stages: &[Stage],
    most: usize,
    leave_out: &dyn Fn(&str) -> bool,
) -> Vec<Choice> {
    let mut wanted: Vec<Option<Stage>> = stages.iter().copied().map(Some).collect();
    if attribution.stages.is_empty() {
        wanted = vec![None];
    }
    let of_stage = |stage: Option<Stage>| {
        let sums = sums(timeline, attribution, stage);
        let whole: Nanos = sums.values().map(|sum| sum.total).sum();
        let share = |time: Nanos| crate::statistics::share(time.get() as f64, whole.get() as f64);
        let mut rows: Vec<_> = sums.into_iter().collect();
        // Longest first; the name decides between equals, so that two runs choose alike.
        rows.sort_by(|(left, a), (right, b)| {
            b.total.cmp(&a.total).then_with(|| timeline.name(left.0).cmp(timeline.name(right.0))).then(left.cmp(right))
        });
        let alone = |name: &str| kernel::family(name) != Family::Communication;
        let rows = rows.into_iter().filter(|((name, ..), _)| {
            let name = timeline.name(*name);
            alone(name) && !leave_out(name)
        });
        let kernels: Vec<Candidate> = rows
            .take(most)
            .map(|((name, shape, device), sum)| {
                let (text, shape) = (timeline.name(name), timeline.launch_shapes.get(shape));
                let symbols = timeline.symbols.get(&name).into_iter().flatten();
                Candidate {
                    name: text.to_owned(),
                    symbols: symbols.map(|symbol| timeline.name(*symbol).to_owned()).collect(),
                    short_name: kernel::short_name(text),
                    family: kernel::family(text).name().to_owned(),
                    stage,
                    device,
                    grid: shape.grid,
                    block: shape.block,
                    calls: sum.calls,
                    total: sum.total,
                    min: sum.min,
                    max: sum.max,
                    share: share(sum.total),
                }
            })
            .collect();
        let chosen: Nanos = kernels.iter().map(|kernel| kernel.total).sum();
        let ranges = stage.map(|stage| ranges(timeline, attribution, stage)).unwrap_or_default();
        let symbols = timeline.symbols.values().flatten().map(|symbol| timeline.name(*symbol));
        let of_chosen = |symbol: &str| kernels.iter().any(|kernel| kernel.symbols.contains(symbol));
        let others = symbols.filter(|symbol| !of_chosen(symbol)).map(str::to_owned).collect();
        Choice { stage, share: share(chosen), kernels, others, ranges }
    };
    wanted.into_iter().map(of_stage).filter(|choice| !choice.kernels.is_empty()).collect()
}

type Key = (NameId, LaunchShapeId, u32);

fn sums(timeline: &Timeline, attribution: &Attribution, stage: Option<Stage>) -> HashMap<Key, Sum> {
    let mut sums: HashMap<Key, Sum> = HashMap::new();
    for (work, found) in timeline.work.iter().zip(&attribution.stage) {
        let Some(shape) = work.launch.filter(|_| work.kind == WorkKind::Kernel) else { continue };
        if stage.is_some() && !within(*found, stage) {
            continue;
        }
        let key = (work.name, shape, timeline.queues[work.queue.0 as usize].device);
        let one = Sum { calls: 1, total: work.duration, min: work.duration, max: work.duration };
        let add = |sum: &mut Sum| {
            sum.calls += 1;
            sum.total += work.duration;
            sum.min = sum.min.min(work.duration);
            sum.max = sum.max.max(work.duration);
        };
        sums.entry(key).and_modify(add).or_insert(one);
    }
    sums
}

/// Whether a stage is `wanted` or nested in it.
pub(super) fn within(stage: Option<Stage>, wanted: Option<Stage>) -> bool {
    std::iter::successors(stage, |stage| stage.parent()).any(|stage| Some(stage) == wanted)
}

/// Every range by which the timeline marks a stage.
fn ranges(timeline: &Timeline, attribution: &Attribution, stage: Stage) -> Vec<StageRange> {
    if attribution.inference != Inference::NotNeeded {
        return Vec::new();
    }
    let of_stage = |range: &types::timeline::Range| {
        let domain = range.domain.map(|domain| timeline.name(domain));
        let name = timeline.name(range.name);
        let pushed = range.style == RangeStyle::PushPop;
        (Stage::from_range(domain, name) == Some(stage)).then(|| StageRange {
            domain: domain.map(str::to_owned),
            name: name.to_owned(),
            pushed,
        })
    };
    timeline.ranges.iter().filter_map(of_stage).collect::<BTreeSet<_>>().into_iter().collect()
}
