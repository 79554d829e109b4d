//! Runs the profiler and reads what it counted.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use collect::Command;
use collect::process::{self, Ending, Interrupt, Limits, ProcessOutcome};
use collect::run::RunFolder;
use collect::tool::Complaint;
use collect::tool::ncu::{Page, print_page};
use ingest::compressed::Compression;
use ingest::ncu::{self, NcuFile, ToolMessage};
use types::counter::{CounterTable, DetailedWork};
use types::{Exit, QualityCounter, RegionCapture, UserError};

use super::plan::Step;
use crate::pipeline::trace::regions;

/// Lines of the profiler shown with a failure.
const SHOWN: usize = 12;

/// What one run gave.
#[derive(Debug, Default)]
pub(super) struct Captured {
    /// The raw page; without rows where nothing was profiled.
    pub(super) table: CounterTable,
    /// The details page.
    pub(super) details: Vec<DetailedWork>,
    /// What the profiler was told to include.
    pub(super) include: Vec<String>,
    /// For the report.
    pub(super) record: Option<RegionCapture>,
    /// What it complained about although it went on.
    pub(super) complaint: Option<Complaint>,
    /// What could not be read.
    pub(super) quality: Vec<QualityCounter>,
    /// What was asked for and is not there.
    pub(super) missing: Vec<String>,
}

/// The profiler and the program under it.
pub(super) struct Profiler<'a> {
    /// Where it is.
    pub(super) program: &'a Path,
    /// The program to profile and its arguments.
    pub(super) target: &'a [OsString],
    /// Variables set for it.
    pub(super) environment: &'a [(OsString, OsString)],
    /// Metrics of the report, as the configuration names them: the hundreds of other counters of a page are not kept.
    pub(super) metrics: &'a [String],
}

impl Profiler<'_> {
    /// The command of a step, with the report where it will be.
    pub(super) fn command(&self, step: &Step, folder: Option<&Path>) -> Command {
        let mut capture = step.capture.clone();
        if let Some(folder) = folder {
            capture.report = folder.join(&capture.report);
        }
        let mut command = capture.command(self.program, self.target);
        command.environment.extend(self.environment.iter().cloned());
        command
    }

    /// Runs a step and reads its pages.
    pub(super) fn run(&self, folder: &mut RunFolder, step: &Step) -> Result<Captured, UserError> {
        let report = format!("{}.ncu-rep", step.capture.report.display());
        let file = folder.prepare(&report)?;
        let command = self.command(step, Some(folder.path()));
        let finished = process::run(folder, &step.name, command, &Limits::default(), Interrupt::Forwarded)?;
        let has_report = file.is_file();
        if has_report {
            folder.adopt(&report)?;
        }
        folder.end_step(&step.name)?;
        let complaint = finished.ncu_complaint();
        refuse(&finished, &step.name, complaint, has_report)?;
        let mut captured =
            Captured { include: step.capture.options.nvtx.include.clone(), complaint, ..Captured::default() };
        let mut messages = messages(&finished);
        if has_report {
            let raw = self.page(folder, step, &file, Page::Raw)?;
            if let NcuFile::Raw(page) = raw {
                messages.extend(page.messages.iter().map(|message| message.text.clone()));
                (captured.table, captured.quality) = (page.table, page.quality);
            }
            let has_sections = step.capture.options.set.is_some() || !step.capture.options.sections.is_empty();
            if has_sections && !captured.table.work.is_empty() {
                // What was counted is there already, and the sections are only half of the report.
                match self.page(folder, step, &file, Page::Details) {
                    Ok(NcuFile::Details(page)) => {
                        captured.details = page.works;
                        captured.quality.extend(page.quality);
                    }
                    Ok(_) => captured.missing.push("the profiler printed no sections".to_owned()),
                    Err(error) => captured.missing.push(format!("no sections: {error}")),
                }
            }
            folder.end_step(&format!("{}-pages", step.name))?;
        }
        messages.dedup();
        captured.record = Some(RegionCapture {
            purpose: step.purpose.to_owned(),
            include: captured.include.clone(),
            command: words(&self.command(step, None)),
            results: captured.table.work.len() as u64,
            messages,
        });
        Ok(captured)
    }

    fn page(&self, folder: &mut RunFolder, step: &Step, report: &Path, page: Page) -> Result<NcuFile, UserError> {
        let kind = match page {
            Page::Raw => "raw",
            Page::Details => "details",
        };
        let name = format!("{}-{kind}", step.name);
        // Numbers in another language's form would be off by a thousand.
        let command = print_page(self.program, report, page).with_variable("LC_ALL", "C");
        let limits = Limits { log: None, ..Limits::default() };
        let finished = process::run(folder, &name, command, &limits, Interrupt::Forwarded)?;
        // The page itself holds the profiler's advice, which is no complaint.
        refuse(&finished, &name, Complaint::of_ncu(&finished.stderr), finished.succeeded())?;
        let log = process::stdout_log(&name);
        read(&folder.path().join(&log), &log, self.metrics)
    }
}

