//! Pages and logs of Nsight Compute, good and bad.

use std::collections::BTreeMap;
use std::io::Read;

use llm_perf_ingest::IngestError;
use llm_perf_ingest::ncu::{self, DetailsPage, MessageLevel, NcuFile, NcuKind, RawPage};
use proptest::prelude::*;
use types::Failure;
use types::counter::{CounterUnit, CounterValue, ProfiledKind, RuleKind, SpeedupScope};

const KERNEL_REPLAY: &[u8] = include_bytes!("fixtures/ncu/ncu-kernel-replay-raw.csv.gz");
const RANGE_REPLAY: &[u8] = include_bytes!("fixtures/ncu/ncu-range-replay-raw.csv");
const RANGE_NESTED: &[u8] = include_bytes!("fixtures/ncu/ncu-range-nested-raw.csv");
const ROOFLINE_RAW: &[u8] = include_bytes!("fixtures/ncu/ncu-dsocr-roofline-raw.csv.gz");
const ROOFLINE_DETAILS: &[u8] = include_bytes!("fixtures/ncu/ncu-dsocr-roofline-details.csv.gz");
const NO_RANGE: &[u8] = include_bytes!("fixtures/ncu/ncu-no-range.log");

/// A page with what real ones have: a log before it, units, ranges, a text, a missing value, instances.
const SMALL_RAW: &str = concat!(
    "==PROF== Connected to process 7 (/opt/program)\n",
    "step 1 took \"long\", loss 0.5\n",
    "==WARNING== Note: Running with unmodified GPU clocks.\n",
    "\"ID\",\"Process ID\",\"Process Name\",\"thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg\",",
    "\"Kernel Name\",\"Context\",\"Stream\",\"Block Size\",\"Grid Size\",\"Device\",\"CC\",\"dram__bytes.sum\",\"note\",\"inst\"\n",
    "\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"Mbyte\",\"\",\"\"\n",
    "\"0\",\"7\",\"/opt/program\",\"7  \"\"LLM:prefill:none:none:none:none:none:none\"\" \",",
    "\"void f<int, 2>(int)\",\"1\",\"7\",\"(32, 4, 1)\",\"(224, 1, 1)\",\"0\",\"12.0\",\"1,234.5\",\"all\",\"3 (1; 2)\"\n",
    "\"1\",\"8\",\"program\",\"\",\"g\",\"1\",\"13\",\"(1, 1, 1)\",\"(1, 1, 1)\",\"1\",\"9.0\",\"n/a\",\"\",\"0\"\n",
);

const SMALL_DETAILS: &str = concat!(
    "\"ID\",\"Process ID\",\"Process Name\",\"Host Name\",\"Kernel Name\",\"Context\",\"Stream\",\"Block Size\",\"Grid Size\",",
    "\"Device\",\"CC\",\"Section Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\",\"Rule Name\",\"Rule Type\",",
    "\"Rule Description\",\"Estimated Speedup Type\",\"Estimated Speedup\"\n",
    "\"0\",\"7\",\"p\",\"h\",\"f\",\"1\",\"7\",\"(1, 1, 1)\",\"(2, 1, 1)\",\"0\",\"12.0\",\"Top\",\"Duration\",\"us\",\"2.43\",\n",
    "\"0\",\"7\",\"p\",\"h\",\"f\",\"1\",\"7\",\"(1, 1, 1)\",\"(2, 1, 1)\",\"0\",\"12.0\",\"Top\",\"flop_count_sp.sum\",\"\",\"n/a\",\n",
    "\"0\",\"7\",\"p\",\"h\",\"f\",\"1\",\"7\",\"(1, 1, 1)\",\"(2, 1, 1)\",\"0\",\"12.0\",\"TopId\",\"\",\"\",\"\",\"Rule\",\"OPT\",\"Do \"\"x\"\", then y.\",\"local\",\"80.34\"\n",
    "\"0\",\"8\",\"p\",\"h\",\"g\",\"1\",\"7\",\"(1, 1, 1)\",\"(2, 1, 1)\",\"1\",\"9.0\",\"Top\",\"Duration\",\"ms\",\"1,000\",\n",
    "\"0\",\"7\",\"p\",\"h\",\"f\",\"1\",\"7\",\"(1, 1, 1)\",\"(2, 1, 1)\",\"0\",\"12.0\",\"Top\",\"Cycles\",\"cycle\",\"4,739\",\n",
);

