//! The passes themselves: each starts the program once and leaves its files in the run folder.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use analysis::sampled::{Candidate, Choice, CountedLaunch};
use analysis::trace::Counted;
use collect::child::{self, Bounds, Ending, Finished};
use collect::run::RunFolder;
use collect::tool::inject::{self, Injection};
use collect::tool::ncu::{ChipMetrics, KernelNameBase, Page};
use collect::tool::{Complaint, Found, ncu, nsys};
use ingest::ncu::NcuFile;
use serde::Deserialize;
use types::{Bytes, Nanos, PassRecord, QualityCounter, Sample, Stage};

use super::error::DeepError;
use super::plan::{baseline as plain, command, counters as counters_name, is_torch, with_variables, words, words_once};
use super::request::{Collector, DeepRequest};
use super::tools::Tools;
use crate::workload::Prepared;

/// Lines of a tool or program shown in a message.
const SHOWN: usize = 12;

/// The timeline as Nsight Systems exports it, relative to the run folder.
pub(super) const DATABASE: &str = "nsys/timeline.sqlite";

/// Runs the program by itself.
pub(super) fn baseline(folder: &mut RunFolder, request: &DeepRequest) -> Result<PassRecord, DeepError> {
    let bounds = Bounds { time: Some(request.pass_limit), ..Bounds::default() };
    let finished = child::run(folder, "baseline", &plain(request), &bounds)?;
    interrupted(folder, "baseline", &finished)?;
    if !finished.succeeded() {
        return Err(DeepError::Baseline { how: how(finished.ending), said: framed(&finished) });
    }
    Ok(PassRecord {
        name: "baseline".to_owned(),
        tool: None,
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

/// What was counted in one stage.
pub(super) struct CounterPass {
    pub(super) record: Option<PassRecord>,
    pub(super) launches: Vec<CountedLaunch>,
    pub(super) counted: Vec<Counted>,
    pub(super) quality: Vec<QualityCounter>,
    /// Why there are none; whether asking in another stage is useless too.
    pub(super) missing: Option<(String, bool)>,
}

impl CounterPass {
    fn missing(record: Option<PassRecord>, why: String, everywhere: bool) -> Self {
        let (launches, counted, quality) = (Vec::new(), Vec::new(), Vec::new());
        Self { record, launches, counted, quality, missing: Some((why, everywhere)) }
    }
}

/// Where the counters of a stage are kept, without an ending.
pub(super) fn counter_file(stage: Option<Stage>) -> String {
    format!("ncu/{}", stage.map_or("run", Stage::name))
}

/// What is launched under Nsight Compute.
pub(super) struct Replayed {
    argv: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    /// Its files, for as long as they are needed.
    _files: Option<tempfile::TempDir>,
}

/// Makes ready what is launched under Nsight Compute: the command itself, or the interpreter that runs the model.
pub(super) fn replayed(folder: &mut RunFolder, request: &DeepRequest) -> Result<Replayed, DeepError> {
    let environment = request.target.environment().to_vec();
    let mut argv = words_once(request);
    if !is_torch(request) {
        return Ok(Replayed { argv, environment, _files: None });
    }
    let failed = |what: String| DeepError::Prepare { what };
    let files = tempfile::tempdir().map_err(|reason| failed(reason.to_string()))?;
    argv.extend([OsString::from("--prepare"), files.path().into()]);
    let command = with_variables(command(&argv), request);
    let finished = child::run(folder, PREPARE, &command, &limited(request))?;
    interrupted(folder, PREPARE, &finished)?;
    if !finished.succeeded() {
        return Err(failed(format!("it {}{}", how(finished.ending), framed(&finished))));
    }
    let Prepared { argv, environment: added } =
        serde_json::from_str(&finished.stdout_tail).map_err(|reason| failed(reason.to_string()))?;
    let added = added.into_iter().map(|(name, value)| (name.into(), value.into()));
    let environment = environment.into_iter().chain(added).collect();
    Ok(Replayed { argv: argv.into_iter().map(OsString::from).collect(), environment, _files: Some(files) })
}

/// Name of the step that makes the interpreter ready.
const PREPARE: &str = "counters-target";

/// Replays the chosen kernels of one stage and reads their counters.
pub(super) fn counters(
    folder: &mut RunFolder,
    request: &DeepRequest,
    program: &Replayed,
    tool: &Found,
    chip: Option<&ChipMetrics>,
    choice: &Choice,
    progress: &mut dyn FnMut(&str),
) -> Result<CounterPass, DeepError> {
    let (name, file) = (counters_name(choice.stage), counter_file(choice.stage));
    let report = folder.prepare(&format!("{file}.ncu-rep"))?;
    let capture = capture(request, tool, chip, choice, &report.with_extension(""));
    let command = capture.command(&tool.path, &program.argv);
    let variables = program.environment.iter().cloned();
    let command = variables.fold(command, |command, (name, value)| command.with_variable(name, value));
    let bounds =
        Bounds { size: Some(request.largest_trace), grows: vec![folder.path().join("ncu")], ..limited(request) };
    let finished = child::run(folder, &name, &command, &bounds)?;
    interrupted(folder, &name, &finished)?;
    let mut record = PassRecord {
        name: name.clone(),
        tool: Some(named("ncu", tool)),
        wall_ns: nanos(&finished),
        stage_wall_ns: BTreeMap::new(),
        overhead: None,
        overhead_of: None,
        bytes: Bytes::ZERO,
    };
    let complaint = finished.ncu_complaint();
    if !capture.report_file().is_file() {
        let everywhere = matches!(
            complaint,
            Some(
                Complaint::CountersForbidden
                    | Complaint::CountersBusy
                    | Complaint::NoDevice
                    | Complaint::DriverMismatch
                    | Complaint::UnknownOption
                    | Complaint::UnknownMetric
                    | Complaint::UnknownSection
            )
        );
        let why = match complaint {
            Some(complaint) => format!("{name}: {}; {}", complaint.message(), complaint.hint()),
            None => format!("{name}: ncu {} and left no report{}", how(finished.ending), framed(&finished)),
        };
        return Ok(CounterPass::missing(Some(record), why, everywhere));
    }
    folder.adopt(&format!("{file}.ncu-rep"))?;
    progress("printing counters");
    let print = ncu::print_page(&tool.path, &capture.report_file(), Page::Raw);
    let printed = child::run(folder, &format!("{name}-page"), &print, &limited(request))?;
    let page = std::fs::read(folder.path().join(&printed.stdout)).unwrap_or_default();
    folder.write_file(&format!("{file}.csv"), &page)?;
    record.bytes = Bytes::new(child::size_of(&report) + page.len() as u64);
    let mut pass = read_counters(folder, choice.stage)?;
    if pass.launches.is_empty() && pass.missing.is_none() {
        let why = complaint.map_or("the page has no launch", Complaint::message);
        pass.missing = Some((format!("{name}: {why}"), false));
    }
    pass.record = Some(record);
    Ok(pass)
}

/// Reads a page of counters that a pass has left.
pub(super) fn read_counters(folder: &RunFolder, stage: Option<Stage>) -> Result<CounterPass, DeepError> {
    let file = format!("{}.csv", counter_file(stage));
    let bytes = match std::fs::read(folder.path().join(&file)) {
        Ok(bytes) => bytes,
        Err(error) => return Ok(CounterPass::missing(None, format!("{file}: {error}"), false)),
    };
    Ok(match ingest::ncu::read(bytes.as_slice(), &file).map_err(crate::import::ImportError::from) {
        Ok(NcuFile::Raw(page)) => CounterPass {
            record: None,
            launches: CountedLaunch::of_table(&page.table),
            counted: Counted::of_table(&page.table),
            quality: page.quality,
            missing: None,
        },
        Ok(NcuFile::Details(_)) => CounterPass::missing(None, format!("{file}: a page of another kind"), false),
        Ok(NcuFile::Nothing(nothing)) => {
            let why = crate::import::parts::nothing(nothing.reason);
            CounterPass::missing(None, format!("{file}: {why}; {}", nothing.reason.hint()), false)
        }
        Err(error) => CounterPass::missing(None, error.to_string(), false),
    })
}

/// The capture of one stage: its kernels, its ranges, the counters the chip has.
fn capture(
    request: &DeepRequest,
    tool: &Found,
    chip: Option<&ChipMetrics>,
    choice: &Choice,
    report: &Path,
) -> ncu::Capture {
    let mut capture = request.ncu.ncu_cli.capture(report.to_owned());
    if let Some(chip) = chip {
        (capture.metrics, _) = chip.split(&capture.metrics);
    }
    if capture.kernel_name.is_none() {
        (capture.kernel_name_base, capture.kernel_name) = filter(choice);
    }
    if capture.nvtx_include.is_empty() {
        let expression = |range: &analysis::sampled::StageRange| match range.pushed {
            true => ncu::range_expression(range.domain.as_deref(), &[&range.name]),
            false => ncu::range_expression(range.domain.as_deref(), &[&range.name]).trim_end_matches('/').to_owned(),
        };
        capture.nvtx_include = choice.ranges.iter().map(expression).collect();
    }
    capture.filter_mode = ncu::launch_counting(tool);
    if capture.filter_mode == ncu::FilterMode::Global {
        let kernels = choice.kernels.len() as u64;
        capture.launch_count = capture.launch_count.map(|count| count.saturating_mul(kernels));
    }
    capture
}

/// A filter for exactly these kernels: by the names in the object file where they are known, because tools agree on no
/// other; else by the function's own name, which may let more of them through.
fn filter(choice: &Choice) -> (KernelNameBase, Option<String>) {
    let kernels: &[Candidate] = &choice.kernels;
    if kernels.iter().all(|kernel| !kernel.symbols.is_empty()) {
        let mut symbols: Vec<&str> = kernels.iter().flat_map(|kernel| &kernel.symbols).map(String::as_str).collect();
        symbols.sort_unstable();
        symbols.dedup();
        let others: Vec<&str> = choice.others.iter().map(String::as_str).collect();
        return (KernelNameBase::Mangled, Some(ncu::told_from(&symbols, &others)));
    }
    let mut names: Vec<String> = kernels.iter().map(|kernel| analysis::sampled::base_name(&kernel.name)).collect();
    names.sort_unstable();
    names.dedup();
    (KernelNameBase::Function, Some(ncu::any_of(&names)))
}

fn limited(request: &DeepRequest) -> Bounds {
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

fn interrupted(folder: &RunFolder, pass: &str, finished: &Finished) -> Result<(), DeepError> {
    match finished.ending {
        Ending::Interrupted => {
            Err(DeepError::Interrupted { pass: pass.to_owned(), run: folder.path().display().to_string() })
        }
        _ => Ok(()),
    }
}

fn how(ending: Ending) -> String {
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
fn framed(finished: &Finished) -> String {
    finished.last_lines(SHOWN).iter().map(|line| format!("\n  | {line}")).collect()
}

fn named(name: &str, tool: &Found) -> String {
    tool.version.as_ref().map_or_else(|| name.to_owned(), |version| format!("{name} {version}"))
}

fn nanos(finished: &Finished) -> Nanos {
    Nanos::new(i64::try_from(finished.wall.as_nanos()).unwrap_or(i64::MAX))
}

/// Times of stages as the program prints them: our own workload as samples, any other program as lines of JSON with
/// `prefill_ms` and the like, one line for each round. The median of each.
fn stage_times(folder: &RunFolder, finished: &Finished) -> BTreeMap<Stage, Nanos> {
    #[derive(Deserialize)]
    struct Times {
        samples: Vec<Sample>,
    }
    let text = std::fs::read_to_string(folder.path().join(&finished.stdout)).unwrap_or_default();
    let mut times: BTreeMap<Stage, Vec<Nanos>> = BTreeMap::new();
    let mut add = |stage: Stage, time: Nanos| times.entry(stage).or_default().push(time);
    if let Some(begin) = text.find("{\n") {
        let mut values = serde_json::Deserializer::from_str(&text[begin..]).into_iter::<Times>();
        if let Some(Ok(found)) = values.next() {
            let measured = found.samples.iter().filter(|sample| !sample.warmup);
            measured.for_each(|sample| add(sample.stage, sample.wall_ns));
            return times.into_iter().map(|(stage, all)| (stage, median(all))).collect();
        }
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
    times.into_iter().map(|(stage, all)| (stage, median(all))).collect()
}

/// The middle one, so that one slow instance does not decide what a tool costs.
fn median(mut times: Vec<Nanos>) -> Nanos {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
