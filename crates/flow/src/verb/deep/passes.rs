//! The passes that record time, by itself and as a timeline: each starts the program once and leaves its files in the run folder.

use std::collections::BTreeMap;
use std::path::Path;

use collect::process::{self, Ending, Interrupt, Limits, ProcessOutcome, size_of};
use collect::run::RunFolder;
use collect::tool::inject::{self, Injection};
use collect::tool::{Complaint, InstalledTool, nsys};
use types::{Bytes, Collector, Nanos, PassRecord, Stage, UserError};

use super::pass_name::{BASELINE, OPERATORS, TIMELINE, TIMELINE_NSYS};
use super::plan::{baseline as plain, with_variables};
use super::request::DeepRequest;
use super::tools::Tools;
use crate::runner::bare::BareRun;

/// Lines of a tool or program shown in a message.
const SHOWN: usize = 12;

/// The timeline as Nsight Systems exports it, relative to the run folder.
pub(super) const DATABASE: &str = "nsys/timeline.sqlite";

/// Runs the program by itself, as the pass of that name. The error inside is a program that does not run by itself.
pub(super) fn baseline(
    folder: &mut RunFolder,
    request: &DeepRequest,
    name: &str,
) -> Result<Result<PassRecord, UserError>, UserError> {
    let finished = process::run_for_answer(folder, name, plain(request), &limited(request), Interrupt::Forwarded)?;
    interrupted(folder, name, &finished)?;
    if !finished.succeeded() {
        let message = format!("the program fails without a profiler: it {}{}", finished.ending, framed(&finished));
        return Ok(Err(UserError::failed(message).hint("run it without llm-perf first; its full output is in logs/")));
    }
    Ok(Ok(PassRecord { stage_wall_ns: stage_times(folder, name), ..record(name, None, &finished) }))
}

/// What the pass for operators leaves, relative to the run folder.
pub(super) const OPERATOR_TRACE: &str = "trace/operators.json.gz";

/// Records the timeline: with our own collector where that leaves anything, else with Nsight Systems. What is missing beside
/// it comes back as reasons.
pub(super) fn timeline(
    folder: &mut RunFolder,
    request: &DeepRequest,
    tools: &Tools,
    progress: &mut dyn FnMut(&str),
) -> Result<(PassRecord, Vec<String>), UserError> {
    if tools.inject
        && let Some(recorded) = collected(folder, request)?
    {
        return Ok(recorded);
    }
    with_nsys(folder, request, tools, TIMELINE, progress)
}

/// Records with Nsight Systems as the pass of that name, where it is here and not switched off.
pub(super) fn with_nsys(
    folder: &mut RunFolder,
    request: &DeepRequest,
    tools: &Tools,
    name: &str,
    progress: &mut dyn FnMut(&str),
) -> Result<(PassRecord, Vec<String>), UserError> {
    match (&tools.nsys, request.collector) {
        (Ok(nsys), Collector::Auto | Collector::Nsys | Collector::Both) => {
            progress("recording the timeline with Nsight Systems");
            traced(folder, request, nsys, name, progress)
        }
        _ => Err(no_kernels()),
    }
}

/// Runs the model once more, under torch.profiler, which knows the operators that the collectors do not. What went wrong
/// comes back as a reason.
pub(super) fn operators(
    folder: &mut RunFolder,
    request: &DeepRequest,
) -> Result<Result<PassRecord, String>, UserError> {
    let trace = folder.prepare(OPERATOR_TRACE)?;
    let trace = std::path::absolute(&trace).unwrap_or(trace);
    let command = if request.target.is_workload() {
        let mut argv = request.target.argv_once();
        argv.extend(["--operators".into(), trace.clone().into_os_string()]);
        with_variables(super::plan::command(&argv), request)
    } else {
        plain(request).with_variables([(OPERATOR_VARIABLE.into(), trace.clone().into_os_string())])
    };
    let finished = process::run(folder, OPERATORS, command, &limited(request), Interrupt::Forwarded)?;
    interrupted(folder, OPERATORS, &finished)?;
    if !trace.is_file() {
        return Ok(Err(format!("operators: the program {} and wrote no trace{}", finished.ending, framed(&finished))));
    }
    let bytes = Bytes::new(size_of(&trace));
    folder.adopt(OPERATOR_TRACE)?;
    Ok(Ok(PassRecord { bytes, ..record(OPERATORS, Some("torch.profiler".to_owned()), &finished) }))
}

/// What a pass took, as the pass of that name.
pub(super) fn record(name: &str, tool: Option<String>, finished: &ProcessOutcome) -> PassRecord {
    let (process, wall_ns) = (Some(finished.process), finished.usage.wall);
    PassRecord { name: name.to_owned(), tool, process, wall_ns, ..PassRecord::default() }
}