fn unpack(packed: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(packed).read_to_end(&mut bytes).unwrap();
    bytes
}

fn raw(bytes: &[u8]) -> RawPage {
    match ncu::read(bytes, "page.csv") {
        Ok(NcuFile::Raw(page)) => page,
        other => panic!("not a raw page: {other:?}"),
    }
}

fn details(bytes: &[u8]) -> DetailsPage {
    match ncu::read(bytes, "page.csv") {
        Ok(NcuFile::Details(page)) => page,
        other => panic!("not a details page: {other:?}"),
    }
}

fn message(bytes: &[u8]) -> String {
    match ncu::read(bytes, "page.csv") {
        Ok(NcuFile::Raw(page)) => format!("raw page, {} rows", page.table.work.len()),
        Ok(NcuFile::Details(page)) => format!("details page, {} works", page.works.len()),
        Ok(NcuFile::Nothing(nothing)) => format!("nothing profiled: {} messages", nothing.len()),
        Err(error) => format!("{error}\nhint: {}", error.hint().unwrap()),
    }
}

/// Fields of a line without line breaks in it, found in another way than the reader finds them.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut field, mut quoted) = (Vec::new(), String::new(), false);
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => field.extend(letters.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(std::mem::take(&mut field)),
            other => field.push(other),
        }
    }
    fields.push(field);
    fields
}

#[test]
fn every_cell_of_every_raw_page_is_read_in_its_base_unit() {
    let pages = [
        (unpack(KERNEL_REPLAY), 114, 555),
        (RANGE_REPLAY.to_vec(), 4, 257),
        (RANGE_NESTED.to_vec(), 2, 253),
        (unpack(ROOFLINE_RAW), 8, 1304),
    ];
    for (bytes, rows, columns) in pages {
        let page = raw(&bytes);
        assert_eq!((page.table.work.len(), page.table.columns().len()), (rows, columns));
        assert_eq!((page.messages.len(), page.quality.len()), (0, 0));
        let text = String::from_utf8(bytes).unwrap();
        let lines: Vec<Vec<String>> = text.lines().map(fields).collect();
        let factors = BTreeMap::from([
            ("us", 1e3),
            ("ms", 1e6),
            ("Ghz", 1e9),
            ("Mhz", 1e6),
            ("Kbyte", 1e3),
            ("Mbyte", 1e6),
            ("Gbyte", 1e9),
            ("Mbyte/s", 1e6),
            ("Gbyte/s", 1e9),
            ("Kbyte/block", 1e3),
            ("Kbyte/cycle", 1e3),
            ("%/Kbyte", 1e-3),
        ]);
        let mut cells = 0;
        for (place, column) in page.table.columns().iter().enumerate() {
            let field = lines[0].len() - columns + place;
            assert_eq!((column.name(), column.tool_unit()), (lines[0][field].as_str(), lines[1][field].as_str()));
            let factor = factors.get(column.tool_unit()).copied().unwrap_or(1.0);
            for (row, line) in lines[2..].iter().enumerate() {
                cells += 1;
                let cell = &line[field];
                match cell.replace(',', "").parse::<f64>() {
                    Ok(expected) => {
                        let found = column.number(row).unwrap();
                        let expected = expected * factor;
                        assert!((found - expected).abs() <= 1e-15 * expected.abs(), "{} {found}", column.name());
                    }
                    Err(_) if cell.is_empty() => assert_eq!(column.value(row), None),
                    Err(_) => assert_eq!(column.value(row), Some(CounterValue::Text(cell.as_str().into()))),
                }
            }
        }
        assert_eq!(cells, rows * columns);
    }
}

#[test]
fn kernels_are_counted_in_the_range_they_were_launched_in() {
    let page = raw(&unpack(KERNEL_REPLAY));
    let mut kernels: BTreeMap<Vec<&str>, usize> = BTreeMap::new();
    for work in &page.table.work {
        *kernels.entry(work.segments(None).collect()).or_default() += 1;
        assert_eq!((work.kind, work.process, work.started.len()), (ProfiledKind::Kernel, Some(467), 0));
        assert!(work.pushed.iter().all(|range| range.owner == Some(467) && range.domain.is_none()));
    }
    assert_eq!(kernels, BTreeMap::from([(vec!["A"], 74), (vec!["A", "A1"], 40)]));
}

