//! Which room may use which, compared with what the crates really declare.
//!
//! The table is the one of `docs/architecture.md`; a test keeps the two equal. What a crate does beyond its dependencies
//! is held to account by reading its sources, tests left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

/// One crate: its name in the code, its package, the rooms it may use.
struct Room {
    name: &'static str,
    package: &'static str,
    uses: &'static [&'static str],
}

/// The arrow table. Development dependencies are not arrows: a test may use what it needs.
const ROOMS: &[Room] = &[
    Room { name: "derive", package: "llm-perf-derive", uses: &[] },
    Room { name: "types", package: "llm-perf-types", uses: &["derive"] },
    Room { name: "network", package: "llm-perf-network", uses: &["types"] },
    Room { name: "meter", package: "llm-perf-meter", uses: &["network", "types"] },
    Room { name: "forecast", package: "llm-perf-forecast", uses: &["meter", "network", "types"] },
    Room { name: "engine", package: "llm-perf-engine", uses: &["network", "types"] },
    Room { name: "wire", package: "llm-perf-wire", uses: &[] },
    Room { name: "inject", package: "llm-perf-inject", uses: &["wire"] },
    Room { name: "collect", package: "llm-perf-collect", uses: &["types"] },
    Room { name: "load", package: "llm-perf-load", uses: &["types"] },
    Room { name: "ingest", package: "llm-perf-ingest", uses: &["types", "wire"] },
    Room { name: "analysis", package: "llm-perf-analysis", uses: &["types"] },
    Room { name: "tables", package: "llm-perf-tables", uses: &["analysis", "types"] },
    Room { name: "report", package: "llm-perf-report", uses: &["types"] },
    Room {
        name: "flow",
        package: "llm-perf-flow",
        uses: &[
            "analysis", "collect", "engine", "forecast", "ingest", "load", "meter", "network", "report", "tables",
            "types",
        ],
    },
    Room { name: "config", package: "llm-perf-config", uses: &["types"] },
    Room { name: "cli", package: "llm-perf", uses: &["config", "flow", "types"] },
];

/// Programs that tests start. It is no part of the tool and may use any room.
const TESTKIT: &str = "llm-perf-testkit";

/// The nouns: nothing that opens, starts or waits for anything.
const TYPES_MAY_USE: [&str; 4] = ["serde", "serde_json", "strsim", "thiserror"];

/// Crates of others that belong to some rooms only, by the beginning of their names. `testkit` is free.
const CONFINED: &[(&str, &[&str])] = &[
    ("clap", &["cli"]),
    ("indicatif", &["cli"]),
    ("hyper", &["load"]),
    ("libc", &["collect", "engine", "inject", "load"]),
    ("nvml-wrapper", &["collect"]),
    ("parquet", &["tables"]),
    ("tokio", &["load"]),
];

/// Rooms that get bytes and values and give back values: no files, processes, clocks or environment.
const PURE: [&str; 9] = ["types", "network", "meter", "forecast", "wire", "ingest", "analysis", "tables", "report"];
const IMPURE: [&str; 6] = ["std::fs", "std::process", "std::net", "std::env", "Instant::now", "SystemTime::now"];

/// Only the command line talks; `testkit` holds programs of its own.
const TALK: [&str; 4] = ["print!(", "println!(", "io::stdout", "io::stderr"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What cargo says of the workspace, without asking any registry.
fn metadata() -> Value {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is not a text"))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("{value} is not a list"))
}

fn room(package: &str) -> Option<&'static Room> {
    ROOMS.iter().find(|room| room.package == package)
}

/// The packages that are rooms, with what cargo says of each.
fn rooms_built(metadata: &Value) -> impl Iterator<Item = (&'static Room, &Value)> {
    list(&metadata["packages"]).iter().filter_map(|package| Some((room(text(&package["name"]))?, package)))
}

/// Names of the packages that one package is built with; its tests may use more.
fn dependencies(package: &Value) -> impl Iterator<Item = &str> {
    list(&package["dependencies"]).iter().filter(|dependency| dependency["kind"] != "dev").map(|d| text(&d["name"]))
}

/// Everything in the workspace that the tables do not allow.
fn forbidden(metadata: &Value) -> Vec<String> {
    let names = list(&metadata["packages"]).iter().map(|package| text(&package["name"]));
    let unknown = names.filter(|name| *name != TESTKIT && room(name).is_none());
    let mut found: Vec<_> = unknown.map(|name| format!("{name} is not in the arrow table")).collect();
    for (from, package) in rooms_built(metadata) {
        for name in dependencies(package) {
            found.extend(objection(from, name).map(|why| format!("{} uses {name}, {why}", from.name)));
        }
    }
    found
}

