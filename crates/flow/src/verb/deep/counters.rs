//! The passes that read hardware counters: Nsight Compute around the program, once for each stage.

use std::ffi::OsString;
use std::path::Path;

use analysis::LaunchCounters;
use analysis::sampled::{Candidate, Choice, CountedLaunch};
use collect::process::{self, Interrupt, Limits, size_of};
use collect::run::RunFolder;
use collect::tool::ncu::{self, ChipMetrics, Page};
use collect::tool::{Complaint, InstalledTool};
use ingest::ncu::NcuFile;
use types::counter::{CounterTable, DetailedWork};
use types::{Bytes, KernelNameBase, PassRecord, QualityCounter, RegionStyle, Stage, UserError, range_expression};

use super::passes::{framed, interrupted, limited, named, record};
use super::plan::{self, command, is_torch, with_variables};
use super::request::DeepRequest;
use crate::pipeline::scratch::scratch_folder;
use crate::pipeline::trace;
use crate::runner::bare::PreparedProgram;

/// What was counted in one stage.
#[derive(Default)]
pub(super) struct CounterPass {
    pub(super) record: Option<PassRecord>,
    pub(super) launches: Vec<CountedLaunch>,
    pub(super) counted: Vec<LaunchCounters>,
    pub(super) quality: Vec<QualityCounter>,
    /// The pages themselves, where ranges were replayed: their rows are regions, and no launches.
    pub(super) ranges: Option<RangePages>,
    /// Why there are none; whether asking in another stage is useless too.
    pub(super) missing: Option<(String, bool)>,
}

impl CounterPass {
    fn missing(record: Option<PassRecord>, why: String, everywhere: bool) -> Self {
        Self { record, missing: Some((why, everywhere)), ..Self::default() }
    }
}

/// What Nsight Compute printed of ranges that it replayed.
pub(super) struct RangePages {
    pub(super) table: CounterTable,
    /// The sections; empty where none were asked for.
    pub(super) details: Vec<DetailedWork>,
    /// Its arguments.
    pub(super) command: Vec<String>,
}

/// Where the counters of a stage are kept, without an ending.
fn counter_file(stage: Option<Stage>) -> String {
    format!("ncu/{}", stage.map_or("run", Stage::name))
}

/// What is launched under Nsight Compute.
pub(super) struct Replayed {
    argv: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    /// Its files, for as long as they are needed.
    _files: Option<tempfile::TempDir>,
}

/// Makes ready what is launched under Nsight Compute: the command itself, or the interpreter that runs the model. The error inside
/// is why the interpreter cannot be made ready.
pub(super) fn replayed(folder: &mut RunFolder, request: &DeepRequest) -> Result<Result<Replayed, String>, UserError> {
    let environment = request.target.environment().to_vec();
    let mut argv = request.target.argv_once();
    if !is_torch(request) {
        return Ok(Ok(Replayed { argv, environment, _files: None }));
    }
    let failed = |what: String| Ok(Err(format!("cannot prepare the interpreter for reading counters: {what}")));
    let files = match scratch_folder() {
        Ok(files) => files,
        Err(reason) => return failed(reason.to_string()),
    };
    argv.extend([OsString::from("--prepare"), files.path().into()]);
    let command = with_variables(command(&argv), request);
    let finished = process::run_for_answer(folder, PREPARE, command, &limited(request), Interrupt::Forwarded)?;
    interrupted(folder, PREPARE, &finished)?;
    if !finished.succeeded() {
        return failed(format!("it {}{}", finished.ending, framed(&finished)));
    }
    let Some(PreparedProgram { argv, environment: added }) = process::answer(folder, PREPARE) else {
        return failed("it did not report what to start".to_owned());
    };
    let added = added.into_iter().map(|(name, value)| (name.into(), value.into()));
    let environment = environment.into_iter().chain(added).collect();
    Ok(Ok(Replayed { argv: argv.into_iter().map(OsString::from).collect(), environment, _files: Some(files) }))
}

/// How the file of a stage's sections ends.
const SECTIONS: &str = "-details.csv";

/// Name of the step that makes the interpreter ready.
const PREPARE: &str = "counters-target";

