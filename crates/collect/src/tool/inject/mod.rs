//! Our own collector: the library that is loaded into every CUDA process a command starts.
//!
//! The library is part of this program (made by the build script) and is written into the folder that gets its
//! files, so that it is found however the program was installed; `LLM_PERF_INJECT_LIBRARY` names another. Reading the files
//! is left to `ingest`.

mod attach;
mod window;

use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use types::UserError;

use super::{Places, cupti, python};
use crate::user_folder::user_folder;
use crate::whole_file::write_whole;

pub use attach::{AttachError, AttachRequest, Recording, WaitingProcesses};
pub use window::{Window, WindowError};

/// The library, or nothing where this program was built for a machine it cannot be loaded on.
static LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libllm_perf_inject.so"));

const FILE_NAME: &str = "libllm_perf_inject.so";
/// Names another library.
const LIBRARY_VARIABLE: &str = "LLM_PERF_INJECT_LIBRARY";
/// What the driver and NVTX look at.
const ENTRIES: [&std::ffi::CStr; 2] = [c"InitializeInjection", c"InitializeInjectionNvtx2"];

/// What to collect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InjectSettings {
    /// Ranges to collect in; always, where absent.
    pub window: Option<Window>,
    /// The CUPTI to use; otherwise the one the process has, then one that is found on this machine.
    pub cupti: Option<PathBuf>,
    /// Launches of CUDA graphs of which one is recorded kernel by kernel, the others as a whole: absent for all of them, 0 for none.
    pub graphs: Option<u32>,
}

/// A collector ready for a command.
#[derive(Clone, Debug)]
pub struct Injection {
    library: PathBuf,
    /// Whether the library was written here, and is removed with the rest.
    written: bool,
    folder: PathBuf,
    settings: InjectSettings,
    fallback: Option<PathBuf>,
}

impl Injection {
    /// Whether this program has a collector.
    pub fn is_built_in() -> bool {
        !LIBRARY.is_empty()
    }

    /// Puts the library into `folder`, which will get the files too.
    pub fn prepare(folder: &Path, settings: InjectSettings) -> Result<Self, UserError> {
        let folder = std::fs::canonicalize(folder).map_err(UserError::io("find", folder))?;
        let named = named()?;
        let written = named.is_none();
        let library = match named {
            Some(path) => path,
            None => write(&folder)?,
        };
        let fallback = settings.cupti.is_none().then(find_cupti).flatten();
        Ok(Self { library, written, folder, settings, fallback })
    }

    /// What to set for the command.
    pub fn variables(&self) -> Vec<(OsString, OsString)> {
        let library = || self.library.clone().into_os_string();
        let mut variables: Vec<(&str, OsString)> = vec![
            ("CUDA_INJECTION64_PATH", library()),
            ("NVTX_INJECTION64_PATH", library()),
            ("LLM_PERF_INJECT_FOLDER", self.folder.clone().into_os_string()),
        ];
        let cupti = self.settings.cupti.clone().map(|path| ("LLM_PERF_INJECT_CUPTI", path.into_os_string()));
        let fallback = self.fallback.clone().map(|path| ("LLM_PERF_INJECT_CUPTI_FALLBACK", path.into_os_string()));
        let window = self.settings.window.as_ref().map(|window| ("LLM_PERF_INJECT_WINDOW", window.as_str().into()));
        let graphs = self.settings.graphs.map(|every| match every {
            0 => ("LLM_PERF_INJECT_GRAPHS", "whole".into()),
            every => ("LLM_PERF_INJECT_GRAPHS", format!("1/{every}").into()),
        });
        variables.extend([cupti, fallback, window, graphs].into_iter().flatten());
        variables.into_iter().map(|(name, value)| (name.into(), value)).collect()
    }

    /// The files that processes have left, and the library gone again.
    pub fn gather(self) -> Result<Vec<PathBuf>, UserError> {
        if self.written {
            std::fs::remove_file(&self.library).map_err(UserError::io("remove", &self.library))?;
        }
        let entries = std::fs::read_dir(&self.folder).map_err(UserError::io("read", &self.folder))?;
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let mut files: Vec<_> = paths.filter(|path| path.extension().is_some_and(|kind| kind == "wire")).collect();
        files.sort();
        Ok(files)
    }
}

