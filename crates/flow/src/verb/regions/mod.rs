//! `regions`: hardware counters per NVTX region.
//!
//! A survey finds the regions, captures count in them, and everything is rolled up per region. Pages that were captured
//! elsewhere go the same way without the profiler.

mod capture;
mod metrics;
mod modelled;
mod notes;
mod plan;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use analysis::alignment::ModelledRun;
use analysis::region::{Include, KernelSelection, RegionSettings, RolledRegions, regions_of};
use collect::run::{RunFolder, sha256};
use collect::tool::Shortfall;
use collect::tool::ncu::Options;
use meter::{Roofline, matrix_dtypes, predict};
use report::html::RunPageKind;
pub use report::pages::regions::regions_terminal as terminal;
use report::words::Spoken;
use types::counter::CounterTable;
use types::{
    Environment, Hardware, IncludeRecord, Metrics, Region, RegionReport, RegionSelection, Remark, SchemaTag, UserError,
};

use crate::pipeline::folder::regions as folder_of_regions;
use crate::pipeline::folder::run::{EndedRun, run};
use crate::pipeline::model::LoadedModel;
use crate::pipeline::recorded::provenance::FedInputs;
use crate::pipeline::subject::modelled::run as modelled_run;
use crate::pipeline::trace::regions::{self as pages, CounterPage};
use crate::pipeline::{device::hardware, device::machine, folder::assumptions, folder::bundle, recorded::provenance};
use crate::runner::settings::InferSettings;
use crate::{RunRequest, WorkloadSettings};

pub use collect::tool::ncu::Preset as NcuPreset;
pub use plan::{Plan, Step, SurveyChoice};

use capture::{Captured, Profiler};

/// What is profiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A program, under the profiler.
    Program {
        /// The program and its arguments.
        argv: Vec<OsString>,
        /// Variables set for it.
        environment: Vec<(OsString, OsString)>,
        /// What runs it: an engine, or `command`.
        engine: String,
        /// In one line, for the report.
        description: String,
        /// What the model is fed; absent for a command.
        inputs: Option<Box<FedInputs>>,
    },
    /// Pages that the profiler wrote before: raw pages, and details pages in the same order.
    Pages(Vec<PathBuf>),
}

/// What to report on.
#[derive(Debug)]
pub struct RegionsSettings {
    /// What is profiled.
    pub source: Source,
    /// What the profiler is asked; `nvtx.include` are the regions in the user's words.
    pub options: Options,
    /// Whether regions are looked for first.
    pub survey: SurveyChoice,
    /// Whether regions have totals over all processes and devices.
    pub aggregate: bool,
    /// The model under test and its workload, where they are known.
    pub model: Option<(LoadedModel, WorkloadSettings)>,
    /// The device whose roofs apply; found from the pages where open.
    pub hardware: Option<String>,
    /// Folder with a user's own devices.
    pub config_dir: Option<PathBuf>,
}

/// A model and its workload as they are fed: pictures by their number and size.
pub fn as_fed(
    mut model: LoadedModel,
    mut workload: WorkloadSettings,
    infer: &InferSettings,
) -> (LoadedModel, WorkloadSettings) {
    if let InferSettings::Pictures(pictures) = infer {
        infer.fit(&mut model);
        workload.batch = u64::from(pictures.batch);
    }
    (model, workload)
}

/// What would be run, one command a line. The profiler need not be there for it.
pub fn planned(settings: &RegionsSettings) -> Result<Vec<String>, UserError> {
    selection(&settings.options)?;
    let plan = Plan::new(settings.options.clone(), settings.survey)?;
    let Source::Program { argv, environment, .. } = &settings.source else {
        return Ok(vec!["nothing is run: existing pages are read".to_owned()]);
    };
    let found = collect::tool::ncu::serving(None).map_or_else(|_| PathBuf::from("ncu"), |found| found.path);
    let profiler = Profiler { program: &found, target: argv, environment, metrics: &settings.options.metrics };
    let mut lines = Vec::new();
    if let Some(step) = plan.survey() {
        lines.push(format!("# survey: finds the regions\n{}", profiler.command(&step, None)));
    }
    let known = plan.captures(None);
    let is_open = plan.survey().is_some() && (plan.include().is_empty() || known.is_empty());
    let captures = if is_open { vec![plan.template()] } else { known };
    lines.push(match plan.survey() {
        Some(_) => {
            "# captures of the regions found; nested regions are captured in separate runs if ranges are measured"
                .to_owned()
        }
        None => "# captures".to_owned(),
    });
    lines.extend(captures.iter().map(|step| profiler.command(step, None).to_string()));
    Ok(lines)
}

