//! Where a run is kept: its folder, or nowhere.

use std::path::{Path, PathBuf};

use config::{Config, Overrides};
use flow::RunRequest;
use types::UserError;

use super::Arguments;
use crate::resolution;

/// The folder of a run. One that nobody wants to keep goes with this value.
pub(super) struct RunPlace {
    out: Option<PathBuf>,
    scratch: Option<tempfile::TempDir>,
}

impl RunPlace {
    /// As the user wants it.
    pub(super) fn of(arguments: &Arguments) -> Result<Self, UserError> {
        if !arguments.no_save {
            return Ok(Self { out: arguments.out.clone(), scratch: None });
        }
        let scratch = tempfile::tempdir().map_err(|error| {
            let folder = std::env::temp_dir();
            UserError::failed(format!("cannot create a folder in {}", folder.display())).because(error.to_string())
        })?;
        Ok(Self { out: Some(scratch.path().join("run")), scratch: Some(scratch) })
    }

    /// The run to make there.
    pub(super) fn request(&self, config: &Config, given: &Overrides) -> Result<RunRequest, UserError> {
        let request = resolution::run_request("profile", config, given, self.out.as_deref())?;
        let index = if self.scratch.is_some() { None } else { request.index };
        Ok(RunRequest { index, ..request })
    }

    /// What to tell the user of: the report, where it stays.
    pub(super) fn kept(&self, folder: &Path) -> Vec<(&'static str, PathBuf)> {
        if self.scratch.is_some() { Vec::new() } else { vec![("report", folder.join("report.html"))] }
    }
}
