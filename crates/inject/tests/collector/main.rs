//! The library itself, loaded into real processes by doubles of CUPTI and of an application: what reaches the file when
//! processes end well, are killed, crash, fork, or have more to say than there is room for.

mod graphs;
mod trial;
mod waiting;
mod windows;

use std::collections::BTreeMap;
use std::process::{Child, Command};

use wire::Counter;

use trial::{Told, Trial, counts, made};

#[test]
fn kernels_calls_and_ranges_reach_the_file_and_belong_together() {
    let trial = Trial::run(
        "cuda push:prefill launch:gemm*3 push@LLM:layer launch:norm pop@LLM pop wait push:decode launch:copy pop \
         launch:after start:whole end",
    );
    let told = trial.file();
    assert_eq!(told.kernels, counts([("after", 1), ("copy", 1), ("gemm", 3), ("norm", 1)]));
    assert_eq!(told.calls, counts([("cudaLaunchKernel_v7000", 6), ("cudaStreamSynchronize_v3020", 1)]));
    assert_eq!(told.ranges, ["prefill", "LLM@layer", "decode", "whole"]);
    assert_eq!(told.under["gemm"], ["prefill"]);
    assert_eq!(told.under["norm"], ["prefill", "LLM@layer"]);
    assert_eq!(told.under["copy"], ["decode"]);
    assert_eq!(told.under["after"], [""; 0]);
    assert!(told.finished);
    assert_eq!(told.counters, BTreeMap::from([(Counter::Launches, 6)]));
    assert!(told.problems.is_empty() && !told.torn);
}

#[test]
fn a_process_that_uses_neither_cuda_nor_nvtx_leaves_nothing() {
    let trial = Trial::new();
    let status = trial.command("sleep:5").env_remove("NVTX_INJECTION64_PATH").status().unwrap();
    assert!(status.success());
    assert_eq!(trial.files().len(), 0);
}

#[test]
fn ranges_alone_make_a_file_without_cuda() {
    let told = Trial::run("push:load pop").file();
    assert_eq!(told.ranges, ["load"]);
    assert!(told.kernels.is_empty() && told.problems.is_empty());
    assert!(told.finished);
}

#[test]
fn a_killed_process_keeps_what_was_flushed() {
    for ending in ["kill", "crash"] {
        let words = format!("cuda push:step launch:early*50 sleep:700 launch:late*50 {ending}");
        let told = Trial::run_to_signal(&words).file();
        assert_eq!(told.kernels.get("early"), Some(&50), "{ending}");
        assert_eq!(told.under["early"], ["step"], "a range that is still open is known");
        assert!(!told.finished);
    }
}

#[test]
fn a_process_that_leaves_by_its_back_door_keeps_what_was_flushed() {
    let told = Trial::run("cuda launch:early*50 sleep:700 launch:late quit").file();
    assert_eq!(told.kernels.get("early"), Some(&50));
    assert!(!told.finished, "nothing says that the file is complete");
}

#[test]
fn a_child_of_a_fork_has_a_file_of_its_own_and_its_parents_ranges_stay_its_parents() {
    let trial = Trial::run("cuda push:parent launch:before fork( push:child sleep:30 pop ) launch:after pop");
    let mut told: Vec<_> = trial.files().iter().map(|file| Told::of(file)).collect();
    assert_eq!(told.len(), 2);
    told.sort_by_key(|told| told.kernels.len());
    assert_eq!(told[0].ranges, ["child"]);
    assert!(told[0].kernels.is_empty() && told[0].process != told[1].process);
    assert_eq!(told[1].ranges, ["parent"]);
    assert_eq!(told[1].kernels, counts([("after", 1), ("before", 1)]));
    assert_eq!(told[1].under["after"], ["parent"]);
    assert!(told.iter().all(|told| told.finished));
}

#[test]
fn a_child_that_says_nothing_leaves_no_file() {
    assert_eq!(Trial::run("push:parent fork( sleep:5 ) pop").files().len(), 1);
}

