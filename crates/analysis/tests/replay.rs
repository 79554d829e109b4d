//! Replays of captures of this project: unchanged they give back the recording, and changes save what they can and no more.

mod attribution_captures;
mod replay_checks;

use std::path::PathBuf;
use std::sync::LazyLock;

use attribution_captures::{nsys_h200, torch_h200};
use llm_perf_analysis::kernel::Family;
use llm_perf_analysis::replay::{Change, Pace};
use replay_checks::{asked, assert_copies_bounded, assert_given_back, assert_together_bounded, idle, saved};
use types::timeline::Timeline;
use types::{IdleCause, Nanos};

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

/// Every capture, read once: without optimisation that takes most of the time.
fn captures() -> &'static [(String, Timeline)] {
    static READ: LazyLock<Vec<(String, Timeline)>> = LazyLock::new(|| {
        let mut captures = collected();
        captures.push(("dsocr-h200.json".to_owned(), torch_h200()));
        captures.push(("dsocr-h200.sqlite".to_owned(), nsys_h200()));
        captures
    });
    &READ
}

#[test]
fn an_unchanged_replay_gives_back_every_capture() {
    let replayed = assert_given_back(captures());
    assert!(replayed >= 6, "{replayed}");
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
fn copies_that_are_hidden_or_removed_save_no_more_than_they_take() {
    let asked = assert_copies_bounded(captures());
    assert!(asked >= 4, "{asked}");
}

#[test]
fn changes_together_never_save_more_than_the_run() {
    let asked = assert_together_bounded(captures());
    assert!(asked >= 4, "{asked}");
}
