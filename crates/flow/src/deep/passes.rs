//! The passes that record time, by itself and as a timeline: each starts the program once and leaves its files in the run folder.

use std::collections::BTreeMap;
use std::path::Path;

use collect::child::{self, Bounds, Ending, Finished};
use collect::run::RunFolder;
use collect::tool::inject::{self, Injection};
use collect::tool::{Found, nsys};
use types::{Bytes, Collector, Nanos, PassRecord, Stage};

use super::error::DeepError;
use super::plan::{baseline as plain, with_variables, words};
use super::request::DeepRequest;
use super::tools::Tools;
use crate::workload::BareRun;

/// Lines of a tool or program shown in a message.
const SHOWN: usize = 12;

/// The timeline as Nsight Systems exports it, relative to the run folder.
pub(super) const DATABASE: &str = "nsys/timeline.sqlite";

/// Runs the program by itself, as the pass of that name.
pub(super) fn baseline(folder: &mut RunFolder, request: &DeepRequest, name: &str) -> Result<PassRecord, DeepError> {
    let bounds = Bounds { time: Some(request.pass_limit), ..Bounds::default() };
    let finished = child::run(folder, name, &plain(request), &bounds)?;
    interrupted(folder, name, &finished)?;
    if !finished.succeeded() {
        return Err(DeepError::Baseline { how: how(finished.ending), said: framed(&finished) });
    }
    Ok(PassRecord {
        name: name.to_owned(),
        tool: None,
        process: Some(finished.process),
        wall_ns: nanos(&finished),
        stage_wall_ns: stage_times(folder, &finished),
        overhead: None,
        overhead_of: None,
        bytes: Bytes::ZERO,
    })
}

/// Records the timeline: with our own collector where that sees anything, else with Nsight Systems. What is missing beside
/// it comes back as reasons.
pub(super) fn timeline(
    folder: &mut RunFolder,
    request: &DeepRequest,
    tools: &Tools,
    progress: &mut dyn FnMut(&str),
) -> Result<(PassRecord, Vec<String>), DeepError> {
    if tools.inject
        && let Some(recorded) = collected(folder, request)?
    {
        return Ok(recorded);
    }
    match (&tools.nsys, request.collector) {
        (Ok(nsys), Collector::Auto | Collector::Nsys) => {
            progress("recording the timeline with Nsight Systems");
            traced(folder, request, nsys, progress)
        }
        _ => Err(DeepError::NoKernels),
    }
}

/// Records with our own collector; `None` where no process of the program left anything.
fn collected(folder: &mut RunFolder, request: &DeepRequest) -> Result<Option<(PassRecord, Vec<String>)>, DeepError> {
    // The folder appears with the first file that is prepared in it.
    let place = folder.prepare("trace/process-0.wire")?;
    let trace = place.parent().map(Path::to_owned).unwrap_or_default();
    let injection = Injection::prepare(&trace, inject::Settings::default())?;
    let variables = injection.variables();
    let command =
        variables.into_iter().fold(plain(request), |command, (name, value)| command.with_variable(name, value));
    let bounds = Bounds {
        time: Some(request.pass_limit),
        size: Some(request.largest_trace),
        grows: vec![trace.clone()],
        ..Bounds::default()
    };
    let finished = child::run(folder, "timeline", &command, &bounds);
    let files = injection.gather()?;
    let finished = finished?;
    interrupted(folder, "timeline", &finished)?;
    if let Ending::TooLarge(size) = finished.ending {
        return Err(DeepError::TooLarge { size, most: request.largest_trace });
    }
    if files.is_empty() {
        return Ok(None);
    }
    for file in &files {
        if let Some(name) = file.file_name() {
            folder.adopt(&format!("trace/{}", name.to_string_lossy()))?;
        }
    }
    let mut missing = Vec::new();
    if !finished.succeeded() {
        missing.push(format!("timeline: the program {} with the collector in it", how(finished.ending)));
    }
    let record = PassRecord {
        name: "timeline".to_owned(),
        tool: Some("llm-perf".to_owned()),
        process: Some(finished.process),
        wall_ns: nanos(&finished),
        stage_wall_ns: stage_times(folder, &finished),
        overhead: None,
        overhead_of: None,
        bytes: Bytes::new(child::size_of(&trace)),
    };
    Ok(Some((record, missing)))
}

