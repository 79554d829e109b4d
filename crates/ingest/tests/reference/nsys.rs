//! Exports and tables of nsys.

use std::collections::BTreeMap;

use llm_perf_ingest::nsys::sqlite::read;
use llm_perf_ingest::nsys::stats::{self, StatsFile};
use testkit::need::reference;

use crate::nsys_sums::{assert_calls, assert_private, kernel_sums, nvidia, push_pop_sums, totals};

pub(crate) fn another_version_on_another_device_sums_up_to_what_nsys_prints() {
    let folder = reference("third-party/nsys-t4");
    let bytes = std::fs::read(folder.join("power_iteration__baseline.sqlite")).unwrap();
    let timeline = read("power_iteration__baseline.sqlite", &bytes).unwrap();
    let table =
        |name: &str| std::fs::read_to_string(folder.join(format!("power_iteration__baseline_{name}.csv"))).unwrap();
    assert_eq!(kernel_sums(&timeline), nvidia(&table("cuda_gpu_kern_sum")));
    // This version prints a registered text of the default domain without a colon.
    let spelled = |domain: &str, range: &str| match domain {
        "" => range.to_owned(),
        _ => format!("{domain}:{range}"),
    };
    assert_eq!(push_pop_sums(&timeline, spelled), nvidia(&table("nvtx_pushpop_sum")));
    assert_calls(&timeline, &table("cuda_api_sum"));
    assert_eq!(timeline.tool.as_deref(), Some("nsys 2025.3.1.90"));
    assert_private(&timeline, &["/content", "94b8b7b3215f"]);
}

pub(crate) fn operators_of_a_strangers_export_have_no_numbers_in_their_names() {
    let bytes = std::fs::read(reference("third-party/traces/h100-2gpu-copies.sqlite")).unwrap();
    let timeline = read("h100-2gpu-copies.sqlite", &bytes).unwrap();
    let mut calls: BTreeMap<&str, u64> = BTreeMap::new();
    for operator in &timeline.operators {
        *calls.entry(timeline.name(operator.name)).or_default() += 1;
    }
    // Counted with SQL over the texts before the comma.
    let expected = [("aten::as_strided", 2_200), ("aten::mm", 280), ("aten::bmm", 108), ("aten::copy_", 1_184)];
    assert_eq!(expected.map(|(name, _)| (name, calls[name])), expected);
    assert!(calls.keys().all(|name| !name.contains("op_id")));
    assert!(timeline.ranges.iter().all(|range| !timeline.name(range.name).contains("op_id")));
}

fn assert_kernels(path: &str, expected: (usize, i64, u64)) {
    let bytes = std::fs::read(reference(path)).unwrap();
    let StatsFile { tables, skipped, quality } = stats::read(&bytes[..], "stats.csv").unwrap();
    assert_eq!((tables.len(), skipped.len(), quality.len()), (1, 0, 0));
    assert_eq!(totals(&tables[0]), expected, "{path}");
}

pub(crate) fn a_table_of_a_t4_is_read() {
    let path = "third-party/nsys-t4/power_iteration__baseline_cuda_gpu_kern_sum.csv";
    assert_kernels(path, (10, 1_131_742_684, 3_689));
}

pub(crate) fn a_table_of_an_rtx_5090_is_read() {
    assert_kernels("third-party/nsys-rtx5090/rtx5090-dsocr-decode-cuda_gpu_kern_sum.csv", (46, 179_072_697, 78_016));
}
