//! The rows of one rank: those of its `timeline` and those of its `metrics`.

mod metrics;
mod timeline;

use analysis::attribution::Attribution;
use analysis::{PlacedSteps, placed_steps, time};
use types::timeline::Timeline;
use types::{Metrics, Nanos, TraceSource};

use crate::{Cell, Table, TableError};

/// Takes the rows, one by one.
pub type Sink<'a> = dyn FnMut(&[Cell<'_>]) -> Result<(), TableError> + 'a;

/// One rank of a job.
pub struct RankRows<'a> {
    timeline: &'a Timeline,
    attribution: &'a Attribution,
    steps: Option<PlacedSteps>,
    metrics: &'a Metrics,
    origin: RankOrigin<'a>,
    /// What is added to times of the timeline, and the name of the clock that gives.
    zero: Nanos,
    clock: &'static str,
}

/// Where the rows of a rank come from.
#[derive(Clone, Copy, Debug)]
pub struct RankOrigin<'a> {
    /// Name of the job.
    pub job: &'a str,
    /// The rank; absent in a run without ranks.
    pub rank: Option<u32>,
    /// Whether the run holds other ranks too, so that what is said of the run as a whole is not this rank's.
    pub among_others: bool,
    /// Files that the timeline was read from.
    pub sources: &'a [TraceSource],
}

impl<'a> RankRows<'a> {
    /// Rows of a timeline that is part of a run with these metrics.
    pub fn new(
        timeline: &'a Timeline,
        attribution: &'a Attribution,
        metrics: &'a Metrics,
        origin: RankOrigin<'a>,
    ) -> Self {
        let zero = time::unix_zero(timeline);
        Self {
            timeline,
            attribution,
            steps: placed_steps(timeline, attribution),
            metrics,
            origin,
            zero: zero.unwrap_or_default(),
            clock: if zero.is_some() { "unix" } else { "trace" },
        }
    }

    /// All rows of a table, in its order.
    pub fn write(&self, table: Table, sink: &mut Sink<'_>) -> Result<(), TableError> {
        match table {
            Table::Runs => self.run(sink),
            Table::Kernels => self.kernels(sink),
            Table::Copies => self.copies(sink),
            Table::HostOps => self.host_ops(sink),
            Table::Ranges => self.ranges(sink),
            Table::Steps => self.steps(sink),
            Table::Stages => self.stages(sink),
            Table::Collectives => self.collectives(sink),
            Table::Memory => self.memory(sink),
            Table::KernelSums => self.kernel_sums(sink),
            Table::Samples => self.samples(sink),
            Table::DeviceTime => self.device_time(sink),
            Table::Idle => self.idle(sink),
            Table::Modules => self.modules(sink),
            Table::Findings => self.findings(sink),
        }
    }

    fn rank(&self) -> Cell<'static> {
        self.origin.rank.into()
    }
}