/// Profiles or reads, rolls up and writes everything into a run folder.
pub fn regions(
    settings: &RegionsSettings,
    run_request: RunRequest,
    config_yaml: &str,
    progress: &mut dyn FnMut(&str),
) -> Result<EndedRun<(RegionReport, Metrics)>, UserError> {
    let kernels = selection(&settings.options)?;
    let plan = Plan::new(settings.options.clone(), settings.survey)?;
    let named = settings.hardware.as_deref();
    let named = named.map(|name| hardware::find(settings.config_dir.as_deref(), name)).transpose()?;
    let pages = match &settings.source {
        Source::Pages(files) => Some(capture::read_files(files, &settings.options.metrics)?),
        Source::Program { .. } => None,
    };
    let machine = match &settings.source {
        Source::Program { .. } => {
            progress("inspecting the machine");
            let machine = machine::capture(settings.config_dir.as_deref())?;
            let found = collect::tool::ncu::serving(machine.tools.cuda_driver.as_deref());
            Some((found.map_err(no_profiler)?, machine))
        }
        Source::Pages(_) => None,
    };
    let model = settings.model.as_ref().map(|(model, _)| model.id.clone());
    let mut making = RegionRun { settings, plan: &plan, kernels: &kernels, named, config_yaml, progress };
    run(RunRequest { model, ..run_request }, |folder| match (pages, machine) {
        (Some(pages), _) => making.fill(folder, pages, None, None),
        (None, Some((found, machine))) => making.profile(folder, &found, &machine),
        (None, None) => making.fill(folder, Vec::new(), None, None),
    })
}

fn selection(options: &Options) -> Result<KernelSelection, UserError> {
    pages::kernels(options).map_err(|(key, error)| {
        UserError::usage(format!("ncu_cli.{key}: {error}")).hint("names match exactly; start a pattern with regex:")
    })
}

fn no_profiler(Shortfall { found, next_step, .. }: Shortfall) -> UserError {
    UserError::failed(format!("cannot use Nsight Compute: {found}"))
        .hint(format!("{next_step}; or read existing pages with --from"))
}

/// Everything that stays the same while a report is made.
struct RegionRun<'a> {
    settings: &'a RegionsSettings,
    plan: &'a Plan,
    kernels: &'a KernelSelection,
    named: Option<Hardware>,
    config_yaml: &'a str,
    progress: &'a mut dyn FnMut(&str),
}

type RegionDocuments = ((RegionReport, Metrics), Vec<String>);