#[test]
fn kernel_times_add_up_in_whole_nanoseconds() {
    // 18.528 + 2.944 + ... = 2,089.536 us over 114 kernels, added up as fractions.
    let page = raw(&unpack(KERNEL_REPLAY));
    let times = (0..114).map(|row| page.table.number(row, "gpu__time_duration.sum").unwrap());
    assert_eq!(times.sum::<f64>(), 2_089_536.0);
    assert_eq!(page.table.column("gpu__time_duration.sum").unwrap().unit(), &CounterUnit::Nanoseconds);
}

#[test]
fn units_worked_out_by_hand() {
    let page = raw(&unpack(KERNEL_REPLAY));
    let cell = |row, name: &str| {
        let column = page.table.column(name).unwrap();
        (column.number(row).unwrap(), column.unit().to_string())
    };
    assert_eq!(cell(0, "gpu__time_duration.sum"), (18_528.0, "ns".into()));
    assert_eq!(cell(0, "dram__cycles_elapsed.avg.per_second"), (3_198_187_000.0, "hz".into()));
    assert_eq!(cell(2, "launch__shared_mem_config_size"), (65_536.0, "byte".into()));
    assert_eq!(cell(0, "launch__shared_mem_per_block_static"), (4_224.0, "byte/block".into()));
    assert_eq!(cell(0, "derived__pct_occupancy_per_shared_mem_size"), (0.00986, "%/byte".into()));
    assert_eq!(cell(0, "device__attribute_l2_cache_size"), (62_914_560.0, String::new()));
    let page = raw(&unpack(ROOFLINE_RAW));
    let rate = page.table.column("dram__bytes.sum.per_second").unwrap();
    assert_eq!((rate.number(1), rate.unit()), (Some(4_315_789_000.0), &CounterUnit::BytesPerSecond));
    let slow = page.table.column("dram__bytes.avg.per_second").unwrap();
    assert_eq!((slow.number(0), slow.unit()), (Some(35_590_278.0), &CounterUnit::BytesPerSecond));
}

#[test]
fn a_launch_has_its_shape_and_place() {
    let page = raw(&unpack(KERNEL_REPLAY));
    let first = &page.table.work[0];
    assert!(first.name.starts_with("void engines_precompiled::nchwToNhwcKernel<float, float, float, 0, 1, 2>("));
    assert_eq!((first.grid, first.block), (Some([1568, 1, 8]), Some([256, 1, 1])));
    assert_eq!((first.device, first.context, first.stream), (Some(0), Some(1), Some(7)));
    assert_eq!((first.compute_capability, first.process_name.as_deref()), (Some((9, 0)), Some("python3.12")));
    let name = page.value(0, "device__attribute_display_name");
    assert_eq!(name.as_ref().and_then(CounterValue::text), Some("NVIDIA H200"));
}

#[test]
fn a_replayed_range_is_a_range_and_not_a_kernel() {
    let page = raw(RANGE_REPLAY);
    let seen: Vec<_> =
        page.table.work.iter().map(|work| (work.kind, work.segments(None).collect::<Vec<_>>())).collect();
    let range = |name| (ProfiledKind::Range, vec![name]);
    assert_eq!(seen, [range("A"), range("B"), range("A"), range("B")]);
    let first = &page.table.work[0];
    assert_eq!((first.stream, first.grid, first.block), (None, None, None));
    assert_eq!(page.table.number(1, "gpu__time_duration.sum"), Some(284_960.0));
    let nested = raw(RANGE_NESTED);
    assert!(nested.table.work.iter().all(|work| work.segments(None).eq(["A", "A1"])));
}

#[test]
fn every_row_of_the_details_page_finds_its_kernel() {
    let page = details(&unpack(ROOFLINE_DETAILS));
    let metrics = |work: &types::counter::DetailedWork| work.sections.iter().map(|s| s.metrics.len()).sum::<usize>();
    let rows: Vec<_> = page.works.iter().map(|work| (work.work.id, metrics(work), work.rules.len())).collect();
    let rules = [3, 3, 3, 4, 3, 3, 2, 3];
    assert_eq!(rows, (0..).zip(rules).map(|(id, rules)| (id, 977, rules)).collect::<Vec<_>>());
    assert_eq!((page.messages.len(), page.quality.len()), (0, 0));
    let titles: Vec<&str> = page.works[0].sections.iter().map(|section| &*section.title).collect();
    insta::assert_snapshot!(titles.join("\n"));
}

