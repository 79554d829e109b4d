//! What holds for every trace, whole, cut or damaged, and however it is read.

use std::io::{self, Read};

use llm_perf_ingest::IngestError;
use llm_perf_ingest::compressed::Compression;
use llm_perf_ingest::torch::{TorchSettings, Trace, read, read_stream};
use proptest::prelude::*;

/// Real events of many kinds, some with what looks like the end of an event inside a text.
const SMALL: &[u8] = include_bytes!("fixtures/torch/small.json");

fn settings(threads: usize, chunk_bytes: usize) -> TorchSettings {
    TorchSettings { threads, chunk_bytes: Some(chunk_bytes), largest_event_bytes: 1 << 16 }
}

/// Everything a reading says, in words, so that two can be compared.
fn told(reading: &Result<Trace, IngestError>) -> String {
    format!("{reading:#?}")
}

fn from_beginning_to_end(bytes: &[u8]) -> Result<Trace, IngestError> {
    read("trace.json", bytes, &settings(1, 1))
}

/// A stream that hands out only a few bytes at a time.
struct Drops<'a>(&'a [u8], usize);

impl Read for Drops<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.1.min(buffer.len()).min(self.0.len());
        let (now, later) = self.0.split_at(count);
        buffer[..count].copy_from_slice(now);
        self.0 = later;
        Ok(count)
    }
}

/// What must hold of a trace and of the whole it is the beginning of.
fn check_beginning(part: &Trace, whole: &Trace, cut: usize) {
    let (rows, all) = (&part.timeline, &whole.timeline);
    assert!(all.work.starts_with(&rows.work) && all.calls.starts_with(&rows.calls), "cut at {cut}");
    assert!(all.operators.starts_with(&rows.operators) && all.ranges.starts_with(&rows.ranges), "cut at {cut}");
    let loss = part.loss.as_ref().unwrap_or_else(|| panic!("cut at {cut}: nothing is said to be lost"));
    assert!(loss.offset + loss.bytes <= cut as u64, "cut at {cut}: {loss:?}");
    assert!(rows.quality.iter().any(|counter| counter.counter == "trace_ends_early" && counter.value > 0));
    assert!(loss.in_events || rows.work.len() == all.work.len(), "cut at {cut}: {loss:?}");
}

#[test]
fn chunks_of_every_size_give_what_one_reading_gives() {
    let expected = told(&from_beginning_to_end(SMALL));
    for chunk in (1..200).chain([499, 1000, 3001, SMALL.len() - 1, SMALL.len(), SMALL.len() + 1]) {
        let threads = 2 + chunk % 3;
        let found = told(&read("trace.json", SMALL, &settings(threads, chunk)));
        assert!(found == expected, "chunks of {chunk} bytes on {threads} threads");
    }
}

#[test]
fn a_trace_cut_at_any_byte_says_what_it_lost() {
    let whole = from_beginning_to_end(SMALL).unwrap();
    let end = SMALL.trim_ascii_end().len();
    for cut in 0..end {
        let bytes = &SMALL[..cut];
        let reading = from_beginning_to_end(bytes);
        match &reading {
            Ok(part) => check_beginning(part, &whole, cut),
            Err(error) => assert!(error.to_string().contains("trace.json"), "{error}"),
        }
        // Every seventh cut falls everywhere in the end, and all of them take long.
        if cut % 7 == 0 {
            assert_eq!(told(&reading), told(&read("trace.json", bytes, &settings(2, 500))), "cut at {cut}");
            assert_eq!(told(&reading), told(&read_stream("trace.json", bytes, &settings(1, 1))), "cut at {cut}");
        }
    }
    assert!(from_beginning_to_end(&SMALL[..end]).unwrap().loss.is_none());
}

#[test]
fn a_compressed_trace_cut_at_any_byte_says_what_it_lost() {
    let whole = from_beginning_to_end(SMALL).unwrap();
    let mut encoder = flate2::read::GzEncoder::new(SMALL, flate2::Compression::fast());
    let mut gzip = Vec::new();
    encoder.read_to_end(&mut gzip).unwrap();
    let zstandard = ruzstd::encoding::compress_to_vec(SMALL, ruzstd::encoding::CompressionLevel::Fastest);
    for file in [gzip, zstandard] {
        for cut in 4..file.len() {
            let decoder = Compression::of(&file).unwrap().decoder(&file[..cut]);
            match read_stream("trace.json.gz", decoder, &settings(1, 1)) {
                Ok(part) => check_beginning(&part, &whole, SMALL.len()),
                Err(error) => assert!(error.to_string().contains("trace.json.gz"), "{error}"),
            }
        }
    }
}

