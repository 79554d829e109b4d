//! The source tree a command was started in: which commit, and whether files differ from it.

use std::path::{Path, PathBuf};

use types::GitInfo;

use super::Places;
use super::ask;
use crate::Command;

/// Arguments that print the commit.
const REVISION_ARGUMENTS: [&str; 3] = ["rev-parse", "--verify", "HEAD"];

/// Arguments that print one line for each tracked file that differs. Without locks, because asking must not disturb a
/// `git` that the user is running at the same time.
const DIFFERENCE_ARGUMENTS: [&str; 4] = ["--no-optional-locks", "status", "--porcelain", "--untracked-files=no"];

/// The tree that contains `folder`; `None` outside one or before its first commit.
pub(crate) fn find(places: &Places, folder: &Path) -> Option<GitInfo> {
    let root = folder.ancestors().find(|ancestor| ancestor.join(".git").exists())?;
    let git = |arguments: &[&str]| {
        let git = places.on_path("git")?;
        ask(Command::new(git, arguments).within(folder), places.limit).ok()
    };
    let revision = git(&REVISION_ARGUMENTS).map(|text| text.trim().to_owned()).filter(|text| is_revision(text));
    // A program that refuses (another user owns the tree) or is not there leaves the files, which say the commit but
    // not whether anything differs from it.
    let revision = revision.or_else(|| revision_in_files(root))?;
    let dirty = git(&DIFFERENCE_ARGUMENTS).map(|text| !text.trim().is_empty());
    Some(GitInfo { revision, dirty })
}

/// The commit that `.git/HEAD` leads to.
fn revision_in_files(root: &Path) -> Option<String> {
    let own = git_folder(root)?;
    let head = std::fs::read_to_string(own.join("HEAD")).ok()?;
    let head = head.trim();
    let Some(name) = head.strip_prefix("ref: ") else {
        return is_revision(head).then(|| head.to_owned());
    };
    // A worktree keeps its own HEAD and shares the branches of the main folder.
    let shared = std::fs::read_to_string(own.join("commondir")).map(|path| own.join(path.trim()));
    let folders = [own, shared.unwrap_or_default()];
    folders.iter().find_map(|folder| {
        let loose = std::fs::read_to_string(folder.join(name)).ok().map(|text| text.trim().to_owned());
        let packed = || packed_reference(&std::fs::read_to_string(folder.join("packed-refs")).ok()?, name);
        loose.or_else(packed).filter(|text| is_revision(text))
    })
}

/// `.git` itself, or the folder a worktree's `.git` file names.
fn git_folder(root: &Path) -> Option<PathBuf> {
    let path = root.join(".git");
    if path.is_dir() {
        return Some(path);
    }
    let text = std::fs::read_to_string(path).ok()?;
    Some(root.join(text.trim().strip_prefix("gitdir: ")?))
}

/// `<commit> <name>` lines.
fn packed_reference(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| line.split_once(' ').filter(|(_, found)| *found == name).map(|(id, _)| id.to_owned()))
}

/// A commit id, SHA-1 or SHA-256.
fn is_revision(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

    fn tree(head: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join(".git/refs/heads")).unwrap();
        std::fs::write(root.path().join(".git/HEAD"), head).unwrap();
        root
    }

    #[test]
    fn without_git_the_commit_is_read_from_files_and_the_rest_is_unknown() {
        let root = tree("ref: refs/heads/main\n");
        let find = || find(&Places::default(), root.path());
        assert_eq!(find(), None, "no commit yet");
        std::fs::write(root.path().join(".git/packed-refs"), format!("# pack-refs\n{COMMIT} refs/heads/main\n"))
            .unwrap();
        assert_eq!(find(), Some(GitInfo { revision: COMMIT.into(), dirty: None }));
        let newer = COMMIT.replace('0', "f");
        std::fs::write(root.path().join(".git/refs/heads/main"), format!("{newer}\n")).unwrap();
        assert_eq!(find().unwrap().revision, newer, "a loose reference is newer than a packed one");
    }

    #[test]
    fn a_detached_head_and_a_worktree_are_followed() {
        let root = tree(COMMIT);
        assert_eq!(revision_in_files(root.path()).as_deref(), Some(COMMIT));

        let main = tree("ref: refs/heads/other\n");
        std::fs::write(main.path().join(".git/refs/heads/side"), COMMIT).unwrap();
        let own = main.path().join(".git/worktrees/side");
        std::fs::create_dir_all(&own).unwrap();
        std::fs::write(own.join("HEAD"), "ref: refs/heads/side\n").unwrap();
        std::fs::write(own.join("commondir"), "../..\n").unwrap();
        let worktree = tempfile::tempdir().unwrap();
        std::fs::write(worktree.path().join(".git"), format!("gitdir: {}\n", own.display())).unwrap();
        assert_eq!(revision_in_files(worktree.path()).as_deref(), Some(COMMIT));
    }

    #[test]
    fn outside_a_tree_there_is_nothing() {
        assert_eq!(find(&Places::of_this_machine(), Path::new("/")), None);
    }
}
