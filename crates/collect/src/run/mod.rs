//! The run folder: one folder per run, whose manifest is true at every moment.
//!
//! Responsible for claiming a folder, for files that appear whole, for the manifest, and for finding, reading and checking
//! what earlier runs left. What the files mean is left to those who write and read them.
//!
//! What makes the manifest true when the process is killed between any two system calls:
//!
//! 1. `manifest.json` is the first file of a folder, so a folder with anything in it says what it is.
//! 2. A file is written under a temporary name, synced and renamed; it is whole as soon as it has its name.
//! 3. The manifest is replaced in the same way, and only after the files it lists have their names.
//! 4. A listed file is taken off the manifest before it is replaced, and listed again at the end of the step.
//!
//! So everything listed is there with that content. The other way round nothing is promised: a file may be there and not
//! listed yet, and a temporary file may be left over.

mod bundle;
mod claim;
mod content;
mod folder;
mod index;
mod owner;
mod relative_path;
mod select;
mod stored;
mod verify;

pub use bundle::{BUNDLE_ENDING, Bundle, unpack, write_bundle};
pub use claim::{DEFAULT_ROOT, RunRequest};
pub use content::{blake3, blake3_of, digest, digest_like, sha256};
pub use folder::{Outcome, RunFolder, now};
pub use index::RunIndex;
pub use select::{Fitness, find_fitting_run, find_run};
pub use stored::{StoredRun, list_runs, list_runs_with, runs_with};

use relative_path::RelativePath;

/// Name of the manifest in every run folder.
pub const MANIFEST: &str = "manifest.json";

/// Folder of a run for the files that it was made from and that lay outside, where it was packed with them.
pub const SOURCES: &str = "sources";
