//! Launches of graphs are timed by events, without CUPTI, against a double of the driver that knows when each ran.

use std::path::Path;

use wire::{Counter, Span};

use super::trial::{Told, Trial, counts};
use super::waiting::Waiting;

/// What the clock of the double of the driver gains in the time between two readings of both clocks, and what is rounded.
const DRIFT: u64 = 50_000;

/// What an application does before it is recorded: a first launch, because slots may be filled by it.
fn prepared(engine: &str) -> String {
    format!("cuda driver context:192 engine:{engine} replay:10@1 sleep:20 print:ready ")
}

/// Starts an application that waits, whose driver writes when each launch ran.
fn start(words: &str, truth: &Path) -> Waiting {
    let mut command = Trial::new().command(words);
    command.env("DOUBLE_TRUTH", truth);
    Waiting::start_by(command)
}

/// When launches of a stream ran, by the driver.
fn truth(path: &Path, stream: u64) -> Vec<(u64, u64)> {
    let text = std::fs::read_to_string(path).unwrap();
    let rows = text.lines().map(|line| line.split(' ').map(|word| word.parse::<u64>().unwrap()).collect::<Vec<_>>());
    rows.filter(|row| row[0] == stream).map(|row| (row[1], row[2])).collect()
}

/// Whether a launch ran inside of that time, as far as both clocks are known. The time starts when the stream is free for the launch, and
/// ends at the earliest with it: on a stream that has nothing else to do, the thread that launches may come late to either.
fn ran(span: &Span, (start, end): (u64, u64), apart: u64) -> bool {
    span.start <= start + apart + DRIFT && span.start + span.duration + apart + DRIFT >= end
}

/// What was recorded when an application was asked once, for so many milliseconds.
fn recorded(waiting: &Waiting, milliseconds: u32) -> Told {
    waiting.ask(&format!("{milliseconds} graphs"));
    waiting.over();
    waiting.told().pop().unwrap()
}

#[test]
fn every_launch_of_a_graph_has_its_time_without_cupti() {
    let folder = tempfile::tempdir().unwrap();
    for (engine, function) in [("lazy", "cudaGraphLaunch"), ("now", "cudaGraphLaunch"), ("driver", "cuGraphLaunch")] {
        let path = folder.path().join(engine);
        let step = "push:step replay:300@7 replay:200@7 sleep:3 pop ".repeat(300);
        let mut waiting = start(&format!("{}{step}wanted violations sleep:5000", prepared(engine)), &path);
        let told = recorded(&waiting, 400);
        assert_eq!(
            (waiting.lines.next().unwrap().unwrap(), waiting.lines.next().unwrap().unwrap()),
            ("0".into(), "0".into())
        );
        assert!(told.graphs_only && told.finished && told.problems.is_empty() && told.kernels.is_empty(), "{told:?}");
        assert!(told.graphs > 40 && told.ranges.contains(&"step".to_owned()), "{told:?}");
        assert_eq!(told.calls, counts([(function, told.graphs)]), "one launch is one call, whatever calls what");
        let (apart, truth) = (told.counters[&Counter::ClocksApart], truth(&path, 7));
        let known = |span: &Span| truth.iter().any(|launch| ran(span, *launch, apart));
        assert!(told.spans.iter().all(|(_, span)| known(span)), "{engine}: {:?}", told.spans);
        // Every second one was launched while the one before it ran.
        let queued = told.spans.iter().filter(|(_, span)| span.duration.abs_diff(200_000) < 10_000).count();
        assert!(queued * 3 > told.graphs, "{engine}: {:?}", told.spans);
        // Only before events were there a launch may lack its time.
        let untimed = told.counters.get(&Counter::LaunchesUntimed).copied().unwrap_or(0);
        assert!(untimed < 20, "{untimed}");
    }
}

#[test]
fn threads_and_streams_are_kept_apart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("truth");
    let waiting = start(&format!("{}parallel:6*1500 sleep:5000", prepared("lazy")), &path);
    let told = recorded(&waiting, 200);
    let mut streams: Vec<u32> = told.spans.iter().map(|(stream, _)| *stream).collect();
    streams.sort_unstable();
    streams.dedup();
    assert_eq!(streams.len(), 6, "{told:?}");
    let (apart, launches) = (told.counters[&Counter::ClocksApart], (100..106).map(|stream| truth(&path, stream)));
    let launches: Vec<_> = launches.flatten().collect();
    assert!(told.spans.iter().all(|(_, span)| launches.iter().any(|launch| ran(span, *launch, apart))));
}

