//! Regions of real captures, and of works that show one rule each.

use std::io::Read;
use std::sync::Arc;

use ingest::ncu::{self, NcuFile};
use llm_perf_analysis::region::{
    Include, KernelSelection, RegionCapture, RegionInputs, RegionSettings, RolledRegion, RolledRegions, TIME, roll_up,
};
use types::counter::{CounterTable, CounterUnit, OpenRange, ProfiledKind, ProfiledWork};
use types::{Nanos, RegionStyle, RollUp};

fn page(bytes: &[u8]) -> CounterTable {
    match ncu::read(bytes, "page.csv") {
        Ok(NcuFile::Raw(page)) => page.table,
        other => panic!("not a raw page: {other:?}"),
    }
}

fn unpacked(name: &str) -> Vec<u8> {
    let path = format!("{}/../ingest/tests/fixtures/ncu/{name}", env!("CARGO_MANIFEST_DIR"));
    let stored = std::fs::read(path).unwrap();
    let mut bytes = Vec::new();
    match name.strip_suffix(".gz") {
        Some(_) => flate2::read::GzDecoder::new(&stored[..]).read_to_end(&mut bytes).unwrap(),
        None => stored.as_slice().read_to_end(&mut bytes).unwrap(),
    };
    bytes
}

fn fixture(name: &str) -> CounterTable {
    page(&unpacked(name))
}

struct Asked {
    include: Vec<Include>,
    exclude: Vec<Include>,
    kernels: KernelSelection,
    metrics: Vec<String>,
    aggregate: bool,
}

impl Default for Asked {
    fn default() -> Self {
        let metrics = vec![TIME.to_owned(), "dram__bytes.sum".to_owned()];
        Self { include: Vec::new(), exclude: Vec::new(), kernels: KernelSelection::default(), metrics, aggregate: true }
    }
}

impl Asked {
    fn roll(&self, tables: &[&CounterTable], survey: Option<&CounterTable>) -> RolledRegions {
        let captures = tables.iter().map(|table| RegionCapture { table, details: &[], include: &[] }).collect();
        let settings = RegionSettings {
            include: &self.include,
            exclude: &self.exclude,
            kernels: &self.kernels,
            metrics: &self.metrics,
            sections: &[],
            aggregate: self.aggregate,
            hardware: None,
        };
        roll_up(&RegionInputs { captures, survey }, &settings)
    }
}

fn kernels(rolled: &RolledRegions) -> Vec<(&str, Option<u64>, Option<u64>)> {
    let totals = |region: &RolledRegion| region.region.aggregate.clone().unwrap();
    rolled
        .regions
        .iter()
        .map(|region| {
            let totals = totals(region);
            (region.region.path.as_str(), totals.kernels_inclusive, totals.kernels_exclusive)
        })
        .collect()
}

#[test]
fn the_kernels_of_a_real_replay_are_where_nvtx_put_them() {
    let table = fixture("ncu-kernel-replay-raw.csv.gz");
    let rolled = Asked::default().roll(&[&table], None);
    assert_eq!(kernels(&rolled), [("A", Some(114), Some(74)), ("A::A1", Some(40), Some(40))]);
    let totals = |place: usize| rolled.regions[place].region.aggregate.as_ref().unwrap();
    let (outer, inner) = (totals(0), totals(1));
    // Summed apart from the same file: 1,331.936 us in A itself and 757.600 us in A1.
    assert_eq!(outer.total_ns_exclusive, Some(Nanos::new(1_331_936)));
    assert_eq!(inner.total_ns_inclusive, Some(Nanos::new(757_600)));
    assert_eq!(outer.total_ns_inclusive, Some(Nanos::new(2_089_536)));
    // A1 is left for A and entered again; A itself is never seen to be left.
    assert_eq!((outer.instances, inner.instances, inner.instances_exact), (1, 2, false));
    let time = &outer.metrics[TIME];
    assert_eq!((time.inclusive, time.exclusive, time.missing), (Some(2_089_536.0), Some(1_331_936.0), 0));
    // This capture has no counter of bytes.
    assert_eq!((outer.metrics["dram__bytes.sum"].inclusive, outer.metrics["dram__bytes.sum"].missing), (None, 114));
    assert_eq!(rolled.quality[0].counter, "region_metrics_not_counted");
    assert_eq!(rolled.regions[1].region.parent.as_deref(), Some("A"));
    let outside = rolled.outside.unwrap();
    assert_eq!((outside.kernels, outside.time_share), (0, Some(0.0)));
    assert_eq!(outer.kernels.iter().map(|kernel| kernel.calls).sum::<u64>(), 114);
}

