//! What the files of a run hold, file by file.

use std::io::{BufRead, BufReader, Read};

use analysis::attribution;
use analysis::{LaunchCounters, ListedKernel, PageOverlap, USED_COUNTERS};
use collect::tool::Complaint;
use ingest::compressed::Compression;
use ingest::detect::{self, Format};
use ingest::ncu::{self, NcuFile, ToolMessage};
use ingest::nsys::stats::{self, StatsFile, StatsKind};
use ingest::{nsys, torch, wire};
use report::words::Spoken;
use types::counter::CounterTable;
use types::timeline::Timeline;
use types::{Facts, QualityCounter, Severity, UserError};

use super::job::{apart, other_process, rank};
use super::source::{Source, journal, unpacked};

/// How a file is packed, and what it is.
pub(super) struct Kind {
    compression: Option<Compression>,
    format: Format,
}

/// What one file holds.
pub(super) enum Part {
    /// A timeline.
    Timeline(Box<Timeline>),
    /// Hardware counters, with the page itself where it shows the ranges around each launch.
    Counters(Vec<LaunchCounters>, Option<CounterTable>, Vec<QualityCounter>),
    /// Tables of `nsys stats`: kernels, and counters of the rest.
    Listed(Vec<ListedKernel>, Vec<QualityCounter>),
    /// A log without a page: why, and the next step.
    Nothing(String, &'static str),
}

/// What all files hold.
#[derive(Default)]
pub(super) struct Parts {
    /// Timelines with the files they are from.
    pub(super) timelines: Vec<(String, Timeline)>,
    /// Those that capture graphs and launch none.
    captures: Vec<(String, Timeline)>,
    /// What was counted, launch by launch.
    pub(super) counted: Vec<LaunchCounters>,
    /// The raw pages it was counted on.
    pub(super) tables: Vec<CounterTable>,
    /// Kernels as `nsys stats` sums them up.
    pub(super) listed: Vec<ListedKernel>,
    /// Counters of files without a timeline.
    pub(super) quality: Vec<QualityCounter>,
    /// Why the run is partial.
    pub(super) missing: Vec<String>,
}

impl Part {
    /// Kind of file.
    pub(super) fn format(&self) -> &'static str {
        match self {
            Self::Timeline(timeline) => timeline.format.name(),
            Self::Counters(..) | Self::Nothing(..) => "ncu",
            Self::Listed(..) => "nsys-stats",
        }
    }

    /// The tool that wrote it.
    pub(super) fn tool(&self) -> Option<String> {
        match self {
            Self::Timeline(timeline) => timeline.tool.clone(),
            Self::Counters(..) | Self::Nothing(..) => Some("Nsight Compute".to_owned()),
            Self::Listed(..) => Some("nsys stats".to_owned()),
        }
    }

    /// Rank in a distributed run.
    pub(super) fn rank(&self) -> Option<u32> {
        match self {
            Self::Timeline(timeline) => rank(timeline),
            _ => None,
        }
    }
}

impl Parts {
    /// Takes a part in, if it can be of the same run as the others.
    pub(super) fn add(&mut self, file: &str, part: Part) -> Result<(), UserError> {
        match part {
            Part::Timeline(timeline) if attribution::is_capture(&timeline) => {
                self.missing.extend(lost(file, &timeline.quality));
                self.captures.push((file.to_owned(), *timeline));
            }
            Part::Timeline(timeline) => {
                let apart = |other: &(String, Timeline)| Some((other.0.clone(), apart(&other.1, &timeline)?));
                if let Some((one, why)) = self.timelines.iter().find_map(apart) {
                    return Err(not_one_run(&one, file, &why));
                }
                self.missing.extend(lost(file, &timeline.quality));
                self.timelines.push((file.to_owned(), *timeline));
            }
            Part::Counters(counted, table, quality) => {
                let overlap = LaunchCounters::add_page(&mut self.counted, counted);
                self.quality.extend(overlapping(file, overlap));
                // Regions are made of whole pages, of which one capture needs one.
                match table.as_ref().and_then(|new| self.tables.iter_mut().find(|old| is_same_capture(old, new))) {
                    Some(old) if table.as_ref().is_some_and(|new| new.columns().len() <= old.columns().len()) => {}
                    Some(old) => *old = table.unwrap_or_default(),
                    None => self.tables.extend(table),
                }
                self.missing.extend(lost(file, &quality));
                self.quality.extend(quality);
            }
            Part::Listed(listed, quality) => {
                self.listed.extend(listed);
                self.missing.extend(lost(file, &quality));
                self.quality.extend(quality);
            }
            Part::Nothing(reason, _) => self.missing.push(format!("{file}: {reason}")),
        }
        Ok(())
    }

