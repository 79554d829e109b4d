//! Which format a file has, from its first bytes.
//!
//! A recogniser sees the beginning of a file and says yes, no, or that it needs more. Adding a format is one function and
//! one line in `FORMATS`.

use std::fmt;
use std::io::Read;

use crate::compressed::Compression;
use crate::ncu::{self, NcuKind};
use crate::nsys;
use crate::torch::lexer::{Scan, Stop, member, peek, space, text, value};

/// A format that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Chrome JSON of the torch profiler.
    TorchProfiler,
    /// A file of our own collector.
    Wire,
    /// SQLite export of Nsight Systems.
    NsysSqlite,
    /// A table of `nsys stats` as CSV.
    NsysStats,
    /// The raw page of Nsight Compute as CSV.
    NcuRaw,
    /// The details page of Nsight Compute as CSV.
    NcuDetails,
    /// A log of Nsight Compute with no page in it.
    NcuLog,
    /// The module classes of a model, from TorchInfo.
    TorchInfo,
}

/// What the beginning of a file tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detection {
    /// Too little to tell.
    NeedMore,
    /// The format.
    Known(Format),
    /// None of the formats that can be read.
    Unknown,
}

/// What a file is, inside and out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// How it is compressed, if it is.
    pub compression: Option<Compression>,
    /// What is in it; `None` where it is no format that can be read.
    pub format: Option<Format>,
}

/// The answer of a recogniser.
enum Answer {
    Yes,
    No,
    NeedMore,
}

/// The beginning of a file, and whether that is all of it.
#[derive(Clone, Copy)]
struct Head<'a> {
    bytes: &'a [u8],
    complete: bool,
}

type Recogniser = fn(Head<'_>) -> Answer;

/// Every format with its recogniser; the first that says yes has it.
const FORMATS: &[(Format, Recogniser)] = &[
    (Format::Wire, |head| begins(head, &::wire::MAGIC)),
    (Format::NsysSqlite, |head| begins(head, b"SQLite format 3\0")),
    (Format::TorchProfiler, |head| json(head, TORCH_FIELDS, true)),
    (Format::TorchInfo, |head| json(head, &["layers", "num_unique_layers"], false)),
    (Format::NsysStats, |head| table(head, Format::NsysStats)),
    (Format::NcuRaw, |head| table(head, Format::NcuRaw)),
    (Format::NcuDetails, |head| table(head, Format::NcuDetails)),
    (Format::NcuLog, |head| table(head, Format::NcuLog)),
];

/// A file that has not shown its format by here does not show it.
const LARGEST_HEAD: usize = 1 << 20;

impl Format {
    /// Every format.
    pub fn all() -> impl Iterator<Item = Self> {
        FORMATS.iter().map(|(format, _)| *format)
    }

    /// What it is, for people: the tool and how it is asked for such a file.
    pub const fn description(self) -> &'static str {
        match self {
            Self::TorchProfiler => "torch profiler trace (`export_chrome_trace`)",
            Self::Wire => "file of the llm-perf collector (`process-*.wire`)",
            Self::NsysSqlite => "Nsight Systems database (`nsys export --type sqlite`)",
            Self::NsysStats => "Nsight Systems table (`nsys stats --format csv`)",
            Self::NcuRaw => "Nsight Compute raw page (`ncu --page raw --csv`)",
            Self::NcuDetails => "Nsight Compute details page (`ncu --page details --csv`)",
            Self::NcuLog => "Nsight Compute log (`ncu --log-file`)",
            Self::TorchInfo => "TorchInfo snapshot (`torchinfo-unique-layers.json`)",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.description())
    }
}

/// The format of an uncompressed file that starts like this. Where `complete`, that is the whole file, and the answer is
/// never [`Detection::NeedMore`].
pub fn detect(head: &[u8], complete: bool) -> Detection {
    let head = Head { bytes: head, complete: complete || head.len() >= LARGEST_HEAD };
    let mut undecided = false;
    for (format, recognise) in FORMATS {
        match recognise(head) {
            Answer::Yes if !undecided => return Detection::Known(*format),
            // An earlier format may still say yes.
            Answer::Yes | Answer::NeedMore => undecided = true,
            Answer::No => {}
        }
    }
    if undecided { Detection::NeedMore } else { Detection::Unknown }
}

/// What a file is, from its bytes; of a compressed one, what is inside, of which only as much is looked at as it takes.
pub fn identify(file: &[u8]) -> Identity {
    let Some(compression) = Compression::of(file) else {
        let head = &file[..file.len().min(LARGEST_HEAD)];
        let format = match detect(head, head.len() == file.len()) {
            Detection::Known(format) => Some(format),
            Detection::NeedMore | Detection::Unknown => None,
        };
        return Identity { compression: None, format };
    };
    let mut contents: Box<dyn Read + Send + '_> = compression.decoder(file);
    let compression = Some(compression);
    let mut head = Vec::new();
    loop {
        let wanted = (head.len() * 3).max(1 << 12).min(LARGEST_HEAD - head.len());
        // What comes before damage is still a beginning; the reader will report the damage.
        let ended = match contents.by_ref().take(wanted as u64).read_to_end(&mut head) {
            Ok(read) => read < wanted,
            Err(_) => true,
        };
        match detect(&head, ended) {
            Detection::Known(format) => return Identity { compression, format: Some(format) },
            Detection::NeedMore if !ended => {}
            Detection::NeedMore | Detection::Unknown => return Identity { compression, format: None },
        }
    }
}

