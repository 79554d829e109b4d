//! What every verb gets beside its own arguments.

use std::path::PathBuf;

use crate::message::Messages;
use crate::progress::ProgressDisplay;

/// The surroundings of a verb.
#[derive(Debug)]
pub(crate) struct Context {
    /// Where talk and data go.
    pub(crate) messages: Messages,
    /// `--config-dir`.
    pub(crate) config_dir: Option<PathBuf>,
}

impl Context {
    /// Tells what is being done while something works.
    pub(crate) fn telling<T>(&self, work: impl FnOnce(&mut dyn FnMut(&str)) -> T) -> T {
        self.progress(|display| work(&mut |doing| display.doing(doing)))
    }

    /// Shows progress while something works.
    pub(crate) fn progress<T>(&self, work: impl FnOnce(&ProgressDisplay<'_>) -> T) -> T {
        work(&ProgressDisplay::new(&self.messages))
    }
}