/// Replays the chosen kernels of one stage and reads their counters.
pub(super) fn count(
    folder: &mut RunFolder,
    request: &DeepRequest,
    program: &Replayed,
    tool: &InstalledTool,
    chip: Option<&ChipMetrics>,
    choice: &Choice,
    progress: &mut dyn FnMut(&str),
) -> Result<CounterPass, UserError> {
    let (name, file) = (plan::counters(choice.stage), counter_file(choice.stage));
    let report = folder.prepare(&format!("{file}.ncu-rep"))?;
    let capture = capture(request, tool, chip, choice, &report.with_extension(""));
    let command = capture.command(&tool.path, &program.argv);
    let command_line = plan::written(&command.words().collect::<Vec<_>>());
    let command = command.with_variables(program.environment.iter().cloned());
    let limits =
        Limits { size: Some(request.largest_trace), watched: vec![folder.path().join("ncu")], ..limited(request) };
    let finished = process::run(folder, &name, command, &limits, Interrupt::Forwarded)?;
    interrupted(folder, &name, &finished)?;
    let mut record = record(&name, Some(named("ncu", tool)), &finished);
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
            None => format!("{name}: ncu {} and wrote no report{}", finished.ending, framed(&finished)),
        };
        return Ok(CounterPass::missing(Some(record), why, everywhere));
    }
    folder.adopt(&format!("{file}.ncu-rep"))?;
    progress("printing counters");
    let mut print = |page: Page, step: &str, ending: &str| -> Result<Vec<u8>, UserError> {
        // Numbers in another language's form would be off by a thousand.
        let command = ncu::print_page(&tool.path, &capture.report_file(), page).with_variable("LC_ALL", "C");
        let printed = format!("{name}-{step}");
        let limits = Limits { log: None, ..limited(request) };
        process::run(folder, &printed, command, &limits, Interrupt::Forwarded)?;
        let page = std::fs::read(folder.path().join(process::stdout_log(&printed))).unwrap_or_default();
        folder.write_file(&format!("{file}{ending}"), &page)?;
        Ok(page)
    };
    let page = print(Page::Raw, "page", ".csv")?;
    let options = &capture.options;
    if replays_ranges(request) && (options.set.is_some() || !options.sections.is_empty()) {
        print(Page::Details, "sections", SECTIONS)?;
    }
    record.bytes = Bytes::new(size_of(&report) + page.len() as u64);
    let mut pass = read(folder, request, choice.stage)?;
    if let Some(ranges) = &mut pass.ranges {
        ranges.command = command_line;
    }
    if pass.launches.is_empty() && pass.ranges.is_none() && pass.missing.is_none() {
        let why = complaint.map_or("the page contains no launches", Complaint::message);
        pass.missing = Some((format!("{name}: {why}"), false));
    }
    pass.record = Some(record);
    Ok(pass)
}

/// Reads a page of counters that a pass has left.
pub(super) fn read(folder: &RunFolder, request: &DeepRequest, stage: Option<Stage>) -> Result<CounterPass, UserError> {
    let file = format!("{}.csv", counter_file(stage));
    let bytes = match std::fs::read(folder.path().join(&file)) {
        Ok(bytes) => bytes,
        Err(error) => return Ok(CounterPass::missing(None, format!("{file}: {error}"), false)),
    };
    Ok(match ingest::ncu::read(bytes.as_slice(), &file) {
        Ok(NcuFile::Raw(page)) if replays_ranges(request) => CounterPass {
            quality: page.quality,
            ranges: Some(RangePages { details: sections(folder, stage), table: page.table, command: Vec::new() })
                .filter(|ranges| !ranges.table.work.is_empty()),
            ..CounterPass::default()
        },
        Ok(NcuFile::Raw(page)) => CounterPass {
            launches: CountedLaunch::of_table(&page.table),
            counted: LaunchCounters::of_table(&page.table),
            quality: page.quality,
            ..CounterPass::default()
        },
        Ok(NcuFile::Details(_)) => CounterPass::missing(None, format!("{file}: not the expected kind of page"), false),
        Ok(NcuFile::Nothing(nothing)) => {
            let (why, hint) = trace::nothing(&nothing);
            CounterPass::missing(None, format!("{file}: {why}; {hint}"), false)
        }
        Err(error) => CounterPass::missing(None, error.to_string(), false),
    })
}

/// The sections of a stage that a pass has left; none where they were not asked for or cannot be read.
fn sections(folder: &RunFolder, stage: Option<Stage>) -> Vec<DetailedWork> {
    let file = format!("{}{SECTIONS}", counter_file(stage));
    let page = std::fs::read(folder.path().join(&file)).unwrap_or_default();
    match ingest::ncu::read(page.as_slice(), &file) {
        Ok(NcuFile::Details(page)) => page.works,
        _ => Vec::new(),
    }
}

/// The capture of one stage: its kernels, its ranges, the counters the chip has.
fn capture(
    request: &DeepRequest,
    tool: &InstalledTool,
    chip: Option<&ChipMetrics>,
    choice: &Choice,
    report: &Path,
) -> ncu::Capture {
    let mut capture = request.ncu.ncu_cli.capture(report.to_owned());
    let options = &mut capture.options;
    if let Some(chip) = chip {
        (options.metrics, _) = chip.split(&options.metrics);
    }
    let whole_ranges = replays_ranges(request);
    if whole_ranges {
        // A range is replayed as a whole, whatever its kernels are.
        (options.kernel_name, options.launch_skip, options.launch_count) = (None, 0, None);
    } else if options.kernel_name.is_none() {
        (options.kernel_name_base, options.kernel_name) = filter(choice);
    }
    if options.nvtx.include.is_empty() {
        let expression = |range: &analysis::sampled::StageRange| {
            let style = if range.pushed { RegionStyle::PushPop } else { RegionStyle::StartEnd };
            range_expression(range.domain.as_deref(), &[&range.name], style)
        };
        options.nvtx.include = choice.ranges.iter().map(expression).collect();
    }
    // Nsight Compute counts launches in one way only where it replays ranges.
    capture.filter_mode = if whole_ranges { ncu::FilterMode::Global } else { ncu::launch_counting(tool) };
    if capture.filter_mode == ncu::FilterMode::Global {
        let kernels = choice.kernels.len() as u64;
        options.launch_count = options.launch_count.map(|count| count.saturating_mul(kernels));
    }
    capture
}

/// Whether ranges are replayed, and not kernels.
pub(super) fn replays_ranges(request: &DeepRequest) -> bool {
    request.ncu.ncu_cli.replay_mode.measures_ranges()
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
    let function = |kernel: &Candidate| analysis::kernel::function_name(&kernel.name).to_owned();
    let mut names: Vec<String> = kernels.iter().map(function).collect();
    names.sort_unstable();
    names.dedup();
    (KernelNameBase::Function, Some(ncu::any_of(&names)))
}
