//! Replays of real captures: unchanged they give back the recording, and changes save what they can and no more.

mod attribution_captures;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::PathBuf;
use std::sync::LazyLock;

use attribution_captures::{nsys_h200, nsys_t4, strangers, third_party, torch_h100, torch_h200};
use llm_perf_analysis::PlacedTimeline;
use llm_perf_analysis::attribution::{AttributionSettings, attribute};
use llm_perf_analysis::kernel::Family;
use llm_perf_analysis::replay::{Change, CopyFate, Pace, Question, Refusal, what_if};
use types::timeline::Timeline;
use types::{IdleCause, Nanos, WhatIf};

/// Captures with fewer kernels than this are asked more, because without optimisation each question takes a while.
const FEW: usize = 3_000;
/// How far an unchanged replay may be off.
const RESIDUAL: f64 = 0.02;

fn asked(timeline: &Timeline, changes: &[Change]) -> Result<WhatIf, Refusal> {
    let attribution = attribute(timeline, &AttributionSettings::default());
    let placed = PlacedTimeline { timeline, attribution: &attribution, rank: None, devices: BTreeMap::new() };
    let changes: Vec<_> = changes.iter().map(|change| (format!("{change:?}"), change.clone())).collect();
    let (run, timelines, plain) = (String::new(), [placed], BTreeMap::new());
    what_if(&Question { run, timelines: &timelines, changes: &changes, hardware: None, plain })
}

/// Share of the time that changes save.
fn saved(timeline: &Timeline, changes: &[Change]) -> f64 {
    asked(timeline, changes).unwrap().saves_share.unwrap()
}

fn idle(answer: &WhatIf, cause: IdleCause) -> Nanos {
    let idle = answer.before.device_time.iter().flat_map(|time| &time.idle);
    idle.filter(|idle| idle.cause == cause).map(|idle| idle.ns).sum()
}

/// Every trace of the collector that the reader's tests have.
fn collected() -> Vec<(String, Timeline)> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../ingest/tests/data/collector"));
    let wires = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let wires = wires.filter(|path| path.extension().is_some_and(|ending| ending == "wire"));
    let read = |path: PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let bytes = std::fs::read(&path).unwrap();
        let timeline = ingest::wire::read_all(&[(name.as_str(), bytes.as_slice())]).unwrap();
        (name, timeline)
    };
    wires.map(read).collect()
}

/// Every capture there is, read once: without optimisation that takes most of the time.
fn captures() -> &'static [(String, Timeline)] {
    static READ: LazyLock<Vec<(String, Timeline)>> = LazyLock::new(read_all);
    &READ
}

/// Those of other people's runs.
fn others(start: &str) -> impl Iterator<Item = &'static (String, Timeline)> {
    captures().iter().filter(move |(name, _)| name.ends_with(".json.gz") && name.starts_with(start))
}

fn read_all() -> Vec<(String, Timeline)> {
    let mut captures = collected();
    captures.push(("dsocr-h200.json".to_owned(), torch_h200()));
    captures.push(("dsocr-h200.sqlite".to_owned(), nsys_h200()));
    captures.extend(torch_h100().map(|timeline| ("h100-qwen1.5-0.5b".to_owned(), timeline)));
    captures.extend(nsys_t4().map(|timeline| ("power_iteration".to_owned(), timeline)));
    for name in ["kineto/hta-rank-missing.json.gz", "kineto/hta-triton.json.gz"] {
        let Some(packed) = third_party(name) else { continue };
        let mut bytes = Vec::new();
        flate2::read::MultiGzDecoder::new(packed.as_slice()).read_to_end(&mut bytes).unwrap();
        let read = ingest::torch::read("trace.json", &bytes, &ingest::torch::TorchSettings::default()).unwrap();
        captures.push((name.to_owned(), read.timeline));
    }
    captures.extend(strangers());
    captures
}

#[test]
fn an_unchanged_replay_gives_back_every_capture() {
    let mut replayed = 0;
    for (name, timeline) in captures() {
        match asked(timeline, &[]) {
            Ok(answer) => {
                let residual = answer.replay.residual.unwrap_or(0.0);
                println!("{name}: {} recorded, residual {:.4}%", answer.replay.measured_ns.unwrap(), residual * 100.0);
                assert!(residual.abs() <= RESIDUAL, "{name}: {residual}");
                replayed += 1;
                // The path is no longer than the time, and covers most of it.
                let path: Nanos = answer.before.critical_path.iter().map(|part| part.ns).sum();
                let time = answer.before.time_ns;
                assert!(path.get() as f64 <= 1.001 * time.get() as f64, "{name}: a path of {path} in {time}");
            }
            Err(refusal) => {
                println!("{name}: not replayed: {}", refusal.reason());
                let launched = attribute(timeline, &AttributionSettings::default()).launch.iter().flatten().count();
                let is_short = launched * 2 < timeline.work.len();
                assert!(timeline.work.is_empty() || timeline.calls.is_empty() || is_short, "{name}: {refusal:?}");
            }
        }
    }
    assert!(replayed >= 8, "{replayed}");
}

