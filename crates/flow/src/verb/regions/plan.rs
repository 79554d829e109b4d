//! What is run under the profiler, decided before anything runs.
//!
//! A survey replays every kernel once, with its time as the only counter: it finds the regions there are, what is nested
//! in what, and what lies outside. Captures then count what was asked for, in the regions that were asked for. Everything
//! here is pure; running it is left to others.

use std::path::PathBuf;

use analysis::region::{Include, RegionKey, TIME, expression_of, runs_for_ranges};
use collect::tool::ncu::{CacheControl, Capture, Options};
use types::UserError;

/// More expressions than this make command lines nobody can read; then everything is profiled and chosen from afterwards.
const MOST_EXPRESSIONS: usize = 200;

/// Whether a survey is made first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SurveyChoice {
    /// Where regions must be known first.
    #[default]
    WhereNeeded,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// What will be done.
#[derive(Clone, Debug)]
pub struct Plan {
    options: Options,
    include: Vec<Include>,
    exclude: Vec<Include>,
    survey: bool,
}

/// One run of the profiler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Name of its files.
    pub name: String,
    /// What it looks for: `survey` or `capture`.
    pub purpose: &'static str,
    /// The run.
    pub capture: Capture,
}

impl Plan {
    /// Decides what to run. `options.nvtx.include` is what the user wrote.
    pub fn new(options: Options, survey: SurveyChoice) -> Result<Self, UserError> {
        let include: Vec<Include> = options.nvtx.include.iter().map(|text| Include::new(text)).collect();
        let exclude = options.nvtx.exclude.iter().map(|text| Include::new(text)).collect();
        let ranges = options.replay_mode.measures_ranges();
        let wildcard = include.iter().find(|include| include.needs_survey());
        if survey == SurveyChoice::Never {
            if ranges && include.is_empty() {
                let mode = options.replay_mode.name();
                return Err(UserError::usage(format!(
                    "{mode} replay needs the ranges to replay, but --no-survey disables the survey that finds them"
                ))
                .hint("pass them with --nvtx-include, or omit --no-survey"));
            }
            if let Some(include) = wildcard.filter(|_| ranges) {
                let expression = include.text();
                return Err(UserError::usage(format!(
                    "`{expression}` has a wildcard, but --no-survey disables the survey that resolves it"
                ))
                .hint("pass the ranges one by one, or omit --no-survey"));
            }
        }
        let needed = ranges || include.is_empty() || wildcard.is_some();
        let survey = survey == SurveyChoice::Always || survey == SurveyChoice::WhereNeeded && needed;
        Ok(Self { options, include, exclude, survey })
    }

    /// The include expressions.
    pub fn include(&self) -> &[Include] {
        &self.include
    }

    /// The expressions of what is left out.
    pub fn exclude(&self) -> &[Include] {
        &self.exclude
    }

    /// Whether only some launches are profiled.
    pub fn limits_launches(&self) -> bool {
        self.options.launch_skip > 0 || self.options.launch_count.is_some()
    }

    /// The run that finds regions, where there is one.
    pub fn survey(&self) -> Option<Step> {
        let options = Options {
            target_processes: self.options.target_processes,
            clock_control: self.options.clock_control,
            // One pass of one counter: nothing is gained by emptying caches, and it takes time.
            cache_control: CacheControl::None,
            metrics: vec![TIME.to_owned()],
            extra: self.options.extra.clone(),
            ..Options::default()
        };
        let capture = options.capture(PathBuf::from("ncu/regions-survey"));
        let name = "ncu-regions-survey".to_owned();
        self.survey.then_some(Step { name, purpose: "survey", capture })
    }