#[test]
fn a_time_weighted_mean_of_a_real_replay_is_what_it_says() {
    let table = fixture("ncu-kernel-replay-raw.csv.gz");
    let name = "sm__warps_active.avg.pct_of_peak_sustained_active";
    let asked = Asked { metrics: vec![name.to_owned()], ..Asked::default() };
    let rolled = asked.roll(&[&table], None);
    assert_eq!((rolled.metrics[0].rule, rolled.metrics[0].unit.as_deref()), (RollUp::TimeWeightedMean, Some("%")));
    let (mut weighted, mut weight) = (0.0, 0.0);
    for row in 0..table.work.len() {
        let (value, time) = (table.number(row, name).unwrap(), table.number(row, TIME).unwrap());
        (weighted, weight) = (weighted + value * time, weight + time);
    }
    let found = rolled.regions[0].region.aggregate.as_ref().unwrap().metrics[name].inclusive.unwrap();
    assert!((found - weighted / weight).abs() < 1e-9, "{found}");
    assert!((0.0..=100.0).contains(&found));
}

#[test]
fn replayed_ranges_are_instances_and_survey_and_captures_go_together() {
    let ranges = [fixture("ncu-range-replay-raw.csv"), fixture("ncu-range-nested-raw.csv")];
    let survey = fixture("ncu-kernel-replay-raw.csv.gz");
    let rolled = Asked::default().roll(&[&ranges[0], &ranges[1]], Some(&survey));
    let totals = |path: &str| {
        let found = rolled.regions.iter().find(|region| region.region.path == path).unwrap();
        found.region.aggregate.as_ref().unwrap()
    };
    let (outer, inner) = (totals("A"), totals("A::A1"));
    assert_eq!((outer.instances, outer.instances_exact, totals("B").instances), (2, true, 2));
    let times = inner.instance_ns.unwrap();
    assert!(times.min_ns <= times.mean_ns && times.mean_ns <= times.max_ns);
    assert_eq!((outer.kernels_inclusive, inner.kernels_inclusive), (Some(114), Some(40)));
    // What is A's own is what A has without A1.
    let bytes = |totals: &types::RegionTotals| totals.metrics["dram__bytes.sum"].clone();
    let own = bytes(outer).exclusive.unwrap();
    assert!((own + bytes(inner).inclusive.unwrap() - bytes(outer).inclusive.unwrap()).abs() < 1.0);
    // Nothing is nested in A1, so that all of it is its own.
    assert_eq!((bytes(inner).exclusive, inner.total_ns_exclusive), (bytes(inner).inclusive, inner.total_ns_inclusive));
    let rates = rolled.regions[0].region.roofline.as_ref().unwrap();
    assert!(rates.bytes_per_second.get() > 1e11 && rates.bandwidth_share.is_none());
}

#[test]
fn without_a_survey_what_is_a_ranges_own_is_not_known() {
    let table = fixture("ncu-range-replay-raw.csv");
    let rolled = Asked::default().roll(&[&table], None);
    let outer = rolled.regions[0].region.aggregate.as_ref().unwrap();
    assert_eq!((outer.total_ns_exclusive, outer.kernels_inclusive), (None, None));
    assert!(outer.total_ns_inclusive.is_some() && rolled.outside.is_none());
}

/// A page of kernels: process, device, ranges outermost first as `thread:[domain@]name`, name, time.
fn works(rows: &[(u32, u32, &[&str], &str, f64)]) -> CounterTable {
    let mut table = CounterTable::default();
    let time = table.add_column(TIME, CounterUnit::Nanoseconds, "ns");
    let open = |text: &&str| {
        let (thread, name) = text.split_once(':').unwrap();
        let (domain, name) = name.split_once('@').map_or((None, name), |(domain, name)| (Some(domain), name));
        OpenRange { owner: thread.parse().ok(), domain: domain.map(Arc::from), name: name.into() }
    };
    for (row, (process, device, ranges, name, took)) in rows.iter().enumerate() {
        table.work.push(ProfiledWork {
            id: row as u64,
            kind: ProfiledKind::Kernel,
            name: (*name).into(),
            process: Some(*process),
            process_name: None,
            device: Some(*device),
            compute_capability: None,
            context: None,
            stream: None,
            grid: None,
            block: None,
            pushed: ranges.iter().map(open).collect(),
            started: Arc::from([]),
        });
        table.column_mut(time).set_number(row, *took);
    }
    table
}