/// Names the file that a program of the user's writes its torch.profiler trace to, when asked for operators.
const OPERATOR_VARIABLE: &str = "LLM_PERF_TORCH_TRACE";

/// Records with our own collector; `None` where no process of the program left anything.
fn collected(folder: &mut RunFolder, request: &DeepRequest) -> Result<Option<(PassRecord, Vec<String>)>, UserError> {
    // The folder appears with the first file that is prepared in it.
    let place = folder.prepare("trace/process-0.wire")?;
    let trace = place.parent().map(Path::to_owned).unwrap_or_default();
    let injection = Injection::prepare(&trace, inject::InjectSettings::default())?;
    let command = plain(request).with_variables(injection.variables());
    let limits = Limits { size: Some(request.largest_trace), watched: vec![trace.clone()], ..limited(request) };
    let finished = process::run_for_answer(folder, TIMELINE, command, &limits, Interrupt::Forwarded);
    let files = injection.gather()?;
    let finished = finished?;
    interrupted(folder, TIMELINE, &finished)?;
    if let Ending::TooLarge(size) = finished.ending {
        return Err(too_large(request, size));
    }
    if files.is_empty() {
        return out_of_time(request, &finished).map_or(Ok(None), Err);
    }
    for file in &files {
        if let Some(name) = file.file_name() {
            folder.adopt(&format!("trace/{}", name.to_string_lossy()))?;
        }
    }
    let mut missing = Vec::new();
    if !finished.succeeded() {
        missing.push(format!("timeline: the program {} under the collector", finished.ending));
    }
    let record = PassRecord {
        stage_wall_ns: stage_times(folder, TIMELINE),
        bytes: Bytes::new(size_of(&trace)),
        ..record(TIMELINE, Some("llm-perf".to_owned()), &finished)
    };
    Ok(Some((record, missing)))
}

/// Records with Nsight Systems and exports.
fn traced(
    folder: &mut RunFolder,
    request: &DeepRequest,
    nsys: &InstalledTool,
    name: &str,
    progress: &mut dyn FnMut(&str),
) -> Result<(PassRecord, Vec<String>), UserError> {
    let report = folder.prepare("nsys/timeline.nsys-rep")?;
    let command = request.nsys.nsys_cli.command(nsys, &report.with_extension(""), request.target.argv());
    let command = with_variables(command, request);
    let limits = Limits {
        size: Some(request.largest_trace),
        watched: vec![folder.path().join("nsys")],
        // Where it records before it makes its report.
        watched_like: Some(std::env::temp_dir().join("nsys-report-")),
        ..limited(request)
    };
    let finished = process::run_for_answer(folder, TIMELINE_NSYS, command, &limits, Interrupt::Forwarded)?;
    interrupted(folder, TIMELINE, &finished)?;
    if let Ending::TooLarge(size) = finished.ending {
        return Err(too_large(request, size));
    }
    let mut missing = Vec::new();
    if !report.is_file() {
        return Err(out_of_time(request, &finished).unwrap_or_else(|| failed_timeline(&finished)));
    }
    folder.adopt("nsys/timeline.nsys-rep")?;
    if !finished.succeeded() {
        missing.push(format!("timeline: the program {} under nsys", finished.ending));
    }
    progress("exporting the timeline");
    let database = folder.prepare(DATABASE)?;
    let export = nsys::export_sqlite(&nsys.path, &report, &database);
    let exported = process::run(folder, "timeline-export", export, &limited(request), Interrupt::Forwarded)?;
    if !database.is_file() {
        return Err(failed_timeline(&exported));
    }
    folder.adopt(DATABASE)?;
    missing.extend(tables(folder, request, nsys, &database)?);
    let record = PassRecord {
        stage_wall_ns: stage_times(folder, TIMELINE_NSYS),
        bytes: Bytes::new(size_of(&folder.path().join("nsys"))),
        ..record(name, Some(named("nsys", nsys)), &finished)
    };
    Ok((record, missing))
}

/// Tables of `nsys stats`; one that could not be made is a reason, not an end.
fn tables(
    folder: &mut RunFolder,
    request: &DeepRequest,
    nsys: &InstalledTool,
    database: &Path,
) -> Result<Vec<String>, UserError> {
    let reports = &request.nsys.export.stats;
    if reports.is_empty() {
        return Ok(Vec::new());
    }
    let prefix = folder.path().join("nsys/stats");
    let command = nsys::statistics(&nsys.path, database, reports, &prefix);
    let limits = Limits { log: None, ..limited(request) };
    let finished = process::run(folder, "timeline-stats", command, &limits, Interrupt::Forwarded)?;
    let mut made = 0;
    for report in reports {
        let file = nsys::statistics_file(&prefix, report);
        if let Some(name) = file.file_name().filter(|_| file.is_file()) {
            folder.adopt(&format!("nsys/{}", name.to_string_lossy()))?;
            made += 1;
        }
    }
    // A run without ranges has no table of ranges, and nsys says so and goes on.
    let none = (made == 0).then(|| format!("tables: nsys stats {} and wrote none", finished.ending));
    Ok(none.into_iter().collect())
}

