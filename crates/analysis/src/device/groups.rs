//! Device work by stage, name and operator.

use std::collections::HashMap;

use types::timeline::{NameId, Timeline, WorkKind};
use types::{Bytes, Count, DType, Nanos};

use super::dequantisation::Cast;
use super::partition::Partition;
use crate::attribution::Attribution;
use crate::kernel::{self, Family};
use crate::operators::recorded_work::reads_half;
use crate::scope::Scope;

/// All work of one name that one operator launched in one stage.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WorkGroup {
    /// What it counts for.
    pub(crate) scope: Scope,
    /// What it is.
    pub(crate) kind: WorkKind,
    /// Full name.
    pub(crate) name: String,
    /// Family of the kernel.
    pub(crate) family: Family,
    /// Element type, where the name tells.
    pub(crate) dtype: Option<DType>,
    /// What it casts for a GEMM, if anything.
    pub(crate) casts: Option<Cast>,
    /// The innermost framework operator; absent where the trace has none.
    pub(crate) operator: Option<String>,
    /// Pieces.
    pub(crate) calls: u64,
    /// Their time on the device.
    pub(crate) time: Nanos,
    /// Their part of wall time in which they ran.
    pub(crate) run: Nanos,
    /// Their part of wall time in which the device waited for them.
    pub(crate) wait: Nanos,
    /// Bytes copied or filled, as far as the trace says.
    pub(crate) bytes: Bytes,
    /// Fewest and most blocks of a launch; absent where the trace does not say.
    pub(crate) blocks: Option<[u64; 2]>,
}

/// Share of the multiprocessors that must have nothing to do: a grid of 128 blocks on 132 of them is no small one.
const LEAST_IDLE: f64 = 0.1;

impl WorkGroup {
    /// Whether even its largest grid leaves many multiprocessors without a block.
    pub(crate) fn is_small_on(&self, multiprocessors: u64) -> bool {
        self.blocks.is_some_and(|[_, most]| (most as f64) < multiprocessors as f64 * (1.0 - LEAST_IDLE))
    }
}

type Key = (Scope, WorkKind, NameId, Option<NameId>, Option<Cast>, bool);

#[derive(Clone, Copy, Default)]
struct Row {
    calls: u64,
    time: Nanos,
    run: Nanos,
    wait: Nanos,
    bytes: Bytes,
    blocks: Option<[u64; 2]>,
}

/// Groups while they grow.
#[derive(Default)]
pub(super) struct Groups(Vec<WorkGroup>);

impl Groups {
    /// Adds the work of a timeline that has a stage.
    pub(super) fn add(
        &mut self,
        timeline: &Timeline,
        attribution: &Attribution,
        partition: &Partition,
        casts: &[Option<Cast>],
    ) {
        let mut rows: HashMap<Key, Row> = HashMap::new();
        let is_half = reads_half(timeline, attribution);
        for (place, work) in timeline.work.iter().enumerate() {
            let Some(scope) = partition.scopes[place] else { continue };
            let operator = attribution.operator[place].map(|row| timeline.operators[row as usize].name);
            let row = rows.entry((scope, work.kind, work.name, operator, casts[place], is_half[place])).or_default();
            let part = partition.parts[place];
            row.calls += 1;
            row.time += work.duration;
            row.run += part.run;
            row.wait += part.wait;
            row.bytes += work.bytes.unwrap_or_default();
            if let Some(shape) = work.launch.map(|shape| timeline.launch_shapes.get(shape)) {
                let blocks = shape.grid.iter().product::<Count>().get();
                // No launch has none: the recorder did not know.
                if blocks == 0 {
                    continue;
                }
                let [fewest, most] = row.blocks.unwrap_or([blocks, blocks]);
                row.blocks = Some([fewest.min(blocks), most.max(blocks)]);
            }
        }
        self.0.extend(rows.into_iter().map(|((scope, kind, name, operator, casts, is_half), row)| {
            let name = timeline.name(name);
            let known = (kind == WorkKind::Kernel).then(|| kernel::classify(name));
            WorkGroup {
                scope,
                kind,
                name: name.to_owned(),
                family: kernel::family_of_work(kind, name),
                dtype: known.and_then(|known| known.dtype).filter(|dtype| *dtype != DType::Fp32 || !is_half),
                casts,
                operator: operator.map(|operator| timeline.name(operator).to_owned()),
                calls: row.calls,
                time: row.time,
                run: row.run,
                wait: row.wait,
                bytes: row.bytes,
                blocks: row.blocks,
            }
        }));
    }

    /// All groups, longest first.
    pub(super) fn finish(self) -> Vec<WorkGroup> {
        let mut groups = self.0;
        groups.sort_by(|one, two| {
            let order = |group: &WorkGroup| (std::cmp::Reverse(group.time), group.scope);
            order(one)
                .cmp(&order(two))
                .then_with(|| one.name.cmp(&two.name))
                .then_with(|| one.operator.cmp(&two.operator))
        });
        groups
    }
}

#[cfg(test)]
mod tests {
    use types::timeline::OperatorSignature;

    use super::*;
    use crate::attribution::{AttributionSettings, attribute};
    use crate::device::sample::{Launch, timeline};

    /// The element type of a GEMM whose name says FP32, launched by an operator that read tensors of this type.
    fn dtype(read: &str) -> Option<DType> {
        let launch = Launch { operator: Some("aten::mm"), ..Launch::new(0, 10, 90).named("ampere_sgemm_128x64_nn") };
        let mut timeline = timeline(1_000, &[launch]);
        let types = vec![read.to_owned(), read.to_owned()];
        let signature = timeline.signatures.place_owned(OperatorSignature { types, ..OperatorSignature::default() });
        timeline.operators[0].signature = Some(signature);
        let attribution = attribute(&timeline, &AttributionSettings::default());
        let mut groups = Groups::default();
        groups.add(&timeline, &attribution, &Partition::new(&timeline, &attribution), &[None]);
        groups.finish()[0].dtype
    }

    #[test]
    fn what_an_operator_read_vetoes_fp32_in_the_name_of_its_kernel() {
        assert_eq!([dtype("float"), dtype("long int")], [Some(DType::Fp32); 2]);
        assert_eq!([dtype("c10::BFloat16"), dtype("c10::Half")], [None; 2]);
    }

    #[test]
    fn a_grid_without_blocks_is_not_known() {
        let mut timeline = timeline(1_000, &[Launch::new(0, 10, 90), Launch::new(100, 110, 90)]);
        for (row, grid) in [[0, 0, 0], [4, 1, 1]].into_iter().enumerate() {
            let shape = types::LaunchShape { grid, ..types::LaunchShape::default() };
            timeline.work[row].launch = Some(timeline.launch_shapes.place_owned(shape));
        }
        let attribution = attribute(&timeline, &AttributionSettings::default());
        let mut groups = Groups::default();
        groups.add(&timeline, &attribution, &Partition::new(&timeline, &attribution), &[None, None]);
        assert_eq!(groups.finish()[0].blocks, Some([4, 4]));
    }
}
