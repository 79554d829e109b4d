//! `runs`: what earlier runs left.

use std::path::Path;

pub use collect::run::{DEFAULT_ROOT, StoredRun, find_run};
use types::{RunList, SchemaTag};

use crate::CollectError;

/// The runs beneath a folder, newest first.
pub fn list(root: &Path) -> Result<RunList, CollectError> {
    let runs = collect::run::list_runs(root)?;
    Ok(RunList { schema: SchemaTag::new(), root: root.display().to_string(), runs })
}