#[test]
fn both_pages_of_one_report_say_the_same() {
    let (raw, details) = (raw(&unpack(ROOFLINE_RAW)), details(&unpack(ROOFLINE_DETAILS)));
    for (row, work) in details.works.iter().enumerate() {
        let of_raw = &raw.table.work[row];
        assert_eq!(&work.work, of_raw);
        let top = work.section("GPU Speed Of Light Throughput").unwrap();
        // The details page rounds to two digits of the unit it prints in, here microseconds.
        let (shown, exact) =
            (top.number("Duration").unwrap(), raw.table.number(row, "gpu__time_duration.sum").unwrap());
        assert!((shown - exact).abs() <= 5.0 + 1e-9, "{shown} {exact}");
        assert_eq!(top.metric("Duration").unwrap().unit, CounterUnit::Nanoseconds);
    }
    let top = details.works[1].section("GPU Speed Of Light Throughput").unwrap();
    assert_eq!((top.number("Duration"), top.number("Elapsed Cycles")), (Some(2_430.0), Some(4_739.0)));
    assert_eq!((top.number("DRAM Frequency"), top.number("Memory Throughput")), (Some(3.15e9), Some(0.76)));
}

#[test]
fn rules_keep_their_words_and_the_tools_estimate() {
    let page = details(&unpack(ROOFLINE_DETAILS));
    let names: Vec<_> = page.works[0].rules.iter().map(|rule| (&*rule.section, &*rule.name, &rule.kind)).collect();
    let expected = [
        ("SpeedOfLight", "SOLBottleneck", &RuleKind::Optimization),
        ("SpeedOfLight_RooflineChart", "SOLFPRoofline", &RuleKind::Information),
        ("WorkloadDistribution", "WorkloadImbalance", &RuleKind::Optimization),
    ];
    assert_eq!(names, expected);
    let [bottleneck, _, imbalance] = &page.works[0].rules[..] else { panic!("three rules") };
    assert_eq!(bottleneck.speedup, None);
    let speedup = imbalance.speedup.as_ref().unwrap();
    assert_eq!((&speedup.scope, speedup.percent), (&SpeedupScope::Global, 6.05));
    assert!(imbalance.description.starts_with("One or more L2 Slices have a much higher number of active cycles"));
}

#[test]
fn body_item_labels_keep_metrics_of_one_name_apart() {
    let page = details(&unpack(ROOFLINE_DETAILS));
    let chart = page.works[0].section("GPU Speed Of Light Roofline Chart").unwrap();
    let labels: Vec<_> =
        chart.metrics.iter().filter(|m| &*m.name == "DRAM Frequency").map(|m| m.label.as_deref()).collect();
    assert_eq!(labels, [Some("Single Precision Roofline"), Some("Double Precision Roofline")]);
}

#[test]
fn a_small_raw_page_with_all_that_real_ones_have() {
    let page = raw(SMALL_RAW.as_bytes());
    let [first, second] = &page.table.work[..] else { panic!("two rows") };
    assert_eq!((&*first.name, first.grid, first.block), ("void f<int, 2>(int)", Some([224, 1, 1]), Some([32, 4, 1])));
    assert_eq!(first.segments(Some("LLM")).collect::<Vec<_>>(), ["prefill"]);
    assert_eq!((first.process, second.process), (Some(7), Some(8)));
    assert_eq!((second.device, second.stream, second.compute_capability), (Some(1), Some(13), Some((9, 0))));
    assert_eq!(first.process_name.as_deref(), Some("program"), "the folder of a program stays out");
    assert_eq!(page.table.number(0, "dram__bytes.sum"), Some(1_234_500_000.0));
    assert_eq!(page.value(1, "dram__bytes.sum"), None, "n/a is not zero");
    assert_eq!(page.table.number(1, "inst"), Some(0.0));
    let Some(CounterValue::Instances(instances)) = page.value(0, "inst") else { panic!("instances") };
    assert_eq!((instances.aggregate, instances.instances.len()), (Some(3.0), 2));
    assert_eq!(page.messages.len(), 1);
    assert_eq!(page.messages[0].text, "Note: Running with unmodified GPU clocks.");
}

