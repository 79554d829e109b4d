//! A run folder from its creation to its end: whatever happens in between, its manifest tells.

use std::path::PathBuf;

use collect::run::{Outcome, RunFolder, RunRequest};
use types::UserError;

/// A run that has ended.
#[derive(Debug)]
pub struct EndedRun<T> {
    /// What came of it.
    pub value: T,
    /// The run folder.
    pub folder: PathBuf,
    /// Why the run is partial; empty when it is not.
    pub missing: Vec<String>,
}

/// Makes a run folder, fills it, and ends the run as what came of it: `fill` gives back its value and what is missing.
pub(crate) fn run<T>(
    request: RunRequest,
    fill: impl FnOnce(&mut RunFolder) -> Result<(T, Vec<String>), UserError>,
) -> Result<EndedRun<T>, UserError> {
    conclude(RunFolder::create(request)?, |_| false, fill)
}

/// The same for a folder that is there already. `is_worth_keeping` says whether a run that failed has left enough to be
/// called partial.
pub(crate) fn conclude<T>(
    mut folder: RunFolder,
    is_worth_keeping: impl FnOnce(&RunFolder) -> bool,
    fill: impl FnOnce(&mut RunFolder) -> Result<(T, Vec<String>), UserError>,
) -> Result<EndedRun<T>, UserError> {
    let path = folder.path().to_owned();
    let filled = match types::catching(|| fill(&mut folder)) {
        Ok(filled) => filled,
        Err(panic) => {
            // As below.
            let _ = folder.fail(panic.said());
            panic.resume()
        }
    };
    match filled {
        Ok((value, missing)) => {
            folder.finish(Outcome::from_missing(missing.clone()))?;
            Ok(EndedRun { value, folder: path, missing })
        }
        Err(error) => {
            let reasons = vec![error.to_string()];
            let outcome = if is_worth_keeping(&folder) { Outcome::Partial(reasons) } else { Outcome::Failed(reasons) };
            // What the folder says matters less than why the run failed.
            let _ = folder.finish(outcome);
            Err(error)
        }
    }
}

#[cfg(test)]
mod tests {
    use collect::run::StoredRun;
    use types::RunState;

    use super::*;

    #[test]
    fn a_run_that_panics_is_failed_and_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("run");
        let request = RunRequest { out: Some(out.clone()), ..RunRequest::new("import", Vec::new()) };
        let ended = types::catching(|| run::<()>(request, |_| panic!("on purpose")));
        assert!(ended.is_err());
        let (state, reasons) = StoredRun::open(&out).unwrap().state();
        assert_eq!((state, reasons.len()), (RunState::Failed, 1));
    }
}
