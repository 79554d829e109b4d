//! The torch profiler traces of a job whose troubles are known.
//!
//! Every step, each rank launches its kernels, meets its neighbour in an all-reduce of 1 MiB (ranks 2n and 2n + 1) and then all ranks
//! in one of 64 MiB. Troubles are `straggler` (a rank with a third more kernels), `slow-device` (kernels that take 1.3 times as long),
//! `slow-pair` (the pair with that rank transfers at half the rate), `hot` (all ranks meet in one more all-to-all each step, in which
//! the message of that one is twice as large), or `missing` (no trace). Every rank has a clock of its own, off by
//! up to a second and drifting by up to 20 parts in a million.

use std::fmt::Write as _;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use types::Random;

/// Nanoseconds.
const KERNEL: f64 = 40_000.0;
const LAUNCH: f64 = 4_000.0;
const PAIR_TRANSFER: f64 = 30_000.0;
const TRANSFER: f64 = 400_000.0;
const BEGIN: f64 = 1_000_000.0;

#[derive(Default)]
struct Troubles {
    straggler: Option<usize>,
    slow_device: Option<usize>,
    slow_pair: Option<usize>,
    hot: Option<usize>,
    missing: Vec<usize>,
}

/// A collective as it is called.
struct Called<'a> {
    name: &'a str,
    kernel: &'a str,
    purpose: &'a str,
    members: &'a [usize],
    elements: u64,
}

