//! Tables of `nsys stats`, good and bad.

mod nsys_sums;

use llm_perf_ingest::nsys::stats::{self, KernelSum, StatsFile, StatsKind, StatsTable};
use nsys_sums::totals;
use proptest::prelude::*;
use types::{Failure, Nanos};

const KERNELS: &[u8] = include_bytes!("fixtures/nsys_stats/nsys-dsocr-cuda_gpu_kern_sum.csv");
const CALLS: &[u8] = include_bytes!("fixtures/nsys_stats/nsys-dsocr-cuda_api_sum.csv");
const RANGES: &[u8] = include_bytes!("fixtures/nsys_stats/nsys-dsocr-nvtx_pushpop_sum.csv");
const PROJECTIONS: &[u8] = include_bytes!("fixtures/nsys_stats/nsys-dsocr-nvtx_gpu_proj_sum.csv");

fn read(bytes: &[u8]) -> StatsFile {
    stats::read(bytes, "stats.csv").unwrap()
}

fn one(bytes: &[u8]) -> StatsTable {
    let StatsFile { mut tables, skipped, quality } = read(bytes);
    assert_eq!((tables.len(), skipped.len(), quality.len()), (1, 0, 0));
    tables.remove(0)
}

fn message(bytes: &[u8]) -> String {
    match stats::read(bytes, "stats.csv") {
        Ok(file) => format!("{} tables", file.tables.len()),
        Err(error) => format!("{error}\nhint: {}", error.hint().unwrap()),
    }
}

#[test]
fn totals_are_whole_nanoseconds_and_none_is_lost() {
    assert_eq!(totals(&one(KERNELS)), (116, 30_366_108, 8_154));
}

#[test]
fn rows_of_reports_that_are_not_used_are_counted() {
    let counted = [CALLS, RANGES, PROJECTIONS].map(|bytes| {
        let table = one(bytes);
        assert!(table.kernels.is_empty());
        (table.kind, table.rows)
    });
    assert_eq!(counted, [(StatsKind::Calls, 14), (StatsKind::Ranges, 7), (StatsKind::RangeProjections, 7)]);
}

#[test]
fn kernels_keep_their_full_names_and_numbers() {
    let rows = one(KERNELS).kernels;
    let first = KernelSum {
        name: "nvjet_sm90_tst_8x64_64x16_4x1_v_bz_TNN".into(),
        total: Nanos::new(4_000_603),
        count: 754,
        min: Some(Nanos::new(4_736)),
        max: Some(Nanos::new(6_080)),
    };
    assert_eq!(rows[0], first);
    assert!(rows[1].name.starts_with("void at::native::elementwise_kernel<(int)128, (int)4, void at::native::gpu_"));
    assert!(rows[1].name.ends_with(">(int, T3)"));
}

#[test]
fn older_spellings_and_other_units_give_the_same_nanoseconds() {
    let texts = [
        "Time(%),Total Time (ns),Instances,Average,Minimum,Maximum,Name\n100.0,4000603,754,5305.8,4736,6080,k\n",
        "\"Time(%)\",\"Total Time\",\"Instances\",\"Average\",\"Minimum\",\"Maximum\",\"Name\"\n\"100.0\",\"4,000,603\",\"754\",\"5305.8\",\"4736\",\"6080\",\"k\"\n",
        "Time (%),Total Time (us),Instances,Avg (us),Min (us),Max (us),Name\n100.0,4000.603,754,5.3058,4.736,6.080,k\n",
    ];
    for text in texts {
        assert_eq!(totals(&one(text.as_bytes())), (1, 4_000_603, 754), "{text}");
    }
}

#[test]
fn times_that_the_tool_rounded_are_counted() {
    let file = read(b"Time (%),Total Time (ms),Instances,Name\n100.0,4.0006034,754,k\n");
    assert_eq!(file.tables[0].kernels[0].total, Nanos::new(4_000_603));
    assert_eq!((file.quality[0].counter.as_str(), file.quality[0].value), ("nsys_stats_times_rounded", 1));
}

