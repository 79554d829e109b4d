//! The pages of the documentation: links and names of files lead somewhere, and the book has all pages. The commands on them are
//! read by `src/verb/shown_commands.rs`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every page: the README and its like, and everything beneath `docs`.
fn pages() -> BTreeMap<PathBuf, String> {
    let mut open = vec![root().join("docs")];
    let mut files =
        ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "fuzz/README.md"].map(|name| root().join(name)).to_vec();
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|ending| ending == "md") {
                files.push(path);
            }
        }
    }
    files.into_iter().map(|path| (path.clone(), std::fs::read_to_string(&path).unwrap())).collect()
}

#[test]
fn every_link_to_a_file_of_the_repository_leads_to_one() {
    let mut checked = 0;
    for (page, text) in pages() {
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().unwrap_or_default();
            if target.is_empty() || target.contains("://") || target.contains(['<', ' ', '`']) {
                continue;
            }
            let place = page.parent().unwrap().join(target);
            assert!(place.exists(), "{}: {link}", page.display());
            checked += 1;
        }
    }
    assert!(checked > 50, "{checked}");
}

/// The name that a heading has in links, as GitHub and mdBook make it.
fn anchor(heading: &str) -> String {
    let text: String = heading.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
    text.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect()
}

#[test]
fn every_link_to_a_heading_leads_to_one() {
    let pages = pages();
    let mut checked = 0;
    for (page, text) in &pages {
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let Some((target, wanted)) = link.split_once('#').filter(|_| !link.contains("://")) else { continue };
            let place = if target.is_empty() { page.clone() } else { page.parent().unwrap().join(target) };
            let place = place.canonicalize().unwrap_or_else(|error| panic!("{}: {link}: {error}", page.display()));
            let text = std::fs::read_to_string(place).unwrap();
            let is_there = text.lines().filter(|line| line.starts_with('#')).any(|line| anchor(line) == wanted);
            assert!(is_there, "{}: there is no heading for {link}", page.display());
            checked += 1;
        }
    }
    assert!(checked > 5, "{checked}");
}

#[test]
fn every_script_and_fixture_that_is_named_is_there() {
    let folders = ["tests/live/", "benches/", "tools/", "crates/", "fuzz/", "assets/", "conf/", "python/"];
    let mut checked = 0;
    for (page, text) in pages() {
        // What was once there is told in the changes.
        if page.ends_with("CHANGELOG.md") {
            continue;
        }
        let is_apart = |c: char| {
            c.is_whitespace() || matches!(c, '`' | '(' | ')' | '"' | '\'' | ',' | ';' | '|' | '=' | '<' | '>')
        };
        for word in text.split(is_apart).filter(|word| folders.iter().any(|folder| word.starts_with(folder))) {
            // Behind a colon there is a line.
            let path = word.split(':').next().unwrap_or_default().trim_end_matches(['.', '/']);
            // Places to fill in: crates/meter/hardware/ID.yaml, fuzz/corpus/TARGET, src/NAME.rs, patterns.
            let last = path.rsplit('/').next().unwrap_or_default();
            let is_pattern = path.contains(['*', '{', '$', '#']) || last.starts_with(|c: char| c.is_ascii_uppercase());
            if is_pattern && last != "README.md" && last != "Cargo.toml"
                || path.contains("/corpus/")
                || path.contains("/artifacts/")
            {
                continue;
            }
            assert!(root().join(path).exists(), "{}: {path}", page.display());
            checked += 1;
        }
    }
    assert!(checked > 50, "{checked}");
}

#[test]
fn every_page_is_in_the_book() {
    let summary = std::fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let docs = root().join("docs");
    for page in pages().into_keys() {
        let Ok(name) = page.strip_prefix(&docs) else { continue };
        let name = name.display().to_string();
        assert!(name == "SUMMARY.md" || summary.contains(&format!("({name})")), "docs/SUMMARY.md lacks {name}");
    }
}

#[test]
fn what_the_container_is_built_from_is_there() {
    let recipe = std::fs::read_to_string(root().join("Containerfile")).unwrap();
    let copied = recipe.lines().filter(|line| line.starts_with("COPY ") && !line.contains("--from="));
    let sources: Vec<&str> =
        copied.flat_map(|line| line.split(' ').skip(1)).filter(|word| !word.starts_with('-')).collect();
    assert!(sources.len() > 4, "{recipe}");
    for source in sources.into_iter().filter(|word| !word.starts_with('/') && !word.ends_with("./")) {
        assert!(root().join(source).exists(), "{source}");
    }
}