const ALL_REDUCE: [&str; 2] =
    ["allreduce", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"];
const ALL_TO_ALL: [&str; 2] = ["all_to_allv", "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"];

struct Rank {
    file: BufWriter<std::fs::File>,
    ahead: f64,
    drift: f64,
    correlation: u64,
}

/// What is wrong with the job, as `WHAT=RANK`, and how large it is.
pub fn write(
    folder: &Path,
    [ranks, steps, kernels]: [usize; 3],
    what: &[&str],
) -> Result<(), Box<dyn std::error::Error>> {
    let mut troubles = Troubles::default();
    for one in what {
        let (name, rank) = one.split_once('=').ok_or("WHAT=RANK")?;
        let rank = rank.parse()?;
        match name {
            "straggler" => troubles.straggler = Some(rank),
            "slow-device" => troubles.slow_device = Some(rank),
            "slow-pair" => troubles.slow_pair = Some(rank / 2),
            "hot" => troubles.hot = Some(rank),
            "missing" => troubles.missing.push(rank),
            other => return Err(format!("no trouble is called {other}").into()),
        }
    }
    std::fs::create_dir_all(folder)?;
    let mut random = Random::new(5);
    let mut all = Vec::new();
    for rank in 0..ranks {
        let mut file = BufWriter::new(std::fs::File::create(folder.join(format!("rank{rank}.json")))?);
        write!(
            file,
            "{{\"schemaVersion\":1,\"distributedInfo\":{{\"backend\":\"nccl\",\"rank\":{rank},\"world_size\":{ranks}}},\
             \"deviceProperties\":[{{\"id\":0,\"name\":\"NVIDIA H100 80GB HBM3\",\"totalGlobalMem\":84942979072,\"computeMajor\":9,\
             \"computeMinor\":0,\"numSms\":132}}],\"baseTimeNanoseconds\":1700000000000000000,\"traceEvents\":[\
             {{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{rank},\"tid\":0,\"args\":{{\"name\":\"python\"}}}}"
        )?;
        let (ahead, drift) = (random.normal() * 3e8, random.normal() * 7e-6);
        all.push(Rank { file, ahead, drift, correlation: 0 });
    }
    let mut now = vec![BEGIN; ranks];
    for step in 0..steps {
        let begin = now.clone();
        let mut arrivals = Vec::new();
        for (rank, own) in all.iter_mut().enumerate() {
            let pace = if troubles.slow_device == Some(rank) { 1.3 } else { 1.0 };
            let count = if troubles.straggler == Some(rank) { kernels * 4 / 3 } else { kernels };
            let mut at = now[rank];
            for number in 0..count {
                let (name, length) =
                    [("ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_tn", 1.0), ("softmax_warp_forward", 0.3)]
                        [usize::from(number % 4 == 3)];
                let length = KERNEL * length * pace * (1.0 + 0.02 * random.unit());
                own.kernel(rank, name, at, length, now[rank] + LAUNCH * number as f64 * 0.2, "")?;
                at += length + 500.0;
            }
            arrivals.push(at);
        }
        for pair in 0..ranks / 2 {
            let members = [2 * pair, 2 * pair + 1];
            let slow = if troubles.slow_pair == Some(pair) { 2.0 } else { 1.0 };
            let last = arrivals[members[0]].max(arrivals[members[1]]);
            for rank in members {
                let end = last + PAIR_TRANSFER * slow + 600.0 * random.unit();
                let [name, kernel] = ALL_REDUCE;
                let called = Called { name, kernel, purpose: "tensor", members: &members, elements: 1 << 18 };
                all[rank].collective(rank, &called, arrivals[rank], end)?;
                arrivals[rank] = end + 1_000.0 + 4_000.0 * random.unit();
            }
        }
        let members: Vec<usize> = (0..ranks).collect();
        if let Some(hot) = troubles.hot {
            let last = arrivals.iter().copied().fold(0.0, f64::max);
            for (rank, own) in all.iter_mut().enumerate() {
                let [name, kernel] = ALL_TO_ALL;
                let elements = (1 << 18) * (1 + u64::from(rank == hot)) + rank as u64;
                let called = Called { name, kernel, purpose: "experts", members: &members, elements };
                let end = last + PAIR_TRANSFER + 600.0 * random.unit();
                own.collective(rank, &called, arrivals[rank], end)?;
                arrivals[rank] = end + 1_000.0 + 4_000.0 * random.unit();
            }
        }
        let last = arrivals.iter().copied().fold(0.0, f64::max);
        for (rank, own) in all.iter_mut().enumerate() {
            let end = last + TRANSFER + 600.0 * random.unit();
            let [name, kernel] = ALL_REDUCE;
            let called = Called { name, kernel, purpose: "default_pg", members: &members, elements: 1 << 24 };
            own.collective(rank, &called, arrivals[rank], end)?;
            now[rank] = end + 5_000.0;
            let (start, end) = (own.seen(begin[rank]), own.seen(now[rank]));
            write!(
                own.file,
                ",\n{{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#{step}\",\"pid\":{rank},\"tid\":1,\"ts\":{start:.3},\
                 \"dur\":{:.3}}}",
                end - start
            )?;
        }
    }
    for (rank, mut own) in all.into_iter().enumerate() {
        own.file.write_all(b"\n]}\n")?;
        own.file.flush()?;
        if troubles.missing.contains(&rank) {
            std::fs::remove_file(folder.join(format!("rank{rank}.json")))?;
        }
    }
    Ok(())
}

impl Rank {
    /// Microseconds on the clock of the rank.
    fn seen(&self, time: f64) -> f64 {
        (time * (1.0 + self.drift) + self.ahead) / 1e3
    }

    /// A kernel and the call that launched it; `beside` are further arguments of the kernel.
    fn kernel(
        &mut self,
        rank: usize,
        name: &str,
        start: f64,
        length: f64,
        launch: f64,
        beside: &str,
    ) -> std::io::Result<()> {
        self.correlation += 1;
        let (number, at, called) = (self.correlation, self.seen(start), self.seen(launch.min(start)));
        write!(
            self.file,
            ",\n{{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"{name}\",\"pid\":0,\"tid\":7,\"ts\":{at:.3},\"dur\":{:.3},\"args\":{{\
             \"External id\":{number},\"device\":0,\"stream\":7,\"correlation\":{number}{beside}}}}},\n{{\"ph\":\"X\",\
             \"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":{rank},\"tid\":1,\"ts\":{called:.3},\"dur\":0.700,\
             \"args\":{{\"External id\":{number},\"correlation\":{number}}}}}",
            length / 1e3
        )
    }

    /// A collective of so many floats, with the operator that called it.
    fn collective(&mut self, rank: usize, called: &Called<'_>, start: f64, end: f64) -> std::io::Result<()> {
        let Called { name, kernel, purpose, members, elements } = *called;
        let mut list = String::new();
        for (place, member) in members.iter().enumerate() {
            let _ = write!(list, "{}{member}", if place > 0 { ", " } else { "" });
        }
        let number = self.correlation + 1;
        let (called, size) = (self.seen(start - 3_000.0), members.len());
        write!(
            self.file,
            ",\n{{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"record_param_comms\",\"pid\":{rank},\"tid\":1,\"ts\":{:.3},\"dur\":3.000,\
             \"args\":{{\"External id\":{number},\"Collective name\":\"{name}\",\"dtype\":\"Float\",\"In msg nelems\":{elements},\
             \"Out msg nelems\":{elements},\"Group size\":{size},\"Process Group Name\":\"{}\",\"Process Group Description\":\"{purpose}\",\
             \"Process Group Ranks\":\"[{list}]\"}}}}",
            called - 0.5,
            members[0]
        )?;
        self.kernel(rank, kernel, start, end - start, start - 3_000.0, "")
    }
}
