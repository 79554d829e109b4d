//! Configurations that must be refused, as a user sees it.
#![allow(dead_code, reason = "each test crate needs some of it")]

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::support::transcript;

/// A configuration folder with these files. Its root replaces the built-in one.
pub(crate) fn world(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (path, text) in files {
        let file = folder.path().join(path);
        fs::create_dir_all(file.parent().expect("a parent")).expect("a folder");
        fs::write(file, text).expect("a file");
    }
    folder
}

/// What standard error says about a configuration that must be refused as wrong usage.
pub(crate) fn refusal(folder: Option<&Path>, overrides: &[&str]) -> String {
    let path = folder.map(|folder| folder.to_str().expect("a path").to_owned());
    let mut arguments = vec!["config"];
    if let Some(path) = &path {
        arguments.extend(["--config-dir", path]);
    }
    arguments.extend(overrides);
    let shown = transcript(&arguments);
    let start = "exit: 2\n----- stdout -----\n----- stderr -----\n";
    let message = shown.strip_prefix(start).unwrap_or_else(|| panic!("not refused:\n{shown}"));
    path.iter().fold(message.to_owned(), |message, path| message.replace(path, "DIR"))
}

/// The refusal of an override on the built-in configuration.
pub(crate) fn wrong(one: &str) -> String {
    refusal(None, &[one])
}

/// The refusal of a root file.
pub(crate) fn wrong_root(text: &str) -> String {
    refusal(Some(world(&[("config.yaml", text)]).path()), &[])
}
