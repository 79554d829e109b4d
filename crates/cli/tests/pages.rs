//! The pages of the documentation: links lead somewhere, and commands that are shown exist.

mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use support::llm_perf;

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

/// Commands in blocks and in the running text: a line of a block or a span that starts with the name of the program.
fn commands(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut in_fence = false;
    let mut prose = String::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_fence = !in_fence;
        } else if in_fence || line.starts_with("    ") {
            let line = line.trim_start().trim_start_matches("$ ");
            found.extend(line.starts_with("llm-perf ").then(|| line.to_owned()));
        } else {
            prose += line;
            prose.push('\n');
        }
    }
    let spans = prose.split('`').skip(1).step_by(2);
    found.extend(spans.filter(|span| span.starts_with("llm-perf ") && !span.contains('\n')).map(str::to_owned));
    found
}

#[test]
fn every_command_that_is_shown_has_its_verb_and_its_options() {
    let help = |arguments: &[&str]| {
        let output = llm_perf().args(arguments).arg("--help").output().unwrap();
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    };
    let mut known: BTreeMap<String, Option<String>> = BTreeMap::new();
    let mut checked = 0;
    for (page, text) in pages() {
        for command in commands(&text) {
            // What is quoted is the command line of another program.
            let unquoted: String = command.split('\'').step_by(2).collect();
            let own = unquoted.split(" -- ").next().unwrap_or_default();
            let own = own.split([';', '|', '&', '>', '#']).next().unwrap_or_default();
            let words: Vec<&str> = own.split_whitespace().skip(1).collect();
            let Some(verb) = words.iter().find(|word| word.chars().all(|c| c.is_ascii_lowercase())) else { continue };
            let shown = known.entry((*verb).to_owned()).or_insert_with(|| help(&[verb]));
            let shown =
                shown.as_ref().unwrap_or_else(|| panic!("{}: there is no verb {verb}: {command}", page.display()));
            for option in words.iter().filter(|word| word.starts_with("--") && word.len() > 2) {
                let name = option.split(['=', '`', ',', '.', ':', ')']).next().unwrap_or_default();
                assert!(shown.contains(name), "{}: {verb} has no {name}: {command}", page.display());
                checked += 1;
            }
        }
    }
    assert!(checked > 50 && known.len() > 12, "{checked} options of {} verbs", known.len());
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
