//! The command lines of Nsight Compute, as pure functions from what is wanted to what is typed.
//!
//! What is worth profiling is decided elsewhere; what the tool answers is read elsewhere.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::preset::Options;
use crate::Command;
use crate::tool::{with_ending, word};

/// What launch filters count over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FilterMode {
    /// All launches together.
    #[default]
    Global,
    /// Each kernel with each grid and block by itself. Known since release 2023.2.
    PerLaunchConfig,
}

/// One run of a program under Nsight Compute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capture {
    /// The report, without its ending `.ncu-rep`; one that is there is replaced.
    pub report: PathBuf,
    /// What is profiled, and how.
    pub options: Options,
    /// What `launch_skip` and `launch_count` count over.
    pub filter_mode: FilterMode,
}

impl Options {
    /// A capture with these options that leaves its report at `report`.
    pub fn capture(&self, report: PathBuf) -> Capture {
        Capture { report, options: self.clone(), ..Capture::default() }
    }
}

impl Capture {
    /// Everything that is typed to run `program` with `arguments` under the tool at `ncu`.
    pub fn command(&self, ncu: &Path, target: &[OsString]) -> Command {
        let options = &self.options;
        let mut typed = Arguments::default();
        // A configuration file of the user's could add options that this command line does not show.
        typed.option("--config-file", "off");
        typed.option("--target-processes", word(options.target_processes));
        typed.option("--replay-mode", options.replay_mode.name());
        typed.option("--clock-control", word(options.clock_control));
        typed.option("--cache-control", word(options.cache_control));
        if let Some(set) = &options.set {
            typed.option("--set", set);
        }
        options.sections.iter().for_each(|section| typed.option("--section", section));
        if !options.metrics.is_empty() {
            typed.option("--metrics", options.metrics.join(","));
        }
        // Without it the rows of a page do not say which ranges were open.
        typed.flag("--nvtx");
        options.nvtx.include.iter().for_each(|range| typed.option("--nvtx-include", range));
        options.nvtx.exclude.iter().for_each(|range| typed.option("--nvtx-exclude", range));
        if let Some(name) = &options.kernel_name {
            typed.option("--kernel-name-base", options.kernel_name_base.name());
            typed.option("--kernel-name", name);
        }
        if options.launch_skip > 0 {
            typed.option("--launch-skip", options.launch_skip.to_string());
        }
        if let Some(count) = options.launch_count {
            typed.option("--launch-count", count.to_string());
        }
        if self.filter_mode != FilterMode::Global {
            typed.option("--filter-mode", word(self.filter_mode));
        }
        typed.flag("--force-overwrite");
        typed.option("--export", &self.report);
        options.extra.iter().for_each(|option| typed.flag(option));
        typed.0.extend(target.iter().cloned());
        Command::new(ncu, typed.0)
    }

    /// Where the tool puts the report.
    pub fn report_file(&self) -> PathBuf {
        with_ending(&self.report, ".ncu-rep")
    }
}

/// What a report is printed as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Page {
    /// One row a launch, one column a metric.
    Raw,
    /// One row a metric, with the tool's own advice.
    Details,
}

/// Prints a report as comma-separated values on standard output.
pub fn print_page(ncu: &Path, report: &Path, page: Page) -> Command {
    let mut typed = Arguments::default();
    typed.option("--config-file", "off");
    typed.option("--import", report);
    typed.flag("--csv");
    match page {
        Page::Raw => typed.option("--page", "raw"),
        Page::Details => {
            typed.option("--page", "details");
            typed.option("--print-details", "all");
        }
    }
    Command::new(ncu, typed.0)
}

/// Prints the base names of all metrics of a chip (`gh100`); of the devices that are there where none is named.
pub fn query_metrics(ncu: &Path, chip: Option<&str>) -> Command {
    let mut typed = Arguments::default();
    typed.option("--config-file", "off");
    typed.flag("--query-metrics");
    if let Some(chip) = chip {
        typed.option("--chips", chip);
    }
    Command::new(ncu, typed.0)
}

/// Arguments as they are put together.
#[derive(Default)]
struct Arguments(Vec<OsString>);

