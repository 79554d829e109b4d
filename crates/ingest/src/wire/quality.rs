//! What is missing from files of the collector, by cause, with what to do about it.

use std::collections::BTreeMap;

use ::wire::Counter;
use types::timeline::Timeline;
use types::{Facts, QualityCounter, Remark, Severity};

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
    counted: BTreeMap<Counter, u64>,
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
            let sum = self.counted.entry(*counter).or_default();
            *sum = sum.saturating_add(*value);
        }
    }

    /// Everything that is not zero.
    pub(super) fn counters(&self, timeline: &Timeline) -> Vec<QualityCounter> {
        let counted = |wanted: Counter| self.counted.get(&wanted).copied().unwrap_or(0);
        let device = counted(Counter::DeviceRecordsDropped);
        let (invalid, outside) = (counted(Counter::TimesInvalid), counted(Counter::TimesOutside));
        let (missing, untimed) = (self.launches_without_work, counted(Counter::LaunchesUntimed));
        // A process that was killed has launched what its device never finished; in any other, work is missing.
        let severity =
            if self.unfinished > 0 || missing * 100 < self.launches { Severity::Info } else { Severity::Error };
        let wall_set = if self.wall_set >= SET { self.wall_set } else { 0 };
        let mut all: Vec<QualityCounter> = self.problems.iter().map(|(code, what)| problem(*code, what)).collect();
        let work = timeline.work.len() as u64;
        let of = |counter: Option<QualityCounter>, whole: u64| counter.map(|counter| counter.of(whole));
        let rows = [
            QualityCounter::some("collector_files_unfinished", Severity::Warning, self.unfinished),
            QualityCounter::some("collector_bytes_torn", Severity::Error, self.torn),
            QualityCounter::some("collector_bytes_damaged", Severity::Error, self.damaged),
            QualityCounter::some(
                "collector_records_unknown",
                Severity::Info,
                self.unknown + counted(Counter::RecordsUnknown),
            ),
            of(QualityCounter::some("device_records_dropped", Severity::Error, device), device + work),
            QualityCounter::some("host_records_dropped", Severity::Warning, counted(Counter::HostRecordsDropped)),
            QualityCounter::some("threads_not_collected", Severity::Warning, counted(Counter::ThreadsWithoutLog)),
            QualityCounter::some("nvtx_names_dropped", Severity::Warning, counted(Counter::NamesDropped)),
            QualityCounter::some("collector_names_cut", Severity::Info, counted(Counter::TextsCut)),
            QualityCounter::some("device_records_unfinished", Severity::Warning, counted(Counter::RecordsUnfinished)),
            of(QualityCounter::some("device_times_invalid", Severity::Error, invalid), invalid + outside + work),
            of(QualityCounter::some("device_times_outside", Severity::Error, outside), invalid + outside + work),
            QualityCounter::some("collector_bytes_unwritten", Severity::Error, counted(Counter::BytesUnwritten)),
            of(QualityCounter::some("launches_without_work", severity, missing), self.launches),
            of(QualityCounter::some("graph_launches_untimed", Severity::Warning, untimed), untimed + work),
            QualityCounter::some("collector_names_missing", Severity::Warning, self.names_missing),
            QualityCounter::some("range_pops_missing", Severity::Info, self.pops_missing),
            QualityCounter::some("range_pushes_missing", Severity::Info, self.pushes_missing),
            QualityCounter::some("collector_times_impossible", Severity::Error, self.impossible_times),
            QualityCounter::some("wall_clock_set_ns", Severity::Warning, wall_set),
            QualityCounter::some("collection_windows", Severity::Info, self.windows),
            of(
                QualityCounter::some("work_outside_window", Severity::Info, self.outside_window),
                self.outside_window + work,
            ),
        ];
        all.extend(rows.into_iter().flatten());
        all
    }
}

/// Why the collector could not do what it should.
fn problem(code: u32, what: &str) -> QualityCounter {
    let severity = if what.contains("newer") { Severity::Info } else { Severity::Error };
    let facts = match code {
        ANOTHER_TOOL => Facts::new().with_if("another_tool", true),
        _ if what.contains("not found") => Facts::new().with_if("cupti_not_found", true),
        // The collector says by itself what is wrong.
        0 => Facts::new().with("problem", Remark::said(what)),
        code => Facts::new().with("call", what).with("code", code),
    };
    QualityCounter::new("collector_problem", severity, 1).facts(facts)
}
