//! The command lines of Nsight Systems, as pure functions from what is wanted to what is typed.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::Command;
use crate::tool::{InstalledTool, with_ending, word};

/// Whose processors are sampled, or whose context switches are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sampling {
    /// Nobody's.
    #[default]
    None,
    /// Those of the program and what it starts.
    ProcessTree,
    /// Everybody's.
    SystemWide,
}

/// What starts the recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CaptureRange {
    /// The start of the program.
    #[default]
    #[serde(rename = "none")]
    None,
    /// An NVTX range; only its first instance is recorded.
    #[serde(rename = "nvtx")]
    Nvtx,
    /// `cudaProfilerStart`.
    #[serde(rename = "cudaProfilerApi")]
    CudaProfilerApi,
}

/// How work inside CUDA graphs is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GraphTrace {
    /// A graph as a whole.
    #[default]
    Graph,
    /// Each kernel of it, which costs more.
    Node,
}

/// One run of a program under Nsight Systems.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capture {
    /// The report, without its ending `.nsys-rep`; one that is there is replaced.
    pub report: PathBuf,
    /// What is traced: `cuda`, `nvtx`, `osrt`, ...
    pub trace: Vec<String>,
    /// Sampling of processors.
    pub sample: Sampling,
    /// Context switches.
    pub context_switches: Sampling,
    /// What starts the recording.
    pub capture_range: CaptureRange,
    /// What its end does: `stop`, `stop-shutdown`, `repeat:N`.
    pub capture_range_end: String,
    /// The range that starts it: `RANGE@DOMAIN`.
    pub nvtx_capture: Option<String>,
    /// Work inside CUDA graphs.
    pub graphs: GraphTrace,
    /// Whether allocations on the device are recorded.
    pub memory_usage: bool,
    /// Devices whose metrics are sampled; none where absent.
    pub metrics_devices: Option<String>,
    /// Further options, passed on as they are.
    pub extra: Vec<String>,
}

impl Capture {
    /// Everything that is typed to run `target` under the tool.
    pub fn command(&self, nsys: &InstalledTool, target: &[OsString]) -> Command {
        let mut typed = vec![OsString::from("profile")];
        let mut set = |name: &str, value: &OsStr| {
            let mut option = OsString::from(name);
            option.push("=");
            option.push(value);
            typed.push(option);
        };
        set("--trace", self.trace.join(",").as_ref());
        set("--sample", word(self.sample).as_ref());
        set("--cpuctxsw", word(self.context_switches).as_ref());
        if self.capture_range != CaptureRange::None {
            set("--capture-range", word(self.capture_range).as_ref());
            set("--capture-range-end", self.capture_range_end.as_ref());
        }
        if let Some(range) = self.nvtx_capture.as_ref().filter(|_| self.capture_range == CaptureRange::Nvtx) {
            set("--nvtx-capture", range.as_ref());
            // Ranges are found only by registered names otherwise, and most programs register none.
            set("--env-var", "NSYS_NVTX_PROFILER_REGISTER_ONLY=0".as_ref());
        }
        set("--cuda-graph-trace", word(self.graphs).as_ref());
        set("--cuda-memory-usage", if self.memory_usage { "true".as_ref() } else { "false".as_ref() });
        if let Some(devices) = &self.metrics_devices {
            set(super::metrics_devices_option(nsys.version.as_deref()), devices.as_ref());
        }
        set("--force-overwrite", "true".as_ref());
        set("--output", self.report.as_os_str());
        typed.extend(self.extra.iter().map(OsString::from));
        typed.extend(target.iter().cloned());
        Command::new(&nsys.path, typed)
    }

    /// Where the tool puts the report.
    pub fn report_file(&self) -> PathBuf {
        with_ending(&self.report, ".nsys-rep")
    }

    /// What the tool leaves where it recorded, but could not make the report.
    pub fn unfinished_file(&self) -> PathBuf {
        with_ending(&self.report, ".qdstrm")
    }
}

/// Turns a report into a database.
pub fn export_sqlite(nsys: &Path, report: &Path, database: &Path) -> Command {
    let mut typed: Vec<OsString> =
        ["export", "--type=sqlite", "--force-overwrite=true"].into_iter().map(OsString::from).collect();
    let mut output = OsString::from("--output=");
    output.push(database);
    typed.extend([output, report.into()]);
    Command::new(nsys, typed)
}

