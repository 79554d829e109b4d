//! The command lines of Nsight Systems, as pure functions from what is wanted to what is typed.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::preset::{CaptureRange, Options};
use crate::Command;
use crate::tool::{InstalledTool, with_ending, word};

impl Options {
    /// Everything that is typed to run `target` under the tool. `report` is where it puts its report, without the ending
    /// `.nsys-rep`; one that is there is replaced.
    pub fn command(&self, nsys: &InstalledTool, report: &Path, target: &[OsString]) -> Command {
        let mut typed = vec![OsString::from("profile")];
        let mut set = |name: &str, value: &OsStr| {
            let mut option = OsString::from(name);
            option.push("=");
            option.push(value);
            typed.push(option);
        };
        set("--trace", self.trace.join(",").as_ref());
        set("--sample", word(self.sample).as_ref());
        set("--cpuctxsw", word(self.cpuctxsw).as_ref());
        if self.capture_range != CaptureRange::None {
            set("--capture-range", word(self.capture_range).as_ref());
            set("--capture-range-end", self.capture_range_end.as_ref());
        }
        if let Some(range) = self.nvtx_capture.as_ref().filter(|_| self.capture_range == CaptureRange::Nvtx) {
            set("--nvtx-capture", range.as_ref());
            // Ranges are found only by registered names otherwise, and most programs register none.
            set("--env-var", "NSYS_NVTX_PROFILER_REGISTER_ONLY=0".as_ref());
        }
        set("--cuda-graph-trace", word(self.cuda_graph_trace).as_ref());
        set("--cuda-memory-usage", if self.cuda_memory_usage { "true".as_ref() } else { "false".as_ref() });
        if self.gpu_metrics_devices != "none" {
            set(super::metrics_devices_option(nsys.version.as_deref()), self.gpu_metrics_devices.as_ref());
        }
        set("--force-overwrite", "true".as_ref());
        set("--output", report.as_os_str());
        typed.extend(self.extra.iter().map(OsString::from));
        typed.extend(target.iter().cloned());
        Command::new(&nsys.path, typed)
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
    use crate::tool::nsys::{GraphTrace, Sampling};

    fn nsys(version: &str) -> InstalledTool {
        InstalledTool { path: "/opt/nsys".into(), version: Some(version.to_owned()), note: None }
    }

    const REPORT: &str = "run/nsys/timeline";

    fn everything_off() -> Options {
        Options {
            trace: Vec::new(),
            sample: Sampling::None,
            cpuctxsw: Sampling::None,
            capture_range: CaptureRange::None,
            capture_range_end: String::new(),
            nvtx_capture: None,
            cuda_graph_trace: GraphTrace::Graph,
            cuda_memory_usage: false,
            gpu_metrics_devices: "none".to_owned(),
            extra: Vec::new(),
        }
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
        let options = Options { trace, ..everything_off() };
        insta::assert_snapshot!(shown(&options.command(&nsys("2025.3.1.90"), REPORT.as_ref(), &target())), @r"
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
    }

    #[test]
    fn everything_that_can_be_asked_for_becomes_an_option() {
        let options = Options {
            trace: vec!["cuda".to_owned()],
            sample: Sampling::ProcessTree,
            cpuctxsw: Sampling::SystemWide,
            capture_range: CaptureRange::Nvtx,
            capture_range_end: "stop".to_owned(),
            nvtx_capture: Some("decode_all@LLM".to_owned()),
            cuda_graph_trace: GraphTrace::Node,
            cuda_memory_usage: true,
            gpu_metrics_devices: "all".to_owned(),
            extra: vec!["--wait=primary".to_owned()],
        };
        insta::assert_snapshot!(shown(&options.command(&nsys("2025.3.1.90"), REPORT.as_ref(), &target())), @r"
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
        let old = options.command(&nsys("2023.4.4"), REPORT.as_ref(), &target()).to_string();
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