#[test]
fn nothing_is_recorded_on_a_stream_that_captures_and_no_capture_is_disturbed() {
    let folder = tempfile::tempdir().unwrap();
    let step = "replay:50@1 capture:9 replay:50@9 replay:50@1 sleep:15 captured:9 ".repeat(60);
    let mut waiting = start(&format!("{}{step}violations sleep:5000", prepared("lazy")), &folder.path().join("truth"));
    let told = recorded(&waiting, 300);
    assert_eq!(waiting.lines.next().unwrap().unwrap(), "0");
    assert!(told.graphs > 10 && told.counters[&Counter::LaunchesUntimed] > 5, "{told:?}");
}

#[test]
fn launches_beyond_the_events_there_are_and_those_that_do_not_end_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    // The first ones have their events made; none of the others ends while it is recorded.
    let words = format!("{}{}replay:1000000@2*1500 sleep:5000", prepared("lazy"), "replay:10@1 sleep:5 ".repeat(60));
    let told = recorded(&start(&words, &folder.path().join("truth")), 1000);
    assert!(told.counters[&Counter::LaunchesUntimed] >= 1500 - 1024, "{told:?}");
    assert_eq!(told.counters[&Counter::RecordsUnfinished], 1024, "{told:?}");
    assert!(told.graphs > 10 && told.finished);
}

#[test]
fn a_launch_that_is_refused_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let words = format!("{}{}sleep:5000", prepared("now"), "replay:0@3 replay:10@4 sleep:5 ".repeat(60));
    let told = recorded(&start(&words, &folder.path().join("truth")), 200);
    let streams: std::collections::BTreeSet<u32> = told.spans.iter().map(|(stream, _)| *stream).collect();
    assert_eq!((streams.len(), told.counters[&Counter::Launches]), (1, told.graphs as u64), "{told:?}");
}

#[test]
fn a_process_that_forks_or_ends_while_its_graphs_are_timed_keeps_what_it_did() {
    let folder = tempfile::tempdir().unwrap();
    let step = "replay:50@1 sleep:5 ".repeat(40);
    let words = format!("{}{step}fork( print:child ) {step}violations", prepared("lazy"));
    let mut waiting = start(&words, &folder.path().join("truth"));
    waiting.begin("60000 graphs");
    waiting.child.wait().unwrap();
    let printed: Vec<_> = waiting.lines.by_ref().map(Result::unwrap).collect();
    assert_eq!(printed, ["child", "0"]);
    let told = waiting.told().pop().unwrap();
    assert!(told.graphs > 40 && told.finished && told.graphs_only, "{told:?}");
}

#[test]
fn recordings_with_and_without_cupti_follow_one_another() {
    let folder = tempfile::tempdir().unwrap();
    let step = "replay:50@1 launch:a graph:g*2 sleep:5 ".repeat(400);
    let waiting = start(&format!("{}{step}sleep:5000", prepared("lazy")), &folder.path().join("truth"));
    for request in ["200 graphs", "200", "200 graphs", "200"] {
        waiting.ask(request);
        waiting.over();
    }
    let told = waiting.told();
    let seen: Vec<_> =
        told.iter().map(|told| (told.graphs > 5, told.kernels.contains_key("a"), told.graphs_only)).collect();
    let (events, cupti) = ((true, false, true), (false, true, false));
    assert_eq!(seen, [events, cupti, events, cupti], "{told:?}");
    assert_eq!(
        told[2].calls,
        counts([("cudaGraphLaunch", told[2].graphs)]),
        "callbacks of CUPTI that stay record nothing"
    );
}

#[test]
fn a_process_whose_launches_cannot_be_seen_says_so() {
    let waiting = Waiting::start(&format!("cuda driver print:ready {}", "sleep:5 ".repeat(400)));
    let told = recorded(&waiting, 100);
    let why = "no library of the process calls a function that launches CUDA graphs by its name";
    assert_eq!((told.problems, told.graphs_only), (vec![(0, why.to_owned())], true));
}