impl Arguments {
    fn flag(&mut self, flag: impl AsRef<OsStr>) {
        self.0.push(flag.as_ref().to_owned());
    }

    fn option(&mut self, name: &str, value: impl AsRef<OsStr>) {
        self.flag(name);
        self.flag(value);
    }
}

#[cfg(test)]
mod tests {
    use types::{KernelNameBase, ReplayMode};

    use super::*;
    use crate::tool::ncu::{CacheControl, ClockControl, Ranges, TargetProcesses};

    fn shown(command: &Command) -> String {
        command.to_string().replace(" --", "\n  --")
    }

    fn target() -> Vec<OsString> {
        ["python3", "run model.py", "--steps", "4"].map(OsString::from).to_vec()
    }

    #[test]
    fn the_least_capture_names_every_choice() {
        let capture = Capture { report: "run/ncu/all".into(), ..Capture::default() };
        insta::assert_snapshot!(shown(&capture.command(Path::new("/opt/ncu"), &target())), @r"
        /opt/ncu
          --config-file off
          --target-processes all
          --replay-mode kernel
          --clock-control none
          --cache-control all
          --nvtx
          --force-overwrite
          --export run/ncu/all python3 'run model.py'
          --steps 4
        ");
        assert_eq!(capture.report_file(), Path::new("run/ncu/all.ncu-rep"));
    }

    #[test]
    fn everything_that_can_be_asked_for_becomes_an_option() {
        let texts = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
        let options = Options {
            replay_mode: ReplayMode::AppRange,
            target_processes: TargetProcesses::ApplicationOnly,
            clock_control: ClockControl::Base,
            cache_control: CacheControl::None,
            nvtx: Ranges { include: texts(&["LLM@decode_all/", "A/A1/"]), exclude: texts(&["warm up/"]) },
            set: Some("roofline".to_owned()),
            sections: texts(&["SpeedOfLight", "regex:Memory.*"]),
            metrics: texts(&["gpu__time_duration.sum", "dram__bytes.sum"]),
            kernel_name: Some(crate::tool::ncu::any_of(&["void gemm<128, true>(float*)", "copy"])),
            kernel_name_base: KernelNameBase::Function,
            launch_skip: 5,
            kernel_exclude: texts(&["copy"]),
            launch_count: Some(3),
            extra: texts(&["--graph-profiling", "node"]),
        };
        let capture = Capture { report: "run/ncu/decode".into(), options, filter_mode: FilterMode::PerLaunchConfig };
        insta::assert_snapshot!(shown(&capture.command(Path::new("ncu"), &target())), @r"
        ncu
          --config-file off
          --target-processes application-only
          --replay-mode app-range
          --clock-control base
          --cache-control none
          --set roofline
          --section SpeedOfLight
          --section 'regex:Memory.*'
          --metrics gpu__time_duration.sum,dram__bytes.sum
          --nvtx
          --nvtx-include LLM@decode_all/
          --nvtx-include A/A1/
          --nvtx-exclude 'warm up/'
          --kernel-name-base function
          --kernel-name 'regex:^(void gemm<128, true>\(float\*\)|copy)$'
          --launch-skip 5
          --launch-count 3
          --filter-mode per-launch-config
          --force-overwrite
          --export run/ncu/decode
          --graph-profiling node python3 'run model.py'
          --steps 4
        ");
    }

    #[test]
    fn pages_are_printed_from_a_report() {
        let report = Path::new("run/ncu/decode.ncu-rep");
        let ncu = Path::new("ncu");
        assert_eq!(
            print_page(ncu, report, Page::Raw).to_string(),
            "ncu --config-file off --import run/ncu/decode.ncu-rep --csv --page raw"
        );
        assert_eq!(
            print_page(ncu, report, Page::Details).to_string(),
            "ncu --config-file off --import run/ncu/decode.ncu-rep --csv --page details --print-details all"
        );
        assert_eq!(
            query_metrics(ncu, Some("gh100")).to_string(),
            "ncu --config-file off --query-metrics --chips gh100"
        );
    }
}
