//! Where tools and libraries are looked for, in the order in which a user would expect one to win.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Folders to search. Built from the machine once; tests build their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Places {
    /// Folders of `PATH`.
    pub(crate) path: Vec<PathBuf>,
    /// Installed CUDA toolkits, the chosen one first.
    pub(crate) toolkits: Vec<PathBuf>,
    /// Where NVIDIA's packages put Nsight tools: `/opt/nvidia`.
    pub(crate) vendor: Vec<PathBuf>,
    /// Folders with shared libraries.
    pub(crate) libraries: Vec<PathBuf>,
    /// `LLM_PERF_PYTHON`.
    pub(crate) python: Option<PathBuf>,
    /// How long each tool may take to answer.
    pub(crate) limit: Duration,
}

impl Default for Places {
    /// Nowhere.
    fn default() -> Self {
        let (path, toolkits, vendor, libraries) = Default::default();
        Self { path, toolkits, vendor, libraries, python: None, limit: super::ANSWER_LIMIT }
    }
}

/// Folders in which the driver's own libraries are found where the loader does not know them: the usual ones of Debian
/// and of Red Hat, the one the container toolkit mounts, and the one of the Windows subsystem.
const LIBRARY_FOLDERS: [&str; 8] = [
    "/usr/local/nvidia/lib64",
    "/usr/local/nvidia/lib",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/lib/wsl/lib",
    "/run/opengl-driver/lib",
];

impl Places {
    /// The places of this machine.
    pub(crate) fn of_this_machine() -> Self {
        let list = |name| std::env::var_os(name).map(|value| std::env::split_paths(&value).collect());
        let single = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        // An empty entry of such a list means the current folder, where nothing of ours is to be found.
        let named = |folders: Option<Vec<PathBuf>>| {
            folders.unwrap_or_default().into_iter().filter(|folder| folder.is_absolute()).collect::<Vec<_>>()
        };
        let path = named(Some(path_folders()));
        let mut libraries = named(list("LD_LIBRARY_PATH"));
        libraries.extend(LIBRARY_FOLDERS.map(PathBuf::from));
        let mut toolkits: Vec<PathBuf> = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(single).collect();
        toolkits.extend(toolkit_of_compiler(&path));
        toolkits.extend([PathBuf::from("/usr/local/cuda"), PathBuf::from("/opt/cuda")]);
        toolkits.extend(children(Path::new("/usr/local"), "cuda-"));
        toolkits.retain(|toolkit| toolkit.is_dir());
        keep_first(&mut toolkits);
        Self {
            path,
            toolkits,
            vendor: vec![PathBuf::from("/opt/nvidia")],
            libraries,
            python: single("LLM_PERF_PYTHON"),
            ..Self::default()
        }
    }

    /// The first program of that name on `PATH`.
    pub(crate) fn on_path(&self, name: &str) -> Option<PathBuf> {
        find_program(name.as_ref(), &self.path)
    }
}

/// The toolkit whose compiler is on `PATH`: `/usr/local/cuda-13.0/bin/nvcc` belongs to `/usr/local/cuda-13.0`.
fn toolkit_of_compiler(path: &[PathBuf]) -> Option<PathBuf> {
    let compiler = find_program("nvcc".as_ref(), path)?;
    let toolkit = compiler.canonicalize().ok()?.parent()?.parent()?.to_owned();
    // A distribution's own package has its compiler in /usr/bin, and /usr is no toolkit.
    toolkit.join("include/cuda.h").is_file().then_some(toolkit)
}

/// The program of that name in the first of these folders that has it; a name with a slash is the path of one.
pub fn find_program(name: &OsStr, folders: &[PathBuf]) -> Option<PathBuf> {
    // An empty list would be read as the current folder.
    let folders = (!folders.is_empty()).then(|| std::env::join_paths(folders)).transpose().ok()?;
    which::which_in(name, folders, std::env::current_dir().unwrap_or_default()).ok()
}

/// The folders of `PATH`.
pub fn path_folders() -> Vec<PathBuf> {
    std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default()
}

/// Whether `path` is a file that may be run.
pub(crate) fn is_program(path: &Path) -> bool {
    find_program(path.as_os_str(), &[]).is_some()
}

/// Entries of `folder` whose name starts with `prefix`, newest version first.
pub(super) fn children(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let mut found: Vec<(Option<super::Version>, PathBuf)> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let rest = name.strip_prefix(prefix)?;
            Some((super::Version::read(rest), entry.path()))
        })
        .collect();
    found.sort_by(|left, right| right.cmp(left));
    found.into_iter().map(|(_, path)| path).collect()
}

/// Drops later names of a folder that was named before, also through a link.
fn keep_first(folders: &mut Vec<PathBuf>) {
    let mut seen = Vec::new();
    folders.retain(|folder| {
        let real = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        let new = !seen.contains(&real);
        seen.push(real);
        new
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::tests::fake_program;

    #[test]
    fn versions_are_listed_newest_first() {
        let root = tempfile::tempdir().unwrap();
        for name in ["cuda-9.2", "cuda-13.0", "cuda-12.8", "nothing-14"] {
            std::fs::create_dir(root.path().join(name)).unwrap();
        }
        let names: Vec<String> = children(root.path(), "cuda-")
            .iter()
            .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
            .collect();
        assert_eq!(names, ["cuda-13.0", "cuda-12.8", "cuda-9.2"]);
        assert!(children(&root.path().join("absent"), "cuda-").is_empty());
    }

    #[test]
    fn a_file_that_may_not_be_run_is_no_program() {
        let root = tempfile::tempdir().unwrap();
        let (first, second) = (root.path().join("a"), root.path().join("b"));
        std::fs::create_dir(&first).unwrap();
        std::fs::write(first.join("nsys"), "text").unwrap();
        let program = fake_program(&second, "nsys", "true");
        let places = Places { path: vec![first, second], ..Places::default() };
        assert_eq!(places.on_path("nsys"), Some(program));
        assert_eq!(places.on_path("ncu"), None);
    }

    #[test]
    fn a_toolkit_reached_by_two_names_is_listed_once() {
        let root = tempfile::tempdir().unwrap();
        let real = root.path().join("cuda-13.0");
        let link = root.path().join("cuda");
        std::fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let mut folders = vec![link.clone(), real];
        keep_first(&mut folders);
        assert_eq!(folders, [link]);
    }

    #[test]
    fn a_compiler_outside_a_toolkit_names_no_toolkit() {
        let root = tempfile::tempdir().unwrap();
        let bin = root.path().join("bin");
        fake_program(&bin, "nvcc", "true");
        assert_eq!(toolkit_of_compiler(std::slice::from_ref(&bin)), None);
        std::fs::create_dir(root.path().join("include")).unwrap();
        std::fs::write(root.path().join("include/cuda.h"), "").unwrap();
        assert_eq!(toolkit_of_compiler(&[bin]), Some(root.path().canonicalize().unwrap()));
    }
}
