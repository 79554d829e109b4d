//! Replays of other people's captures.

use std::sync::LazyLock;

use llm_perf_analysis::replay::Change;
use types::timeline::Timeline;
use types::{IdleCause, Nanos};

use crate::captures::{nsys_t4, strangers, torch_h100, torch_trace};
use crate::replay_checks::{asked, assert_copies_bounded, assert_given_back, assert_together_bounded, idle, saved};

/// Every capture, read once: without optimisation that takes most of the time.
fn captures() -> &'static [(String, Timeline)] {
    static READ: LazyLock<Vec<(String, Timeline)>> = LazyLock::new(|| {
        let kineto = ["hta-rank-missing.json.gz", "hta-triton.json.gz"];
        let mut captures =
            vec![("h100-qwen1.5-0.5b".to_owned(), torch_h100()), ("power_iteration".to_owned(), nsys_t4())];
        captures.extend(kineto.map(|name| (name.to_owned(), torch_trace(&format!("kineto/{name}")))));
        captures.extend(strangers().iter().cloned());
        captures
    });
    &READ
}

fn other(name: &str) -> &'static (String, Timeline) {
    strangers().iter().find(|(file, _)| file == name).unwrap_or_else(|| panic!("no {name} among the traces"))
}

pub(crate) fn an_unchanged_replay_gives_back_every_capture() {
    let replayed = assert_given_back(captures());
    assert!(replayed >= 8, "{replayed}");
}

pub(crate) fn copies_that_are_hidden_or_removed_save_no_more_than_they_take() {
    let asked = assert_copies_bounded(captures());
    assert!(asked > 0);
}

pub(crate) fn changes_together_never_save_more_than_the_run() {
    let asked = assert_together_bounded(captures());
    assert!(asked > 0);
}

pub(crate) fn a_busy_device_gains_nothing_from_graphs() {
    let (name, timeline) = other("h100-timesformer.json.gz");
    let share = saved(timeline, &[Change::CudaGraphs]);
    assert!((-0.005..0.02).contains(&share), "{name}: {share}");
    assert!(saved(timeline, &[Change::Host(2.0)]) < 0.02, "{name}");
}

pub(crate) fn graphs_do_not_save_what_the_data_loader_costs() {
    let (name, timeline) = other("h100-owlv2.json.gz");
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
    assert!(loaded.saves_ns <= loading + Nanos::new(loading.get() / 10), "{name}: {} of {loading}", loaded.saves_ns);
}

pub(crate) fn hidden_communication_saves_at_most_what_is_exposed() {
    let collective = |timeline: &Timeline| timeline.names.iter().any(|(_, name)| name.contains("nccl"));
    let mut asked_of = 0;
    for (name, timeline) in strangers().iter().filter(|(_, timeline)| collective(timeline)) {
        let Ok(answer) = asked(timeline, &[Change::HiddenCommunication]) else { continue };
        asked_of += 1;
        let all: Nanos = answer.before.device_time.iter().map(|time| time.communication_ns).sum();
        assert!(answer.saves_ns <= all + Nanos::new(all.get() / 50 + 1_000), "{name}: {} of {all}", answer.saves_ns);
    }
    assert!(asked_of > 0);
}
