//! The fuzz targets of `fuzz/` on stable Rust: seeds and real captures, changed in ways that are the same in every run, and the same
//! claims. What a run of cargo-fuzz finds by coverage is not replaced; what it found stays found.
//!
//! `LLM_PERF_FUZZ=50` makes fifty times as many inputs and `LLM_PERF_FUZZ_SEED=7` others. With `LLM_PERF_FUZZ_CORPUS=fuzz/corpus` what
//! took a new way through a reader is kept there and changed further, in this run and in later ones. An input that fails is kept, and
//! the message says where.

mod body;
mod corpus;
mod cost;
mod grammar;
mod mutation;
mod random;
mod seeds;

use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use corpus::Corpus;
use cost::measured;
use grammar::{database, kineto, ncu, recording};
use mutation::{bytes, json, mangled, parquet, png, rows, safetensors, sqlite, wire};
use network::{Model, Preset};
use random::Random;
use serde_json::Value;

#[global_allocator]
static ALLOCATOR: cost::Counting = cost::Counting;

/// One reader at a time: memory and processor time are those of the process.
static TURN: Mutex<()> = Mutex::new(());

/// Makes an input.
type Mutation<'a> = &'a dyn Fn(&mut Random) -> Vec<u8>;

/// What an input may cost. Time is for finding what is not linear in the input, not for measuring: the factor is twenty times what
/// a debug build takes and more.
struct Bounds {
    inputs: u64,
    memory_per_byte: usize,
    memory: usize,
    time_per_byte: Duration,
    /// For an input of no length: a machine that does much else.
    time: Duration,
    /// Shares of the inputs that are read, in percent. Seeds that nothing is left of would test the first check of a reader and no other;
    /// seeds that all are read, no error.
    read: RangeInclusive<u64>,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            inputs: 2000,
            memory_per_byte: 100,
            memory: 8 << 20,
            time_per_byte: Duration::from_micros(50),
            time: Duration::from_secs(2),
            read: 5..=99,
        }
    }
}

/// Most inputs of a reader that are kept because they failed.
const MOST_FAILED: usize = 10;

/// Makes inputs and calls the claim on each.
fn fuzz(name: &str, bounds: &Bounds, mutations: &[Mutation<'_>], check: impl Fn(&[u8]) -> bool) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let number_of = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (times, seed) = (number_of("LLM_PERF_FUZZ").unwrap_or(1), number_of("LLM_PERF_FUZZ_SEED").unwrap_or(0));
    let mut corpus = Corpus::open(name);
    let (mut read, mut total, mut processor, mut steepest, mut most) = (0, 0, Duration::ZERO, 0, 0);
    let (mut failed, inputs) = (Vec::new(), bounds.inputs * times);
    for number in 0..inputs {
        let mut random = Random::new(number.wrapping_mul(0x0010_0000_01b3) ^ name.len() as u64 ^ seed << 40);
        let input = corpus.next(&mut random).unwrap_or_else(|| random.one_of(mutations)(&mut random));
        corpus.begin(&input);
        let (outcome, cost) = measured(|| catch_unwind(AssertUnwindSafe(|| check(&input))));
        let (memory, time) = (
            bounds.memory_per_byte * input.len() + bounds.memory,
            bounds.time_per_byte * input.len() as u32 + bounds.time,
        );
        let problem = match &outcome {
            Err(_) => Some("panicked".to_owned()),
            Ok(_) if cost.memory > memory => Some(format!("took {} of memory", cost.memory)),
            Ok(_) if cost.processor > time => Some(format!("took {:?}", cost.processor)),
            Ok(_) => None,
        };
        if let Some(problem) = problem {
            let kept = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{name}-{seed}-{number}"));
            std::fs::write(&kept, &input).unwrap();
            failed.push(format!("{} bytes {problem}: {}", input.len(), kept.display()));
        }
        let was_read = outcome.unwrap_or(false);
        corpus.end(&input, was_read, &cost);
        read += u64::from(was_read);
        total += input.len();
        processor += cost.processor;
        most = most.max(cost.memory);
        steepest = steepest.max(cost.memory.saturating_sub(bounds.memory) / input.len().max(1));
        if failed.len() == MOST_FAILED {
            break;
        }
    }
    println!(
        "| `{name}` | {inputs} | {:.1} | {}% | {} | {} | {:.1} | {:.1} | {steepest} |",
        total as f64 / 1e6,
        read * 100 / inputs,
        failed.len(),
        corpus.len(),
        processor.as_secs_f64(),
        most as f64 / f64::from(1 << 20),
    );
    assert!(failed.is_empty(), "{name}:\n{}", failed.join("\n"));
    // What grew from what was read is read more often.
    let is_usual = bounds.read.contains(&(read * 100 / inputs)) || corpus.grows();
    assert!(is_usual, "{name}: {read} of {inputs} inputs were read");
}

fn text(check: impl Fn(&str) -> bool) -> impl Fn(&[u8]) -> bool {
    // Readers of text get it from one that says where bytes are no text.
    move |bytes| check(&String::from_utf8_lossy(bytes))
}

fn one_of_json(seeds: &[Value]) -> impl Fn(&mut Random) -> Vec<u8> + '_ {
    move |random| {
        let seed = random.one_of(seeds);
        json::mutated(random, seed)
    }
}

