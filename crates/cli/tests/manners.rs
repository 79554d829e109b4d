//! How the program behaves at its edges: help, habits of other tools, wrong usage, terminals, closed pipes, colour.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use support::{llm_perf, transcript};

mod support;

/// The verbs as `--help` lists them, heading by heading.
fn verbs() -> Vec<String> {
    let output = llm_perf().arg("--help").output().expect("the program starts");
    let help = String::from_utf8(output.stdout).expect("help is text");
    help.lines()
        .skip_while(|line| *line != "Start here:")
        .take_while(|line| *line != "Options:")
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next().map(String::from))
        .collect()
}

#[test]
fn help_lists_what_works() {
    insta::assert_snapshot!("help", transcript(&["--help"]));
}

#[test]
fn every_verb_explains_itself() {
    let verbs = verbs();
    assert!(verbs.contains(&"config".to_owned()), "{verbs:?}");
    assert_eq!(verbs[..5], ["profile", "import", "analyze", "compare", "report"], "a newcomer finds these first");
    // Profilers launch it, and nobody needs to find it.
    assert!(!verbs.contains(&"workload".to_owned()), "{verbs:?}");
    for verb in verbs.into_iter().chain(["workload".to_owned()]) {
        insta::assert_snapshot!(format!("help_{verb}"), transcript(&[&verb, "--help"]));
    }
}

#[test]
fn every_verb_has_a_manual_page() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = llm_perf().arg("man").arg(folder.path()).output().expect("the program starts");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    for verb in verbs() {
        let page = std::fs::read_to_string(folder.path().join(format!("llm-perf-{verb}.1"))).expect("a page");
        assert!(page.contains(&format!(".TH llm-perf-{verb} 1")) && page.contains("Examples:"), "{page}");
    }
    assert!(folder.path().join("llm-perf.1").is_file());
}

#[test]
fn no_arguments_show_help_as_wrong_usage() {
    let shown = transcript(&[]);
    assert!(shown.starts_with("exit: 2\n----- stdout -----\n----- stderr -----\n"), "{shown}");
    assert!(shown.contains("Usage: llm-perf"), "{shown}");
}

#[test]
fn a_misspelt_verb_names_the_nearest() {
    insta::assert_snapshot!(transcript(&["completion"]));
}

#[test]
fn an_unknown_option_is_wrong_usage() {
    insta::assert_snapshot!(transcript(&["completions", "--jsn", "bash"]));
}

#[test]
fn an_unknown_shell_lists_the_known_ones() {
    insta::assert_snapshot!(transcript(&["completions", "bsh"]));
}

#[test]
fn quiet_and_verbose_exclude_each_other() {
    insta::assert_snapshot!(transcript(&["completions", "bash", "-q", "-v"]));
}

#[test]
fn completions_exist_for_every_shell() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let shown = transcript(&["completions", shell]);
        assert!(shown.starts_with("exit: 0\n"), "{shown}");
        assert!(shown.contains("config-dir"), "{shell} completes the global options");
    }
}