/// Records with Nsight Systems and exports.
fn traced(
    folder: &mut RunFolder,
    request: &DeepRequest,
    nsys: &Found,
    progress: &mut dyn FnMut(&str),
) -> Result<(PassRecord, Vec<String>), DeepError> {
    let report = folder.prepare("nsys/timeline.nsys-rep")?;
    let capture = request.nsys.nsys_cli.capture(report.with_extension(""));
    let command = with_variables(capture.command(nsys, &words(request)), request);
    let bounds = Bounds {
        time: Some(request.pass_limit),
        size: Some(request.largest_trace),
        grows: vec![folder.path().join("nsys")],
        // Where it records before it makes its report.
        grows_like: Some(std::env::temp_dir().join("nsys-report-")),
    };
    let finished = child::run(folder, "timeline-nsys", &command, &bounds)?;
    interrupted(folder, "timeline", &finished)?;
    if let Ending::TooLarge(size) = finished.ending {
        return Err(DeepError::TooLarge { size, most: request.largest_trace });
    }
    let mut missing = Vec::new();
    if !capture.report_file().is_file() {
        return Err(failed_timeline(&finished));
    }
    folder.adopt("nsys/timeline.nsys-rep")?;
    if !finished.succeeded() {
        missing.push(format!("timeline: the program {} under nsys", how(finished.ending)));
    }
    progress("exporting the timeline");
    let database = folder.prepare(DATABASE)?;
    let export = nsys::export_sqlite(&nsys.path, &capture.report_file(), &database);
    let exported = child::run(folder, "timeline-export", &export, &limited(request))?;
    if !database.is_file() {
        return Err(failed_timeline(&exported));
    }
    folder.adopt(DATABASE)?;
    missing.extend(tables(folder, request, nsys, &database)?);
    let record = PassRecord {
        name: "timeline".to_owned(),
        tool: Some(named("nsys", nsys)),
        process: Some(finished.process),
        wall_ns: nanos(&finished),
        stage_wall_ns: stage_times(folder, &finished),
        overhead: None,
        overhead_of: None,
        bytes: Bytes::new(child::size_of(&folder.path().join("nsys"))),
    };
    Ok((record, missing))
}

/// Tables of `nsys stats`; one that could not be made is a reason, not an end.
fn tables(
    folder: &mut RunFolder,
    request: &DeepRequest,
    nsys: &Found,
    database: &Path,
) -> Result<Vec<String>, DeepError> {
    let reports = &request.nsys.export.stats;
    if reports.is_empty() {
        return Ok(Vec::new());
    }
    let prefix = folder.path().join("nsys/stats");
    let command = nsys::statistics(&nsys.path, database, reports, &prefix);
    let finished = child::run(folder, "timeline-stats", &command, &limited(request))?;
    let mut made = 0;
    for report in reports {
        let file = nsys::statistics_file(&prefix, report);
        if let Some(name) = file.file_name().filter(|_| file.is_file()) {
            folder.adopt(&format!("nsys/{}", name.to_string_lossy()))?;
            made += 1;
        }
    }
    // A run without ranges has no table of ranges, and nsys says so and goes on.
    let none = (made == 0).then(|| format!("tables: nsys stats {} and made none", how(finished.ending)));
    Ok(none.into_iter().collect())
}

/// The time a pass may take.
pub(super) fn limited(request: &DeepRequest) -> Bounds {
    Bounds { time: Some(request.pass_limit), ..Bounds::default() }
}

