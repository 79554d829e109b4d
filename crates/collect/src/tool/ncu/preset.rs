//! The configuration group `profiling/ncu`: every key of it becomes an option of the command line, or is refused.

use serde::{Deserialize, Serialize};
use types::{KernelNameBase, ReplayMode};

/// `pipeline.ncu`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preset {
    /// Whether the tool is used at all.
    pub enabled: bool,
    /// What is typed.
    pub ncu_cli: Options,
    /// How regions are reported.
    #[serde(default)]
    pub regions: RegionOptions,
}

/// `pipeline.ncu.regions`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegionOptions {
    /// Whether regions have totals over all processes and devices, beside those of each.
    pub aggregate: bool,
}

impl Default for RegionOptions {
    fn default() -> Self {
        Self { aggregate: true }
    }
}

/// `pipeline.ncu.ncu_cli`. The comments beside the keys in `conf/profiling/ncu` say what each means.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// `--replay-mode`.
    pub replay_mode: ReplayMode,
    /// `--target-processes`.
    pub target_processes: TargetProcesses,
    /// `--clock-control`.
    pub clock_control: ClockControl,
    /// `--cache-control`.
    pub cache_control: CacheControl,
    /// `--nvtx-include` and `--nvtx-exclude`.
    pub nvtx: Ranges,
    /// `--set`.
    pub set: Option<String>,
    /// `--section`, one each.
    pub sections: Vec<String>,
    /// `--metrics`.
    pub metrics: Vec<String>,
    /// `--kernel-name`; absent where the timeline says which kernels matter.
    pub kernel_name: Option<String>,
    /// `--kernel-name-base`.
    pub kernel_name_base: KernelNameBase,
    /// Kernels left out, exact or `regex:PATTERN`. The tool has no option for it: whoever chooses the kernels, or reads
    /// the rows, leaves them out.
    pub kernel_exclude: Vec<String>,
    /// `--launch-skip`.
    pub launch_skip: u64,
    /// `--launch-count`.
    pub launch_count: Option<u64>,
    /// Passed on as they are.
    pub extra: Vec<String>,
}

/// `pipeline.ncu.ncu_cli.nvtx`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ranges {
    /// `--nvtx-include`, one each.
    pub include: Vec<String>,
    /// `--nvtx-exclude`, one each.
    pub exclude: Vec<String>,
}

/// Which processes are profiled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TargetProcesses {
    /// The program and everything it starts.
    #[default]
    All,
    /// The program alone.
    ApplicationOnly,
}

/// What the tool does with the device's clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClockControl {
    /// Nothing: clocks as in a real run.
    #[default]
    None,
    /// Holds them at the base clock, so that runs compare.
    Base,
}

/// What the tool does with the device's caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheControl {
    /// Empties them before each pass.
    #[default]
    All,
    /// Leaves them as the work before left them.
    None,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preset(change: impl FnOnce(&mut serde_json::Value)) -> Result<Preset, serde_json::Error> {
        let mut value = serde_json::json!({"enabled": true, "ncu_cli": {
            "replay_mode": "app-range", "target_processes": "all", "clock_control": "base", "cache_control": "none",
            "nvtx": {"include": ["LLM@decode_all/"], "exclude": []}, "set": null, "sections": ["SpeedOfLight"],
            "metrics": ["dram__bytes.sum"], "kernel_name": "regex:gemm", "kernel_name_base": "function",
            "kernel_exclude": ["copy"], "launch_skip": 2, "launch_count": null, "extra": ["--verbose"]}});
        change(&mut value);
        serde_json::from_value(value)
    }

    #[test]
    fn every_key_becomes_an_option() {
        let capture = preset(|_| {}).unwrap().ncu_cli.capture("out".into());
        let shown = capture.command("ncu".as_ref(), &["true".into()]).to_string();
        assert_eq!(
            shown,
            "ncu --config-file off --target-processes all --replay-mode app-range --clock-control base --cache-control \
             none --section SpeedOfLight --metrics dram__bytes.sum --nvtx --nvtx-include LLM@decode_all/ \
             --kernel-name-base function --kernel-name regex:gemm --launch-skip 2 --force-overwrite --export out \
             --verbose true"
        );
    }

    #[test]
    fn an_unknown_key_and_an_unknown_word_are_refused() {
        let error = preset(|value| value["ncu_cli"]["replay"] = "kernel".into()).unwrap_err().to_string();
        assert!(error.starts_with("unknown field `replay`, expected one of"), "{error}");
        let error = preset(|value| value["ncu_cli"]["clock_control"] = "boost".into()).unwrap_err().to_string();
        assert!(error.starts_with("unknown variant `boost`, expected `none` or `base`"), "{error}");
    }
}
