//! Every way to end `llm-perf profile -- COMMAND`, and what else starts programs: whatever happens, no process of it stays, and what was measured is kept.

#![cfg(target_os = "linux")]

#[path = "support/scratch.rs"]
mod scratch;
mod support;

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use scratch::{Output, Scratch};

const PATIENCE: Duration = Duration::from_secs(120);

/// A command that writes down its processes: itself, a child in its group, and a daemon that left it. The first run ends;
/// the second does not.
const SCRIPT: &str = "\
if [ ! -e first ]; then echo measured >first; exit 0; fi
sleep 613 & echo $! >>pids
setsid sleep 614 & echo $! >>pids
echo $$ >>pids; echo >ready
sleep 615";

fn start(scratch: &Scratch, arguments: &[&str], script: &str) -> Child {
    start_any(scratch, &[&["profile", "--out", "run"], arguments, &["--", "sh", "-c", script]].concat(), &[])
}

fn start_any(scratch: &Scratch, arguments: &[&str], variables: &[(&str, String)]) -> Child {
    let program = scratch.command(arguments);
    // Whoever runs the tests, such as a shell in the background, may ignore signals, and would hand that on.
    let mut command = std::process::Command::new("env");
    command.arg("--default-signal=HUP,QUIT,ABRT").arg(program.get_program()).args(program.get_args());
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    scratch.at_home(command).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn wait_for(what: &str, is_there: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_there() {
        assert!(Instant::now() < deadline, "{what} in vain");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn send(signal: &str, process: u32) {
    assert!(std::process::Command::new("kill").args([signal, &process.to_string()]).status().unwrap().success());
}

/// Every process in the file is gone, or a zombie that whoever inherited it has yet to collect.
fn assert_all_gone(scratch: &Scratch) {
    let pids = std::fs::read_to_string(scratch.path("pids")).unwrap();
    assert!(pids.lines().count() > 0);
    for pid in pids.lines() {
        let stat = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        wait_for(&format!("waited for the end of {pid}"), || stat().is_empty() || stat().contains(") Z "));
    }
}

#[test]
fn a_signal_ends_everything_and_keeps_what_was_measured() {
    for signal in ["-INT", "-TERM", "-HUP"] {
        let scratch = Scratch::new();
        let child = start(&scratch, &["--runs", "3"], SCRIPT);
        wait_for("waited for the second run", || scratch.path("ready").exists());
        send(signal, child.id());
        let output = Output::of_child(child);
        assert_all_gone(&scratch);
        assert_eq!(output.code, 3, "{signal}: {}", output.stderr);
        assert!(output.stderr.contains("stopped by the user after 1 of 3 runs"), "{signal}: {}", output.stderr);
        assert_eq!(scratch.manifest("run")["status"], "partial");
        let command = &scratch.json("run", "metrics.json")["command"];
        assert_eq!(command["wall_ms"]["n"], 1, "{signal}");
    }
}

#[test]
fn a_second_signal_ends_a_command_that_will_not() {
    let scratch = Scratch::new();
    let script = "trap '' TERM INT HUP; echo $$ >>pids; echo >ready; while :; do sleep 1; done";
    let child = start(&scratch, &[], script);
    wait_for("waited for the command", || scratch.path("ready").exists());
    send("-TERM", child.id());
    std::thread::sleep(Duration::from_millis(100));
    send("-TERM", child.id());
    let output = Output::of_child(child);
    assert_eq!(output.code, 130, "{}", output.stderr);
    assert_all_gone(&scratch);
}

#[test]
fn what_nohup_started_outlives_its_terminal() {
    let scratch = Scratch::new();
    let script = "echo >ready; sleep 0.5; echo done >done";
    let program = scratch.command(&["profile", "--out", "run", "--", "sh", "-c", script]);
    let mut under = std::process::Command::new("nohup");
    under.arg(program.get_program()).args(program.get_args());
    let child = scratch.at_home(under).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for("waited for the command", || scratch.path("ready").exists());
    send("-HUP", child.id());
    assert_eq!(Output::of_child(child).code, 0);
    assert!(scratch.path("done").exists());
}

#[test]
fn our_own_death_is_that_of_the_command() {
    for signal in ["-KILL", "-QUIT", "-ABRT"] {
        let scratch = Scratch::new();
        let script = "trap '' QUIT; sleep 613 & echo $! >>pids; setsid sleep 614 & echo $! >>pids; echo $$ >>pids; echo >ready; wait";
        let mut child = start(&scratch, &[], script);
        wait_for("waited for the command", || scratch.path("ready").exists());
        send(signal, child.id());
        assert!(!child.wait().unwrap().success(), "{signal}");
        assert_all_gone(&scratch);
    }
}

/// Every way to get away: a child, one that is deaf, a daemon, one with nothing open, one without an environment, one that is stopped,
/// one whose parent ended, one that has all of that, and what another llm-perf guards.
const ESCAPES: &str = r#"
trap '' TERM INT HUP QUIT
sleep 630 & echo child $! >>pids
(trap '' TERM INT HUP QUIT; while :; do sleep 0.1; done) & echo deaf $! >>pids
setsid sleep 631 & echo session $! >>pids
setsid sleep 632 <&- >&- 2>&- & echo closed $! >>pids
env -i setsid sleep 633 & echo bare $! >>pids
setsid sleep 634 & echo stopped $! >>pids; kill -STOP $!
setsid sh -c 'sleep 635 & echo orphan $! >>pids' &
echo 'trap "" TERM INT HUP; echo all $$ >>pids; while :; do sleep 0.1; done' >all
env -i setsid -f sh all <&- >&- 2>&-
"$PROGRAM" profile --out inner -- sh -c 'env -i setsid sleep 636 & echo guarded $! >>pids; wait' >/dev/null 2>&1 &
echo guard $! >>pids
while :; do wait; done"#;

#[test]
fn no_process_is_left_whatever_it_did_and_whatever_signals_came() {
    let mut orphans = 0;
    let sequences: [&[&str]; 10] = [
        &["-INT"],
        &["-TERM"],
        &["-HUP"],
        &["-QUIT"],
        &["-ABRT"],
        &["-KILL"],
        &["-INT", "-INT"],
        &["-TERM", "-TERM"],
        &["-HUP", "-TERM"],
        &["-INT", "-KILL"],
    ];
    for sequence in sequences {
        let scratch = Scratch::new();
        let program = scratch.command(&[]).get_program().display().to_string();
        let arguments = ["profile", "--out", "run", "--", "sh", "-c", ESCAPES];
        let mut child = start_any(&scratch, &arguments, &[("PROGRAM", program)]);
        let pids = || std::fs::read_to_string(scratch.path("pids")).unwrap_or_default();
        wait_for("waited for ten processes", || pids().lines().count() == 10);
        let start = Instant::now();
        for (number, signal) in sequence.iter().enumerate() {
            std::thread::sleep(Duration::from_millis(100 * u64::from(number > 0)));
            send(signal, child.id());
        }
        child.wait().unwrap();
        let is_gone = |pid: &str| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.is_empty() || stat.contains(") Z ")
        };
        let left =
            || pids().lines().filter(|line| !is_gone(line.split_once(' ').unwrap().1)).collect::<Vec<_>>().join(", ");
        let deadline = Instant::now() + Duration::from_secs(20);
        while !left().is_empty() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        println!("{sequence:?}: {:.1} s, left: [{}]", start.elapsed().as_secs_f64(), left());
        orphans += left().split_terminator(", ").count();
    }
    assert_eq!(orphans, 0);
}

#[test]
fn two_hundred_children_that_a_command_leaves_are_all_ended() {
    let scratch = Scratch::new();
    let script = "i=0; while [ $i -lt 200 ]; do sleep 617 & echo $! >>pids; i=$((i+1)); done";
    let output = Output::of_child(start(&scratch, &[], script));
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(scratch.json("run", "metrics.json")["command"]["runs"][0]["left_running"], 200);
    assert_all_gone(&scratch);
}

#[test]
fn whoever_does_not_listen_to_us_does_not_keep_the_run_from_ending() {
    let words = "profile --out run -- sh -c 'sleep 0.1; yes | head -c 300000'";
    for listener in ["| head -c 1", "2>&1 | head -c 1", "2>&-", ">/dev/null 2>&- <&-"] {
        let scratch = Scratch::new();
        let program = scratch.command(&[]);
        let mut shell = std::process::Command::new("sh");
        shell.arg("-c").arg(format!("'{}' {words} {listener}", program.get_program().display()));
        let output = Output::of(scratch.at_home(shell));
        assert_eq!(output.code, 0, "{listener}: {}", output.stderr);
        assert!(!output.stderr.contains("panicked"), "{listener}: {}", output.stderr);
        assert_eq!(scratch.manifest("run")["status"], "complete", "{listener}");
    }
}

#[test]
fn remedies_that_were_tried_before_a_stop_are_kept() {
    let scratch = Scratch::new();
    let settings = ["infer.max_new_tokens=2", "infer.seq_len=8", "dataset.sampling.repeats=2"];
    let arguments = ["profile", "--engine", "native", "--model", "decoder-tiny", "--out", "run"];
    let tries = ["--try", "batch-2,batch-4,batch-8,batch-16"];
    let mut command = scratch.command(&[&arguments[..], &tries, &settings].concat());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut talk = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let before: Vec<String> = talk.by_ref().take_while(|line| !line.contains("trying batch-4")).collect();
    send("-TERM", child.id());
    let rest: Vec<String> = talk.collect();
    assert_eq!(child.wait().unwrap().code(), Some(3), "{before:?} {rest:?}");
    assert!(rest.iter().any(|line| line.contains("stopped by the user while trying remedies")), "{rest:?}");
    let metrics = scratch.json("run", "metrics.json");
    let tries = metrics["tries"].as_array().unwrap();
    assert_eq!((tries[0]["status"].as_str(), tries[3]["status"].as_str()), (Some("tried"), Some("not_reached")));
    assert!(metrics["throughput"]["ttft_ns"].is_i64());
}

#[test]
fn what_a_command_leaves_behind_is_ended_and_said() {
    let scratch = Scratch::new();
    let script = "setsid sh -c 'echo $$ >>pids; echo >ready; sleep 616' >/dev/null 2>&1 &
        while [ ! -e ready ]; do sleep 0.01; done";
    let output = Output::of_child(start(&scratch, &[], script));
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(output.stdout.contains("still running after the command exited"), "{}", output.stdout);
    assert_all_gone(&scratch);
}

#[test]
fn a_command_that_floods_or_closes_its_output_is_measured_all_the_same() {
    for script in ["exec >&- 2>&-; sleep 0.01", "head -c 30000000 /dev/zero", "yes | head -c 3000000 >&2"] {
        let scratch = Scratch::new();
        let output = Output::of_child(start(&scratch, &["-q"], script));
        assert_eq!(output.code, 0, "{script}: {}", output.stderr);
        assert!(output.stderr.len() < 1000, "{script}: {} bytes", output.stderr.len());
        assert_eq!(scratch.json("run", "metrics.json")["command"]["wall_ms"]["n"], 1, "{script}");
    }
}

#[test]
fn a_model_that_is_stopped_keeps_the_inferences_that_were_measured() {
    let scratch = Scratch::new();
    let settings = ["infer.max_new_tokens=2", "infer.seq_len=8", "dataset.sampling.repeats=1000000"];
    let arguments = ["profile", "--engine", "native", "--model", "decoder-tiny", "--out", "run"];
    let mut command = scratch.command(&[&arguments[..], &settings].concat());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut talk = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let far = talk.find(|line| line.contains(" done, about ")).expect("a line that says how far it is");
    send("-TERM", child.id());
    let rest: Vec<String> = talk.collect();
    assert_eq!(child.wait().unwrap().code(), Some(3), "{far} {rest:?}");
    assert!(rest.iter().any(|line| line.contains("stopped by the user after ")), "{rest:?}");
    let (manifest, metrics) = (scratch.manifest("run"), scratch.json("run", "metrics.json"));
    assert_eq!(manifest["status"], "partial");
    let measured = metrics["samples"].as_array().unwrap().iter().filter(|one| one["warmup"] == false).count();
    assert!(measured > 0 && metrics["throughput"]["ttft_ns"].is_i64(), "{measured}");
    assert!(!metrics["disturbance"].as_array().unwrap().is_empty());
    assert_eq!(Output::of(scratch.command(&["validate", "run/metrics.json"])).code, 0);
}

/// A tool that says who it is when it is asked, and never ends otherwise.
fn endless_tool(scratch: &Scratch, name: &str, asked: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    let (bin, home) = (scratch.path("bin"), scratch.path(""));
    std::fs::create_dir_all(&bin).unwrap();
    let work = "sleep 618 & echo $! >>pids; echo $$ >>pids; echo >ready; sleep 619";
    let script = format!("#!/bin/sh\n{asked}\ncd '{}'\n{work}\n", home.display());
    std::fs::write(bin.join(name), script).unwrap();
    std::fs::set_permissions(bin.join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    bin.display().to_string()
}

#[test]
fn profilers_and_the_torch_driver_end_with_us_whatever_ends_us() {
    let version = "Version 2025.3.1.0 (build 36398880) (public-release)";
    let ncu = format!("case \"$*\" in *--version*) echo '{version}'; exit 0;; esac");
    let facts = r#"{"version":"3.11.7","executable":"python3","torch":"2.11.0","torch_folder":null,"transformers":null,"cupti":null,"folders":[]}"#;
    let python = format!("if [ \"$1\" = -c ]; then echo '{facts}'; exit 0; fi");
    for signal in ["-TERM", "-HUP", "-KILL"] {
        let scratch = Scratch::new();
        let bin = endless_tool(&scratch, "ncu", &ncu);
        let path = format!("{bin}:{}", std::env::var("PATH").unwrap_or_default());
        let mut child = start_any(&scratch, &["regions", "--out", "run", "--", "true"], &[("PATH", path)]);
        wait_for("waited for ncu", || scratch.path("ready").exists());
        send(signal, child.id());
        assert!(!child.wait().unwrap().success(), "{signal}");
        assert_all_gone(&scratch);

        let scratch = Scratch::new();
        let bin = endless_tool(&scratch, "python3", &python);
        let arguments = ["profile", "--engine", "torch", "--model", "decoder-tiny", "--out", "run", "infer.seq_len=32"];
        let mut child = start_any(&scratch, &arguments, &[("LLM_PERF_PYTHON", format!("{bin}/python3"))]);
        wait_for("waited for the driver", || scratch.path("ready").exists());
        send(signal, child.id());
        assert!(!child.wait().unwrap().success(), "{signal}");
        assert_all_gone(&scratch);
    }
}