/// Why a room must not use a package.
fn objection(from: &Room, package: &str) -> Option<String> {
    if let Some(to) = room(package) {
        return (!from.uses.contains(&to.name)).then(|| "which is no arrow of the table".to_owned());
    }
    if package.starts_with("llm-perf") {
        return Some("which is no room of the tool".to_owned());
    }
    if from.name == "types" && !TYPES_MAY_USE.contains(&package) {
        return Some(format!("but may use {TYPES_MAY_USE:?} only"));
    }
    let (_, homes) = CONFINED.iter().find(|(confined, _)| package.starts_with(confined))?;
    (!homes.contains(&from.name)).then(|| format!("which belongs to {homes:?}"))
}

fn folder(package: &Value) -> PathBuf {
    Path::new(text(&package["manifest_path"])).parent().unwrap().to_owned()
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The lines of a crate's sources that are code: no comments, and nothing from the tests at the end of a file on.
fn code_lines(package: &Value) -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    rust_files(&folder(package).join("src"), &mut files);
    let code = |path: PathBuf| {
        let lines: Vec<_> = read(&path)
            .lines()
            .map(str::trim)
            .take_while(|line| !line.starts_with("#[cfg(test)]"))
            .filter(|line| !line.is_empty() && !line.starts_with("//"))
            .map(|line| (path.clone(), line.to_owned()))
            .collect();
        lines
    };
    files.into_iter().flat_map(code).collect()
}

/// Which of the words stand in the code of a crate, each with its file.
fn words_in_code(package: &Value, words: &[&str]) -> Vec<String> {
    let lines = code_lines(package);
    let found = lines.iter().filter(|(_, line)| words.iter().any(|word| line.contains(word)));
    found.map(|(path, line)| format!("{}: {line}", path.display())).collect()
}

#[test]
fn crates_use_what_the_tables_allow() {
    let metadata = metadata();
    assert!(rooms_built(&metadata).count() > 1);
    assert_eq!(forbidden(&metadata), Vec::<String>::new());
}

#[test]
fn every_arrow_of_the_table_is_used() {
    let metadata = metadata();
    for (from, package) in rooms_built(&metadata) {
        let used: Vec<_> = dependencies(package).filter_map(room).map(|to| to.name).collect();
        let idle: Vec<_> = from.uses.iter().filter(|to| !used.contains(to)).collect();
        assert!(idle.is_empty(), "{} does not use {idle:?}", from.name);
    }
}

#[test]
fn what_the_tables_do_not_allow_is_found() {
    let package = |name: &str, dependencies: &[(&str, Option<&str>)]| {
        let entry = |(name, kind): &(&str, Option<&str>)| json!({"name": name, "kind": kind});
        json!({"name": name, "dependencies": dependencies.iter().map(entry).collect::<Vec<_>>()})
    };
    let metadata = json!({"packages": [
        package("llm-perf-types", &[("serde", None), ("memmap2", None), ("llm-perf-meter", Some("dev"))]),
        package("llm-perf-meter", &[("llm-perf-network", None), ("llm-perf-collect", None), ("clap_complete", None)]),
        package("llm-perf-flow", &[("llm-perf-testkit", Some("build"))]),
        package("llm-perf-testkit", &[("llm-perf-collect", None), ("libc", None)]),
        package("llm-perf-cellar", &[]),
    ]});
    let expected = [
        "llm-perf-cellar is not in the arrow table",
        "types uses memmap2, but may use [\"serde\", \"serde_json\", \"strsim\", \"thiserror\"] only",
        "meter uses llm-perf-collect, which is no arrow of the table",
        "meter uses clap_complete, which belongs to [\"cli\"]",
        "flow uses llm-perf-testkit, which is no room of the tool",
    ];
    assert_eq!(forbidden(&metadata), expected);
}

#[test]
fn the_table_itself_has_no_circle() {
    let mut settled = BTreeSet::new();
    while settled.len() < ROOMS.len() {
        let ready: Vec<_> = ROOMS
            .iter()
            .filter(|room| !settled.contains(room.name) && room.uses.iter().all(|used| settled.contains(used)))
            .map(|room| room.name)
            .collect();
        assert!(!ready.is_empty(), "a circle or an unknown name among the rooms beside {settled:?}");
        settled.extend(ready);
    }
}