    /// The runs that count, for the regions a survey found; as far as they can be told, where there was none.
    pub fn captures(&self, seen: Option<&[RegionKey]>) -> Vec<Step> {
        let runs: Vec<Vec<String>> = match (seen, self.options.replay_mode.measures_ranges()) {
            (Some(seen), true) => {
                let wanted: Vec<RegionKey> = self.selected(seen).into_iter().cloned().collect();
                let expressions =
                    |run: Vec<usize>| run.into_iter().map(|place| expression_of(&wanted[place])).collect();
                runs_for_ranges(&wanted).into_iter().map(expressions).collect()
            }
            // What is inside what is not known, so that each gets a run of its own.
            (None, true) => self.include.iter().map(Include::expressions).filter(|run| !run.is_empty()).collect(),
            (Some(seen), false) => {
                let wanted = self.selected(seen);
                let is_top = |key: &&&RegionKey| !wanted.iter().any(|other| *other != **key && key.is_within(other));
                let top: Vec<String> = wanted.iter().filter(is_top).map(|key| expression_of(key)).collect();
                if top.is_empty() { Vec::new() } else { vec![top] }
            }
            (None, false) if self.include.iter().any(Include::needs_survey) => vec![Vec::new()],
            (None, false) => vec![self.include.iter().flat_map(Include::expressions).collect()],
        };
        let number = |(index, include): (usize, Vec<String>)| self.step(index + 1, include);
        runs.into_iter().enumerate().map(number).collect()
    }

    /// A capture as it will be, with `REGION/` where the regions found will stand.
    pub fn template(&self) -> Step {
        self.step(1, vec!["REGION/".to_owned()])
    }

    /// The regions that are asked for, with those inside of them.
    pub fn selected<'a>(&self, seen: &'a [RegionKey]) -> Vec<&'a RegionKey> {
        let matching = |all: &[Include]| -> Vec<usize> { all.iter().flat_map(|one| one.matching(seen)).collect() };
        let (roots, left_out) = (matching(&self.include), matching(&self.exclude));
        let within = |key: &RegionKey, roots: &[usize]| roots.iter().any(|root| key.is_within(&seen[*root]));
        let wanted = |key: &&RegionKey| (self.include.is_empty() || within(key, &roots)) && !within(key, &left_out);
        seen.iter().filter(wanted).collect()
    }

    fn step(&self, number: usize, mut include: Vec<String>) -> Step {
        if include.len() > MOST_EXPRESSIONS && !self.options.replay_mode.measures_ranges() {
            include.clear();
        }
        let mut capture = self.options.capture(PathBuf::from(format!("ncu/regions-{number}")));
        let options = &mut capture.options;
        options.nvtx.include = include;
        // Everything is weighed by time, so it is always counted; the report shows it only where it was asked for.
        if !options.metrics.iter().any(|name| name == TIME) {
            options.metrics.push(TIME.to_owned());
        }
        if options.replay_mode.measures_ranges() {
            // A range is measured with all that is in it.
            options.kernel_name = None;
        }
        Step { name: format!("ncu-regions-{number}"), purpose: "capture", capture }
    }
}

#[cfg(test)]
mod tests {
    use collect::tool::ncu::{ClockControl, Ranges, TargetProcesses};
    use types::{KernelNameBase, RegionStyle, ReplayMode};

    use super::*;

    fn options(mode: ReplayMode, include: &[&str]) -> Options {
        Options {
            replay_mode: mode,
            target_processes: TargetProcesses::All,
            clock_control: ClockControl::None,
            cache_control: CacheControl::All,
            nvtx: Ranges { include: include.iter().map(|text| (*text).to_owned()).collect(), exclude: Vec::new() },
            set: None,
            sections: vec!["SpeedOfLight".to_owned()],
            metrics: vec!["dram__bytes.sum".to_owned()],
            kernel_name: Some("gemm".to_owned()),
            kernel_name_base: KernelNameBase::Function,
            kernel_exclude: Vec::new(),
            launch_skip: 0,
            launch_count: None,
            extra: Vec::new(),
        }
    }

