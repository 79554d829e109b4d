//! What is missing from files of the collector, by cause, with what to do about it.

use ::wire::Counter;
use types::timeline::Timeline;
use types::{QualityCounter, Severity};

use super::contents::Contents;

/// Wall clocks that are this far apart from the monotonic one were set; a clock that is merely adjusted is not.
const SET: u64 = 1_000_000;

/// `CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED`.
const ANOTHER_TOOL: u32 = 39;

/// What is missing, summed over files.
#[derive(Debug, Default)]
pub(super) struct Losses {
    pub(super) impossible_times: u64,
    pub(super) names_missing: u64,
    pub(super) pops_missing: u64,
    pub(super) pushes_missing: u64,
    pub(super) launches: u64,
    pub(super) launches_without_work: u64,
    pub(super) outside_window: u64,
    pub(super) windows: u64,
    pub(super) ranges_clipped: u64,
    unfinished: u64,
    torn: u64,
    damaged: u64,
    unknown: u64,
    wall_set: u64,
    problems: Vec<(u32, String)>,
    counted: Vec<(Counter, u64)>,
}

impl Losses {
    /// Adds what a file says of itself.
    pub(super) fn count_file(&mut self, contents: &Contents<'_>) {
        self.unfinished += u64::from(!contents.finished);
        self.torn += contents.torn;
        self.damaged += contents.damaged;
        self.unknown += contents.unknown;
        self.wall_set = self.wall_set.max(contents.wall_set_by());
        for (code, what) in &contents.problems {
            let problem = (*code, String::from_utf8_lossy(what).into_owned());
            if !self.problems.contains(&problem) {
                self.problems.push(problem);
            }
        }
        for (counter, value) in &contents.counters {
            match self.counted.iter_mut().find(|(other, _)| other == counter) {
                Some((_, sum)) => *sum = sum.saturating_add(*value),
                None => self.counted.push((*counter, *value)),
            }
        }
    }

    /// Everything that is not zero.
    pub(super) fn counters(&self, timeline: &Timeline) -> Vec<QualityCounter> {
        let counted =
            |wanted: Counter| self.counted.iter().find(|(it, _)| *it == wanted).map_or(0, |(_, value)| *value);
        let device = counted(Counter::DeviceRecordsDropped);
        let share = |part: u64, whole: u64| (whole > 0).then(|| (part as f64 / whole as f64).min(1.0));
        let missing = self.launches_without_work;
        // A process that was killed has launched what its device never finished; in any other, work is missing.
        let severity =
            if self.unfinished > 0 || missing * 100 < self.launches { Severity::Info } else { Severity::Error };
        let wall_set = if self.wall_set >= SET { self.wall_set } else { 0 };
        let mut all: Vec<QualityCounter> = self.problems.iter().map(|(code, what)| problem(*code, what)).collect();
        let rows = [
            (
                "collector_files_unfinished",
                self.unfinished,
                None,
                Severity::Warning,
                "processes were killed, crashed or ended without exit handlers; up to the last 250 ms of their work is missing; \
                 let the program exit normally, or lower LLM_PERF_INJECT_FLUSH_MS",
            ),
            (
                "collector_bytes_torn",
                self.torn,
                None,
                Severity::Error,
                "a file ends in the middle of a block: it was truncated, or its process ended while writing; everything before \
                 that is used; copy the file again, or record again",
            ),
            (
                "collector_bytes_damaged",
                self.damaged,
                None,
                Severity::Error,
                "damaged parts of a file were skipped; copy it again",
            ),
            (
                "collector_records_unknown",
                self.unknown + counted(Counter::RecordsUnknown),
                None,
                Severity::Info,
                "records of a newer collector or CUPTI were skipped; update llm-perf",
            ),
            (
                "device_records_dropped",
                device,
                share(device, device + timeline.work.len() as u64),
                Severity::Error,
                "the process ran more kernels than could be written; record less with --window",
            ),
            (
                "host_records_dropped",
                counted(Counter::HostRecordsDropped),
                None,
                Severity::Warning,
                "threads made more calls and ranges than could be written; record less with --window",
            ),
            (
                "threads_not_collected",
                counted(Counter::ThreadsWithoutLog),
                None,
                Severity::Warning,
                "more than 128 threads used CUDA or NVTX at the same time; kernels of the others have no ranges",
            ),
            (
                "nvtx_names_dropped",
                counted(Counter::NamesDropped),
                None,
                Severity::Warning,
                "there were too many registered strings or domains; some ranges have no name",
            ),
            (
                "collector_names_cut",
                counted(Counter::TextsCut),
                None,
                Severity::Info,
                "names longer than 16 KiB are truncated",
            ),
            (
                "device_records_unfinished",
                counted(Counter::RecordsUnfinished),
                None,
                Severity::Warning,
                "kernels were still running when the process ended; synchronise before exit",
            ),
            (
                "collector_bytes_unwritten",
                counted(Counter::BytesUnwritten),
                None,
                Severity::Error,
                "the disk was full or not writable; free some space and record again",
            ),
            (
                "launches_without_work",
                missing,
                share(missing, self.launches),
                severity,
                "the kernels of some launches are not in the file; if the processes exited normally, another profiler \
                 may have taken the records; run without torch.profiler and Nsight in the same process",
            ),
            (
                "collector_names_missing",
                self.names_missing,
                None,
                Severity::Warning,
                "the names were in a part of the file that is lost",
            ),
            (
                "range_pops_missing",
                self.pops_missing,
                None,
                Severity::Info,
                "ranges without a recorded pop end where the file ends",
            ),
            (
                "range_pushes_missing",
                self.pushes_missing,
                None,
                Severity::Info,
                "pops and ends without a start were skipped; their ranges started before the recording",
            ),
            (
                "collector_times_impossible",
                self.impossible_times,
                None,
                Severity::Error,
                "records with impossible times were skipped; the file is damaged",
            ),
            (
                "wall_clock_set_ns",
                wall_set,
                None,
                Severity::Warning,
                "the wall clock was set during the run; times across that moment are wrong; record again",
            ),
            (
                "collection_windows",
                self.windows,
                None,
                Severity::Info,
                "only windows were recorded; ranges count with the part inside them",
            ),
            (
                "work_outside_window",
                self.outside_window,
                share(self.outside_window, self.outside_window + timeline.work.len() as u64),
                Severity::Info,
                "kernels that were launched outside the windows but recorded were skipped",
            ),
        ];
        let row = |(counter, value, share, severity, remedy): (&str, u64, Option<f64>, Severity, &str)| {
            let (counter, remedy) = (counter.to_owned(), remedy.to_owned());
            (value > 0).then_some(QualityCounter { counter, value, share, severity, remedy })
        };
        all.extend(rows.into_iter().filter_map(row));
        all
    }
}

/// Why the collector could not do what it should.
fn problem(code: u32, what: &str) -> QualityCounter {
    let remedy = match code {
        ANOTHER_TOOL => {
            "another tool held CUPTI in the process (torch.profiler, Nsight Systems or Compute, a debugger), so no \
             kernels are recorded; run without it"
                .to_owned()
        }
        _ if what.contains("not found") => {
            "CUPTI was not found, so no kernels are recorded; install the CUDA toolkit or the Python package \
             nvidia-cuda-cupti, or pass the library with --cupti"
                .to_owned()
        }
        0 => what.to_owned(),
        code => format!("{what} failed with CUPTI code {code}; kernels may be missing"),
    };
    let severity = if what.contains("newer") { Severity::Info } else { Severity::Error };
    QualityCounter { counter: "collector_problem".to_owned(), value: 1, share: None, severity, remedy }
}