#[test]
fn only_the_counters_that_are_asked_for_are_kept() {
    let page = ncu::read_counters(SMALL_RAW.as_bytes(), "page.csv", |name| name.starts_with("dram__")).unwrap();
    let NcuFile::Raw(page) = page else { panic!("a raw page") };
    assert_eq!((page.table.columns().len(), page.table.work.len()), (1, 2));
    assert_eq!(page.table.number(0, "dram__bytes.sum"), Some(1_234_500_000.0));
}

#[test]
fn works_are_told_apart_by_process_and_a_chips_missing_counter_is_absent() {
    let page = details(SMALL_DETAILS.as_bytes());
    let [first, second] = &page.works[..] else { panic!("two works") };
    assert_eq!((&*first.work.name, &*second.work.name), ("f", "g"));
    let top = first.section("Top").unwrap();
    assert_eq!((first.sections.len(), top.metrics.len(), first.rules.len()), (1, 3, 1));
    assert_eq!((top.number("Duration"), top.number("Cycles")), (Some(2_430.0), Some(4_739.0)));
    let missing = top.metric("flop_count_sp.sum").unwrap();
    assert_eq!(missing.value, None);
    assert_eq!(&*first.rules[0].description, "Do \"x\", then y.");
    assert_eq!(second.section("Top").unwrap().number("Duration"), Some(1e9));
}

#[test]
fn tables_one_after_another_are_read_as_one() {
    let twice = [SMALL_RAW, &SMALL_RAW.replace("Mbyte", "Gbyte")].concat();
    let page = raw(twice.as_bytes());
    assert_eq!(page.table.work.len(), 4);
    let numbers: Vec<_> = (0..4).map(|row| page.table.number(row, "dram__bytes.sum")).collect();
    assert_eq!(numbers, [Some(1.2345e9), None, Some(1.2345e12), None]);

    let other = [SMALL_RAW, &SMALL_RAW.replace("Mbyte", "us")].concat();
    assert!(
        message(other.as_bytes())
            .contains("counter `dram__bytes.sum` is in `ns` here and in `byte` in an earlier table")
    );
    let mixed = [SMALL_RAW, SMALL_DETAILS].concat();
    assert!(message(mixed.as_bytes()).contains("line 8: a page of another kind starts here"));
}

#[test]
fn a_run_that_matched_no_range_profiled_nothing() {
    let Ok(NcuFile::Nothing(nothing)) = ncu::read(NO_RANGE, "ncu.log") else { panic!("nothing profiled") };
    assert_eq!(nothing.len(), 5);
    assert!(nothing.iter().all(|message| message.level == MessageLevel::Warning));
    assert_eq!(nothing[1].text, "No ranges were profiled.");
}

#[test]
fn kinds_are_known_by_their_first_bytes() {
    let kinds = [RANGE_REPLAY, SMALL_RAW.as_bytes(), SMALL_DETAILS.as_bytes(), NO_RANGE, b"{\"traceEvents\": []}", b""];
    let found = kinds.map(|bytes| ncu::sniff(&bytes[..bytes.len().min(4096)]));
    let raw = Some(NcuKind::Raw);
    assert_eq!(found, [raw, raw, Some(NcuKind::Details), Some(NcuKind::Log), None, None]);
}

