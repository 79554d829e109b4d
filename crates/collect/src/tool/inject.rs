//! Our own collector: the library that is loaded into every CUDA process a command starts.
//!
//! The library is part of this program (made by the build script) and is written into the folder that gets its
//! files, so that it is found however the program was installed; `LLM_PERF_INJECT_LIBRARY` names another. Reading the files
//! is left to `ingest`.

use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use types::{Exit, Failure};

use super::{Places, cupti, python};
use crate::CollectError;

/// The library, or nothing where this program was built for a machine it cannot be loaded on.
static LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libllm_perf_inject.so"));

const FILE_NAME: &str = "libllm_perf_inject.so";
/// Names another library.
const LIBRARY_VARIABLE: &str = "LLM_PERF_INJECT_LIBRARY";
/// What the driver and NVTX look at.
const ENTRIES: [&std::ffi::CStr; 2] = [c"InitializeInjection", c"InitializeInjectionNvtx2"];

/// What to collect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Ranges to collect in; always, where absent.
    pub window: Option<Window>,
    /// The CUPTI to use; otherwise the one the process has, then one that is found on this machine.
    pub cupti: Option<PathBuf>,
    /// Whether CUDA graphs are recorded as a whole instead of by their nodes, which costs less.
    pub whole_graphs: bool,
}

/// Ranges to collect in: `prefill,decode_step:8..16`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window(String);

/// Why a text is no window.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no window: {reason}")]
pub struct WindowError {
    text: String,
    reason: &'static str,
}

impl Failure for WindowError {
    fn exit(&self) -> Exit {
        Exit::Usage
    }

    fn hint(&self) -> Option<String> {
        let step = "ranges by name, with instances where not all are meant: prefill, decode_step:8..16, prefill,decode_step:0..8";
        Some(step.to_owned())
    }
}

impl Window {
    /// Reads a list of ranges. The limits are those of the library, which has fixed room for it.
    pub fn read(text: &str) -> Result<Self, WindowError> {
        let wrong = |reason| WindowError { text: text.to_owned(), reason };
        let parts: Vec<&str> = text.split(',').collect();
        if parts.len() > 8 {
            return Err(wrong("it has more than 8 parts"));
        }
        for part in parts {
            let name = match part.rsplit_once(':') {
                Some((name, instances)) if instances.starts_with(|c: char| c.is_ascii_digit() || c == '.') => {
                    let ends = match instances.split_once("..") {
                        Some((from, to)) => from.parse::<u32>().ok().zip(to.parse::<u32>().ok()),
                        None => instances.parse::<u32>().ok().and_then(|one| Some((one, one.checked_add(1)?))),
                    };
                    if ends.is_none_or(|(from, to)| from >= to) {
                        return Err(wrong("instances are numbers FROM..TO, of which the last is not meant"));
                    }
                    name
                }
                _ => part,
            };
            if name.is_empty() || name.len() > 64 {
                return Err(wrong("a name has 1 to 64 bytes"));
            }
        }
        Ok(Self(text.to_owned()))
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A collector ready for a command.
#[derive(Clone, Debug)]
pub struct Injection {
    library: PathBuf,
    /// Whether the library was written here, and is removed with the rest.
    written: bool,
    folder: PathBuf,
    settings: Settings,
    fallback: Option<PathBuf>,
}

impl Injection {
    /// Whether this program has a collector.
    pub fn is_built_in() -> bool {
        !LIBRARY.is_empty()
    }

    /// Puts the library into `folder`, which will get the files too.
    pub fn prepare(folder: &Path, settings: Settings) -> Result<Self, CollectError> {
        let folder = std::fs::canonicalize(folder).map_err(CollectError::io("find", folder))?;
        let named = std::env::var_os(LIBRARY_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
        let written = named.is_none();
        let library = match named {
            Some(path) => std::fs::canonicalize(&path).map_err(CollectError::io("find", &path))?,
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
        let graphs = self.settings.whole_graphs.then(|| ("LLM_PERF_INJECT_GRAPHS", "whole".into()));
        variables.extend([cupti, fallback, window, graphs].into_iter().flatten());
        variables.into_iter().map(|(name, value)| (name.into(), value)).collect()
    }

    /// The files that processes have left, and the library gone again.
    pub fn gather(self) -> Result<Vec<PathBuf>, CollectError> {
        if self.written {
            std::fs::remove_file(&self.library).map_err(CollectError::io("remove", &self.library))?;
        }
        let entries = std::fs::read_dir(&self.folder).map_err(CollectError::io("read", &self.folder))?;
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let mut files: Vec<_> = paths.filter(|path| path.extension().is_some_and(|kind| kind == "wire")).collect();
        files.sort();
        Ok(files)
    }
}

fn write(folder: &Path) -> Result<PathBuf, CollectError> {
    if LIBRARY.is_empty() {
        return Err(CollectError::NoCollector);
    }
    let path = folder.join(FILE_NAME);
    std::fs::write(&path, LIBRARY).map_err(CollectError::io("write", &path))?;
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&path, mode).map_err(CollectError::io("write", &path))?;
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
    let name = CString::new(path.as_os_str().as_bytes()).map_err(|_| "its path contains a zero byte".to_owned())?;
    // SAFETY: the path is a C string. The library is ours; loading it starts nothing, and nothing of it is called.
    let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if library.is_null() {
        return Err(cupti::loader_message());
    }
    // SAFETY: the handle is open and the names are C strings.
    let missing = ENTRIES.iter().find(|entry| unsafe { libc::dlsym(library, entry.as_ptr()) }.is_null());
    // SAFETY: the handle is open, and nothing of the library is in use.
    unsafe { libc::dlclose(library) };
    missing.map_or(Ok(()), |entry| Err(format!("it has no {}", entry.to_string_lossy())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_checked_before_anything_runs() {
        for good in ["prefill", "decode_step:8..16", "cub::DeviceScan", "prefill,decode_step:0", "a:b"] {
            assert_eq!(Window::read(good).unwrap().as_str(), good);
        }
        for bad in ["", "a,,b", "step:5..5", "step:8..", "step:x..9,step:9..1", ",", "a,b,c,d,e,f,g,h,i"] {
            assert!(Window::read(bad).is_err(), "{bad}");
        }
        assert_eq!(
            Window::read("step:5..5").unwrap_err().to_string(),
            "`step:5..5` is no window: instances are numbers FROM..TO, of which the last is not meant"
        );
    }

    #[test]
    fn the_library_is_there_for_a_command_and_gone_after_it() {
        let folder = tempfile::tempdir().unwrap();
        let window = Some(Window::read("decode_step:8..16").unwrap());
        let injection = Injection::prepare(folder.path(), Settings { window, ..Settings::default() }).unwrap();
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
