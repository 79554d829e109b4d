//! Host memory, and how much of it this process may use.

use std::path::Path;

use types::{Bytes, MemoryInfo};

use super::file;

/// Describes the memory.
pub(super) fn capture() -> MemoryInfo {
    let mut memory = read(&file::text("/proc/meminfo").unwrap_or_default());
    let groups = file::text("/proc/self/cgroup").unwrap_or_default();
    let group = limit(Path::new("/sys/fs/cgroup"), &groups, memory.total_bytes);
    memory.limit_bytes = group.into_iter().chain(address_space()).min();
    memory
}

/// What `/proc/meminfo` says.
fn read(text: &str) -> MemoryInfo {
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        kibibytes.checked_mul(1024).map(Bytes::new)
    };
    MemoryInfo { total_bytes: field("MemTotal"), available_bytes: field("MemAvailable"), limit_bytes: None }
}

/// What `ulimit -v` leaves this process.
fn address_space() -> Option<Bytes> {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: `limit` is there to be written.
    let is_known = unsafe { libc::getrlimit(libc::RLIMIT_AS, &mut limit) } == 0;
    (is_known && limit.rlim_cur != libc::RLIM_INFINITY).then(|| Bytes::new(limit.rlim_cur))
}

/// The smallest limit of the control groups this process is in; none that is not below the whole memory.
///
/// A limit on an outer group binds too, and inside a container the path named may not be mounted, so every folder from
/// the named one up to the root is read.
fn limit(root: &Path, groups: &str, total: Option<Bytes>) -> Option<Bytes> {
    let memberships = || groups.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
    let legacy = memberships().find(|(controllers, _)| controllers.split(',').any(|name| name == "memory"));
    let unified = memberships().find(|(controllers, _)| controllers.is_empty());
    let (folder, group, name) = match (legacy, unified) {
        (Some((_, group)), _) => (root.join("memory"), group, "memory.limit_in_bytes"),
        (None, Some((_, group))) => (root.to_owned(), group, "memory.max"),
        (None, None) => return None,
    };
    let limit = Path::new(group.trim_start_matches('/'))
        .ancestors()
        .filter_map(|path| file::number(folder.join(path).join(name)))
        .min()?;
    Some(Bytes::new(limit)).filter(|limit| total.is_none_or(|total| *limit < total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_kilobytes_are_kibibytes() {
        let memory = read(include_str!("../../tests/fixtures/meminfo.txt"));
        assert_eq!(memory.total_bytes, Some(Bytes::new(24_682_416 * 1024)));
        assert_eq!(memory.available_bytes, Some(Bytes::new(24_290_720 * 1024)));
        assert_eq!(read(""), MemoryInfo::default());
        assert_eq!(read("MemTotal: many kB"), MemoryInfo::default());
    }

    /// A tree of control groups with these files.
    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        root
    }

    const GIBIBYTE: u64 = 1 << 30;

    #[test]
    fn the_smallest_limit_on_the_way_up_binds() {
        let root = tree(&[("a/memory.max", "8589934592\n"), ("a/b/memory.max", "max\n")]);
        let total = Some(Bytes::new(64 * GIBIBYTE));
        assert_eq!(limit(root.path(), "0::/a/b\n", total), Some(Bytes::new(8 * GIBIBYTE)));
        assert_eq!(limit(root.path(), "0::/\n", total), None);
        assert_eq!(limit(root.path(), "", total), None);
    }

    #[test]
    fn a_limit_beyond_the_memory_is_none() {
        let unlimited = "9223372036854771712\n";
        let root =
            tree(&[("memory/memory.limit_in_bytes", unlimited), ("memory/x/memory.limit_in_bytes", "1073741824")]);
        let total = Some(Bytes::new(64 * GIBIBYTE));
        assert_eq!(limit(root.path(), "4:memory:/\n0::/\n", total), None);
        assert_eq!(limit(root.path(), "4:memory:/x/not/mounted\n0::/\n", total), Some(Bytes::new(GIBIBYTE)));
    }
}
