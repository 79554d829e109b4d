//! What profilers say when they do not do what was asked, recognised by their own words.
//!
//! One table for each tool; a message that nobody knows is shown as it is. The words of reports that were read
//! successfully are the readers' business.

use crate::process::ProcessOutcome;

/// Something a profiler said, understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Complaint {
    /// `ERR_NVGPUCTRPERM`: the user may not read hardware counters.
    CountersForbidden,
    /// Another program holds the hardware counters.
    CountersBusy,
    /// The library that makes reports is missing.
    ImporterLibrary,
    /// The report could not be made for another reason.
    ImporterFailed,
    /// No range matched, or none could be replayed.
    NoRange,
    /// No kernel ran, or none matched.
    NoKernel,
    /// Nothing was recorded, because the capture range never started.
    NoCapture,
    /// A metric that this chip does not have.
    UnknownMetric,
    /// A section or a set that this release does not have.
    UnknownSection,
    /// An option or a value that this release does not know.
    UnknownOption,
    /// The driver is too old for this release, or the other way round.
    DriverMismatch,
    /// There is no device, or none this release supports.
    NoDevice,
    /// Something in a range cannot be replayed.
    CannotReplay,
    /// The disk is full.
    DiskFull,
    /// The program to profile could not be started.
    NoProgram,
    /// The program to profile ended with an error.
    ProgramFailed,
}

/// Words of Nsight Compute, most telling first: a run without permission also says that it saw no kernel.
const NCU: [(&str, Complaint); 22] = [
    ("ERR_NVGPUCTRPERM", Complaint::CountersForbidden),
    ("driver resource was unavailable", Complaint::CountersBusy),
    ("Another process is profiling", Complaint::CountersBusy),
    ("No space left on device", Complaint::DiskFull),
    ("Failed to find metric", Complaint::UnknownMetric),
    ("Failed to find section", Complaint::UnknownSection),
    ("Failed to find set", Complaint::UnknownSection),
    ("No sections found", Complaint::UnknownSection),
    ("unrecognised option", Complaint::UnknownOption),
    ("the argument for option", Complaint::UnknownOption),
    ("ambiguous and matches", Complaint::UnknownOption),
    ("Cuda driver is not compatible", Complaint::DriverMismatch),
    ("driver version is insufficient", Complaint::DriverMismatch),
    ("Profiling is not supported on device", Complaint::NoDevice),
    ("No supported devices", Complaint::NoDevice),
    ("unsupported API", Complaint::CannotReplay),
    ("could not be replayed", Complaint::CannotReplay),
    // 2025.3 for a range with an allocation inside, and then ends the program with code 9.
    ("Failed to profile \"range\"", Complaint::CannotReplay),
    ("could not be launched", Complaint::NoProgram),
    ("returned an error code", Complaint::ProgramFailed),
    ("No ranges were profiled", Complaint::NoRange),
    ("No kernels were profiled", Complaint::NoKernel),
];

/// Words of Nsight Systems.
const NSYS: [(&str, Complaint); 14] = [
    ("libdw.so", Complaint::ImporterLibrary),
    ("No space left on device", Complaint::DiskFull),
    ("QdstrmImporter", Complaint::ImporterFailed),
    ("Importer error status", Complaint::ImporterFailed),
    ("Failed to create", Complaint::ImporterFailed),
    ("unrecognised option", Complaint::UnknownOption),
    ("unrecognized option", Complaint::UnknownOption),
    ("Illegal --", Complaint::UnknownOption),
    ("is not a valid value", Complaint::UnknownOption),
    ("Report '", Complaint::UnknownOption),
    ("Cannot find executable", Complaint::NoProgram),
    ("Failed to launch the target", Complaint::NoProgram),
    ("No reports were generated", Complaint::NoCapture),
    ("non-zero exit code", Complaint::ProgramFailed),
];

impl Complaint {
    /// What Nsight Compute complains about, if it does.
    pub fn of_ncu(said: &str) -> Option<Self> {
        find(&NCU, said)
    }

    /// What Nsight Systems complains about, if it does.
    pub fn of_nsys(said: &str) -> Option<Self> {
        find(&NSYS, said)
    }