impl RegionRun<'_> {
    fn profile(
        &mut self,
        folder: &mut RunFolder,
        found: &collect::tool::InstalledTool,
        machine: &Environment,
    ) -> Result<RegionDocuments, UserError> {
        let Source::Program { argv, environment, inputs, .. } = &self.settings.source else {
            return self.fill(folder, Vec::new(), None, None);
        };
        folder.write_json("env.json", machine)?;
        match inputs {
            Some(inputs) => inputs.write(folder)?,
            None => provenance::write(folder, &provenance::of_command(argv))?,
        }
        let metrics = &self.settings.options.metrics;
        let profiler = Profiler { program: &found.path, target: argv, environment, metrics };
        let survey = match self.plan.survey() {
            Some(step) => {
                (self.progress)("finding regions");
                Some(profiler.run(folder, &step)?)
            }
            None => None,
        };
        let seen = survey.as_ref().map(|survey| regions_of(&survey.table));
        let steps = self.plan.captures(seen.as_deref());
        let mut captures = Vec::new();
        for (index, step) in steps.iter().enumerate() {
            (self.progress)(&format!("counting: run {} of {}", index + 1, steps.len()));
            captures.push(profiler.run(folder, step)?);
        }
        let version = found.version.clone();
        self.fill(folder, captures, survey, version)
    }

    fn fill(
        &mut self,
        folder: &mut RunFolder,
        captures: Vec<Captured>,
        survey: Option<Captured>,
        version: Option<String>,
    ) -> Result<RegionDocuments, UserError> {
        (self.progress)("rolling up");
        folder.write_file("config.yaml", self.config_yaml.as_bytes())?;
        if let Source::Pages(files) = &self.settings.source {
            provenance::write(folder, &provenance::of_files(files))?;
        }
        let tables: Vec<&CounterTable> = captures
            .iter()
            .chain(&survey)
            .map(|captured| &captured.table)
            .filter(|table| !table.work.is_empty())
            .collect();
        let device = tables.iter().find_map(|table| pages::device_name(table));
        let hardware = match (&self.named, &device) {
            (Some(named), _) => Some(named.clone()),
            (None, Some(name)) => hardware::catalogue(self.settings.config_dir.as_deref())?.find(name).ok().cloned(),
            (None, None) => None,
        };
        let mut rolled = self.roll(&captures, survey.as_ref(), hardware.as_ref());
        if let Some(run) = self.modelled(hardware.as_ref()) {
            modelled::attach(&mut rolled, &run);
        }
        let (report, missing) = self.report(folder, &captures, survey.as_ref(), &rolled, device, version);
        let shown = survey.as_ref().or(captures.first()).map(|captured| &captured.table);
        let (engine, model) = match &self.settings.source {
            Source::Program { engine, .. } => (engine.as_str(), self.settings.model.as_ref()),
            Source::Pages(_) => ("ncu", self.settings.model.as_ref()),
        };
        let model = model.map(|(model, _)| model.id.as_str());
        let metrics = metrics::metrics(&report, &missing, shown, (engine, model), hardware.as_ref());
        folder.write_json("metrics.json", &metrics)?;
        if let Source::Pages(_) = &self.settings.source {
            let machine = assumptions::imported_environment(&metrics, &folder.manifest().started_at);
            folder.write_json("env.json", &machine)?;
        }
        let overview = report::pages::regions::overview_page(&report);
        folder.write_file(&RunPageKind::Regions.file(), overview.markdown().as_bytes())?;
        folder_of_regions::write(folder, &report, &rolled, captures.iter().map(|captured| &captured.table))?;
        let recorded = Err("`llm-perf regions` reads counters and does not record a timeline");
        bundle::write_page(folder, &metrics, &[(RunPageKind::Regions, overview)], recorded)?;
        folder.end_step("report")?;
        Ok(((report, metrics), missing))
    }

    fn roll<'a>(
        &self,
        captures: &'a [Captured],
        survey: Option<&'a Captured>,
        hardware: Option<&Hardware>,
    ) -> RolledRegions {
        let options = &self.settings.options;
        let settings = RegionSettings {
            include: self.plan.include(),
            exclude: self.plan.exclude(),
            kernels: self.kernels,
            metrics: &options.metrics,
            sections: if options.set.is_some() { &[] } else { &options.sections },
            aggregate: self.settings.aggregate,
            hardware,
        };
        let page = |captured: &'a Captured| CounterPage {
            table: &captured.table,
            details: &captured.details,
            include: &captured.include,
        };
        pages::roll(captures.iter().map(page), survey.map(|survey| &survey.table), &settings)
    }

    /// The model's forward pass, where the model and its workload are known.
    fn modelled(&self, hardware: Option<&Hardware>) -> Option<ModelledRun> {
        let (model, settings) = self.settings.model.as_ref()?;
        let workload = settings.resolve(&model.network, model.dtype).ok()?;
        let prediction = predict(&model.network, &workload).ok()?;
        let roofline =
            hardware.and_then(|hardware| Roofline::of(hardware, matrix_dtypes(&prediction), &workload, None).ok());
        Some(modelled_run(&model.network, &prediction, roofline.as_ref()))
    }

    fn report(
        &self,
        folder: &RunFolder,
        captures: &[Captured],
        survey: Option<&Captured>,
        rolled: &RolledRegions,
        device: Option<String>,
        version: Option<String>,
    ) -> (RegionReport, Vec<String>) {
        let options = &self.settings.options;
        let mode = self.mode(captures);
        let seen = notes::Seen {
            mode,
            plan: self.plan,
            captures,
            survey,
            selects_kernels: !self.kernels.is_all(),
            sections: &options.sections,
        };
        let said = notes::say(&seen, rolled);
        let mut quality = rolled.quality.clone();
        quality.extend(captures.iter().chain(survey).flat_map(|captured| captured.quality.iter().cloned()));
        let target = match &self.settings.source {
            Source::Program { description, .. } => description.clone(),
            Source::Pages(files) => files.iter().map(|path| file_name(path)).collect::<Vec<_>>().join(" "),
        };
        let regions: Vec<Region> = rolled.regions.iter().map(|region| region.region.clone()).collect();
        let report = RegionReport {
            schema: SchemaTag::new(),
            run: folder.id().to_owned(),
            tool: version.map_or("Nsight Compute".to_owned(), |version| format!("Nsight Compute {version}")),
            replay_mode: mode,
            target,
            device,
            generated_at: collect::run::now(),
            config_fingerprint: sha256(self.config_yaml.as_bytes()),
            scope: RegionReport::scope_of(&regions, self.settings.aggregate),
            selection: self.selection(captures, rolled),
            captures: survey.into_iter().chain(captures).filter_map(|captured| captured.record.clone()).collect(),
            metrics: rolled.metrics.clone(),
            totals: rolled.totals.clone(),
            regions,
            outside: rolled.outside,
            notes: said.notes.into_iter().chain(said.missing.iter().map(Remark::said)).collect(),
            quality,
        }
        .spoken();
        (report, said.missing)
    }

    /// How counters were read; pages show it themselves.
    fn mode(&self, captures: &[Captured]) -> types::ReplayMode {
        let asked = self.settings.options.replay_mode;
        let is_range = |captured: &Captured| {
            captured.table.work.first().map(|work| work.kind == types::counter::ProfiledKind::Range)
        };
        match (&self.settings.source, captures.iter().find_map(is_range)) {
            (Source::Pages(_), Some(true)) if !asked.measures_ranges() => types::ReplayMode::Range,
            (Source::Pages(_), Some(false)) if asked.measures_ranges() => types::ReplayMode::Kernel,
            _ => asked,
        }
    }

    fn selection(&self, captures: &[Captured], rolled: &RolledRegions) -> RegionSelection {
        let options = &self.settings.options;
        let told: Vec<&String> = captures.iter().flat_map(|captured| &captured.include).collect();
        let record = |(include, matched): (&Include, &Vec<String>)| IncludeRecord {
            expression: include.text().to_owned(),
            profiler: told
                .iter()
                .filter(|text| {
                    let names = Include::new(text).matching(&rolled.seen);
                    let wanted = include.matching(&rolled.seen);
                    let asked = include.expressions();
                    asked.contains(text)
                        || names
                            .iter()
                            .any(|name| wanted.iter().any(|root| rolled.seen[*name].is_within(&rolled.seen[*root])))
                })
                .map(|text| (*text).clone())
                .collect(),
            matched: matched.clone(),
        };
        RegionSelection {
            include: self.plan.include().iter().zip(&rolled.matched).map(record).collect(),
            kernel_name: options.kernel_name.clone(),
            kernel_name_base: options.kernel_name_base.name().to_owned(),
            kernel_exclude: options.kernel_exclude.clone(),
            kernels_left_out: rolled.kernels_left_out,
            set: options.set.clone(),
            sections: options.sections.clone(),
            metrics: options.metrics.clone(),
            aggregate: self.settings.aggregate,
        }
    }
}

/// A file without its folder: where it lies says something of the machine.
fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