fn refilled(seeds: &[Value]) -> impl Fn(&mut Random) -> Vec<u8> + '_ {
    move |random| {
        let seed = random.one_of(seeds);
        json::refilled(random, seed)
    }
}

fn one_of<'a>(
    seeds: &'a [Vec<u8>],
    mutated: impl Fn(&mut Random, &[u8]) -> Vec<u8> + 'a,
) -> impl Fn(&mut Random) -> Vec<u8> + 'a {
    move |random| {
        let seed = random.one_of(seeds);
        mutated(random, seed)
    }
}

#[test]
fn torch_profiler_traces() {
    let traces = seeds::traces();
    let texts = seeds::folder("fuzz/seeds/torch");
    // The first byte says how large the chunks are that the trace is read in.
    let structured = |random: &mut Random| [vec![random.number() as u8], one_of_json(&traces)(random)].concat();
    let made = |random: &mut Random| [vec![random.number() as u8], kineto::trace(random)].concat();
    // Chunks of a few bytes, each with its own tables, and two threads at once: more than a trace that is read as it should be.
    let bounds = Bounds { memory_per_byte: 1000, ..Bounds::default() };
    fuzz("torch", &bounds, &[&structured, &made, &one_of(&texts, bytes::mutated)], body::torch::check);
}

#[test]
fn traces_all_the_way_to_a_run_folder() {
    let traces = seeds::traces();
    let exports = seeds::files(&["crates/ingest/tests/fixtures/nsys/small.sqlite"]);
    let recordings = seeds::files(&["crates/ingest/tests/data/collector/cuda.wire"]);
    let pages = seeds::rows("crates/ingest/tests/fixtures/ncu/ncu-range-nested-raw.csv", 6);
    let bounds = Bounds { inputs: 80, memory_per_byte: 2000, memory: 64 << 20, ..Bounds::default() };
    let mutations: [Mutation<'_>; 10] = [
        &kineto::trace,
        &kineto::trace,
        &database::export,
        &recording::file,
        &ncu::raw,
        &one_of_json(&traces),
        &refilled(&traces),
        &one_of(&exports, sqlite::mutated),
        &one_of(&recordings, wire::mutated),
        &one_of(&pages, rows::mutated),
    ];
    fuzz("import", &bounds, &mutations, body::import::check);
}

#[test]
fn documents_of_run_folders() {
    let traces = ["crates/ingest/tests/fixtures/torch/small.json", "crates/ingest/tests/fixtures/nsys/small.sqlite"];
    let seeds: Vec<Value> = traces.iter().map(|trace| seeds::imported(trace)).collect();
    let bounds = Bounds { inputs: 60, memory_per_byte: 2000, memory: 64 << 20, ..Bounds::default() };
    let refilled = refilled(&seeds);
    fuzz("documents", &bounds, &[&refilled, &refilled, &one_of_json(&seeds)], body::documents::check);
}