#[test]
fn processes_devices_and_threads_stand_apart_and_add_up() {
    let table = works(&[
        (7, 0, &["1:A"], "f", 10.0),
        (7, 0, &["2:A", "2:B"], "f", 20.0),
        (7, 1, &["1:A"], "g", 30.0),
        (8, 0, &["1:A"], "g", 40.0),
        (8, 0, &[], "h", 100.0),
    ]);
    let rolled = Asked::default().roll(&[&table], None);
    let region = &rolled.regions[0].region;
    let parts: Vec<_> = region
        .parts
        .iter()
        .map(|part| {
            let device = part.device.as_ref().unwrap().as_str();
            (part.process.unwrap(), device, part.thread.unwrap(), part.totals.total_ns_inclusive.unwrap().get())
        })
        .collect();
    assert_eq!(parts, [(7, "cuda:0", 1, 10), (7, "cuda:0", 2, 20), (7, "cuda:1", 1, 30), (8, "cuda:0", 1, 40)]);
    assert_eq!(region.aggregate.as_ref().unwrap().total_ns_inclusive, Some(Nanos::new(100)));
    let outside = rolled.outside.unwrap();
    assert_eq!((outside.kernels, outside.kernels_share, outside.time_share), (1, 0.2, Some(0.5)));

    let apart = Asked { aggregate: false, ..Asked::default() }.roll(&[&table], None);
    assert!(apart.regions.iter().all(|region| region.region.aggregate.is_none() && !region.region.parts.is_empty()));
}

#[test]
fn only_what_is_included_is_reported_and_what_is_around_it_is_not() {
    let table = works(&[
        (7, 0, &["1:A"], "f", 10.0),
        (7, 0, &["1:A", "1:A1"], "f", 20.0),
        (7, 0, &["1:A", "1:A1", "1:A2"], "f", 5.0),
        (7, 0, &["1:B"], "f", 30.0),
        (7, 0, &["1:LLM@prefill"], "f", 40.0),
    ]);
    let of = |text: &str| {
        let asked = Asked { include: vec![Include::new(text)], ..Asked::default() };
        let rolled = asked.roll(&[&table], None);
        let paths: Vec<String> = rolled.regions.iter().map(|region| region.region.path.clone()).collect();
        (paths, rolled.matched[0].clone(), rolled.outside.unwrap().kernels)
    };
    let texts = |list: &[&str]| -> Vec<String> { list.iter().map(|text| (*text).to_owned()).collect() };
    assert_eq!(of("A"), (texts(&["A", "A::A1", "A::A1::A2"]), texts(&["A"]), 2));
    assert_eq!(of("A::A1"), (texts(&["A::A1", "A::A1::A2"]), texts(&["A::A1"]), 3));
    assert_eq!(of("LLM@prefill"), (texts(&["LLM@prefill"]), texts(&["LLM@prefill"]), 4));
    assert_eq!(of("decode*"), (texts(&[]), texts(&[]), 5));
}

#[test]
fn a_region_left_out_is_left_out_with_all_that_is_inside() {
    let table =
        works(&[(7, 0, &["1:A"], "f", 10.0), (7, 0, &["1:A", "1:A1", "1:A2"], "f", 5.0), (7, 0, &["1:B"], "f", 30.0)]);
    let asked = Asked { exclude: vec![Include::new("A/A1/")], ..Asked::default() };
    let paths: Vec<String> =
        asked.roll(&[&table], None).regions.iter().map(|region| region.region.path.clone()).collect();
    assert_eq!(paths, ["A", "B"]);
}

#[test]
fn a_region_whose_kernels_are_all_left_out_is_there_and_empty() {
    let table = works(&[(7, 0, &["1:A"], "gemm", 10.0), (7, 0, &["1:A"], "copy", 5.0), (7, 0, &["1:B"], "copy", 7.0)]);
    let exclude = vec!["regex:copy".to_owned()];
    let kernels_kept = KernelSelection::new(types::KernelNameBase::Function, None, &exclude).unwrap();
    let rolled = Asked { kernels: kernels_kept, ..Asked::default() }.roll(&[&table], None);
    assert_eq!(kernels(&rolled), [("A", Some(1), Some(1)), ("B", Some(0), Some(0))]);
    assert_eq!(rolled.kernels_left_out, 2);
    assert_eq!(rolled.regions[1].region.aggregate.as_ref().unwrap().metrics[TIME].inclusive, None);
    assert!(rolled.regions[1].members.is_empty());
}

