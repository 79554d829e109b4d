//! What was counted for one replayed launch.

use types::counter::{CounterTable, OpenRange, ProfiledKind};
use types::{Bytes, DType, Stage};

use crate::counter::{TIME, VECTOR};

const DRAM: [&str; 2] = ["dram__bytes_read.sum", "dram__bytes_write.sum"];
const DRAM_ALL: &str = "dram__bytes.sum";
const DRAM_RATE: &str = "dram__bytes.sum.per_second";
const DRAM_SHARE: [&str; 2] =
    ["dram__throughput.avg.pct_of_peak_sustained_elapsed", "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"];
const L2_HITS: &str = "lts__t_sector_hit_rate.pct";
const SM: &str = "sm__throughput.avg.pct_of_peak_sustained_elapsed";
const MEMORY: &str = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed";
/// Throughput of the caches: the L2 cache, and the L1 cache with shared memory.
const L2: &str = "lts__throughput.avg.pct_of_peak_sustained_elapsed";
const L1: [&str; 2] =
    ["l1tex__throughput.avg.pct_of_peak_sustained_active", "l1tex__throughput.avg.pct_of_peak_sustained_elapsed"];
const TENSOR: [&str; 4] = [
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
    "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_elapsed",
    "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active",
];
const OCCUPANCY: &str = "sm__warps_active.avg.pct_of_peak_sustained_active";
const OCCUPANCY_MOST: &str = "sm__maximum_warps_per_active_cycle_pct";
const REGISTERS: &str = "launch__registers_per_thread";
const SHARED: &str = "launch__shared_mem_per_block";
const WAVES: &str = "launch__waves_per_multiprocessor";

/// What may keep a multiprocessor from holding more blocks.
const LIMITS: [(&str, &str); 5] = [
    ("launch__occupancy_limit_registers", "registers"),
    ("launch__occupancy_limit_shared_mem", "shared memory"),
    ("launch__occupancy_limit_warps", "warps"),
    ("launch__occupancy_limit_blocks", "blocks"),
    ("launch__occupancy_limit_barriers", "barriers"),
];

/// Operations of the tensor pipes by the kind of their operands. Each already counts a multiply-add as two. Chips count
/// some kinds as one and others in two parts; the first list of a kind that was counted is taken.
const TENSOR_OPERATIONS: [(DType, &[&[&str]]); 6] = [
    (DType::Bf16, &[&["sm__ops_path_tensor_src_bf16_dst_fp32.sum"]]),
    (
        DType::Fp16,
        &[
            &["sm__ops_path_tensor_src_fp16.sum"],
            &["sm__ops_path_tensor_src_fp16_dst_fp16.sum", "sm__ops_path_tensor_src_fp16_dst_fp32.sum"],
        ],
    ),
    (DType::Tf32, &[&["sm__ops_path_tensor_src_tf32_dst_fp32.sum"]]),
    (DType::Fp8, &[&["sm__ops_path_tensor_src_fp8.sum"], &["sm__ops_path_tensor_src_fp8_sparsity_off.sum"]]),
    (DType::Fp64, &[&["sm__ops_path_tensor_src_fp64.sum"]]),
    (DType::Int8, &[&["sm__ops_path_tensor_src_int8.sum"]]),
];

