//! Names of files inside a run folder.

use std::path::{Path, PathBuf};

use types::UserError;

use super::MANIFEST;
use super::content::TEMPORARY_SUFFIX;

/// A path that names a file inside a run folder and nothing else: relative, forward slashes, no `.` and no `..`.
///
/// Links are not looked at here; whoever opens the path does that.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct RelativePath(String);

impl RelativePath {
    /// Checks a path. The manifest and temporary files belong to the folder itself and cannot be named.
    pub(super) fn new(path: &str) -> Result<Self, UserError> {
        match broken_rule(path) {
            Some(reason) => {
                Err(UserError::failed(format!("{path:?} is not a valid path for a file of a run: {reason}")))
            }
            None => Ok(Self(path.to_owned())),
        }
    }

    /// The path as text.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// The place it names in a folder.
    pub(super) fn under(&self, folder: &Path) -> PathBuf {
        folder.join(&self.0)
    }

    /// The folders on the way to it, outermost first: `a`, `a/b` for `a/b/c`.
    pub(super) fn parents(&self) -> impl Iterator<Item = &str> {
        self.0.match_indices('/').map(|(end, _)| &self.0[..end])
    }
}

fn broken_rule(path: &str) -> Option<&'static str> {
    if path.is_empty() {
        return Some("it is empty");
    }
    if path.starts_with('/') {
        return Some("it is absolute");
    }
    // A backslash separates folders on other systems, where the same manifest must name the same file.
    if path.contains(|c: char| c == '\\' || c.is_control()) {
        return Some("it contains a backslash or a control character");
    }
    if path.eq_ignore_ascii_case(MANIFEST) {
        return Some("that name is reserved for the manifest");
    }
    path.split('/').find_map(|part| match part {
        "" => Some("it has an empty component"),
        "." | ".." => Some("it contains `.` or `..`"),
        _ if part.ends_with(TEMPORARY_SUFFIX) => Some("that suffix is reserved for incomplete files"),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use std::path::Component;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ordinary_paths_are_accepted() {
        for path in
            ["metrics.json", "ncu/regions/A::A1/report.md", "logs/.hidden", "a b/ü.txt", "x/manifest.json", "..."]
        {
            assert_eq!(RelativePath::new(path).unwrap().as_str(), path);
        }
    }

    #[test]
    fn each_broken_rule_is_named() {
        let rules: Vec<String> = [
            "",
            "/etc/passwd",
            "a//b",
            "a/",
            "./a",
            "a/../../b",
            "..",
            "a\\b",
            "a\0b",
            "manifest.json",
            "x.llm-perf-part",
        ]
        .iter()
        .map(|path| RelativePath::new(path).unwrap_err().to_string())
        .collect();
        insta::assert_snapshot!(rules.join("\n"), @r#"
        "" is not a valid path for a file of a run: it is empty
        "/etc/passwd" is not a valid path for a file of a run: it is absolute
        "a//b" is not a valid path for a file of a run: it has an empty component
        "a/" is not a valid path for a file of a run: it has an empty component
        "./a" is not a valid path for a file of a run: it contains `.` or `..`
        "a/../../b" is not a valid path for a file of a run: it contains `.` or `..`
        ".." is not a valid path for a file of a run: it contains `.` or `..`
        "a\\b" is not a valid path for a file of a run: it contains a backslash or a control character
        "a\0b" is not a valid path for a file of a run: it contains a backslash or a control character
        "manifest.json" is not a valid path for a file of a run: that name is reserved for the manifest
        "x.llm-perf-part" is not a valid path for a file of a run: that suffix is reserved for incomplete files
        "#);
    }

    #[test]
    fn parents_come_outermost_first() {
        let path = RelativePath::new("a/b/c").unwrap();
        assert_eq!(path.parents().collect::<Vec<_>>(), ["a", "a/b"]);
        assert_eq!(RelativePath::new("a").unwrap().parents().count(), 0);
    }

    proptest! {
        #[test]
        fn an_accepted_path_never_leaves_the_folder(path in r"([a-z./\\]{0,12}|\PC{0,12}|(\.\.?/){1,3}[a-z]{0,3})") {
            if let Ok(accepted) = RelativePath::new(&path) {
                let base = Path::new("/base");
                let place = accepted.under(base);
                let inside = place.strip_prefix(base).unwrap();
                prop_assert!(inside.components().all(|part| matches!(part, Component::Normal(_))));
                prop_assert!(inside.components().count() == path.split('/').count());
            }
        }
    }
}