#[test]
fn entries_are_only_counted_where_they_are_seen() {
    let one = works(&[
        (7, 0, &["1:A"], "f", 1.0),
        (7, 0, &["1:A"], "f", 1.0),
        (7, 0, &[], "f", 1.0),
        (7, 0, &["1:A"], "f", 1.0),
    ]);
    let entered = |table: &CounterTable| {
        let rolled = Asked::default().roll(&[table], None);
        rolled.regions[0].region.aggregate.as_ref().unwrap().instances
    };
    assert_eq!(entered(&one), 2);
    // With two threads, a kernel without ranges may be of the other one.
    let two = works(&[
        (7, 0, &["1:A"], "f", 1.0),
        (7, 0, &["2:B"], "f", 1.0),
        (7, 0, &[], "f", 1.0),
        (7, 0, &["1:A"], "f", 1.0),
    ]);
    assert_eq!(entered(&two), 1);
}

#[test]
fn start_end_ranges_are_regions_of_their_own() {
    let mut table = works(&[(7, 0, &["1:A"], "f", 1.0)]);
    table.work[0].started = Arc::from([OpenRange { owner: Some(3), domain: None, name: "A".into() }]);
    let rolled = Asked::default().roll(&[&table], None);
    let found: Vec<_> =
        rolled.regions.iter().map(|region| (region.region.style, region.region.folder.as_str())).collect();
    assert_eq!(found, [(RegionStyle::PushPop, "A"), (RegionStyle::StartEnd, "A%start-end")]);
}

/// The roofline capture has no ranges; here its kernels are put into two.
fn with_ranges() -> (CounterTable, Vec<types::counter::DetailedWork>) {
    let mut table = fixture("ncu-dsocr-roofline-raw.csv.gz");
    let Ok(NcuFile::Details(details)) = ncu::read(&unpacked("ncu-dsocr-roofline-details.csv.gz")[..], "details.csv")
    else {
        panic!("a details page");
    };
    for (row, work) in table.work.iter_mut().enumerate() {
        let name = if row == 0 { "first" } else { "others" };
        work.pushed = Arc::from([OpenRange { owner: Some(1), domain: None, name: name.into() }]);
    }
    (table, details.works)
}

#[test]
fn sections_are_rolled_up_and_only_those_asked_for() {
    let (table, details) = with_ranges();
    let kernels = KernelSelection::default();
    let roll = |sections: &[String]| {
        let settings = RegionSettings {
            include: &[],
            exclude: &[],
            kernels: &kernels,
            metrics: &[],
            sections,
            aggregate: true,
            hardware: None,
        };
        let captures = vec![RegionCapture { table: &table, details: &details, include: &[] }];
        roll_up(&RegionInputs { captures, survey: None }, &settings)
    };
    let rolled = roll(&["SpeedOfLight".to_owned()]);
    let totals = rolled.regions[1].region.aggregate.as_ref().unwrap();
    let ids: Vec<_> = totals.sections.iter().map(|section| section.id.as_deref()).collect();
    assert_eq!(ids, [Some("SpeedOfLight")]);
    let value = |name: &str, unit: &str| {
        let metrics = &totals.sections[0].metrics;
        let found = metrics.iter().find(|metric| metric.name == name && metric.unit == unit).unwrap();
        (found.rule, found.value.unwrap())
    };
    let (rule, duration) = value("Duration", "ns");
    // Seven durations, each rounded to ten nanoseconds.
    let exact = totals.total_ns_inclusive.unwrap().get() as f64;
    assert!(rule == RollUp::Sum && (duration - exact).abs() <= 35.0, "{duration} {exact}");
    let (rule, share) = value("Memory Throughput", "%");
    assert!(rule == RollUp::TimeWeightedMean && (0.0..=100.0).contains(&share));
    assert_eq!(roll(&["Occupancy".to_owned()]).regions[0].region.aggregate.as_ref().unwrap().sections, []);
    assert!(roll(&[]).regions[0].region.aggregate.as_ref().unwrap().sections.len() > 5);
}

#[test]
fn operations_are_counted_as_executed_and_bytes_from_their_rate() {
    let (table, _) = with_ranges();
    let rolled = Asked::default().roll(&[&table], None);
    let counted = rolled.regions[0].region.roofline.as_ref().unwrap();
    // By the rates of the page times 11,889.95 cycles: 9,158,656 fused multiply-adds, 540,672 adds, 4,325,376 multiplies,
    // 811,008 fused multiply-adds of packed halves.
    let by_hand: f64 = 2.0 * 9_158_656.0 + 540_672.0 + 4_325_376.0 + 4.0 * 811_008.0;
    let found = counted.flops_vector.unwrap().as_f64();
    assert!((found - by_hand).abs() < 20.0, "{found} {by_hand}");
    // 1.708333 GB/s for 6,144 ns.
    assert_eq!((counted.dram_bytes.get(), counted.time_ns), (10_496, Nanos::new(6_144)));
    assert_eq!((counted.bound.as_deref(), counted.bandwidth_share), (None, None), "the device is not named here");
}
