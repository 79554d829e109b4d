//! Only a part is recorded: by ranges, steps, time and the CUDA profiler.

use std::process::Output;

use super::trial::{Trial, counts};

#[test]
fn a_window_limits_work_and_keeps_ranges() {
    let step = "push:decode_step launch:gemm*2 pop launch:between ";
    let words = format!("cuda push:prefill launch:conv pop {} sleep:200 launch:last", step.repeat(6));
    let trial = Trial::with("LLM_PERF_INJECT_WINDOW", "decode_step:2..4").ran(&words);
    let told = trial.file();
    assert_eq!(told.ranges.len(), 7, "ranges are recorded throughout");
    assert_eq!(told.windows, [true, false]);
    // Two steps and what lies between them; after the window CUPTI lingers, but the calls are not recorded.
    assert_eq!(told.calls, counts([("cudaLaunchKernel_v7000", 5)]));
    assert_eq!(told.under["gemm"], ["decode_step"]);
    assert!(!told.kernels.contains_key("conv") && !told.kernels.contains_key("last"));
}

/// A window, time for CUPTI to stop, and another window.
const TWO_WINDOWS: &str = "cuda wanted push:prefill launch:a*3 wanted pop sleep:300 launch:x wait wanted push:prefill launch:a*2 pop sleep:300 launch:x*2 wait wanted";

/// What the application printed: numbers, one to a line.
fn printed(output: &Output) -> Vec<u32> {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).lines().map(|line| line.parse().unwrap()).collect()
}

#[test]
fn before_the_first_window_nothing_is_attached_and_outside_of_windows_nothing_is_recorded() {
    let trial = Trial::with("LLM_PERF_INJECT_WINDOW", "prefill");
    let wanted = printed(&trial.command(TWO_WINDOWS).output().unwrap());
    // The subscription, nodes of graphs and callbacks of calls, and no record.
    assert!(matches!(wanted[..], [0, (11..), 10, 10]), "{wanted:?}");
    let told = trial.file();
    assert_eq!((told.kernels, told.problems), (counts([("a", 5)]), Vec::new()));
    assert_eq!((told.windows, told.calls), (vec![true, false, true, false], counts([("cudaLaunchKernel_v7000", 5)])));
    assert!(told.finished);
}

#[test]
fn a_window_that_opens_before_the_driver_starts_is_recorded_from_there() {
    let trial = Trial::with("LLM_PERF_INJECT_WINDOW", "prefill").ran("push:prefill cuda launch:a*2 pop launch:x");
    let told = trial.file();
    assert_eq!((told.windows, told.calls), (vec![true, false], counts([("cudaLaunchKernel_v7000", 2)])));
}

#[test]
fn a_window_needs_ranges_alone() {
    let mut trial = Trial::with("LLM_PERF_INJECT_WINDOW", "prefill");
    trial.variables.push(("CUDA_INJECTION64_PATH", String::new()));
    let trial = trial.ran("driver launch:x push:prefill launch:a*2 pop launch:x");
    let told = trial.file();
    assert_eq!((told.windows, told.calls), (vec![true, false], counts([("cudaLaunchKernel_v7000", 2)])));
    assert_eq!(told.problems, Vec::new());
}

#[test]
fn a_process_without_a_driver_gets_none_by_a_window() {
    let mut trial = Trial::with("LLM_PERF_INJECT_WINDOW", "prefill");
    trial.variables.push(("CUDA_INJECTION64_PATH", String::new()));
    let wanted = printed(&trial.command("push:prefill wanted pop").output().unwrap());
    assert_eq!(wanted, [0], "CUPTI is not attached");
    let told = trial.file();
    assert_eq!((told.windows, told.problems), (vec![true, false], Vec::new()));
}

#[test]
fn a_stage_as_window_opens_every_time() {
    let trial = Trial::with("LLM_PERF_INJECT_WINDOW", "prefill,step:0");
    let trial =
        trial.ran("cuda launch:x push:prefill launch:a pop push@LLM:step launch:b pop@LLM push:prefill launch:a pop");
    let told = trial.file();
    assert_eq!(told.windows, [true, false, true, false, true, false]);
    assert_eq!(told.calls, counts([("cudaLaunchKernel_v7000", 3)]));
}