fn failed_timeline(finished: &Finished) -> DeepError {
    let complaint = finished.nsys_complaint();
    let what = complaint.map_or_else(
        || format!("nsys {} and left no report", how(finished.ending)),
        |found| found.message().to_owned(),
    );
    DeepError::Timeline { what, said: framed(finished), complaint }
}

/// An error where the user has stopped the pass.
pub(super) fn interrupted(folder: &RunFolder, pass: &str, finished: &Finished) -> Result<(), DeepError> {
    match finished.ending {
        Ending::Interrupted => {
            Err(DeepError::Interrupted { pass: pass.to_owned(), run: folder.path().display().to_string() })
        }
        _ => Ok(()),
    }
}

/// How a program ended, in words that follow its name.
pub(super) fn how(ending: Ending) -> String {
    match ending {
        Ending::Code(0) => "ended".to_owned(),
        Ending::Code(code) => format!("ended with code {code}"),
        Ending::Signal(signal) => format!("was ended by signal {signal}"),
        Ending::OutOfTime => "took longer than a pass may, and was ended".to_owned(),
        Ending::TooLarge(size) => format!("had written {size}, and was ended"),
        Ending::Interrupted => "was interrupted".to_owned(),
    }
}

/// What was said last, each line with a bar before it.
pub(super) fn framed(finished: &Finished) -> String {
    finished.last_lines(SHOWN).iter().map(|line| format!("\n  | {line}")).collect()
}

/// A tool with its version.
pub(super) fn named(name: &str, tool: &Found) -> String {
    tool.version.as_ref().map_or_else(|| name.to_owned(), |version| format!("{name} {version}"))
}

/// How long it took.
pub(super) fn nanos(finished: &Finished) -> Nanos {
    Nanos::new(i64::try_from(finished.wall.as_nanos()).unwrap_or(i64::MAX))
}

/// Times of stages as the program prints them: our own workload as samples, any other program as lines of JSON with
/// `prefill_ms` and the like, one line for each round. The fastest of each: whatever else the machine does only adds to
/// it, and what is wanted is what a tool costs.
fn stage_times(folder: &RunFolder, finished: &Finished) -> BTreeMap<Stage, Nanos> {
    let text = std::fs::read_to_string(folder.path().join(&finished.stdout)).unwrap_or_default();
    let mut times: BTreeMap<Stage, Vec<Nanos>> = BTreeMap::new();
    let mut add = |stage: Stage, time: Nanos| times.entry(stage).or_default().push(time);
    if let Some(found) = bare_run(&text) {
        let measured = found.samples.iter().filter(|sample| !sample.warmup);
        measured.for_each(|sample| add(sample.stage, sample.wall_ns));
        return times.into_iter().map(|(stage, all)| (stage, fastest(&all))).collect();
    }
    for line in text.lines().filter(|line| line.starts_with('{')) {
        let Ok(serde_json::Value::Object(fields)) = serde_json::from_str(line) else { continue };
        for stage in Stage::ALL {
            let time = fields.get(&format!("{stage}_ms")).and_then(serde_json::Value::as_f64);
            if let Some(time) = time.filter(|time| (0.0..1e12).contains(time)) {
                add(stage, Nanos::new((time * 1e6).round() as i64));
            }
        }
    }
    times.into_iter().map(|(stage, all)| (stage, fastest(&all))).collect()
}

/// What our own workload prints.
fn bare_run(text: &str) -> Option<BareRun> {
    let begin = text.find("{\n")?;
    serde_json::Deserializer::from_str(&text[begin..]).into_iter().next()?.ok()
}

/// What the program said it ran, by itself; absent where it is not our own.
pub(super) fn ran(folder: &RunFolder) -> Option<BareRun> {
    bare_run(&std::fs::read_to_string(folder.path().join("logs/baseline.stdout")).ok()?)
}

fn fastest(times: &[Nanos]) -> Nanos {
    times.iter().copied().min().unwrap_or_default()
}