#[test]
fn a_child_initialises_cuda_for_itself() {
    let trial = Trial::run("fork( cuda push:child launch:gemm*5 pop ) fork( cuda launch:norm*2 )");
    let mut kernels: Vec<_> = trial.files().iter().map(|file| Told::of(file).kernels).collect();
    kernels.retain(|kernels| !kernels.is_empty());
    kernels.sort();
    assert_eq!(kernels, [counts([("gemm", 5)]), counts([("norm", 2)])]);
}

#[test]
fn threads_keep_their_ranges_apart() {
    let told = Trial::run("cuda push:main thread( push:worker launch:inner pop ) launch:outer pop").file();
    assert_eq!(told.under["inner"], ["worker"]);
    assert_eq!(told.under["outer"], ["main"]);
    assert_eq!(told.counters, BTreeMap::from([(Counter::Launches, 2)]), "an ended thread's log is read to its end");
}

#[test]
fn two_processes_write_two_files() {
    let trial = Trial::new();
    let start = |words: &str| trial.command(words).spawn().unwrap();
    let children: Vec<Child> = vec![start("cuda launch:one*3 sleep:50"), start("cuda launch:two*4 sleep:50")];
    children.into_iter().for_each(|mut child| assert!(child.wait().unwrap().success()));
    let mut kernels: Vec<_> = trial.files().iter().map(|file| Told::of(file).kernels).collect();
    kernels.sort();
    assert_eq!(kernels, [counts([("one", 3)]), counts([("two", 4)])]);
}

#[test]
fn another_tool_that_was_here_first_is_left_alone_and_named() {
    let trial = Trial::with("DOUBLE_CUPTI_BUSY", "1").ran("cuda push:step launch:gemm pop");
    let told = trial.file();
    assert_eq!(told.problems, [(39, "cuptiSubscribe".to_owned())]);
    assert_eq!(told.ranges, ["step"]);
    assert!(told.kernels.is_empty());
}

#[test]
fn a_missing_or_too_old_cupti_is_named() {
    let trial = Trial::new();
    let status = trial.command("cuda push:a pop").env("LLM_PERF_INJECT_CUPTI", "/no/such/library.so").status().unwrap();
    assert!(status.success());
    assert_eq!(trial.file().problems, [(0, "CUPTI was not found".to_owned())]);
    let old = Trial::with("DOUBLE_CUPTI_VERSION", "16").ran("cuda launch:gemm");
    assert_eq!(old.file().problems, [(0, "CUPTI is older than CUDA 12.1".to_owned())]);
    let new = Trial::with("DOUBLE_CUPTI_VERSION", "140000").ran("cuda launch:gemm");
    let told = new.file();
    assert_eq!(told.kernels, counts([("gemm", 1)]));
    assert_eq!(told.problems.len(), 1, "{:?}", told.problems);
}

#[test]
fn times_that_cannot_be_are_counted_and_their_work_is_left_out() {
    let told = Trial::run("cuda launch:a*2 launch:backward*3 launch:unstarted*4 launch:ancient*5 launch:a").file();
    assert_eq!(told.kernels, counts([("a", 3)]));
    let expected = [(Counter::Launches, 15), (Counter::TimesInvalid, 7), (Counter::TimesOutside, 5)];
    assert_eq!(told.counters, BTreeMap::from(expected));
}

#[test]
fn one_launch_of_a_graph_in_so_many_has_its_nodes() {
    let words = format!("cuda launch:before {}launch:after", "graph:a*10 ".repeat(256));
    let told = Trial::with("LLM_PERF_INJECT_GRAPHS", "1/16").ran(&words).file();
    assert_eq!((told.kernels["a"], told.graphs), (160, 240));
    assert_eq!((told.kernels["before"], told.kernels["after"], told.calls["cudaGraphLaunch_v10000"]), (1, 1, 256));
    let whole = Trial::with("LLM_PERF_INJECT_GRAPHS", "whole").ran(&words).file();
    assert_eq!((whole.kernels.get("a"), whole.graphs), (None, 256));
}

