//! CUPTI, the library that records what a GPU does: where it is, which version, and whether it loads.
//!
//! It comes with a CUDA toolkit, or with the Python package `nvidia-cuda-cupti` that PyTorch brings along.

use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::places::children;
use super::python::Python;
use super::{Places, Version, toolkit};

/// CUPTI as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cupti {
    /// The library.
    pub(crate) path: PathBuf,
    /// Its release, as its file name, the toolkit or the Python package states it.
    pub(crate) version: Option<String>,
    /// CUDA release it belongs to, from its file name: 13 for `libcupti.so.13`.
    pub(crate) major: Option<u32>,
    /// What `cuptiGetVersion` says, or why the library does not load.
    pub(crate) interface: Result<u32, String>,
}

/// Finds the library and loads it.
pub(crate) fn find(places: &Places, python: Option<&Python>) -> Option<Cupti> {
    let path = locate(places, python)?;
    let interface = interface_version(&path);
    let version = release(&path).or_else(|| stated_version(&path, places, python));
    Some(Cupti { major: major(&path), version, interface, path })
}

/// The toolkits first, then where the loader looks, then Python packages.
fn locate(places: &Places, python: Option<&Python>) -> Option<PathBuf> {
    let mut folders = Vec::new();
    for toolkit in &places.toolkits {
        folders.extend([toolkit.join("extras/CUPTI/lib64"), toolkit.join("lib64")]);
    }
    folders.extend(places.libraries.iter().cloned());
    for packages in python.into_iter().flat_map(|python| &python.folders) {
        // `nvidia/cuda_cupti/lib` for CUDA 12, `nvidia/cu13/lib` since.
        folders.extend(children(&packages.join("nvidia"), "").iter().map(|package| package.join("lib")));
    }
    folders.iter().find_map(|folder| in_folder(folder))
}

/// The library of one folder: the name that programs are linked against (`libcupti.so.13`) before any other.
fn in_folder(folder: &Path) -> Option<PathBuf> {
    let mut names = children(folder, "libcupti.so");
    names.retain(|path| path.is_file());
    names.sort_by_key(|path| (major(path).is_none(), path.as_os_str().len()));
    names.into_iter().next()
}

/// The number behind `libcupti.so.` when it is a CUDA release and not a year.
fn major(path: &Path) -> Option<u32> {
    let number = Version::read(path.file_name()?.to_str()?.strip_prefix("libcupti.so.")?)?.major();
    (number < 1000).then_some(number)
}

/// The release in the name of the file behind the links: `libcupti.so.2025.3.1`.
fn release(path: &Path) -> Option<String> {
    let real = path.canonicalize().ok()?;
    let number = real.file_name()?.to_str()?.strip_prefix("libcupti.so.")?.to_owned();
    (Version::read(&number)?.major() >= 2000).then_some(number)
}

/// The version that whoever brought the library states for it.
fn stated_version(path: &Path, places: &Places, python: Option<&Python>) -> Option<String> {
    if let Some(toolkit) = places.toolkits.iter().find(|toolkit| path.starts_with(toolkit)) {
        let text = std::fs::read_to_string(toolkit.join("version.json")).ok()?;
        return toolkit::component(&text, "cuda_cupti");
    }
    let python = python.filter(|python| python.folders.iter().any(|folder| path.starts_with(folder)))?;
    python.cupti.clone()
}

/// Loads the library and asks `cuptiGetVersion`.
fn interface_version(path: &Path) -> Result<u32, String> {
    let name = CString::new(path.as_os_str().as_bytes()).map_err(|_| "its path contains a NUL byte".to_owned())?;
    // SAFETY: `name` is a C string that outlives the call. Loading runs the library's initialisers; this is NVIDIA's own
    // library, which is made to be loaded into any process and starts nothing before it is asked to.
    let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL) };
    if library.is_null() {
        return Err(loader_message());
    }
    // SAFETY: `library` is a handle that dlopen just gave out, and the name is a C string.
    let symbol = unsafe { libc::dlsym(library, c"cuptiGetVersion".as_ptr()) };
    if symbol.is_null() {
        return Err(loader_message());
    }
    // SAFETY: the symbol of that name has this type in every release: `CUptiResult cuptiGetVersion(uint32_t *)`, the
    // result being a C enum.
    let ask = unsafe { std::mem::transmute::<*mut libc::c_void, extern "C" fn(*mut u32) -> libc::c_int>(symbol) };
    // Some releases (13.2) look for the driver before they answer, and where there is none call themselves until the stack
    // is full.
    // SAFETY: the name is a C string; the driver's library is made to be loaded into any process.
    if unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL) }.is_null() {
        return Err(format!("it needs the driver: {}", loader_message()));
    }
    let mut version = 0;
    // The library stays loaded: it may have registered things that point into it.
    match ask(&raw mut version) {
        0 => Ok(version),
        code => Err(format!("cuptiGetVersion failed with code {code}")),
    }
}

pub(super) fn loader_message() -> String {
    // SAFETY: dlerror gives null or a C string that stays valid until this thread's next call of the loader.
    let message = unsafe { libc::dlerror() };
    if message.is_null() {
        return "the loader gave no reason".to_owned();
    }
    // SAFETY: not null, see above.
    unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn python(folder: &Path) -> Python {
        Python { folders: vec![folder.to_owned()], cupti: Some("13.0.85".into()), ..Python::default() }
    }

    #[test]
    fn the_python_package_is_found_where_there_is_no_toolkit() {
        let root = tempfile::tempdir().unwrap();
        let package = root.path().join("nvidia/cu13/lib");
        std::fs::create_dir_all(&package).unwrap();
        std::fs::write(package.join("libcupti.so.13"), "no library").unwrap();
        std::fs::create_dir(root.path().join("nvidia/cublas")).unwrap();
        let python = python(root.path());
        assert_eq!(find(&Places::default(), None), None);
        let found = find(&Places::default(), Some(&python)).unwrap();
        assert_eq!(found.version.as_deref(), Some("13.0.85"));
        assert_eq!(found.major, Some(13));
        assert!(found.interface.unwrap_err().contains("file too short"), "what the loader says is kept");
    }

    #[test]
    fn a_toolkit_states_its_release_in_the_file_name() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("extras/CUPTI/lib64");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("libcupti.so.2025.3.1"), "").unwrap();
        std::os::unix::fs::symlink("libcupti.so.2025.3.1", folder.join("libcupti.so.13")).unwrap();
        std::os::unix::fs::symlink("libcupti.so.13", folder.join("libcupti.so")).unwrap();
        let places = Places { toolkits: vec![root.path().to_owned()], ..Places::default() };
        let found = find(&places, Some(&python(Path::new("/elsewhere")))).unwrap();
        assert_eq!(found.path, folder.join("libcupti.so.13"));
        assert_eq!((found.version.as_deref(), found.major), (Some("2025.3.1"), Some(13)));
    }

    #[test]
    fn a_toolkit_without_a_release_in_the_name_states_it_in_its_version_file() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("lib64");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("libcupti.so.12"), "").unwrap();
        std::fs::write(root.path().join("version.json"), r#"{"cuda_cupti": {"version": "12.8.90"}}"#).unwrap();
        let places = Places { toolkits: vec![root.path().to_owned()], ..Places::default() };
        assert_eq!(find(&places, None).unwrap().version.as_deref(), Some("12.8.90"));
    }

    #[test]
    fn a_library_that_is_not_cupti_says_so() {
        let reason = interface_version(Path::new("libc.so.6")).unwrap_err();
        assert!(reason.contains("cuptiGetVersion"), "{reason}");
    }
}