    /// Gives the kernels of replayed graphs the operators of their captures. A capture without anything to join is a
    /// timeline like any other.
    pub(super) fn join_captures(&mut self) -> Result<(), UserError> {
        for (file, capture) in std::mem::take(&mut self.captures) {
            let Some(first) = self.timelines.first().map(|(name, _)| name.clone()) else {
                self.timelines.push((file, capture));
                continue;
            };
            let mut why = None;
            let joined = self.timelines.iter_mut().find_map(|(_, replay)| {
                let reason = match other_process(replay, &capture) {
                    Some(reason) => reason,
                    None => match attribution::join_capture(replay, &capture) {
                        Ok(kernels) => return Some((kernels, replay)),
                        Err(reason) => reason.spoken().text,
                    },
                };
                why.get_or_insert(reason);
                None
            });
            let Some((kernels, replay)) = joined else {
                let why = format!("{file} is a graph capture, and {}", why.unwrap_or_default());
                return Err(not_one_run(&first, &file, &why));
            };
            let counter = QualityCounter::new("graph_kernels_with_captured_operator", Severity::Info, kernels);
            replay.quality.push(counter.facts(Facts::new().with("file", &file)));
        }
        Ok(())
    }

    /// Whether no file holds anything a run could be made of.
    pub(super) fn is_empty(&self) -> bool {
        self.timelines.is_empty() && self.captures.is_empty() && self.counted.is_empty() && self.listed.is_empty()
    }
}

/// Whether two raw pages have the same launches.
fn is_same_capture(one: &CounterTable, other: &CounterTable) -> bool {
    let key = |work: &types::counter::ProfiledWork| (work.id, work.process);
    let launches = |table: &CounterTable| table.work.iter().map(key).collect::<Vec<_>>();
    launches(one) == launches(other) && one.work.iter().zip(&other.work).all(|(one, other)| one.name == other.name)
}

/// What is doubtful about pages that share launches.
fn overlapping(file: &str, overlap: PageOverlap) -> Vec<QualityCounter> {
    let complete = |counter: QualityCounter| {
        let whole = overlap.shared.max(counter.value);
        counter.of(whole).facts(Facts::new().with("file", file))
    };
    let counters = [
        QualityCounter::some("ncu_pages_differ", Severity::Warning, overlap.differing),
        QualityCounter::some("ncu_pages_of_other_captures", Severity::Warning, overlap.apart),
    ];
    counters.into_iter().flatten().map(complete).collect()
}

/// What is missing from a file, by the counters that make numbers wrong.
fn lost(file: &str, quality: &[QualityCounter]) -> Vec<String> {
    let wrong = quality.iter().filter(|counter| counter.severity == Severity::Error);
    wrong.map(|counter| format!("{file}: {}", counter.clone().spoken().remedy)).collect()
}

/// Why a log of Nsight Compute has no page, and the next step, in our own words: the tool's may name files of the machine
/// it ran on.
pub(crate) fn nothing(messages: &[ToolMessage]) -> (String, &'static str) {
    let said: Vec<&str> = messages.iter().map(|message| message.text.as_str()).collect();
    match Complaint::of_ncu(&said.join("\n")) {
        Some(complaint) => (format!("nothing was profiled: {}", complaint.message()), complaint.hint()),
        None => {
            let reason = "nothing was profiled, and the log does not say why".to_owned();
            (reason, "look for warnings and errors in the profiler's log")
        }
    }
}

/// What a file is, from its first bytes.
pub(super) fn kind(source: &Source) -> Result<Kind, UserError> {
    let identity = detect::identify(source.bytes());
    match identity.format.filter(|format| *format != Format::TorchInfo) {
        Some(format) => Ok(Kind { compression: identity.compression, format }),
        None if source.bytes().is_empty() => Err(unknown_format(&format!("{} is empty, so it", source.name))),
        None => Err(unknown_format(&source.name)),
    }
}

/// Files that cannot be of one run.
pub(super) fn not_one_run(one: &str, other: &str, why: &str) -> UserError {
    UserError::usage(format!("{one} and {other} are not from one run: {why}"))
        .hint("import each one separately, then run `llm-perf compare` on the two runs")
}

fn unknown_format(file: &str) -> UserError {
    UserError::usage(format!("{file} is not a supported trace"))
        .hint(format!("supported formats: {}; each may be compressed with gzip or zstd", known()))
}

