//! Finding the run a user means.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use types::{RunListing, UserError};

use super::StoredRun;
use super::index::RunIndex;
use super::stored::runs_with;

/// Word that stands for the newest run that fits.
const LATEST: &str = "latest";

/// Which runs `latest` may mean.
#[derive(Clone, Copy, Debug)]
pub struct Fitness {
    /// What such a run is, to follow "no run in DIR": `was made by deep`.
    pub wanted: &'static str,
    /// Whether a run is one.
    pub fits: fn(&StoredRun) -> bool,
}

/// A run by the names it has.
struct Candidate {
    listing: RunListing,
    run: Option<StoredRun>,
}

/// Opens the run that `selector` names: its folder, its name beneath `root`, the start of that name if no other run starts
/// so, or `latest`. A name goes before the start of a name, and both before `latest` and a folder elsewhere.
pub fn find_run(root: &Path, selector: impl AsRef<OsStr>) -> Result<StoredRun, UserError> {
    find_fitting_run(root, None, selector, &Fitness { wanted: "is readable", fits: |_| true })
}

/// The same among the runs in `root` and those that the index knows beside them, which go by the name of their folder and by that of
/// the run; `latest` is the newest that fits.
pub fn find_fitting_run(
    root: &Path,
    index: Option<&RunIndex>,
    selector: impl AsRef<OsStr>,
    fitness: &Fitness,
) -> Result<StoredRun, UserError> {
    let folder = Path::new(selector.as_ref());
    // Names of runs are text; bytes that are none can only be a path.
    let Some(selector) = selector.as_ref().to_str() else { return StoredRun::open(folder) };
    if selector.contains(std::path::is_separator) || matches!(selector, "." | "..") {
        return StoredRun::open(folder);
    }
    let candidates: Vec<Candidate> =
        runs_with(root, index)?.into_iter().map(|(listing, run)| Candidate { listing, run }).collect();
    StoredRun::open(&choose(root, selector, &candidates, fitness)?)
}

impl Candidate {
    fn path(&self) -> PathBuf {
        self.run.as_ref().map_or_else(|| PathBuf::from(&self.listing.path), |run| run.path().to_owned())
    }

    /// The name of its folder, which goes first, and that of the run.
    fn names(&self) -> [Option<&str>; 2] {
        [Some(self.listing.id.as_str()), self.run.as_ref().map(|run| run.manifest().run_id.as_str())]
    }
}

