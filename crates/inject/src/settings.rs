//! What was asked for, from the environment. Copied once, because the application may change its environment.

use core::ffi::CStr;

use crate::number::number;
use crate::once::Once;
use crate::path::Path;
use crate::system::variable;
use crate::window::Windows;

/// What was asked for.
pub(crate) struct InjectSettings {
    /// Whether nothing is recorded until somebody asks for it, because no folder is named.
    pub(crate) waits: bool,
    /// Where files go.
    pub(crate) folder: Path,
    /// The CUPTI to use, where one is named.
    pub(crate) cupti: Path,
    /// The CUPTI to use where the process has none and the loader finds none.
    pub(crate) cupti_fallback: Path,
    /// Launches of graphs of which one is recorded by its nodes: 1 for all of them, 0 for none. All of them where there are windows:
    /// a graph that was made before whole graphs were recorded ends the process when it is launched.
    pub(crate) graphs: u32,
    /// When to collect.
    pub(crate) windows: Windows,
    /// Whether the driver says when it starts; otherwise only ranges load us, and a window may open at any time.
    pub(crate) driver_tells: bool,
    /// Number of this process in a distributed run and how many there are, by its launcher.
    pub(crate) rank: Option<(u32, u32)>,
}

impl InjectSettings {
    fn read() -> Self {
        let folder = variable(c"LLM_PERF_INJECT_FOLDER");
        // What somebody asks for is a window of its own, and the only one.
        let wanted: &[u8] = if folder.is_empty() { b"" } else { variable(c"LLM_PERF_INJECT_WINDOW") };
        let windows = Windows::read(wanted, folder.is_empty());
        Self {
            waits: folder.is_empty(),
            folder: Path::of(folder),
            cupti: Path::of(variable(c"LLM_PERF_INJECT_CUPTI")),
            cupti_fallback: Path::of(variable(c"LLM_PERF_INJECT_CUPTI_FALLBACK")),
            graphs: if windows.are_there() { 1 } else { graphs(variable(c"LLM_PERF_INJECT_GRAPHS")) },
            windows,
            driver_tells: !variable(c"CUDA_INJECTION64_PATH").is_empty(),
            rank: rank(),
        }
    }
}

/// `whole`, or `1/16`; every node of every launch otherwise.
pub(crate) fn graphs(text: &[u8]) -> u32 {
    match text.strip_prefix(b"1/").and_then(number) {
        _ if text == b"whole" => 0,
        Some(every) => every.max(1),
        None => 1,
    }
}

/// Variables of launchers, torchrun first, because it may itself be started by another.
fn rank() -> Option<(u32, u32)> {
    let launchers = [
        [c"RANK", c"WORLD_SIZE"],
        [c"OMPI_COMM_WORLD_RANK", c"OMPI_COMM_WORLD_SIZE"],
        [c"PMI_RANK", c"PMI_SIZE"],
        [c"SLURM_PROCID", c"SLURM_NTASKS"],
    ];
    let told = |[rank, world]: [&CStr; 2]| Some((number(variable(rank))?, number(variable(world))?));
    launchers.into_iter().find_map(told).filter(|(rank, world)| *world > 1 && rank < world)
}

static SETTINGS: Once<InjectSettings> = Once::new();

/// Reads the environment, where that was not done before.
///
/// # Safety
///
/// Nobody else calls this at the same time.
pub(crate) unsafe fn prepare() -> Option<&'static InjectSettings> {
    if SETTINGS.get().is_none() {
        // SAFETY: by the contract, and there is no value.
        unsafe { SETTINGS.set(InjectSettings::read()) };
    }
    SETTINGS.get()
}

/// What was asked for; `None` before anything was started.
#[inline]
pub(crate) fn settings() -> Option<&'static InjectSettings> {
    SETTINGS.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn graphs_are_sampled_whole_or_by_their_nodes() {
        assert_eq!((graphs(b"1/16"), graphs(b"whole")), (16, 0));
        for text in [&b""[..], b"1/1", b"1/0", b"2/3", b"1/x"] {
            assert_eq!(graphs(text), 1);
        }
    }
}