#[test]
fn what_does_not_fit_is_dropped_and_counted() {
    const STORM: u64 = 20_000;
    let told = Trial::run(&format!("cuda storm:{STORM} launch:gemm*20000")).file();
    let dropped = told.counters[&Counter::HostRecordsDropped];
    assert!(dropped > 0 && told.finished);
    let ranges = told.ranges.len() as u64 + told.pops;
    assert_eq!(ranges + told.calls["cudaLaunchKernel_v7000"] as u64 + dropped, 2 * STORM + 20_000);
    let device = told.counters.get(&Counter::DeviceRecordsDropped).copied().unwrap_or(0);
    assert_eq!(told.kernels["gemm"] as u64 + device, 20_000);
}

#[test]
fn a_folder_that_is_not_there_does_not_disturb_the_application() {
    let trial = Trial::with("LLM_PERF_INJECT_FOLDER", "/no/such/folder").ran("cuda push:a launch:gemm pop");
    assert_eq!(trial.files().len(), 0);
}

#[test]
fn a_file_of_an_earlier_process_with_the_same_number_is_kept() {
    let trial = Trial::new();
    let before = trial.folder.path().join("earlier");
    std::fs::write(&before, "earlier").unwrap();
    // The shell becomes the application, so that its number is known before it starts.
    let mut command = Command::new("sh");
    let made = made();
    command.args([
        "-c",
        "cp \"$EARLIER\" \"$LLM_PERF_INJECT_FOLDER/process-$$.wire\" && exec \"$APPLICATION\" push:a pop",
    ]);
    command.env("EARLIER", &before).env("APPLICATION", &made.application);
    command.env("NVTX_INJECTION64_PATH", &made.library).env("LLM_PERF_INJECT_FOLDER", trial.folder.path());
    assert!(command.status().unwrap().success());
    std::fs::remove_file(&before).unwrap();
    let files = trial.files();
    assert_eq!(files.len(), 2);
    assert!(files.iter().any(|file| file == b"earlier"));
    assert!(files.iter().any(|file| wire::open(file).is_ok()));
}

#[test]
fn a_full_disk_does_not_disturb_the_application_and_keeps_what_there_was_room_for() {
    let trial = Trial::new();
    let made = made();
    let mut command = Command::new("sh");
    // Larger files cannot be written: the same refusal as that of a full disk, and a signal beside it.
    command.args(["-c", "ulimit -f 100 && exec \"$APPLICATION\" cuda push:early launch:a pop sleep:400 storm:3000 launch:b*5000 sleep:400 print:alive"]);
    command.env("APPLICATION", &made.application).env("LLM_PERF_INJECT_CUPTI", &made.cupti);
    command.env("CUDA_INJECTION64_PATH", &made.library).env("NVTX_INJECTION64_PATH", &made.library);
    command.env("LLM_PERF_INJECT_FOLDER", trial.folder.path());
    let output = command.output().unwrap();
    assert!(output.status.success() && output.stdout == b"alive\n", "{output:?}");
    let told = trial.file();
    assert_eq!((told.kernels["a"], told.under["a"].as_slice()), (1, &["early".to_owned()][..]));
    assert!(told.torn && !told.finished, "nothing says that the file is complete");
}

#[test]
fn no_code_path_of_the_library_panics() {
    let library = std::fs::read(&made().library).unwrap();
    let marker = b"llm-perf collector: unreachable panic";
    assert!(!library.windows(marker.len()).any(|window| window == marker), "the panic handler is still there");
}

#[test]
fn the_library_needs_libc_and_nothing_else() {
    let library = std::fs::read(&made().library).unwrap();
    let strings: Vec<_> = library
        .split(|byte| *byte == 0)
        .filter(|text| text.len() < 64 && text.windows(3).any(|part| part == b".so"))
        .map(|text| String::from_utf8_lossy(text).into_owned())
        .filter(|text| text.starts_with("lib") && !text.contains("cupti") && !text.contains("libcuda"))
        .collect();
    // Its own name may stand there too, and before glibc 2.34 threads and the loader had libraries of their own.
    let allowed = ["libc.so.6", "libdl.so.2", "libpthread.so.0", "libllm_perf_inject.so"];
    assert!(strings.iter().all(|name| allowed.contains(&name.as_str())), "{strings:?}");
    assert!(strings.iter().any(|name| name == "libc.so.6"));
}