/// Writes tables of a database, each as comma-separated values into [`statistics_file`] of the same `prefix`.
pub fn statistics(nsys: &Path, database: &Path, reports: &[String], prefix: &Path) -> Command {
    let mut typed = vec![OsString::from("stats")];
    typed.extend(reports.iter().map(|report| OsString::from(format!("--report={report}"))));
    let mut output = OsString::from("--output=");
    output.push(prefix);
    typed.extend(["--format=csv".into(), "--force-overwrite=true".into(), output, database.into()]);
    Command::new(nsys, typed)
}

/// Where [`statistics`] puts a table.
pub fn statistics_file(prefix: &Path, report: &str) -> PathBuf {
    // Arguments of a report are no part of the name.
    let name = report.split(':').next().unwrap_or(report);
    with_ending(prefix, &format!("_{name}.csv"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nsys(version: &str) -> InstalledTool {
        InstalledTool { path: "/opt/nsys".into(), version: Some(version.to_owned()), note: None }
    }

    fn shown(command: &Command) -> String {
        command.to_string().replace(" --", "\n  --")
    }

    fn target() -> Vec<OsString> {
        ["python3", "run model.py", "--steps", "4"].map(OsString::from).to_vec()
    }

    #[test]
    fn the_whole_run_is_recorded_without_sampling() {
        let trace = ["cuda", "nvtx", "osrt"].map(str::to_owned).to_vec();
        let capture = Capture { report: "run/nsys/timeline".into(), trace, ..Capture::default() };
        insta::assert_snapshot!(shown(&capture.command(&nsys("2025.3.1.90"), &target())), @r"
        /opt/nsys profile
          --trace=cuda,nvtx,osrt
          --sample=none
          --cpuctxsw=none
          --cuda-graph-trace=graph
          --cuda-memory-usage=false
          --force-overwrite=true
          --output=run/nsys/timeline python3 'run model.py'
          --steps 4
        ");
        assert_eq!(capture.report_file(), Path::new("run/nsys/timeline.nsys-rep"));
    }

    #[test]
    fn everything_that_can_be_asked_for_becomes_an_option() {
        let capture = Capture {
            report: "run/nsys/timeline".into(),
            trace: vec!["cuda".to_owned()],
            sample: Sampling::ProcessTree,
            context_switches: Sampling::SystemWide,
            capture_range: CaptureRange::Nvtx,
            capture_range_end: "stop".to_owned(),
            nvtx_capture: Some("decode_all@LLM".to_owned()),
            graphs: GraphTrace::Node,
            memory_usage: true,
            metrics_devices: Some("all".to_owned()),
            extra: vec!["--wait=primary".to_owned()],
        };
        insta::assert_snapshot!(shown(&capture.command(&nsys("2025.3.1.90"), &target())), @r"
        /opt/nsys profile
          --trace=cuda
          --sample=process-tree
          --cpuctxsw=system-wide
          --capture-range=nvtx
          --capture-range-end=stop
          --nvtx-capture=decode_all@LLM
          --env-var=NSYS_NVTX_PROFILER_REGISTER_ONLY=0
          --cuda-graph-trace=node
          --cuda-memory-usage=true
          --gpu-metrics-devices=all
          --force-overwrite=true
          --output=run/nsys/timeline
          --wait=primary python3 'run model.py'
          --steps 4
        ");
        let old = capture.command(&nsys("2023.4.4"), &target()).to_string();
        assert!(old.contains(" --gpu-metrics-device=all "), "{old}");
    }

    #[test]
    fn a_report_becomes_a_database_and_tables() {
        let (nsys, database) = (Path::new("nsys"), Path::new("run/nsys/timeline.sqlite"));
        assert_eq!(
            export_sqlite(nsys, Path::new("run/nsys/timeline.nsys-rep"), database).to_string(),
            "nsys export --type=sqlite --force-overwrite=true --output=run/nsys/timeline.sqlite run/nsys/timeline.nsys-rep"
        );
        let reports = ["cuda_gpu_kern_sum", "nvtx_pushpop_sum:base"].map(str::to_owned);
        assert_eq!(
            statistics(nsys, database, &reports, Path::new("run/nsys/stats")).to_string(),
            "nsys stats --report=cuda_gpu_kern_sum --report=nvtx_pushpop_sum:base --format=csv --force-overwrite=true \
             --output=run/nsys/stats run/nsys/timeline.sqlite"
        );
        assert_eq!(
            statistics_file(Path::new("run/nsys/stats"), &reports[1]),
            Path::new("run/nsys/stats_nvtx_pushpop_sum.csv")
        );
    }
}