#[test]
fn the_cuda_profiler_opens_and_closes_a_window_as_often_as_the_program_likes() {
    let round = "profiler:start launch:a*2 profiler:stop sleep:300 launch:x wait sleep:200 ";
    let trial = Trial::with("LLM_PERF_INJECT_WINDOW", "cudaProfilerApi");
    let wanted = printed(
        &trial.command(&format!("cuda wanted push:run launch:x {} wanted pop", round.repeat(2))).output().unwrap(),
    );
    // The subscription, nodes of graphs, and the four functions of the profiler; since the first window callbacks of calls as well. Never a
    // record.
    assert_eq!(wanted, [7, 14]);
    let told = trial.file();
    assert_eq!((told.kernels, told.problems), (counts([("a", 4)]), Vec::new()));
    assert_eq!((told.windows, told.calls), (vec![true, false, true, false], counts([("cudaLaunchKernel_v7000", 4)])));
    assert_eq!(told.under["a"], ["run"], "ranges are known from before the window");
    assert!(told.finished);
}

#[test]
fn windows_that_follow_closely_stay_apart() {
    let round = "profiler:start graph:a*10 wait profiler:stop graph:x*10 wait sleep:60 ";
    let trial = Trial::with("LLM_PERF_INJECT_WINDOW", "cudaProfilerApi");
    let told = trial.ran(&format!("cuda {}", round.repeat(20))).file();
    assert_eq!(told.windows, [true, false].repeat(20));
    assert_eq!(
        (told.kernels["a"], told.calls["cudaGraphLaunch_v10000"]),
        (200, 20),
        "each launch of a window and none between"
    );
}

#[test]
fn windows_of_one_name_are_all_opened() {
    let trial = Trial::with("LLM_PERF_INJECT_WINDOW", "step:1..2,step:3..5");
    let words: String = (0..6).map(|step| format!("push:step launch:of{step} pop ")).collect();
    let told = trial.ran(&format!("cuda {words}")).file();
    assert_eq!(told.windows, [true, false, true, false]);
    assert_eq!(told.calls, counts([("cudaLaunchKernel_v7000", 3)]));
}

#[test]
fn whole_graphs_are_recorded_from_the_start_or_not_at_all() {
    let mut trial = Trial::with("LLM_PERF_INJECT_WINDOW", "step");
    trial.variables.push(("LLM_PERF_INJECT_GRAPHS", "whole".to_owned()));
    let told = trial.ran("cuda push:step graph:a*10 pop").file();
    assert_eq!((told.graphs, told.kernels), (0, counts([("a", 10)])));
}

#[test]
fn a_profiler_that_is_started_twice_and_never_stopped_keeps_its_window_open() {
    let trial = Trial::with("LLM_PERF_INJECT_WINDOW", "cudaProfilerApi");
    let told = trial.ran("cuda launch:x profiler:start launch:a profiler:start launch:a").file();
    assert_eq!((told.kernels, told.windows, told.finished), (counts([("a", 2)]), vec![true], true));
}

#[test]
fn time_opens_and_closes_a_window() {
    let trial = Trial::with("LLM_PERF_INJECT_WINDOW", "1s..2s");
    let told = trial.ran("cuda launch:x sleep:1500 launch:a*3 sleep:1000 launch:x").file();
    assert_eq!((told.kernels, told.windows), (counts([("a", 3)]), vec![true, false]));
}

#[test]
fn a_window_of_steps_has_those_that_announce_such_a_size() {
    let trial = Trial::with("LLM_PERF_INJECT_WINDOW", "decode bs>=32");
    let step =
        |requests: u32| format!("push:execute_context_0(0)_generation_{requests}({requests}) launch:of{requests} pop ");
    let words = format!("cuda {}{}{}sleep:300 launch:x", step(8), step(32), step(64));
    let told = trial.ran(&words).file();
    assert_eq!(told.kernels, counts([("of32", 1), ("of64", 1)]));
    assert_eq!(told.windows, [true, false, true, false]);
}
