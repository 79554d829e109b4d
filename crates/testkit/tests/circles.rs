//! Modules of one crate use each other one way only.

mod module_graph;

use std::fs;
use std::path::Path;

use module_graph::{Circle, ModuleGraph};

/// Crate and modules of a circle.
type Members = (&'static str, &'static [&'static str]);

/// Circles that a recursive grammar makes: a name holds arguments, arguments are types, a type has a name; a remark holds facts, and a
/// fact may be a remark.
const GRAMMARS: &[Members] = &[
    ("ingest", &["demangle::arguments", "demangle::name", "demangle::types"]),
    ("types", &["conclusion::facts", "conclusion::remark"]),
];

fn shown(name: &str, circle: &Circle) -> String {
    format!("{name}: {}\n    {}", circle.modules.join(", "), circle.lines.join("\n    "))
}

#[test]
fn modules_of_a_crate_have_no_circle() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut names: Vec<_> = fs::read_dir(&crates).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    let mut new = Vec::new();
    let mut seen = Vec::new();
    for name in names.iter().filter_map(|name| name.to_str()) {
        for circle in ModuleGraph::of_crate(&crates.join(name)).circles() {
            match GRAMMARS.iter().find(|(known, modules)| *known == name && *modules == circle.modules) {
                Some(known) => seen.push(known),
                None => new.push(shown(name, &circle)),
            }
        }
    }
    assert!(new.is_empty(), "circles between modules:\n{}", new.join("\n"));
    let gone: Vec<_> = GRAMMARS.iter().filter(|known| !seen.contains(known)).collect();
    assert!(gone.is_empty(), "no longer circles, take them off the list: {gone:?}");
}

fn circles(files: &[(&str, &str)]) -> Vec<(Vec<String>, Vec<String>)> {
    let circles = ModuleGraph::of_texts(files.iter().copied()).circles();
    circles.into_iter().map(|circle| (circle.modules, circle.lines)).collect()
}

#[test]
fn a_circle_is_named_with_its_modules_and_lines() {
    let files = [
        ("src/lib.rs", "mod a;\nmod b;\nmod c;\nmod d;\npub use c::Thing;"),
        ("src/a/mod.rs", "mod inner;\nuse crate::b::{self, One as Other};"),
        ("src/a/inner.rs", "use super::super::b;"),
        ("src/b.rs", "fn f() {\n    println!(\"{}\", crate::Thing::new());\n}"),
        ("src/c.rs", "use crate::a;\nuse crate::d;"),
        ("src/d.rs", "fn no_arrow() {}"),
    ];
    let expected = (
        ["a", "b", "c"].map(str::to_owned).to_vec(),
        ["a -> b: src/a/inner.rs:1, src/a/mod.rs:2", "b -> c: src/b.rs:2", "c -> a: src/c.rs:1"]
            .map(str::to_owned)
            .to_vec(),
    );
    let mut sorted = files;
    sorted.sort();
    assert_eq!(circles(&sorted), [expected]);
}

#[test]
fn a_circle_below_a_module_is_found_too() {
    let files = [
        ("src/lib.rs", "mod a;"),
        ("src/a/mod.rs", "mod one;\nmod two;\npub use one::One;"),
        ("src/a/one.rs", "use super::two::Two;"),
        ("src/a/two.rs", "fn f(one: super::One) {}"),
    ];
    let lines = ["one -> two: src/a/one.rs:1", "two -> one: src/a/two.rs:1"].map(str::to_owned).to_vec();
    assert_eq!(circles(&files), [(["a::one", "a::two"].map(str::to_owned).to_vec(), lines)]);
}

#[test]
fn tests_parents_comments_and_other_crates_make_no_circle() {
    let files = [
        ("src/lib.rs", "mod a;\nmod b;\n#[cfg(test)]\nmod sample;"),
        ("src/a/mod.rs", "mod child;\nuse std::b::X;\npub(in crate::a) fn f() -> child::Y {}"),
        ("src/a/child.rs", "use super::f;\nuse crate::b::Z;"),
        (
            "src/b.rs",
            "// crate::a::f\n#[cfg(test)]\nuse crate::a::{f};\n#[cfg(test)]\nmod tests { use crate::a::f; }\nfn g() -> &str { \"crate::a\" }",
        ),
        ("src/sample.rs", "use crate::{a, b};"),
        ("src/b/tests.rs", "fn g() {}"),
    ];
    assert_eq!(circles(&files), []);
}