/// Text that tries to look like the structure around it.
fn tricky() -> impl Strategy<Value = String> {
    prop::collection::vec(
        prop::sample::select(vec![
            "}",
            "{",
            ", ",
            "[",
            "]",
            "\\\"",
            "\\\\",
            "}, {\\\"",
            "},\\n  {\\\"ph\\\": ",
            "a",
            "\\u00e9",
            " ",
            "ü",
            ":",
        ]),
        0..12,
    )
    .prop_map(|pieces| pieces.concat())
}

fn space() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["", " ", "\n  ", "\t", "\r\n"])
}

/// An event of a random kind with random texts, in a random order of fields.
fn event() -> impl Strategy<Value = String> {
    let categories =
        vec!["cpu_op", "kernel", "cuda_runtime", "user_annotation", "python_function", "gpu_memcpy", "ac2g", "?"];
    let fields = (
        prop::sample::select(categories),
        tricky(),
        (0_u64..1 << 40, 0_u64..1 << 20, 0_u32..4, 0_u32..5),
        tricky(),
        space(),
        any::<[bool; 2]>(),
    );
    fields.prop_map(|(category, name, (time, duration, thread, number), extra, space, [swap, nested])| {
        let nested = if nested { format!(r#", "list": [{{"a": "{extra}"}}, {{"b": 1}}]"#) } else { String::new() };
        let arguments = format!(
            r#""args":{space}{{"External id": {number}, "correlation": {number}, "device": 0, "x": "{extra}"{nested}, "Input Dims": [[{number}, 2], [[1], [{thread}]]]}}"#
        );
        let plain = format!(
            r#""ph": "X",{space}"cat":{space}"{category}", "name": "{name}", "pid": 1, "tid": {thread}, "ts": {time}.5{space},"dur":{duration}"#
        );
        if swap { format!("{{{arguments},{space}{plain}}}") } else { format!("{{{space}{plain}, {arguments}{space}}}") }
    })
}

fn document() -> impl Strategy<Value = String> {
    (prop::collection::vec(event(), 0..12), space(), any::<bool>(), tricky()).prop_map(|(events, space, bare, text)| {
        let list = format!("[{space}{}{space}]", events.join(&format!("{space},{space}")));
        if bare {
            list
        } else {
            format!(r#"{{"note": "{text}", "traceEvents":{space}{list}, "baseTimeNanoseconds": 5}}"#)
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn however_a_trace_is_read_it_says_the_same(json in document(), chunk in 1_usize..300, drop in 1_usize..100) {
        let expected = from_beginning_to_end(json.as_bytes());
        prop_assert_eq!(told(&read("trace.json", json.as_bytes(), &settings(3, chunk))), told(&expected));
        prop_assert_eq!(told(&read_stream("trace.json", Drops(json.as_bytes(), drop), &settings(1, 1))), told(&expected));
        // And it says what a reader of whole documents finds.
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        let events = value.get("traceEvents").unwrap_or(&value).as_array().unwrap();
        let known = events.iter().any(|event| !matches!(event["cat"].as_str(), Some("ac2g" | "?")));
        if let Ok(trace) = &expected {
            prop_assert_eq!(trace.census.events(), events.len() as u64);
            prop_assert_eq!(&trace.loss, &None);
            let names = events.iter().filter(|event| event["cat"] == "kernel").map(|event| event["name"].as_str().unwrap());
            let found = trace.timeline.work.iter().filter(|work| work.bytes.is_none() && work.kind == types::timeline::WorkKind::Kernel);
            prop_assert!(names.eq(found.map(|work| trace.timeline.name(work.name))));
        } else {
            prop_assert!(!events.is_empty() && !known);
        }
    }

    #[test]
    fn damage_anywhere_is_never_a_panic_and_reads_the_same_every_way(
        places in prop::collection::vec((0..SMALL.len(), any::<u8>()), 1..4),
        cut in 0..SMALL.len(),
        chunk in 1_usize..4000,
    ) {
        let mut bytes = SMALL.to_vec();
        for (place, byte) in places {
            bytes[place] = byte;
        }
        bytes.truncate(cut.max(bytes.len() / 2));
        let expected = told(&from_beginning_to_end(&bytes));
        prop_assert_eq!(told(&read("trace.json", &bytes, &settings(2, chunk))), expected.clone());
        prop_assert_eq!(told(&read_stream("trace.json", &bytes[..], &settings(1, 1))), expected);
    }

    #[test]
    fn garbage_is_refused_or_read_but_never_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), open in any::<bool>()) {
        let bytes = if open { [b"{\"traceEvents\": [{\"ph\":".as_slice(), &bytes].concat() } else { bytes };
        let expected = told(&from_beginning_to_end(&bytes));
        prop_assert_eq!(told(&read("trace.json", &bytes, &settings(2, 10))), expected.clone());
        prop_assert_eq!(told(&read_stream("trace.json", Drops(&bytes, 3), &settings(1, 1))), expected);
    }
}
