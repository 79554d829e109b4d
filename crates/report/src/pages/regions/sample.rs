//! A region report with everything in it, for tests.

use std::collections::BTreeMap;

use types::{
    Bytes, BytesPerSecond, DeviceId, Flops, FlopsPerSecond, IncludeRecord, KernelPatterns, MetricRule, ModelledRegion,
    Nanos, Origin, OutsideRegions, QualityCounter, Region, RegionCapture, RegionKernel, RegionPart, RegionReport,
    RegionRoofline, RegionSection, RegionSelection, RegionStyle, RegionTotals, ReplayMode, RollUp, RolledValue,
    SchemaTag, SectionValue, Severity,
};

fn region_totals(kernels: [u64; 2], times: [i64; 2], bytes: f64) -> RegionTotals {
    let rolled = |inclusive: f64, exclusive: f64| RolledValue {
        inclusive: Some(inclusive),
        exclusive: Some(exclusive),
        missing: 0,
    };
    RegionTotals {
        instances: 2,
        instances_exact: false,
        instance_ns: None,
        kernels_inclusive: Some(kernels[0]),
        kernels_exclusive: Some(kernels[1]),
        total_ns_inclusive: Some(Nanos::new(times[0])),
        total_ns_exclusive: Some(Nanos::new(times[1])),
        metrics: BTreeMap::from([
            ("dram__bytes.sum".to_owned(), rolled(bytes, bytes / 2.0)),
            ("sm__throughput.avg.pct_of_peak_sustained_elapsed".to_owned(), rolled(36.5, 30.25)),
        ]),
        sections: Vec::new(),
        kernels: vec![RegionKernel {
            name: "void at::native::vectorized_elementwise_kernel<4>(int)".to_owned(),
            short_name: "elementwise".to_owned(),
            device: Some(DeviceId::cuda(0)),
            calls: kernels[0],
            total_ns: Some(Nanos::new(times[0])),
            mean_ns: Some(Nanos::new(times[0] / kernels[0] as i64)),
        }],
    }
}

fn part(totals: RegionTotals) -> RegionPart {
    RegionPart { process: Some(467), device: Some(DeviceId::cuda(0)), thread: Some(467), totals }
}

fn region(segments: &[&str], parent: Option<&str>, folder: &str, found: RegionTotals) -> Region {
    Region {
        path: segments.join("::"),
        domain: None,
        segments: segments.iter().map(|name| (*name).to_owned()).collect(),
        style: RegionStyle::PushPop,
        parent: parent.map(str::to_owned),
        folder: folder.to_owned(),
        selection: KernelPatterns {
            include_patterns: vec!["regex:elementwise".to_owned()],
            exclude_patterns: vec!["copy".to_owned()],
            kernels_left_out: 3,
        },
        aggregate: Some(found.clone()),
        parts: vec![part(found)],
        roofline: None,
        modelled: None,
    }
}

/// A report with a region inside another.
pub(crate) fn report() -> RegionReport {
    let mut outer = region_totals([114, 74], [2_089_536, 1_331_936], 3e9);
    outer.sections = vec![RegionSection {
        id: Some("SpeedOfLight".to_owned()),
        title: "GPU Speed Of Light Throughput".to_owned(),
        metrics: vec![
            SectionValue {
                name: "Duration".to_owned(),
                unit: "ns".to_owned(),
                rule: RollUp::Sum,
                value: Some(2_089_536.0),
            },
            SectionValue {
                name: "Memory Throughput".to_owned(),
                unit: "%".to_owned(),
                rule: RollUp::TimeWeightedMean,
                value: None,
            },
        ],
    }];
    let mut outer = region(&["A"], None, "A", outer);
    outer.roofline = Some(RegionRoofline {
        flops_vector: Some(Flops::new(1_000_000_000)),
        flops_matrix: Some(Flops::new(5_000_000_000)),
        dram_bytes: Bytes::new(3_000_000_000),
        time_ns: Nanos::new(2_089_536),
        flops_per_byte: Some(2.0),
        flops_per_second: Some(FlopsPerSecond::new(2.87e12)),
        bytes_per_second: BytesPerSecond::new(1.43e12),
        bandwidth_share: Some(0.299),
        compute_share: Some(0.01),
        bound: Some("memory".to_owned()),
        least_ns: Some(Nanos::new(625_000)),
        origin: Origin::Counted,
    });
    outer.modelled = Some(ModelledRegion {
        module: "layer1".to_owned(),
        class: "BasicBlock".to_owned(),
        flops_matrix: Flops::new(2_400_000_000),
        flops_vector: Flops::new(100_000_000),
        bytes: Bytes::new(1_200_000_000),
        least_ns: Some(Nanos::new(250_000)),
    });
    let inner = region(&["A", "A1"], Some("A"), "A+A1", region_totals([40, 40], [757_600, 757_600], 1e9));
    RegionReport {
        schema: SchemaTag::new(),
        run: "20260101-000000".to_owned(),
        tool: "Nsight Compute 2025.3.1.0".to_owned(),
        replay_mode: ReplayMode::Kernel,
        target: "python3 model.py".to_owned(),
        device: Some("NVIDIA H200".to_owned()),
        generated_at: "2026-01-01T00:00:00.000+00:00".to_owned(),
        config_fingerprint: "0".repeat(64),
        scope: RegionReport::AGGREGATE.to_owned(),
        selection: RegionSelection {
            include: vec![IncludeRecord {
                expression: "A".to_owned(),
                profiler: vec!["A/".to_owned()],
                matched: vec!["A".to_owned()],
            }],
            kernel_name: Some("regex:elementwise".to_owned()),
            kernel_name_base: "function".to_owned(),
            kernel_exclude: vec!["copy".to_owned()],
            kernels_left_out: 3,
            set: None,
            sections: vec!["SpeedOfLight".to_owned()],
            metrics: vec!["dram__bytes.sum".to_owned()],
            aggregate: true,
        },
        captures: vec![RegionCapture {
            purpose: "capture".to_owned(),
            include: vec!["A/".to_owned()],
            command: vec!["ncu".to_owned(), "--nvtx-include".to_owned(), "A/".to_owned()],
            results: 114,
            messages: vec!["Note: Running with unmodified GPU clocks.".to_owned()],
        }],
        metrics: vec![
            MetricRule { name: "dram__bytes.sum".to_owned(), unit: Some("byte".to_owned()), rule: RollUp::Sum },
            MetricRule {
                name: "sm__throughput.avg.pct_of_peak_sustained_elapsed".to_owned(),
                unit: Some("%".to_owned()),
                rule: RollUp::TimeWeightedMean,
            },
        ],
        totals: outer.aggregate.clone(),
        regions: vec![outer, inner],
        outside: Some(OutsideRegions {
            kernels: 12,
            kernels_share: 0.0952,
            total_ns: Some(Nanos::new(100_000)),
            time_share: Some(0.0457),
        }),
        notes: Vec::new(),
        quality: vec![QualityCounter {
            quantities: Default::default(),
            counter: "region_metrics_not_counted".to_owned(),
            value: 1,
            share: None,
            severity: Severity::Warning,
            remedy: "this device does not count it".to_owned(),
        }],
    }
}

/// A report of a run that matched nothing.
pub(super) fn empty() -> RegionReport {
    let mut report = report();
    report.regions.clear();
    report.totals = None;
    report.outside = None;
    report.quality.clear();
    report.captures[0].results = 0;
    report.selection.include[0].matched.clear();
    report.notes = vec!["no matching regions: no kernel ran inside a range that `A` names".into()];
    report
}