#[test]
fn pure_rooms_touch_no_file_process_clock_or_environment() {
    let metadata = metadata();
    for (room, package) in rooms_built(&metadata) {
        if PURE.contains(&room.name) {
            assert_eq!(words_in_code(package, &IMPURE), Vec::<String>::new());
        }
    }
}

#[test]
fn only_the_command_line_talks() {
    let metadata = metadata();
    for (room, package) in rooms_built(&metadata) {
        if room.name != "cli" {
            assert_eq!(words_in_code(package, &TALK), Vec::<String>::new());
        }
    }
}

/// A derive has to be a crate of its own, however short it is.
#[test]
fn no_crate_is_empty() {
    const LEAST: usize = 20;
    let metadata = metadata();
    let is_derive = |package: &&Value| package["targets"][0]["kind"] == json!(["proc-macro"]);
    for package in list(&metadata["packages"]).iter().filter(|package| !is_derive(package)) {
        let lines = code_lines(package).len();
        assert!(lines >= LEAST, "{} has {lines} lines of code", package["name"]);
    }
}

#[test]
fn every_crate_is_under_the_lints_of_the_workspace() {
    let workspace = read(&root().join("Cargo.toml"));
    for lint in ["missing_docs", "unreachable_pub"] {
        assert!(workspace.contains(&format!("\n{lint} = \"warn\"\n")), "{lint} is not on");
    }
    for package in list(&metadata()["packages"]) {
        let manifest = read(Path::new(text(&package["manifest_path"])));
        assert!(manifest.contains("\n[lints]\nworkspace = true\n"), "{} has lints of its own", package["name"]);
        let exempt = words_in_code(package, &["#![allow(missing_docs", "#![allow(unreachable_pub"]);
        assert_eq!(exempt, Vec::<String>::new());
    }
}

#[test]
fn a_plain_build_makes_the_tool_and_nothing_else() {
    let metadata = metadata();
    let mut programs = BTreeMap::new();
    for package in list(&metadata["packages"]) {
        for target in list(&package["targets"]).iter().filter(|target| target["kind"] == json!(["bin"])) {
            programs.insert(text(&target["name"]), text(&package["name"]));
        }
    }
    let of_the_tool: Vec<_> = programs.iter().filter(|(_, package)| **package != TESTKIT).collect();
    assert_eq!(of_the_tool, [(&"llm-perf", &"llm-perf")]);

    let tool = list(&metadata["packages"]).iter().find(|package| package["name"] == "llm-perf").unwrap();
    assert_eq!(tool["default_run"], "llm-perf");
    assert_eq!(list(&metadata["workspace_default_members"]), [tool["id"].clone()]);
}

/// Rows of the table look like ``| `meter` | what it holds | network, types | ... |``.
#[test]
fn the_architecture_page_shows_this_table() {
    let page = read(&root().join("docs/architecture.md"));
    let row = |line: &str| {
        let cells: Vec<_> = line.split('|').map(|cell| cell.trim().trim_matches('`').to_owned()).collect();
        assert!(cells.len() > 4, "too few cells: {line}");
        (cells[1].clone(), cells[3].clone())
    };
    let shown: Vec<_> = page.lines().filter(|line| line.starts_with("| `")).map(row).collect();
    let uses = |room: &Room| if room.uses.is_empty() { "nothing".to_owned() } else { room.uses.join(", ") };
    let expected: Vec<_> = ROOMS.iter().map(|room| (room.name.to_owned(), uses(room))).collect();
    assert_eq!(shown, expected);
}

/// Lines of the figure look like `meter & engine --> network`; arrows to `types` are left out of it.
#[test]
fn the_architecture_page_draws_these_arrows() {
    let page = read(&root().join("docs/architecture.md"));
    let figure = page.split("```mermaid\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let names = |side: &str| -> Vec<String> { side.split('&').map(|name| name.trim().to_owned()).collect() };
    let lines = figure.lines().filter_map(|line| line.split_once("-->"));
    let drawn: BTreeSet<_> = lines
        .flat_map(|(from, to)| {
            names(from).into_iter().flat_map(move |from| names(to).into_iter().map(move |to| (from.clone(), to)))
        })
        .collect();
    let arrows = |room: &'static Room| {
        let used = room.uses.iter().filter(|used| **used != "types");
        used.map(|used| (room.name.to_owned(), (*used).to_owned()))
    };
    assert_eq!(drawn, ROOMS.iter().flat_map(arrows).collect());
}