#[test]
fn what_is_no_page_is_refused_with_what_is_there() {
    let cut_header = SMALL_RAW.split_once("\"\",\"\"").unwrap().0;
    let no_units =
        SMALL_RAW.replace("\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"Mbyte\",\"\",\"\"\n", "");
    let summary = "\"Process ID\",\"Kernel Name\",\"Invocations\",\"Metric Name\",\"Metric Unit\",\"Minimum\",\"Maximum\",\"Average\"\n";
    let cases: [(&str, &[u8]); 9] = [
        ("empty", b""),
        ("blank", b"\n  \n"),
        ("garbage", b"\x89PNG\r\n\x1a\n\0\0\0"),
        ("json", b"{\"traceEvents\": []}"),
        ("nsys stats", b"Time (%),Total Time (ns),Instances,Name\n1,2,3,x\n"),
        ("summary", summary.as_bytes()),
        ("header only", cut_header.as_bytes()),
        ("no units", no_units.as_bytes()),
        ("UTF-16", b"\xff\xfe\"\0I\0D\0"),
    ];
    let messages: Vec<String> = cases.iter().map(|(name, bytes)| format!("{name}: {}", message(bytes))).collect();
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn damage_inside_a_page_is_counted_and_the_rest_is_read() {
    let lines: Vec<&str> = SMALL_RAW.lines().collect();
    let damaged =
        [&lines[..], &["\"2\",\"7\"", "Segmentation fault", "\"x\",\"7\"", "==ERROR== LaunchFailed", ""]].concat();
    let page = raw(damaged.join("\n").as_bytes());
    assert_eq!((page.table.work.len(), page.messages.len()), (2, 2));
    let counters: Vec<_> = page.quality.iter().map(|counter| (counter.counter.as_str(), counter.value)).collect();
    assert_eq!(counters, [("ncu_rows_unreadable", 2), ("ncu_lines_foreign", 1)]);
    assert_eq!(page.quality[0].share, Some(0.5));
}

#[test]
fn numbers_in_another_languages_form_are_counted_as_an_error() {
    let raw_page = raw(SMALL_RAW.replace("1,234.5", "1.234,5").as_bytes());
    let details_page = details(SMALL_DETAILS.replace("2.43", "2,43").as_bytes());
    for quality in [raw_page.quality, details_page.quality] {
        let counter = &quality[0];
        assert_eq!((counter.counter.as_str(), counter.value), ("ncu_numbers_with_decimal_comma", 1));
        assert_eq!(counter.severity, types::Severity::Error);
    }
    assert_eq!(raw_page.table.number(0, "dram__bytes.sum"), None);
}

#[test]
fn a_line_without_end_is_refused() {
    let endless = std::io::BufReader::new(SMALL_RAW.as_bytes().chain(std::io::repeat(b'7')));
    let error = ncu::read(endless, "page.csv").unwrap_err();
    assert!(matches!(error, IngestError::LineTooLong { line: 8, .. }), "{error}");
}

/// Rows that were read, and rows that are known to be lost.
fn outcome(bytes: &[u8]) -> Option<(usize, u64)> {
    let lost = |quality: &[types::QualityCounter]| quality.iter().map(|counter| counter.value).sum();
    match ncu::read(bytes, "page.csv") {
        Ok(NcuFile::Raw(page)) => Some((page.table.work.len(), lost(&page.quality))),
        Ok(NcuFile::Details(page)) => {
            let metrics = page.works.iter().flat_map(|work| &work.sections).map(|section| section.metrics.len());
            let rules = page.works.iter().map(|work| work.rules.len());
            Some((metrics.chain(rules).sum(), lost(&page.quality)))
        }
        Ok(NcuFile::Nothing(_)) | Err(_) => None,
    }
}

#[test]
fn a_page_cut_at_any_byte_loses_rows_only_with_a_counter() {
    for (text, header_end) in [(SMALL_RAW, "\"Mbyte\",\"\",\"\""), (SMALL_DETAILS, "\"Estimated Speedup\"")] {
        let table = text.find(header_end).unwrap() + header_end.len();
        for end in 0..text.len() {
            let rows_begun = text[table.min(end)..end].trim_start_matches('\n').lines().count();
            let expected = (end > table).then_some(rows_begun as u64);
            let found = outcome(&text.as_bytes()[..end]).map(|(read, lost)| read as u64 + lost);
            assert_eq!(found, expected, "cut at byte {end}");
        }
    }
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = ncu::read(&bytes[..], "page.csv");
        let _ = ncu::sniff(&bytes);
    }

    #[test]
    fn damage_anywhere_never_makes_the_reader_panic(
        at in 0..SMALL_RAW.len(), with in proptest::collection::vec(any::<u8>(), 0..8), is_raw in any::<bool>(),
    ) {
        let text = if is_raw { SMALL_RAW } else { SMALL_DETAILS };
        let at = at.min(text.len());
        let damaged = [&text.as_bytes()[..at], &with, &text.as_bytes()[at..]].concat();
        let _ = ncu::read(&damaged[..], "page.csv");
    }
}