#[test]
fn launch_bound_decode_gains_from_graphs_what_launches_cost() {
    for timeline in [torch_h200(), nsys_h200()] {
        let answer = asked(&timeline, &[Change::CudaGraphs]).unwrap();
        let launching = idle(&answer, IdleCause::Launching);
        assert!(answer.saves_ns > Nanos::ZERO, "{}", answer.saves_ns);
        assert!(answer.saves_share.unwrap() > 0.3, "{:?}", answer.saves_share);
        // It cannot save more than the device waited for the host.
        let waited: Nanos = answer.before.device_time.iter().map(|time| time.idle_ns).sum();
        assert!(answer.saves_ns <= waited + Nanos::new(waited.get() / 50), "{} of {waited}", answer.saves_ns);
        assert!(answer.saves_ns.get() as f64 > 0.5 * launching.get() as f64, "{} of {launching}", answer.saves_ns);
        // A faster device does not help.
        assert!(saved(&timeline, &[Change::Kernels(Family::Gemm, Pace::Times(2.0))]) < 0.1);
    }
}

#[test]
fn a_busy_device_gains_nothing_from_graphs() {
    for (name, timeline) in others("h100-timesformer") {
        let share = saved(timeline, &[Change::CudaGraphs]);
        assert!((-0.005..0.02).contains(&share), "{name}: {share}");
        assert!(saved(timeline, &[Change::Host(2.0)]) < 0.02, "{name}");
    }
}

#[test]
fn graphs_do_not_save_what_the_data_loader_costs() {
    for (name, timeline) in others("h100-owlv2") {
        let answer = asked(timeline, &[Change::CudaGraphs]).unwrap();
        let loading = idle(&answer, IdleCause::DataLoading);
        assert!(loading > Nanos::ZERO, "{name}");
        let loaded = asked(timeline, &[Change::WithoutHost(IdleCause::DataLoading)]).unwrap();
        let after: Nanos = answer
            .after
            .device_time
            .iter()
            .flat_map(|time| &time.idle)
            .filter(|idle| idle.cause == IdleCause::DataLoading)
            .map(|idle| idle.ns)
            .sum();
        assert!(after.get() as f64 > 0.9 * loading.get() as f64, "{name}: {after} of {loading} left");
        assert!(loaded.saves_ns.get() as f64 > 0.5 * loading.get() as f64, "{name}: {} of {loading}", loaded.saves_ns);
        assert!(
            loaded.saves_ns <= loading + Nanos::new(loading.get() / 10),
            "{name}: {} of {loading}",
            loaded.saves_ns
        );
    }
}

#[test]
fn hidden_communication_saves_at_most_what_is_exposed() {
    let collective = |timeline: &Timeline| timeline.names.iter().any(|(_, name)| name.contains("nccl"));
    for (name, timeline) in others("").filter(|(_, timeline)| collective(timeline)) {
        let Ok(answer) = asked(timeline, &[Change::HiddenCommunication]) else { continue };
        let exposed: Nanos = answer.before.device_time.iter().map(|time| time.communication_exposed_ns).sum();
        let all: Nanos = answer.before.device_time.iter().map(|time| time.communication_ns).sum();
        println!("{name}: {} saved of {exposed} exposed, {all} in total", answer.saves_ns);
        assert!(answer.saves_ns <= all + Nanos::new(all.get() / 50 + 1_000), "{name}: {} of {all}", answer.saves_ns);
    }
}

#[test]
fn copies_that_are_hidden_or_removed_save_no_more_than_they_take() {
    for (name, timeline) in captures().iter().filter(|(_, timeline)| timeline.work.len() < FEW) {
        let Ok(hidden) = asked(timeline, &[Change::Copies(None, CopyFate::Hidden)]) else { continue };
        let removed = asked(timeline, &[Change::Copies(None, CopyFate::Removed)]).unwrap();
        println!("{name}: hidden {} removed {} of {}", hidden.saves_ns, removed.saves_ns, hidden.before.time_ns);
        let slack = Nanos::new(hidden.before.time_ns.get() / 100);
        assert!(hidden.saves_ns <= removed.saves_ns + slack, "{name}: {} {}", hidden.saves_ns, removed.saves_ns);
        assert!(removed.saves_ns <= removed.before.time_ns, "{name}");
    }
}

#[test]
fn changes_together_never_save_more_than_the_run() {
    let changes = [
        Change::CudaGraphs,
        Change::FusedElementwise,
        Change::Kernels(Family::Gemm, Pace::Times(2.0)),
        Change::Copies(None, CopyFate::Removed),
        Change::Host(2.0),
    ];
    for (name, timeline) in captures().iter().filter(|(_, timeline)| timeline.work.len() < FEW) {
        let Ok(together) = asked(timeline, &changes) else { continue };
        let (before, after) = (together.before.time_ns, together.after.time_ns);
        // A graph's own launch may take longer than the one kernel of a capture a few microseconds long.
        assert!(after > Nanos::ZERO && after <= before + Nanos::new(1_000), "{name}: {after} of {before}");
        for change in &changes {
            let alone = asked(timeline, std::slice::from_ref(change)).unwrap();
            let slack = Nanos::new(together.before.time_ns.get() / 50 + 10_000);
            assert!(
                alone.saves_ns <= together.saves_ns + slack,
                "{name}: {change:?} alone saves {}, all {}",
                alone.saves_ns,
                together.saves_ns
            );
        }
    }
}