#[test]
fn several_reports_in_one_output_are_all_read() {
    let text = format!(
        "Generating SQLite file x.sqlite\n\nProcessing [/home/u/x.sqlite] with [cuda_gpu_kern_sum.py]... \n{}\n\
         Processing [/home/u/x.sqlite] with [cuda_gpu_mem_time_sum.py]... \n\
         Time (%),Total Time (ns),Count,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Operation\n\
         100.0,10,2,5.0,5.0,4,6,1.4,[CUDA memcpy Host-to-Device]\n\n\
         Processing [/home/u/x.sqlite] with [cuda_gpu_mem_size_sum.py]... \n\
         Total (MB),Count,Avg (MB),Med (MB),Min (MB),Max (MB),StdDev (MB),Operation\n\
         161.821,2,80.9,80.9,0.001,161.820,1.0,[CUDA memcpy Host-to-Device]\n\n\
         SKIPPED: /home/u/x.sqlite does not contain NV Tools Extension (NVTX) data.\n",
        String::from_utf8_lossy(KERNELS),
    );
    let file = read(text.as_bytes());
    let lengths: Vec<u64> = file.tables.iter().map(|table| table.rows).collect();
    assert_eq!((lengths, file.quality.len()), (vec![116, 1, 1], 0));
    assert_eq!(file.skipped, ["NV Tools Extension (NVTX) data"]);
}

#[test]
fn reports_are_known_by_their_first_bytes() {
    let heads = [KERNELS, CALLS, RANGES, PROJECTIONS, b"ID,Name\n", b""].map(|bytes| &bytes[..bytes.len().min(512)]);
    let kinds = [StatsKind::Kernels, StatsKind::Calls, StatsKind::Ranges, StatsKind::RangeProjections];
    assert_eq!(heads.map(stats::sniff)[..4], kinds.map(Some));
    assert_eq!((stats::sniff(heads[4]), stats::sniff(heads[5])), (None, None));
}

#[test]
fn what_is_no_report_is_refused_with_what_is_there() {
    let printed = " ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):\n\n Time (%)  Total Time (ns)  Instances  Name\n";
    let cases: [(&str, &[u8]); 7] = [
        ("empty", b""),
        ("garbage", b"SQLite format 3\0\x10\0\x01\x01"),
        ("json", b"{\"traceEvents\": []}"),
        ("printed", printed.as_bytes()),
        ("unknown report", b"Time (%),Total Time (ns),Instances,Category,Operation\n1,2,3,a,b\n"),
        ("cut header", &KERNELS[..70]),
        ("only skipped", b"SKIPPED: x.sqlite does not contain CUDA kernel data.\n"),
    ];
    let messages: Vec<String> = cases.iter().map(|(name, bytes)| format!("{name}: {}", message(bytes))).collect();
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn a_table_cut_at_any_byte_loses_rows_only_with_a_counter() {
    for table in [CALLS, RANGES, PROJECTIONS] {
        let first_row = table.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        for end in 0..table.len() {
            let outcome = stats::read(&table[..end], "stats.csv");
            let found = outcome.ok().map(|file| {
                let read = file.tables.iter().map(|table| table.rows).sum::<u64>();
                read + file.quality.iter().map(|counter| counter.value).sum::<u64>()
            });
            let begun = String::from_utf8_lossy(&table[first_row.min(end)..end]).lines().count() as u64;
            assert_eq!(found, (end >= first_row).then_some(begun), "cut at byte {end}");
        }
    }
}

#[test]
fn rows_that_cannot_be_read_are_counted() {
    let file = read(b"Time (%),Total Time (ns),Instances,Name\n50,x,1,a\n50,10,1,b\n50,10\n50,10,-1,c\n");
    assert_eq!(file.tables[0].rows, 1);
    let counter = &file.quality[0];
    assert_eq!((counter.counter.as_str(), counter.value, counter.share), ("nsys_stats_rows_unreadable", 3, Some(0.75)));
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = stats::read(&bytes[..], "stats.csv");
        let _ = stats::sniff(&bytes);
    }

    #[test]
    fn damage_anywhere_never_makes_the_reader_panic(
        at in 0..PROJECTIONS.len(), with in proptest::collection::vec(any::<u8>(), 0..8),
    ) {
        let damaged = [&PROJECTIONS[..at], &with, &PROJECTIONS[at..]].concat();
        let _ = stats::read(&damaged[..], "stats.csv");
    }
}