/// What to set for a program that is to wait for recordings. The library lies where it can stay.
pub fn waiting_variables() -> Result<Vec<(OsString, OsString)>, UserError> {
    let library = match named()? {
        Some(path) => path,
        None => {
            let folder = user_folder()
                .ok_or_else(|| {
                    UserError::failed("there is no folder for this user's data")
                        .hint("set LLM_PERF_DATA_DIR to a folder")
                })?
                .join("collector");
            std::fs::create_dir_all(&folder).map_err(UserError::io("create folder", &folder))?;
            let path = folder.join(FILE_NAME);
            if std::fs::read(&path).is_ok_and(|there| there == LIBRARY) { path } else { write(&folder)? }
        }
    };
    let fallback = find_cupti().map(|path| ("LLM_PERF_INJECT_CUPTI_FALLBACK", path.into_os_string()));
    let library = library.into_os_string();
    let both = ["CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"].map(|name| (name, library.clone()));
    Ok(both.into_iter().chain(fallback).map(|(name, value)| (name.into(), value)).collect())
}

/// The library that the environment names.
fn named() -> Result<Option<PathBuf>, UserError> {
    let named = std::env::var_os(LIBRARY_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
    named.map(|path| std::fs::canonicalize(&path).map_err(UserError::io("find", &path))).transpose()
}

fn write(folder: &Path) -> Result<PathBuf, UserError> {
    if LIBRARY.is_empty() {
        let message = "this program was built without the CUDA collector";
        return Err(UserError::failed(message).hint(
            "the collector is built for Linux with glibc on x86_64 and aarch64; to use one built elsewhere, set \
             LLM_PERF_INJECT_LIBRARY to its path",
        ));
    }
    let path = folder.join(FILE_NAME);
    // Whole or not at all, and as a file of its own: another version may be in use.
    write_whole(&path, LIBRARY).map_err(UserError::io("write", &path))?;
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&path, mode).map_err(UserError::io("write", &path))?;
    Ok(path)
}

/// CUPTI of a toolkit or beside torch, for processes that bring none and whose loader finds none.
fn find_cupti() -> Option<PathBuf> {
    let places = Places::of_this_machine();
    let python = python::find(&places).and_then(Result::ok);
    cupti::find(&places, python.as_ref()).filter(|cupti| cupti.interface.is_ok()).map(|cupti| cupti.path)
}

/// Loads the library from `folder` as a CUDA process would, and looks for what the driver and NVTX call.
pub fn self_check(folder: &Path) -> Result<(), String> {
    let path = write(folder).map_err(|error| error.to_string())?;
    let loaded = load(&path);
    let _ = std::fs::remove_file(&path);
    loaded
}

fn load(path: &Path) -> Result<(), String> {
    let name = CString::new(path.as_os_str().as_bytes()).map_err(|_| "its path contains a NUL byte".to_owned())?;
    // SAFETY: the path is a C string. The library is ours; loading it starts nothing, and nothing of it is called.
    let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if library.is_null() {
        return Err(cupti::loader_message());
    }
    // SAFETY: the handle is open and the names are C strings.
    let missing = ENTRIES.iter().find(|entry| unsafe { libc::dlsym(library, entry.as_ptr()) }.is_null());
    // SAFETY: the handle is open, and nothing of the library is in use.
    unsafe { libc::dlclose(library) };
    missing.map_or(Ok(()), |entry| Err(format!("it does not export {}", entry.to_string_lossy())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_there_for_a_command_and_gone_after_it() {
        let folder = tempfile::tempdir().unwrap();
        let window = Some(Window::read("decode_step:8..16").unwrap());
        let injection =
            Injection::prepare(folder.path(), InjectSettings { window, ..InjectSettings::default() }).unwrap();
        let variables = injection.variables();
        let value = |name: &str| variables.iter().find(|(other, _)| other == name).map(|(_, value)| value.clone());
        let library = PathBuf::from(value("CUDA_INJECTION64_PATH").unwrap());
        assert!(library.is_file() && value("NVTX_INJECTION64_PATH") == Some(library.clone().into()));
        assert_eq!(value("LLM_PERF_INJECT_WINDOW").unwrap(), "decode_step:8..16");
        for name in ["process-12.wire", "process-7.wire", "other.txt"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let files = injection.gather().unwrap();
        let names: Vec<_> = files.iter().map(|file| file.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["process-12.wire", "process-7.wire"]);
        assert!(!library.exists());
    }

    #[test]
    fn the_library_that_is_built_in_loads() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(self_check(folder.path()), Ok(()));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