/// A file of pages, opened where it is, unpacked where it is packed.
pub(super) fn read(path: &Path, name: &str, metrics: &[String]) -> Result<NcuFile, UserError> {
    let unreadable = UserError::io("read", Path::new(name));
    let mut file = BufReader::new(collect::document::open(path).map_err(&unreadable)?);
    let head = file.fill_buf().map_err(unreadable)?;
    match Compression::of(head) {
        Some(compression) => {
            let text = BufReader::new(compression.decoder(file));
            Ok(ncu::read_counters(text, name, |counter| regions::keeps(metrics, counter))?)
        }
        None => Ok(ncu::read_counters(file, name, |counter| regions::keeps(metrics, counter))?),
    }
}

/// Stops where the profiler could not do its work. A program that failed after ranges were measured has still been
/// measured.
fn refuse(
    finished: &ProcessOutcome,
    name: &str,
    complaint: Option<Complaint>,
    has_report: bool,
) -> Result<(), UserError> {
    let said = finished.last_lines(SHOWN);
    match (finished.ending, complaint) {
        (Ending::Interrupted, _) => Err(UserError::failed("interrupted")),
        (_, Some(Complaint::NoRange | Complaint::NoKernel | Complaint::CannotReplay)) => Ok(()),
        (_, Some(Complaint::ProgramFailed)) if has_report => Ok(()),
        (Ending::Code(0), None) => Ok(()),
        (Ending::Code(0), Some(_)) if has_report => Ok(()),
        (_, Some(complaint)) => {
            let exit = match complaint {
                Complaint::NoProgram | Complaint::UnknownMetric | Complaint::UnknownSection => Exit::Usage,
                _ => Exit::Failed,
            };
            Err(UserError::failed(complaint.message()).exiting(exit).quoting(said).hint(complaint.hint()))
        }
        (_, None) if has_report => Ok(()),
        (ending, None) => Err(UserError::failed(format!("Nsight Compute {ending}"))
            .quoting(said)
            .hint(format!("its full output is in logs/{name}.stderr"))),
    }
}

/// Warnings and errors of the profiler, once each.
fn messages(finished: &ProcessOutcome) -> Vec<String> {
    let mut messages: Vec<String> = Vec::new();
    for line in finished.output().lines() {
        let text = line.strip_prefix("==WARNING==").or_else(|| line.strip_prefix("==ERROR=="));
        if let Some(text) = text.map(str::trim).filter(|text| !messages.iter().any(|known| known == text)) {
            messages.push(text.to_owned());
        }
    }
    messages
}

/// Words of a command line as they are kept: without secrets.
fn words(command: &Command) -> Vec<String> {
    collect::masked(command.words()).iter().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Pages that were written before, as captures: the k-th details page belongs to the k-th raw page.
pub(super) fn read_files(files: &[PathBuf], metrics: &[String]) -> Result<Vec<Captured>, UserError> {
    let (mut captures, mut details) = (Vec::new(), Vec::new());
    for path in files {
        let name = path.display().to_string();
        let texts = |messages: &[ToolMessage]| messages.iter().map(|message| message.text.clone()).collect();
        let record = |results: u64, messages: Vec<String>| RegionCapture {
            purpose: "capture".to_owned(),
            include: Vec::new(),
            command: vec![name.clone()],
            results,
            messages,
        };
        match read(path, &name, metrics)? {
            NcuFile::Raw(page) => captures.push(Captured {
                record: Some(record(page.table.work.len() as u64, texts(&page.messages))),
                table: page.table,
                quality: page.quality,
                ..Captured::default()
            }),
            NcuFile::Details(page) => details.push(page.works),
            NcuFile::Nothing(nothing) => captures.push(Captured {
                record: Some(record(0, texts(&nothing))),
                complaint: Complaint::of_ncu(
                    &nothing.iter().map(|message| message.text.as_str()).collect::<Vec<_>>().join("\n"),
                ),
                ..Captured::default()
            }),
        }
    }
    if captures.is_empty() {
        let file = files.first().map(|path| path.display().to_string()).unwrap_or_default();
        return Err(UserError::usage(format!("{file} is a details page, not a raw page of Nsight Compute"))
            .hint("write one with `ncu --import FILE --csv --page raw`"));
    }
    for (captured, works) in captures.iter_mut().zip(details) {
        captured.details = works;
    }
    Ok(captures)
}
