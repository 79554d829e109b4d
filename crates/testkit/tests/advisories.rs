//! Exceptions of `deny.toml` are needed: what they are about is still in the tree, and only where they say.

use std::collections::BTreeSet;
use std::path::Path;

/// Crates of `Cargo.lock` that depend on one.
fn users(lock: &str, wanted: &str) -> BTreeSet<String> {
    let name =
        |package: &str| package.split("name = \"").nth(1).and_then(|rest| rest.split('"').next()).map(str::to_owned);
    let uses = |package: &&str| package.lines().any(|line| line.trim().trim_matches([',', '"']) == wanted);
    lock.split("[[package]]").filter(uses).filter_map(name).collect()
}

#[test]
fn paste_is_excepted_for_as_long_as_gemm_pulp_and_tokenizers_use_it_and_no_longer() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |name: &str| std::fs::read_to_string(root.join(name)).unwrap();
    let users = users(&read("Cargo.lock"), "paste");
    assert!(
        !users.is_empty(),
        "paste is gone: take RUSTSEC-2024-0436 out of deny.toml and docs/reference/dependencies.md"
    );
    let known = |user: &String| user.starts_with("gemm") || user == "pulp" || user == "tokenizers";
    assert!(users.iter().all(known), "{users:?}: somebody else uses paste now");
    let excepted = read("deny.toml").matches("id = \"RUSTSEC-").count();
    assert_eq!(excepted, 1, "another exception needs a test of its own");
}