    fn seen(paths: &[&str]) -> Vec<RegionKey> {
        let segments = |path: &str| path.split('/').map(Into::into).collect();
        paths
            .iter()
            .map(|path| RegionKey { domain: None, style: RegionStyle::PushPop, segments: segments(path) })
            .collect()
    }

    fn includes(mode: ReplayMode, include: &[&str], regions: Option<&[&str]>) -> Vec<Vec<String>> {
        let plan = Plan::new(options(mode, include), SurveyChoice::WhereNeeded).unwrap();
        let seen = regions.map(seen);
        plan.captures(seen.as_deref()).into_iter().map(|step| step.capture.options.nvtx.include).collect()
    }

    #[test]
    fn kernels_need_one_run_whatever_is_nested() {
        let regions = ["A", "A/A1", "B"];
        assert_eq!(includes(ReplayMode::Kernel, &[], Some(&regions)), [["A/", "B/"]]);
        assert_eq!(includes(ReplayMode::Kernel, &["A::A1", "A"], Some(&regions)), [["A/"]]);
        assert_eq!(includes(ReplayMode::Application, &["A*"], Some(&regions)), [["A/"]]);
        assert_eq!(includes(ReplayMode::Kernel, &["A::A1"], None), [["A::A1/", "A/A1/"]]);
        assert!(includes(ReplayMode::Kernel, &["C*"], Some(&regions)).is_empty());
    }

    #[test]
    fn ranges_need_as_many_runs_as_are_nested() {
        let regions = ["A", "A/A1", "B"];
        assert_eq!(includes(ReplayMode::Range, &[], Some(&regions)), [vec!["A/", "B/"], vec!["A/A1/"]]);
        assert_eq!(includes(ReplayMode::AppRange, &["A::A1", "B"], Some(&regions)), [["A/A1/", "B/"]]);
        assert_eq!(includes(ReplayMode::Range, &["A", "B"], None), [["A/"], ["B/"]]);
    }

    #[test]
    fn a_survey_is_made_where_regions_must_be_known() {
        let surveys =
            |mode, include: &[&str], choice| Plan::new(options(mode, include), choice).unwrap().survey().is_some();
        assert!(surveys(ReplayMode::Kernel, &[], SurveyChoice::WhereNeeded));
        assert!(surveys(ReplayMode::Kernel, &["decode*"], SurveyChoice::WhereNeeded));
        assert!(!surveys(ReplayMode::Kernel, &["A"], SurveyChoice::WhereNeeded));
        assert!(surveys(ReplayMode::Kernel, &["A"], SurveyChoice::Always));
        assert!(surveys(ReplayMode::Range, &["A"], SurveyChoice::WhereNeeded));
        assert!(!surveys(ReplayMode::Range, &["A"], SurveyChoice::Never));
        let refused = |include: &[&str]| {
            Plan::new(options(ReplayMode::Range, include), SurveyChoice::Never).unwrap_err().to_string()
        };
        assert!(refused(&[]).starts_with("range replay needs the ranges"));
        assert!(refused(&["a*"]).starts_with("`a*` has a wildcard"));
    }

    #[test]
    fn a_capture_counts_what_was_asked_for_and_time() {
        let plan = Plan::new(options(ReplayMode::Kernel, &["A"]), SurveyChoice::Always).unwrap();
        let capture = &plan.captures(None)[0].capture.options;
        assert_eq!(capture.metrics, ["dram__bytes.sum", TIME]);
        assert_eq!(capture.kernel_name.as_deref(), Some("gemm"));
        let survey = plan.survey().unwrap().capture.options;
        assert_eq!((survey.metrics.as_slice(), survey.kernel_name), ([TIME.to_owned()].as_slice(), None));
        assert!(survey.sections.is_empty() && survey.nvtx.include.is_empty());
        let ranges = Plan::new(options(ReplayMode::Range, &["A"]), SurveyChoice::Never).unwrap();
        assert_eq!(ranges.captures(None)[0].capture.options.kernel_name, None);
    }
}