/// What was counted for one launch. Times are nanoseconds, shares fractions; what was not counted is absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CountedLaunch {
    /// The kernel, as the profiler spells it.
    pub name: String,
    /// Ordinal of the device.
    pub device: Option<u32>,
    /// Blocks.
    pub grid: Option<[u32; 3]>,
    /// Threads of a block.
    pub block: Option<[u32; 3]>,
    /// Innermost stage among the ranges that were open.
    pub stage: Option<Stage>,
    /// Time.
    pub time: Option<f64>,
    /// Bytes of device memory.
    pub dram: Option<f64>,
    /// Share of its peak.
    pub dram_share: Option<f64>,
    /// Share of hits in the L2 cache.
    pub l2_hits: Option<f64>,
    /// Share of the multiprocessors' peak.
    pub sm: Option<f64>,
    /// Share of the memory system's peak.
    pub memory: Option<f64>,
    /// Share of the L2 cache's peak.
    pub l2: Option<f64>,
    /// Share of the peak of the L1 cache and shared memory.
    pub l1: Option<f64>,
    /// Share of time the tensor pipes worked.
    pub tensor: Option<f64>,
    /// Warps that were active.
    pub occupancy: Option<f64>,
    /// Warps that could be.
    pub occupancy_most: Option<f64>,
    /// What keeps them from being more.
    pub limiter: Option<&'static str>,
    /// Registers of a thread.
    pub registers: Option<u32>,
    /// Shared memory of a block.
    pub shared: Option<Bytes>,
    /// How often the grid fills the device.
    pub waves: Option<f64>,
    /// Operations of the tensor pipes.
    pub flops_tensor: Option<f64>,
    /// What most of them were done on; absent where none was.
    pub tensor_dtype: Option<DType>,
    /// Operations of the others.
    pub flops_vector: Option<f64>,
}

impl CountedLaunch {
    /// Every kernel of a raw page, in the order they were launched.
    pub fn of_table(table: &CounterTable) -> Vec<Self> {
        let kernels = table.work.iter().enumerate().filter(|(_, work)| work.kind == ProfiledKind::Kernel);
        kernels
            .map(|(row, work)| {
                let number = |name: &str| table.number(row, name);
                let percent = |name: &str| number(name).map(|percent| percent / 100.0);
                let first = |names: &[&str]| names.iter().find_map(|name| percent(name));
                let time = number(TIME);
                let both = number(DRAM[0]).zip(number(DRAM[1])).map(|(read, written)| read + written);
                let from_rate = || number(DRAM_RATE).zip(time).map(|(rate, time)| rate * time / 1e9);
                let kind = |lists: &[&[&str]]| {
                    let sum = |names: &&[&str]| sum_of_known(names.iter().map(|name| number(name)));
                    lists.iter().find_map(sum)
                };
                let tensor = TENSOR_OPERATIONS.map(|(dtype, lists)| (dtype, kind(lists)));
                let limits = LIMITS.iter().filter_map(|(metric, name)| Some((number(metric)?, *name)));
                Self {
                    name: work.name.to_string(),
                    device: work.device,
                    grid: work.grid,
                    block: work.block,
                    stage: stage(&work.pushed).or_else(|| stage(&work.started)),
                    time,
                    dram: both.or_else(|| number(DRAM_ALL)).or_else(from_rate),
                    dram_share: first(&DRAM_SHARE),
                    l2_hits: percent(L2_HITS),
                    sm: percent(SM),
                    memory: percent(MEMORY),
                    l2: percent(L2),
                    l1: first(&L1),
                    tensor: first(&TENSOR),
                    occupancy: percent(OCCUPANCY),
                    occupancy_most: percent(OCCUPANCY_MOST),
                    limiter: limits.min_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, name)| name),
                    registers: number(REGISTERS).map(|registers| registers.round() as u32),
                    shared: number(SHARED).map(|bytes| Bytes::new(bytes.round().max(0.0) as u64)),
                    waves: number(WAVES),
                    flops_tensor: sum_of_known(tensor.iter().map(|(_, operations)| *operations)),
                    tensor_dtype: tensor
                        .iter()
                        .filter_map(|(dtype, operations)| Some((*dtype, operations.filter(|count| *count > 0.0)?)))
                        .max_by(|(_, one), (_, other)| one.total_cmp(other))
                        .map(|(dtype, _)| dtype),
                    flops_vector: sum_of_known(VECTOR.iter().map(|(_, name, each)| Some(number(name)? * each))),
                }
            })
            .collect()
    }
}

fn stage(ranges: &[OpenRange]) -> Option<Stage> {
    ranges.iter().rev().find_map(|range| Stage::from_range(range.domain.as_deref(), &range.name))
}

/// The sum of those that were counted; absent where none was. A chip without a kind of operand has no counter for it.
fn sum_of_known(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    values.flatten().reduce(|sum, value| sum + value)
}