#[test]
fn tables_of_jobs() {
    let seeds = seeds::tables("crates/ingest/tests/fixtures/torch/small.json");
    // Each is read as every table. The header of a page may claim up to 2 GiB, which `parquet` reserves and leaves untouched.
    let bounds = Bounds { inputs: 500, memory: (64 << 20) + (2 << 30), ..Bounds::default() };
    fuzz("tables", &bounds, &[&one_of(&seeds, parquet::mutated)], body::tables::check);
}

#[test]
fn loads_and_prompts() {
    let texts = [
        r#"{"timestamp": 0, "input_length": 600, "output_length": 52, "hash_ids": [46, 47]}"#,
        "time_s,input_tokens,output_tokens\n0,10,3\n1.5,20,4\n",
        "{\"prompt\": \"a\", \"output_tokens\": 3}\n{\"prompt\": \"b\"}\n",
        r#"[{"id": "a", "conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]}]"#,
    ];
    let documents: Vec<Value> = texts.iter().filter_map(|text| serde_json::from_str(text).ok()).collect();
    let texts: Vec<Vec<u8>> = texts.iter().map(|text| text.as_bytes().to_vec()).collect();
    let mutations: [Mutation<'_>; 2] = [&one_of_json(&documents), &one_of(&texts, rows::mutated)];
    fuzz("replays", &Bounds::default(), &mutations, body::replays::check);
}

#[test]
fn exports_of_nsight_systems() {
    let seeds = seeds::files(&[
        "fuzz/seeds/nsys_sqlite/tiny.sqlite",
        "crates/ingest/tests/fixtures/nsys/small.sqlite",
        "crates/ingest/tests/fixtures/nsys/emitted.sqlite",
    ]);
    fuzz(
        "nsys_sqlite",
        &Bounds::default(),
        &[&one_of(&seeds, sqlite::mutated), &database::export],
        body::nsys_sqlite::check,
    );
}

#[test]
fn files_of_the_collector() {
    let seeds = [
        seeds::folder("fuzz/seeds/wire"),
        seeds::files(&[
            "crates/ingest/tests/data/collector/cuda.wire",
            "crates/ingest/tests/data/collector/spawn-0.wire",
            "crates/ingest/tests/data/collector/window.wire",
        ]),
    ]
    .concat();
    let (records, any) = (one_of(&seeds, wire::mutated), one_of(&seeds, bytes::mutated));
    fuzz("wire", &Bounds::default(), &[&records, &recording::file, &any], body::wire::check);
}

#[test]
fn pages_of_nsight_compute() {
    let raw = [
        seeds::folder("fuzz/seeds/ncu_raw"),
        seeds::rows("crates/ingest/tests/fixtures/ncu/ncu-range-nested-raw.csv", 6),
    ]
    .concat();
    fuzz("ncu_raw", &Bounds::default(), &[&one_of(&raw, rows::mutated), &ncu::raw], body::ncu_raw::check);
    // The header is the target's own.
    let details = seeds::folder("fuzz/seeds/ncu_details");
    let bounds = Bounds { read: 5..=100, ..Bounds::default() };
    fuzz("ncu_details", &bounds, &[&one_of(&details, rows::mutated)], body::ncu_details::check);
}

#[test]
fn names_of_kernels() {
    let pairs = String::from_utf8(seeds::files(&["crates/ingest/tests/data/kernel-names.tsv"]).remove(0)).unwrap();
    let names = pairs.lines().filter_map(|line| line.split_once('\t').map(|(mangled, _)| mangled.as_bytes().to_vec()));
    let seeds: Vec<Vec<u8>> = names.filter(|name| name.starts_with(b"_Z")).collect();
    let named = |random: &mut Random| bytes::name(random).into_bytes();
    let mangled = one_of(&seeds, mangled::mutated);
    // A short name takes as much again, and what it stands for is bounded.
    let bounds = Bounds { memory: 16 << 20, ..Bounds::default() };
    fuzz("names", &bounds, &[&mangled, &mangled, &mangled, &named], text(body::names::check));
}

#[test]
fn tables_of_nsys_stats() {
    let seeds =
        [seeds::folder("fuzz/seeds/nsys_stats"), seeds::folder("crates/ingest/tests/fixtures/nsys_stats")].concat();
    fuzz("nsys_stats", &Bounds::default(), &[&one_of(&seeds, rows::mutated)], body::nsys_stats::check);
}

#[test]
fn beginnings_of_any_file() {
    let seeds = seeds::folder("fuzz/seeds/detect");
    fuzz(
        "detect",
        &Bounds::default(),
        &[&one_of(&seeds, bytes::mutated), &one_of(&seeds, rows::mutated)],
        body::detect::check,
    );
}

#[test]
fn headers_of_gguf_files() {
    let seeds: Vec<Vec<u8>> = seeds::folder("crates/ingest/tests/fixtures/gguf")
        .into_iter()
        .filter(|file| file.starts_with(b"GGUF"))
        .collect();
    let bounds = Bounds { inputs: 1000, ..Bounds::default() };
    fuzz("gguf", &bounds, &[&one_of(&seeds, bytes::mutated)], body::gguf::check);
}

#[test]
fn torchinfo_snapshots() {
    let seeds = seeds::documents(&["crates/ingest/tests/fixtures/torchinfo-unique-layers.json"]);
    let bounds = Bounds { inputs: 300, ..Bounds::default() };
    fuzz("torchinfo", &bounds, &[&one_of_json(&seeds)], text(body::torchinfo::check));
}

#[test]
fn requests_of_load_generators() {
    let texts = seeds::folder("crates/ingest/tests/fixtures/requests");
    let documents: Vec<Value> = texts.iter().filter_map(|text| serde_json::from_slice(text).ok()).collect();
    let mutations: [Mutation<'_>; 3] =
        [&one_of_json(&documents), &one_of_json(&documents), &one_of(&texts, rows::mutated)];
    fuzz("requests", &Bounds::default(), &mutations, body::requests::check);
}

#[test]
fn configurations_of_models() {
    let seeds = seeds::presets();
    // Not in proportion to the file: a network of ten thousand layers is described in a few bytes.
    let bounds = Bounds { inputs: 1000, memory: 1 << 30, time: Duration::from_secs(60), ..Bounds::default() };
    fuzz("model_config", &bounds, &[&one_of_json(&seeds)], text(body::model_config::check));
}

#[test]
fn configurations_of_the_program() {
    let seeds = seeds::folder("fuzz/seeds/config");
    let bounds = Bounds { inputs: 300, memory: 32 << 20, ..Bounds::default() };
    fuzz("config", &bounds, &[&one_of(&seeds, rows::mutated)], text(body::config::check));
}

#[test]
fn packed_runs() {
    let whole = seeds::files(&["crates/cli/tests/fixtures/bundle/0.1.0.llmperf"]);
    let inside: Vec<Vec<u8>> = whole.iter().map(|bundle| seeds::unpacked(bundle)).collect();
    // Whatever is changed is refused: every file has its checksum in the index.
    let bounds = Bounds { inputs: 500, read: 0..=0, ..Bounds::default() };
    let mutations: [Mutation<'_>; 2] = [&one_of(&whole, bytes::mutated), &one_of(&inside, bytes::mutated)];
    fuzz("bundle", &bounds, &mutations, body::bundle::check);
}

#[test]
fn checkpoints() {
    let whole = Model::new(&Preset::find("dummy-shallow-resnet").unwrap().config().unwrap());
    let seeds = [vec![seeds::checkpoint(&whole)], seeds::folder("fuzz/seeds/checkpoint")].concat();
    // A network is read whole or not at all, and most changes take a tensor away.
    let bounds = Bounds { inputs: 500, read: 1..=99, ..Bounds::default() };
    fuzz(
        "checkpoint",
        &bounds,
        &[&one_of(&seeds, safetensors::mutated), &one_of(&seeds, bytes::mutated)],
        body::checkpoint::check,
    );
}

#[test]
fn pictures() {
    let seeds: Vec<Vec<u8>> =
        seeds::folder("crates/engine/tests/pillow").into_iter().filter(|file| file.starts_with(b"\x89PNG")).collect();
    // A picture of four million pixels fits into a few bytes; larger ones are measured and not decoded.
    let bounds = Bounds { memory: 64 << 20, ..Bounds::default() };
    fuzz("picture", &bounds, &[&one_of(&seeds, png::mutated)], body::picture::check);
}