/// The time a pass may take.
pub(super) fn limited(request: &DeepRequest) -> Limits {
    Limits { time: Some(request.pass_limit), ..Limits::default() }
}

fn out_of_time(request: &DeepRequest, finished: &ProcessOutcome) -> Option<UserError> {
    matches!(finished.ending, Ending::OutOfTime).then(|| {
        let most = request.pass_limit.as_secs();
        UserError::failed(format!("the timeline was not recorded: the pass took longer than {most} s and was stopped"))
            .hint("record less: `--mode light`, fewer repeats of the program, or a larger `--pass-limit`")
    })
}

fn too_large(request: &DeepRequest, size: Bytes) -> UserError {
    let most = request.largest_trace;
    UserError::failed(format!("the trace reached {size} and was stopped; the limit is {most}")).hint(
        "record less: `--mode light`, fewer repeats of the program, a capture range \
         (pipeline.nsys.nsys_cli.capture_range=nvtx), or a larger `--largest-trace`",
    )
}

/// The timeline has no kernel.
pub(super) fn no_kernels() -> UserError {
    UserError::failed(
        "the timeline has no kernels: the program did not use the GPU, or used it in a process that was not traced",
    )
    .hint("check that the program runs on the GPU; nsys also traces its child processes")
}

fn failed_timeline(finished: &ProcessOutcome) -> UserError {
    let complaint = finished.nsys_complaint();
    let what = complaint
        .map_or_else(|| format!("nsys {} and wrote no report", finished.ending), |found| found.message().to_owned());
    UserError::failed(format!("the timeline was not recorded: {what}{}", framed(finished)))
        .hint(complaint.map_or("the full output of the tool is in logs/", Complaint::hint))
}

/// An error where the user has stopped the pass.
pub(super) fn interrupted(folder: &RunFolder, pass: &str, finished: &ProcessOutcome) -> Result<(), UserError> {
    match finished.ending {
        Ending::Interrupted => Err(UserError::failed(format!("stopped in pass `{pass}`"))
            .hint(format!("continue with `llm-perf deep --resume {}`", folder.path().display()))),
        _ => Ok(()),
    }
}

/// What was said last, each line with a bar before it.
pub(super) fn framed(finished: &ProcessOutcome) -> String {
    finished.last_lines(SHOWN).iter().map(|line| format!("\n  | {line}")).collect()
}

/// A tool with its version.
pub(super) fn named(name: &str, tool: &InstalledTool) -> String {
    tool.version.as_ref().map_or_else(|| name.to_owned(), |version| format!("{name} {version}"))
}

/// Times of stages as the program tells them: our own workload answers with samples, any other program prints lines of JSON
/// with `prefill_ms` and the like, one line for each round. The fastest of each: whatever else the machine does only adds to
/// it, and what is wanted is what a tool costs.
fn stage_times(folder: &RunFolder, name: &str) -> BTreeMap<Stage, Nanos> {
    let mut times: BTreeMap<Stage, Nanos> = BTreeMap::new();
    let mut add = |stage: Stage, time: Nanos| {
        times.entry(stage).and_modify(|fastest| *fastest = time.min(*fastest)).or_insert(time);
    };
    match process::answer::<BareRun>(folder, name) {
        Some(run) => {
            let measured = run.samples.iter().filter(|sample| !sample.warmup);
            measured.for_each(|sample| add(sample.stage, sample.wall_ns));
        }
        None => printed_times(folder, name, &mut add),
    }
    times
}

fn printed_times(folder: &RunFolder, name: &str, add: &mut dyn FnMut(Stage, Nanos)) {
    let text = std::fs::read_to_string(folder.path().join(process::stdout_log(name))).unwrap_or_default();
    for line in text.lines().filter(|line| line.starts_with('{')) {
        let Ok(serde_json::Value::Object(fields)) = serde_json::from_slice(line.as_bytes()) else { continue };
        for stage in Stage::ALL {
            let time = fields.get(&format!("{stage}_ms")).and_then(serde_json::Value::as_f64);
            if let Some(time) = time.filter(|time| (0.0..1e12).contains(time)) {
                add(stage, Nanos::new((time * 1e6).round() as i64));
            }
        }
    }
}

/// What the program answered that it ran, without a profiler; absent where it is not our own.
pub(super) fn baseline_run(folder: &RunFolder) -> Option<BareRun> {
    process::answer(folder, BASELINE)
}
