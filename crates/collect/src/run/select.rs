//! Finding the run a user means.

use std::path::{Path, PathBuf};

use types::{RunListing, RunState};

use super::{StoredRun, list_runs};
use crate::CollectError;

/// Word that stands for the newest run that can be read.
const LATEST: &str = "latest";

/// Opens the run that `selector` names: its folder, its name beneath `root`, the start of that name if no other run starts
/// so, or `latest`. A name goes before the start of a name, and both before `latest` and a folder elsewhere.
pub fn find_run(root: &Path, selector: &str) -> Result<StoredRun, CollectError> {
    if selector.contains(std::path::is_separator) || matches!(selector, "." | "..") {
        return StoredRun::open(Path::new(selector));
    }
    StoredRun::open(&choose(root, selector, &list_runs(root)?)?)
}

fn choose(root: &Path, selector: &str, runs: &[RunListing]) -> Result<PathBuf, CollectError> {
    if let Some(run) = runs.iter().find(|run| run.id == selector) {
        return Ok(root.join(&run.id));
    }
    if selector == LATEST
        && let Some(run) = runs.iter().find(|run| run.state != RunState::Unreadable)
    {
        return Ok(root.join(&run.id));
    }
    let starting: Vec<&RunListing> =
        runs.iter().filter(|run| !selector.is_empty() && run.id.starts_with(selector)).collect();
    match starting.as_slice() {
        [run] => Ok(root.join(&run.id)),
        [] if Path::new(selector).is_dir() => Ok(PathBuf::from(selector)),
        [] => Err(CollectError::UnknownRun {
            selector: selector.to_owned(),
            root: root.to_owned(),
            nearest: nearest(selector, runs),
        }),
        several => Err(CollectError::AmbiguousRun {
            selector: selector.to_owned(),
            root: root.to_owned(),
            matches: several.iter().map(|run| run.id.clone()).collect(),
        }),
    }
}

fn nearest(selector: &str, runs: &[RunListing]) -> Option<String> {
    // Below this, names have too little in common for a suggestion to help.
    const ALIKE: f64 = 0.6;
    let likeness = |run: &RunListing| strsim::normalized_damerau_levenshtein(selector, &run.id);
    let best = runs.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(best) >= ALIKE).then(|| best.id.clone())
}

#[cfg(test)]
mod tests {
    use types::Failure;

    use super::*;

    fn runs(names: &[(&str, RunState)]) -> Vec<RunListing> {
        let listing = |&(id, state): &(&str, RunState)| RunListing {
            id: id.to_owned(),
            path: format!("root/{id}"),
            state,
            reasons: Vec::new(),
            verb: None,
            model: None,
            device: None,
            started_at: None,
            ended_at: None,
            file_count: None,
            bytes: None,
        };
        names.iter().map(listing).collect()
    }

    fn chosen(selector: &str) -> Result<String, String> {
        let runs = runs(&[
            ("20251115-034712-2", RunState::Unreadable),
            ("20251115-034712", RunState::Complete),
            ("20251114-120000", RunState::Failed),
        ]);
        choose(Path::new("root"), selector, &runs)
            .map(|path| path.display().to_string())
            .map_err(|error| format!("{error}; {}", error.hint().unwrap_or_default()))
    }

    #[test]
    fn a_whole_name_wins_over_being_the_start_of_another() {
        assert_eq!(chosen("20251115-034712"), Ok("root/20251115-034712".to_owned()));
    }

    #[test]
    fn the_start_of_one_name_is_enough() {
        assert_eq!(chosen("20251114"), Ok("root/20251114-120000".to_owned()));
    }

    #[test]
    fn latest_is_the_newest_that_can_be_read() {
        assert_eq!(chosen("latest"), Ok("root/20251115-034712".to_owned()));
    }

    #[test]
    fn what_names_no_single_run_is_refused_with_the_way_on() {
        let messages: Vec<String> =
            ["20251115", "20251114-120001", "nothing", ""].iter().map(|name| chosen(name).unwrap_err()).collect();
        insta::assert_snapshot!(messages.join("\n"), @r"
        `20251115` is the start of 2 runs in root: 20251115-034712-2, 20251115-034712; give more of the name, or `latest`
        there is no run `20251114-120001` in root; did you mean `20251114-120000`?
        there is no run `nothing` in root; `llm-perf runs --root root` lists the runs there are
        there is no run `` in root; `llm-perf runs --root root` lists the runs there are
        ");
    }
}
