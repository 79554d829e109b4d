//! `unpack`: a run folder out of a bundle.

use std::path::{Path, PathBuf};

use collect::run::{DEFAULT_ROOT, RunIndex};
use types::{BundleIndex, UserError};

/// A file that takes a while.
const LARGE: u64 = 32 << 20;

/// A run that was unpacked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnpackedRun {
    /// Its folder.
    pub folder: PathBuf,
    /// What the bundle has.
    pub index: BundleIndex,
}

/// Unpacks a bundle into `out`, or into a folder of its own name among the runs.
pub fn unpack(bundle: &Path, out: Option<&Path>, doing: &mut dyn FnMut(&str)) -> Result<UnpackedRun, UserError> {
    let root = Path::new(DEFAULT_ROOT);
    let named = || root.join(bundle.file_stem().unwrap_or(bundle.as_os_str()));
    let folder = out.map_or_else(named, Path::to_owned);
    let known = RunIndex::of_user();
    let noted = known.as_ref().filter(|_| out.is_some()).map(|index| (index, root));
    let index = collect::run::unpack(bundle, &folder, noted, &mut |file| {
        if file.bytes.get() >= LARGE {
            doing(&format!("unpacking {}", file.path));
        }
    })?;
    Ok(UnpackedRun { folder, index })
}