    /// In a few words.
    pub fn message(self) -> &'static str {
        match self {
            Self::CountersForbidden => "no permission to read hardware counters (ERR_NVGPUCTRPERM)",
            Self::CountersBusy => "another program is using the hardware counters",
            Self::ImporterLibrary => "nsys cannot write its report: libdw.so.1 is missing",
            Self::ImporterFailed => "nsys finished recording but could not write its report",
            Self::NoRange => "no range matched, or none could be replayed",
            Self::NoKernel => "no kernel ran, or none matched the filter",
            Self::NoCapture => "nothing was recorded: the capture range never started",
            Self::UnknownMetric => "a metric is not available on this GPU",
            Self::UnknownSection => "a section is not available in this release",
            Self::UnknownOption => "an option is not supported by this release",
            Self::DriverMismatch => "this release does not support the driver",
            Self::NoDevice => "no GPU that this release can profile",
            Self::CannotReplay => "the range contains work that cannot be replayed",
            Self::DiskFull => "the disk is full",
            Self::NoProgram => "the program to profile could not be started",
            Self::ProgramFailed => "the profiled program exited with an error",
        }
    }

    /// The next step.
    pub fn hint(self) -> &'static str {
        match self {
            Self::CountersForbidden => {
                "on the host, add `options nvidia NVreg_RestrictProfilingToAdminUsers=0` to \
                 /etc/modprobe.d/nvidia-profiling.conf and reload the module; in a container, add \
                 `--cap-add=SYS_ADMIN`; `llm-perf doctor` shows which applies"
            }
            Self::CountersBusy => {
                "stop other profilers and monitoring (such as DCGM) on this GPU (`dcgmi profile --pause`)"
            }
            Self::ImporterLibrary => {
                "install libdw: `sudo apt-get install libdw1`, or `sudo dnf install elfutils-libs`"
            }
            Self::ImporterFailed => "see the log; a full Nsight Systems installation includes its own importer",
            Self::NoRange => {
                "write a push/pop range with a trailing slash (`A/`, `domain@A/`); its work must start and end inside \
                 it, so synchronise before it closes"
            }
            Self::NoKernel => {
                "check the kernel filter and the ranges, and profile child processes too (target_processes=all)"
            }
            Self::NoCapture => "check capture_range and nvtx_capture, or record the whole run (capture_range=none)",
            Self::UnknownMetric => "remove it from ncu_cli.metrics; `ncu --query-metrics` lists the available metrics",
            Self::UnknownSection => "list the available ones with `ncu --list-sections` and `ncu --list-sets`",
            Self::UnknownOption => "install a newer release, or remove the option; the command is in logs/",
            Self::DriverMismatch => "install the release that ships with the driver's CUDA version, or a newer driver",
            Self::NoDevice => "list the GPUs with `llm-perf doctor`",
            Self::CannotReplay => "use replay_mode=app-range, or replay_mode=kernel",
            Self::DiskFull => "free some space, or write the run to another disk with `--out DIR`",
            Self::NoProgram => "check the command after `--`",
            Self::ProgramFailed => "run the program without the profiler first; its output is in logs/",
        }
    }
}

impl ProcessOutcome {
    /// What Nsight Compute complained about.
    pub fn ncu_complaint(&self) -> Option<Complaint> {
        Complaint::of_ncu(&self.output())
    }

    /// What Nsight Systems complained about.
    pub fn nsys_complaint(&self) -> Option<Complaint> {
        Complaint::of_nsys(&self.output())
    }
}

fn find(words: &[(&str, Complaint)], said: &str) -> Option<Complaint> {
    words.iter().find(|(words, _)| said.contains(words)).map(|(_, complaint)| *complaint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_telling_words_win() {
        let said = "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance \
                    Counters on the target device 0.\n==WARNING== No kernels were profiled.";
        assert_eq!(Complaint::of_ncu(said), Some(Complaint::CountersForbidden));
        assert_eq!(Complaint::of_ncu("==WARNING== No ranges were profiled."), Some(Complaint::NoRange));
        assert_eq!(
            Complaint::of_ncu("==ERROR== The application returned an error code (1)."),
            Some(Complaint::ProgramFailed)
        );
        let said = "==ERROR== An error was reported by the driver:\n==ERROR== UnknownError\n==ERROR== Failed to profile \
                    \"range\" in process 523\n==ERROR== The application returned an error code (9).";
        assert_eq!(Complaint::of_ncu(said), Some(Complaint::CannotReplay));
        assert_eq!(Complaint::of_ncu("==PROF== Disconnected from process 12"), None);
    }

    #[test]
    fn the_copy_of_nsys_without_its_library_is_recognised() {
        let said = "QdstrmImporter: error while loading shared libraries: libdw.so.1: cannot open shared object file";
        assert_eq!(Complaint::of_nsys(said), Some(Complaint::ImporterLibrary));
        assert!(Complaint::ImporterLibrary.hint().contains("libdw1"));
        assert_eq!(Complaint::of_nsys("unrecognised option '--gpu-metrics-devices'"), Some(Complaint::UnknownOption));
        assert_eq!(Complaint::of_nsys("Generating '/tmp/nsys-report-1.qdstrm'"), None);
    }
}
