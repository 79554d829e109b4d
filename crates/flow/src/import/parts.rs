//! What the files of a run hold, file by file.

use std::io::Read;

use ingest::{nsys, torch};
use types::QualityCounter;
use types::timeline::Timeline;

use super::ImportError;
use super::source::{Source, unpacked};

/// Formats as a user knows them.
const KNOWN: &str = "torch profiler JSON, Nsight Systems SQLite";

/// How a file is packed, and what it is.
pub(super) struct Kind {
    packed: bool,
    format: Format,
}

#[derive(Clone, Copy)]
enum Format {
    Torch,
    NsysSqlite,
}

/// What one file holds.
pub(super) enum Part {
    /// A timeline, and what of it is missing.
    Timeline(Box<Timeline>, Option<String>),
}

/// What all files hold.
#[derive(Default)]
pub(super) struct Parts {
    /// Timelines with the files they are from.
    pub(super) timelines: Vec<(String, Timeline)>,
    /// Counters of files without a timeline.
    pub(super) quality: Vec<QualityCounter>,
    /// Why the run is partial.
    pub(super) missing: Vec<String>,
}

impl Part {
    /// Kind of file.
    pub(super) fn format(&self) -> &'static str {
        match self {
            Self::Timeline(timeline, _) => timeline.format.name(),
        }
    }

    /// The tool that wrote it.
    pub(super) fn tool(&self) -> Option<String> {
        match self {
            Self::Timeline(timeline, _) => timeline.tool.clone(),
        }
    }

    /// Rank in a distributed run.
    pub(super) fn rank(&self) -> Option<u32> {
        match self {
            Self::Timeline(timeline, _) => rank(timeline),
        }
    }
}

impl Parts {
    /// Takes a part in, if it can be of the same run as the others.
    pub(super) fn add(&mut self, file: &str, part: Part) -> Result<(), ImportError> {
        match part {
            Part::Timeline(timeline, missing) => {
                if let Some((one, why)) =
                    self.timelines.iter().find_map(|other| Some((&other.0, apart(&other.1, &timeline)?)))
                {
                    return Err(ImportError::NotOneRun { one: one.clone(), other: file.to_owned(), why });
                }
                self.missing.extend(missing.map(|missing| format!("{file}: {missing}")));
                self.timelines.push((file.to_owned(), *timeline));
            }
        }
        Ok(())
    }
}

/// Rank of a timeline, where all of its threads agree.
pub(super) fn rank(timeline: &Timeline) -> Option<u32> {
    let first = timeline.threads.first()?.rank?;
    timeline.threads.iter().all(|thread| thread.rank == Some(first)).then_some(first)
}

/// Why two timelines cannot be of one run.
fn apart(one: &Timeline, other: &Timeline) -> Option<String> {
    if one.format != other.format {
        return Some(format!("a {} and a {} trace cannot be of one process", one.format.name(), other.format.name()));
    }
    match (rank(one), rank(other)) {
        (Some(one), Some(other)) if one == other => Some(format!("both are rank {one}")),
        _ => None,
    }
}

/// What a file is, from its first bytes.
pub(super) fn kind(source: &Source) -> Result<Kind, ImportError> {
    let bytes = source.bytes();
    let packed = bytes.starts_with(&[0x1f, 0x8b]);
    let mut head = vec![0; 4096];
    let length = if packed {
        flate2::read::GzDecoder::new(bytes).read(&mut head).unwrap_or(0)
    } else {
        let length = bytes.len().min(head.len());
        head[..length].copy_from_slice(&bytes[..length]);
        length
    };
    let head = &head[..length];
    let format = if nsys::sqlite::is_applicable(head) == Some(true) {
        Format::NsysSqlite
    } else if matches!(head.trim_ascii_start().first(), Some(b'{' | b'[')) {
        Format::Torch
    } else {
        return Err(ImportError::UnknownFormat { file: source.name.clone(), known: KNOWN.to_owned() });
    };
    Ok(Kind { packed, format })
}

/// What a file holds, and its digest, which is taken while it is read.
pub(super) fn read(source: &Source, kind: &Kind) -> Result<(Part, String), ImportError> {
    std::thread::scope(|scope| {
        let digest = scope.spawn(|| source.digest());
        let part = part(source, kind);
        let digest = digest.join().unwrap_or_default();
        Ok((part?, digest))
    })
}

fn part(source: &Source, kind: &Kind) -> Result<Part, ImportError> {
    let name = &source.name;
    let bytes = source.bytes();
    match kind.format {
        Format::Torch => {
            let settings = torch::Settings::default();
            let trace = if kind.packed {
                torch::read_stream(name, flate2::read::MultiGzDecoder::new(bytes), &settings)?
            } else {
                torch::read(name, bytes, &settings)?
            };
            let missing =
                trace.loss.filter(|loss| loss.in_events).map(|loss| format!("events from byte {} on", loss.offset));
            Ok(Part::Timeline(Box::new(trace.timeline), missing))
        }
        Format::NsysSqlite => {
            let timeline = if kind.packed {
                let unreadable = |reason| ImportError::Unreadable { path: source.path(), reason };
                let whole = unpacked(flate2::read::MultiGzDecoder::new(bytes)).map_err(unreadable)?;
                nsys::sqlite::read(name, whole.bytes())?
            } else {
                nsys::sqlite::read(name, bytes)?
            };
            let lost = timeline.quality.iter().filter(|counter| counter.severity == types::Severity::Error);
            let lost: Vec<_> = lost.map(|counter| format!("{} {}", counter.value, counter.counter)).collect();
            let missing = (!lost.is_empty()).then(|| lost.join(", "));
            Ok(Part::Timeline(Box::new(timeline), missing))
        }
    }
}