fn choose(root: &Path, selector: &str, runs: &[Candidate], fitness: &Fitness) -> Result<PathBuf, UserError> {
    let list = format!("list the runs with `llm-perf runs --root {}`", root.display());
    let ambiguous = |several: &[&Candidate]| {
        let is_alike = |one: &&Candidate| several.iter().filter(|other| other.listing.id == one.listing.id).count() > 1;
        let name = |one: &Candidate| if is_alike(&one) { one.listing.path.clone() } else { one.listing.id.clone() };
        let (count, root) = (several.len(), root.display());
        let names: Vec<String> = several.iter().map(|one| name(one)).collect();
        UserError::usage(format!("`{selector}` matches {count} runs in {root}: {}", names.join(", ")))
            .hint("give more of the name, or use `latest`")
    };
    // A copy of a run has the name of the first inside, so that names of folders are looked at first.
    let named = |fits: &dyn Fn(&str) -> bool| -> Vec<&Candidate> {
        let by = |place: usize| runs.iter().filter(|run| run.names()[place].is_some_and(fits)).collect::<Vec<_>>();
        Some(by(0)).filter(|found| !found.is_empty()).unwrap_or_else(|| by(1))
    };
    match named(&|name| name == selector).as_slice() {
        [run] => return Ok(run.path()),
        [] => {}
        several => return Err(ambiguous(several)),
    }
    let kind = selector.strip_prefix(LATEST).and_then(|rest| rest.strip_prefix(':'));
    if (selector == LATEST || kind.is_some()) && runs.iter().any(|run| run.run.is_some()) {
        let fits = |run: &StoredRun| kind.is_none_or(|kind| run.manifest().kind() == kind) && (fitness.fits)(run);
        let fitting = runs.iter().find(|run| run.run.as_ref().is_some_and(fits));
        return fitting
            .map(Candidate::path)
            .ok_or_else(|| UserError::usage(format!("no run in {} {}", root.display(), fitness.wanted)).hint(list));
    }
    match named(&|name| !selector.is_empty() && name.starts_with(selector)).as_slice() {
        [run] => Ok(run.path()),
        [] if Path::new(selector).is_dir() => Ok(PathBuf::from(selector)),
        [] => {
            let nearest = types::nearest(selector, runs.iter().map(|run| run.listing.id.as_str()));
            let hint = nearest.map_or(list, |nearest| format!("did you mean `{nearest}`?"));
            Err(UserError::usage(format!("run `{selector}` not found in {}", root.display())).hint(hint))
        }
        several => Err(ambiguous(several)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs beneath a root, newest first: `None` for one that cannot be read.
    fn runs(root: &Path, names: &[(&str, Option<&str>)]) -> Vec<Candidate> {
        for (name, verb) in names {
            let text = verb.map_or("{}".to_owned(), |verb| {
                format!(
                    r#"{{"schema": "llm-perf/manifest/1", "run_id": "{name}-id", "status": "complete", "verb": "{verb}",
                        "command": [], "tool_version": "0", "model": null, "device": null, "started_at": "", "ended_at": null,
                        "process": {{"pid": 1, "start_ticks": null, "boot_id": null}}}}"#
                )
            });
            std::fs::create_dir_all(root.join(name)).unwrap();
            std::fs::write(root.join(name).join("manifest.json"), text).unwrap();
        }
        let found = runs_with(root, None).unwrap().into_iter();
        let mut runs: Vec<Candidate> = found.map(|(listing, run)| Candidate { listing, run }).collect();
        runs.sort_by_key(|run| names.iter().position(|(name, _)| *name == run.listing.id));
        runs
    }

    fn chosen(selector: &str) -> Result<String, String> {
        let folder = tempfile::tempdir().unwrap();
        let names =
            [("20251115-034712-2", None), ("20251115-034712", Some("deep")), ("20251114-120000", Some("profile"))];
        let fitness = Fitness { wanted: "was made by `profile`", fits: |run| run.manifest().verb == "profile" };
        let place = folder.path().display().to_string();
        choose(folder.path(), selector, &runs(folder.path(), &names), &fitness)
            .map(|path| path.display().to_string().replace(&place, "root"))
            .map_err(|error| format!("{error}; {}", error.hints.join("; ")).replace(&place, "root"))
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
    fn latest_is_the_newest_that_fits() {
        assert_eq!(chosen("latest"), Ok("root/20251114-120000".to_owned()));
        let folder = tempfile::tempdir().unwrap();
        let runs = runs(folder.path(), &[("new", Some("import")), ("old", Some("deep"))]);
        let fitness = |fits| Fitness { wanted: "was made by `profile`", fits };
        let newest = choose(folder.path(), "latest", &runs, &fitness(|_| true)).unwrap();
        assert_eq!(newest, folder.path().join("new"));
        let none = choose(folder.path(), "latest", &runs, &fitness(|_| false)).unwrap_err().to_string();
        assert!(none.ends_with(" was made by `profile`"), "{none}");
    }

    #[test]
    fn a_run_goes_by_its_own_name_too() {
        assert_eq!(chosen("20251114-120000-id"), Ok("root/20251114-120000".to_owned()));
    }

    #[test]
    fn what_names_no_single_run_is_refused_with_the_way_on() {
        let messages: Vec<String> =
            ["20251115", "20251114-120001", "nothing", ""].iter().map(|name| chosen(name).unwrap_err()).collect();
        insta::assert_snapshot!(messages.join("\n"), @r"
        `20251115` matches 2 runs in root: 20251115-034712-2, 20251115-034712; give more of the name, or use `latest`
        run `20251114-120001` not found in root; did you mean `20251114-120000`?
        run `nothing` not found in root; list the runs with `llm-perf runs --root root`
        run `` not found in root; list the runs with `llm-perf runs --root root`
        ");
    }
}