fn begins(head: Head<'_>, with: &[u8]) -> Answer {
    if head.bytes.starts_with(with) {
        Answer::Yes
    } else if with.starts_with(head.bytes) && !head.complete {
        Answer::NeedMore
    } else {
        Answer::No
    }
}

/// Fields that only the torch profiler gives a document.
const TORCH_FIELDS: &[&str] =
    &["traceEvents", "schemaVersion", "deviceProperties", "distributedInfo", "baseTimeNanoseconds", "displayTimeUnit"];

/// An object with one of these fields, or where `events`, a list whose first element is one with a phase.
fn json(head: Head<'_>, fields: &[&str], events: bool) -> Answer {
    let bytes = head.bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head.bytes);
    let probe = || -> Scan<bool> {
        let at = space(bytes, 0);
        match peek(bytes, at)? {
            b'{' => has_field(bytes, at, fields),
            b'[' if events => {
                let first = space(bytes, at + 1);
                Ok(peek(bytes, first)? == b'{' && has_field(bytes, first, &["ph"])?)
            }
            _ => Ok(false),
        }
    };
    match probe() {
        Ok(true) => Answer::Yes,
        Err(Stop::More) if !head.complete => Answer::NeedMore,
        _ => Answer::No,
    }
}

/// Whether the object at `at` has one of these fields.
fn has_field(bytes: &[u8], at: usize, fields: &[&str]) -> Scan<bool> {
    let mut at = space(bytes, at + 1);
    loop {
        if peek(bytes, at)? == b'}' {
            return Ok(false);
        }
        let (name, start) = member(bytes, at)?;
        if fields.contains(&&*text(&bytes[at..name.end])) {
            return Ok(true);
        }
        at = space(bytes, value(bytes, start)?);
        if peek(bytes, at)? == b',' {
            at = space(bytes, at + 1);
        }
    }
}

/// A table of one of NVIDIA's tools, or a log that may have its table further on. Their readers know their headers.
fn table(head: Head<'_>, wanted: Format) -> Answer {
    if head.bytes.contains(&0) || head.bytes.starts_with(b"{") {
        return Answer::No;
    }
    // A header that is cut off may look like that of another table.
    let lines = match head.bytes.iter().rposition(|byte| *byte == b'\n') {
        _ if head.complete => head.bytes,
        Some(last) => &head.bytes[..=last],
        None => return Answer::NeedMore,
    };
    let found = match (ncu::sniff(lines), nsys::stats::sniff(lines)) {
        (Some(NcuKind::Raw), _) => Format::NcuRaw,
        (Some(NcuKind::Details), _) => Format::NcuDetails,
        (_, Some(_)) => Format::NsysStats,
        (Some(NcuKind::Log), None) if head.complete => Format::NcuLog,
        _ if head.complete => return Answer::No,
        _ => return Answer::NeedMore,
    };
    if found == wanted { Answer::Yes } else { Answer::No }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(file: &[u8]) -> Option<Format> {
        identify(file).format
    }

    #[test]
    fn every_format_is_known_by_its_beginning() {
        for (file, expected) in [
            (&b"{\n \"schemaVersion\": 1,"[..], Format::TorchProfiler),
            (b"{\"metadata\": {\"a\": [1, 2]}, \"traceEvents\": [", Format::TorchProfiler),
            (b"[{\"name\": \"a\", \"ph\": \"X\"", Format::TorchProfiler),
            (b"SQLite format 3\0\x10\0", Format::NsysSqlite),
            (b"LLMPERFW\x01\0\0\0", Format::Wire),
            (
                b"Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n",
                Format::NsysStats,
            ),
            (
                b"\"ID\",\"Process ID\",\"Process Name\",\"Host Name\",\"Kernel Name\",\"Context\",\"Stream\"\n",
                Format::NcuRaw,
            ),
            (b"{\"generated_at\": \"now\", \"num_unique_layers\": 3}", Format::TorchInfo),
        ] {
            assert_eq!(format(file), Some(expected), "{}", String::from_utf8_lossy(file));
        }
    }

    #[test]
    fn what_is_no_format_is_not_guessed() {
        for file in [&b""[..], b"{}", b"[]", b"[1]", b"hello\n", b"\x7fELF\0\0", b"{\"a\": }", b"a,b,c\n1,2,3\n"] {
            assert_eq!(format(file), None, "{}", String::from_utf8_lossy(file));
        }
    }

    #[test]
    fn too_little_is_no_answer() {
        assert_eq!(detect(b"SQLite for", false), Detection::NeedMore);
        assert_eq!(detect(b"{\"metadata\": {\"a\": [1, 2", false), Detection::NeedMore);
        assert_eq!(detect(b"{\"metadata\": {\"a\": [1, 2", true), Detection::Unknown);
        assert_eq!(detect(b"", false), Detection::NeedMore);
    }

    #[test]
    fn a_file_in_memory_is_judged_by_all_of_it() {
        // Found by fuzzing: its first four kilobytes alone look like another format than the whole.
        let file = include_bytes!("../../../fuzz/seeds/detect/changes-its-mind");
        let whole = match detect(file, true) {
            Detection::Known(format) => Some(format),
            _ => None,
        };
        assert_eq!(identify(file), Identity { compression: None, format: whole });
    }
}