#[test]
fn a_reader_that_closes_the_pipe_is_no_error() {
    let mut child = llm_perf()
        .args(["completions", "bash"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // The reader is gone before the first byte is read, so that every write finds a closed pipe.
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn a_reader_that_stops_after_one_line_is_no_error() {
    let mut child = llm_perf()
        .args(["completions", "zsh"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut line = String::new();
    let mut reader = BufReader::with_capacity(16, child.stdout.take().expect("a pipe"));
    reader.read_line(&mut line).expect("one line");
    drop(reader);
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!(line, "#compdef llm-perf\n");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_device_under_standard_output_is_an_error() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
    let output = llm_perf().args(["completions", "bash"]).stdout(full).output().expect("the program starts");
    assert_eq!(output.status.code(), Some(1));
    insta::assert_snapshot!(String::from_utf8_lossy(&output.stderr), @r"
    error: cannot write to standard output
      caused by: No space left on device (os error 28)
    ");
}

#[test]
fn colour_follows_the_flag_and_not_the_pipe() {
    let stderr = |arguments: &[&str]| {
        let output = llm_perf().args(arguments).output().expect("the program starts");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(!stderr(&["completion"]).contains('\u{1b}'), "a pipe is no terminal");
    assert!(stderr(&["completion", "--color", "always"]).contains('\u{1b}'));
    assert!(!stderr(&["completion", "--color=never"]).contains('\u{1b}'));
}

#[test]
fn a_command_without_dashes_is_shown_with_them() {
    for verb in ["profile", "deep", "regions"] {
        let shown = transcript(&[verb, "python", "train.py", "--lr", "3"]);
        assert!(shown.starts_with("exit: 2\n"), "{shown}");
        let line = format!("put `--` before the command: `llm-perf {verb} -- python train.py --lr 3`\n");
        assert!(shown.ends_with(&line), "{shown}");
    }
    insta::assert_snapshot!(transcript(&["profile", "python", "train.py"]), @r"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: unexpected argument `python`: a command goes after `--`
    hint: put `--` before the command: `llm-perf profile -- python train.py`
    ");
}

#[test]
fn options_of_other_tools_lead_to_overrides() {
    for (verb, option, value, setting) in [
        ("analyze", "--batch", "8", "workload.batch=8"),
        ("analyze", "--seq-len", "4096", "workload.seq_len=4096"),
        ("analyze", "--dtype", "fp8", "workload.dtype=fp8"),
        ("analyze", "--decode-steps", "15", "workload.decode_steps=15"),
        ("analyze", "--max-new-tokens", "16", "workload.max_new_tokens=16"),
        ("profile", "--batch", "8", "infer.batch=8"),
        ("profile", "--seq-len", "512", "infer.seq_len=512"),
        ("profile", "--dtype", "bf16", "model.dtype=bf16"),
        ("profile", "--decode-steps", "15", "infer.max_new_tokens=16"),
        ("profile", "--max-new-tokens", "16", "infer.max_new_tokens=16"),
    ] {
        let shown = transcript(&[verb, option, value]);
        assert!(shown.starts_with("exit: 2\n"), "{shown}");
        assert!(shown.contains(&format!("error: unknown option `{option}`\n")), "{shown}");
        assert!(shown.contains(&format!("hint: use the override `{setting}`")), "{shown}");
    }
}

#[test]
fn a_hub_id_is_answered_with_the_way_to_its_config() {
    for arguments in [["analyze", "--model", "org/name"], ["import", "--model=org/name", "x.json"]] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(transcript(&arguments), @r"
            exit: 2
            ----- stdout -----
            ----- stderr -----
            error: model `org/name` not found on this machine
            hint: --model takes a built-in name, or a config.json, a folder or a GGUF file on this machine; nothing is downloaded
            hint: get the config with `hf download org/name config.json --local-dir DIR`, then use --model DIR/config.json
            ");
        }
    }
    let shown = transcript(&["profile", "--engine", "native", "--model", "Qwen/Qwen3-8B"]);
    assert!(shown.contains("hint: did you mean the built-in model `qwen3-8b`?\n"), "{shown}");
}

#[test]
fn a_folder_without_a_config_is_called_that() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let name = folder.path().display().to_string();
    for arguments in [
        ["analyze", "--model", &name, "--json"],
        ["profile", "--model", &name, "--engine=native"],
        ["profile", "--model", &name, "--engine=torch"],
    ] {
        let shown = transcript(&arguments);
        assert!(shown.contains(&format!("error: {name} has no config.json\n")), "{shown}");
        assert!(shown.starts_with("exit: 2\n"), "{shown}");
    }
    std::fs::write(folder.path().join("a.gguf"), "").expect("a file");
    let shown = transcript(&["analyze", "--model", &name]);
    assert!(shown.contains(&format!("hint: name the GGUF file: --model {name}/a.gguf\n")), "{shown}");
}

#[test]
fn a_folder_of_traces_leads_to_fleet_and_to_its_files() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let name = folder.path().display().to_string();
    let shown = transcript(&["import", &name]);
    assert!(shown.starts_with("exit: 2\n") && !shown.contains("files in it"), "{shown}");
    for file in ["b.json", "a.json", "e.json", "d.json", "c.json"] {
        std::fs::copy(trace(), folder.path().join(file)).expect("a copy");
    }
    std::fs::write(folder.path().join("notes.txt"), "no trace").expect("a file");
    insta::assert_snapshot!(transcript(&["import", &name]).replace(&name, "DIR"), @r"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: DIR is a folder; `import` takes files
    hint: for the traces of many ranks, use `llm-perf fleet DIR`
    hint: files in it to import: DIR/a.json, DIR/b.json, DIR/c.json, DIR/d.json and 1 more
    ");
}

#[test]
fn part_of_a_device_name_lists_the_devices_that_match() {
    insta::assert_snapshot!(transcript(&["analyze", "--hardware", "H100"]), @r"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: `H100` matches several devices: h100-nvl, h100-pcie, h100-sxm
    hint: name one of them; `llm-perf hardware NAME` shows one
    ");
    let shown = transcript(&["analyze", "--hardware", "nonsense"]);
    assert!(shown.contains("error: unknown device `nonsense`; known devices: a100-pcie-40gb, "), "{shown}");
}

#[test]
fn quiet_keeps_data_on_stdout_and_leaves_only_errors_on_stderr() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = trace().display().to_string();
    for arguments in [
        &["models", "llama-3-8b"][..],
        &["hardware"],
        &["workloads"],
        &["runs"],
        &["config"],
        &["schema"],
        &["env"],
        &["analyze"],
        &["import", &trace],
        &[
            "profile",
            "--engine=native",
            "--model=decoder-tiny",
            "dataset/sampling=sampling.smoke",
            "infer.max_new_tokens=2",
        ],
        &["profile", "--", "echo", "from the command"],
        &["show"],
        &["report", "latest", "--charts", "charts"],
    ] {
        let output = llm_perf().args(arguments).arg_before("-q", folder.path());
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
        // A list of no runs is the only answer that says nothing.
        assert_eq!(output.stdout.is_empty(), arguments == ["runs"], "{arguments:?}");
    }
    let output = llm_perf().args(["analyze", "--model", "nonsense"]).arg_before("-q", folder.path());
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("error: "), "errors are still printed");
}

/// Runs a command in a folder, with one more option at its end or before `--`.
trait ArgBefore {
    fn arg_before(&mut self, option: &str, folder: &Path) -> std::process::Output;
}

impl ArgBefore for Command {
    fn arg_before(&mut self, option: &str, folder: &Path) -> std::process::Output {
        let mut all: Vec<_> = self.get_args().map(OsStr::to_owned).collect();
        let at = all.iter().position(|word| word == "--").unwrap_or(all.len());
        all.insert(at, option.into());
        llm_perf().args(all).current_dir(folder).output().expect("the program starts")
    }
}

/// A small trace of the torch profiler.
fn trace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../ingest/tests/fixtures/torch/small.json")
}

#[cfg(target_os = "linux")]
#[test]
fn paths_that_are_not_utf_8_are_taken_byte_by_byte() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let odd = |name: &[u8]| folder.path().join(OsStr::from_bytes(&[name, b"-\xff"].concat()));
    let run = |arguments: &[&OsStr]| {
        let output = llm_perf().args(arguments).current_dir(folder.path()).output().expect("the program starts");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {stderr}");
        output.stdout
    };
    let word = OsStr::new;
    // A trace, and the folder of its run.
    let (file, imported) = (odd(b"trace"), odd(b"imported"));
    std::fs::copy(trace(), &file).expect("a copy");
    run(&[word("import"), file.as_os_str(), word("--out"), imported.as_os_str()]);
    assert!(imported.join("metrics.json").is_file());
    for verb in ["show", "runs"] {
        run(&[word(verb), imported.as_os_str()]);
    }
    run(&[word("compare"), imported.as_os_str(), imported.join("metrics.json").as_os_str()]);
    // A path on standard output is the path itself.
    let page = odd(b"page");
    let printed = run(&[word("report"), imported.as_os_str(), word("--out"), page.as_os_str()]);
    assert_eq!(printed.strip_suffix(b"\n"), Some(page.as_os_str().as_bytes()));
    assert!(page.is_file());
    // A model by its file and by its folder.
    let (config, model) = (odd(b"config"), odd(b"model"));
    std::fs::write(&config, include_str!("../../network/presets/qwen3-8b.json")).expect("a file");
    std::fs::create_dir(&model).expect("a folder");
    std::fs::copy(&config, model.join("config.json")).expect("a copy");
    for (path, out) in [(&config, odd(b"one")), (&model, odd(b"two"))] {
        run(&[word("analyze"), word("--model"), path.as_os_str(), word("--out"), out.as_os_str()]);
        assert!(out.join("static_analysis").is_dir());
        run(&[word("models"), path.as_os_str()]);
    }
    // What a model is fed.
    let inputs = odd(b"inputs");
    std::fs::create_dir(&inputs).expect("a folder");
    std::fs::write(inputs.join(OsStr::from_bytes(b"prompt-\xff.txt")), "Hello").expect("a file");
    let out = odd(b"profiled");
    let settings =
        ["dataset/sampling=sampling.smoke", "infer.max_new_tokens=2", "--model=decoder-tiny", "--engine=native"];
    let arguments = [word("profile"), word("--inputs"), inputs.as_os_str(), word("--out"), out.as_os_str()];
    run(&[&arguments[..], &settings.map(word)].concat());
    assert!(out.join("metrics.json").is_file());
}
