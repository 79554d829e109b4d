//! Small files the kernel offers, and paths as they are shown.

use std::path::Path;

/// The trimmed text of a file; absent when it cannot be read or is empty.
pub(super) fn text(path: impl AsRef<Path>) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// A number in a file.
pub(super) fn number(path: impl AsRef<Path>) -> Option<u64> {
    text(path)?.parse().ok()
}

/// A path with the user's home folder as `~`, so that a report does not carry the user's name.
pub(super) fn under_home(path: &Path, home: Option<&Path>) -> String {
    // A home of `/` would turn every path into one below it.
    match home.filter(|home| home.components().count() > 1).and_then(|home| path.strip_prefix(home).ok()) {
        Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(rest) => format!("~/{}", rest.display()),
        None => path.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_home_folder_is_shown_as_a_tilde_and_nothing_else_is() {
        let shown = |path: &str, home: &str| under_home(Path::new(path), Some(Path::new(home)));
        assert_eq!(shown("/home/someone/bin/nsys", "/home/someone"), "~/bin/nsys");
        assert_eq!(shown("/home/someone", "/home/someone/"), "~");
        assert_eq!(shown("/home/someoneelse/bin", "/home/someone"), "/home/someoneelse/bin");
        assert_eq!(shown("/usr/bin/nsys", "/"), "/usr/bin/nsys");
        assert_eq!(under_home(Path::new("/usr/bin"), None), "/usr/bin");
    }

    #[test]
    fn a_missing_or_empty_file_says_nothing() {
        assert_eq!(text("/nowhere"), None);
        assert_eq!(text("/dev/null"), None);
        assert_eq!(number("/proc/version"), None);
    }
}