/// Formats a run can be made of.
fn known() -> String {
    let all: Vec<_> = Format::all().filter(|format| *format != Format::TorchInfo).map(Format::description).collect();
    all.join(", ")
}

/// Why a file may lack something that its own bytes do not show.
pub(super) fn unfinished(source: &Source, kind: &Kind) -> Option<String> {
    let journal = journal(source).filter(|_| kind.format == Format::NsysSqlite)?;
    Some(format!("{}: the export is incomplete ({} still exists); export it again", source.name, journal.display()))
}

/// What a file holds, and its digest, which is taken while it is read. `keeps` says which counters of a page are kept besides those
/// that kernels are joined with.
pub(super) fn read(source: &Source, kind: &Kind, keeps: &dyn Fn(&str) -> bool) -> Result<(Part, String), UserError> {
    std::thread::scope(|scope| {
        let digest = scope.spawn(|| source.digest());
        let part = part(source, kind, keeps);
        let digest = digest.join().unwrap_or_else(|_| source.digest());
        Ok((part?, digest))
    })
}

fn part(source: &Source, kind: &Kind, keeps: &dyn Fn(&str) -> bool) -> Result<Part, UserError> {
    let (name, bytes) = (source.name.as_str(), source.bytes());
    let part = match (kind.format, kind.compression) {
        (Format::TorchProfiler, None) => timeline(torch::read(name, bytes, &torch::TorchSettings::default())?.timeline),
        (Format::TorchProfiler, Some(compression)) => {
            let trace = torch::read_stream(name, compression.decoder(bytes), &torch::TorchSettings::default())?;
            timeline(trace.timeline)
        }
        (Format::NsysSqlite, None) => timeline(nsys::sqlite::read(name, bytes)?),
        (Format::NsysSqlite, Some(compression)) => {
            let whole = unpacked(compression.decoder(bytes), &source.path())?;
            timeline(nsys::sqlite::read(name, whole.bytes())?)
        }
        (Format::Wire, None) => timeline(wire::read(name, bytes)?),
        (Format::Wire, Some(compression)) => {
            let whole = unpacked(compression.decoder(bytes), &source.path())?;
            timeline(wire::read(name, whole.bytes())?)
        }
        (Format::NsysStats, compression) => listed(stats::read(text(bytes, compression), name)?),
        (Format::NcuRaw | Format::NcuDetails | Format::NcuLog, compression) => {
            let used = |counter: &str| USED_COUNTERS.contains(&counter) || keeps(counter);
            counters(ncu::read_counters(text(bytes, compression), name, used)?)
        }
        (Format::TorchInfo, _) => {
            return Err(unknown_format(name));
        }
    };
    Ok(part)
}

fn timeline(mut timeline: Timeline) -> Part {
    timeline.shrink_to_fit();
    Part::Timeline(Box::new(timeline))
}

/// Bytes line by line, unpacked where they are packed.
fn text<'a>(bytes: &'a [u8], compression: Option<Compression>) -> Box<dyn BufRead + 'a> {
    let reader: Box<dyn Read + 'a> = match compression {
        Some(compression) => compression.decoder(bytes),
        None => return Box::new(bytes),
    };
    Box::new(BufReader::with_capacity(1 << 17, reader))
}

fn counters(file: NcuFile) -> Part {
    match file {
        NcuFile::Raw(page) => Part::Counters(LaunchCounters::of_table(&page.table), Some(page.table), page.quality),
        NcuFile::Details(page) => Part::Counters(LaunchCounters::of_details(&page.works), None, page.quality),
        NcuFile::Nothing(messages) => {
            let (reason, hint) = nothing(&messages);
            Part::Nothing(reason, hint)
        }
    }
}

/// Kernels of the tables; the others are counted, because nothing here uses them.
fn listed(file: StatsFile) -> Part {
    let StatsFile { tables, skipped, mut quality } = file;
    let (mut kernels, mut unused) = (Vec::new(), skipped.len() as u64);
    let mut without_extremes = 0;
    for table in tables {
        unused += u64::from(table.kind != StatsKind::Kernels);
        for row in table.kernels {
            let (Some(min), Some(max)) = (row.min, row.max) else {
                without_extremes += 1;
                continue;
            };
            kernels.push(ListedKernel { name: row.name, calls: row.count, total: row.total, min, max });
        }
    }
    quality.extend(QualityCounter::some("nsys_stats_tables_unused", Severity::Info, unused));
    quality.extend(QualityCounter::some("nsys_stats_rows_incomplete", Severity::Error, without_extremes));
    Part::Listed(kernels, quality)
}
