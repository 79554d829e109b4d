//! Files of other tools and of our own collector, read into timelines that know where their rows belong.
//!
//! Files are opened and mapped here ([`source`]), read by `ingest` ([`parts`]) and joined by `analysis::attribution`. What
//! the files say of the machine they came from beyond its devices (paths, names, environment) stays in them.

pub(crate) mod regions;

mod job;
mod parts;
mod report;
mod source;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use analysis::attribution::{self, Attribution};
use analysis::{Evidence, LaunchCounters, ListedKernel, PlacedTimeline, Trace};
use types::counter::CounterTable;
use types::timeline::Timeline;
use types::view::{TimelineView, WorkModules};
use types::{Bytes, Clock, ClockId, DeviceId, QualityCounter, RegionSummary, TraceSource, UserError};

pub(crate) use ::report::html::{Drawn, Recorded};
pub(crate) use parts::nothing;
use parts::{Kind, Part, Parts};
use regions::{RegionChoice, device_name};
use source::Source;
pub use source::{STANDARD_INPUT, importable};

/// Memory for large lists of rows, unless somebody says otherwise. All else that an import holds is less than as much again.
pub const MEMORY: Bytes = Bytes::new(512_000_000);

/// A timeline and where its rows belong.
pub(crate) struct Placed {
    pub(crate) timeline: Timeline,
    pub(crate) attribution: Attribution,
    pub(crate) rank: Option<u32>,
    /// The modules of its work, where the model is known.
    pub(crate) modules: WorkModules,
}

impl Placed {
    fn new(timeline: Timeline, settings: &attribution::AttributionSettings) -> Self {
        let attribution = attribution::attribute(&timeline, settings);
        Self { rank: job::rank(&timeline), timeline, attribution, modules: WorkModules::default() }
    }

    /// With devices as it numbers them.
    fn of_rank(&self) -> PlacedTimeline<'_> {
        let Self { timeline, attribution, rank, .. } = self;
        PlacedTimeline { timeline, attribution, rank: *rank, devices: BTreeMap::new() }
    }

    /// Where its rows belong.
    pub(crate) fn view(&self) -> TimelineView<'_> {
        analysis::view::timeline(&self.timeline, &self.attribution, &self.modules)
    }
}

/// What pages of a run draw of its timelines; absent where nothing happened. Searches count events where there are more than so many.
pub(crate) fn drawn(placed: &[Placed], most: usize, run: &str) -> Option<Drawn> {
    let views: Vec<_> = placed.iter().map(Placed::view).collect();
    let shown: Vec<_> = placed.iter().zip(&views).map(|(one, view)| (&one.timeline, view)).collect();
    let clock = analysis::rank_clock(&placed.iter().map(Placed::of_rank).collect::<Vec<_>>());
    Drawn::new(&shown, &clock, most, run)
}

/// What the page of a run holds of that: at most so many events.
pub(crate) fn recorded(placed: &[Placed], most: usize, run: &str) -> Option<Recorded> {
    drawn(placed, most, run)?.recorded(most)
}

/// What the files of one run hold.
#[derive(Default)]
pub(crate) struct Traces {
    pub(crate) placed: Vec<Placed>,
    pub(crate) counters: Vec<LaunchCounters>,
    /// Raw pages of Nsight Compute.
    tables: Vec<CounterTable>,
    listed: Vec<ListedKernel>,
    pub(crate) sources: Vec<TraceSource>,
    pub(crate) quality: Vec<QualityCounter>,
    /// Why a run of them is partial.
    pub(crate) missing: Vec<String>,
}

/// Files that are there and of a known kind, not yet read.
pub(crate) struct TraceFiles(Vec<(Source, Kind)>);

impl TraceFiles {
    /// Opens the files of one run; `-` is standard input.
    pub(crate) fn open(paths: &[PathBuf], progress: &mut dyn FnMut(&str)) -> Result<Self, UserError> {
        let sources = paths.iter().map(|path| Source::open(path, progress)).collect::<Result<Vec<_>, _>>()?;
        let known = |source: Source| parts::kind(&source).map(|kind| (source, kind));
        Ok(Self(sources.into_iter().map(known).collect::<Result<_, _>>()?))
    }

    /// Reads all of them; of pages of counters, what the choice of regions needs too.
    pub(crate) fn read(
        &self,
        model: Option<&str>,
        regions: &RegionChoice,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Traces, UserError> {
        let mut parts = Parts::default();
        let mut files = Vec::new();
        for (source, kind) in &self.0 {
            progress(&format!("reading {}", source.name));
            let (part, blake3) = parts::read(source, kind, &|counter| regions.keeps(counter))?;
            files.push(listed(source, source.name.clone(), &part, blake3));
            same_file_twice(&files)?;
            if let (Part::Nothing(reason, hint), [(only, _)]) = (&part, self.0.as_slice()) {
                return Err(UserError::failed(format!("{}: {reason}", only.name)).hint(*hint));
            }
            parts.add(&source.name, part)?;
            parts.missing.extend(parts::unfinished(source, kind));
        }
        parts.join_captures()?;
        if parts.is_empty() {
            let file = files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>().join(", ");
            return Err(UserError::failed(format!("{file}: it contains no timeline, no counters and no kernels"))
                .hint("add a trace, a counter page or the table cuda_gpu_kern_sum"));
        }
        Ok(Traces::place(parts, files, model, progress))
    }
}

impl Traces {
    /// Joins launches, ranges and operators to the device work of every timeline.
    fn place(parts: Parts, sources: Vec<TraceSource>, model: Option<&str>, progress: &mut dyn FnMut(&str)) -> Self {
        progress("attributing device work");
        let settings = attribution::AttributionSettings { model: model.map(str::to_owned), ..Default::default() };
        let place = |(_, timeline): (String, Timeline)| Placed::new(timeline, &settings);
        let mut quality = parts.quality;
        quality.extend(job::missing_ranks(parts.timelines.iter().map(|(_, timeline)| timeline)));
        Self {
            placed: parts.timelines.into_iter().map(place).collect(),
            counters: parts.counted,
            tables: parts.tables,
            listed: parts.listed,
            sources,
            quality,
            missing: parts.missing,
        }
    }

    /// One trace of our own, under the name it has in the run folder.
    pub(crate) fn of_file(
        path: &Path,
        name: &str,
        model: Option<&str>,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Self, UserError> {
        let source = Source::open(path, progress)?;
        let (part, blake3) = parts::read(&source, &parts::kind(&source)?, &|_| false)?;
        let file = listed(&source, name.to_owned(), &part, blake3);
        let mut parts = Parts::default();
        parts.add(name, part)?;
        parts.join_captures()?;
        Ok(Self::place(parts, vec![file], model, progress))
    }

    /// The files that our collector has left in a run folder, one for each process, as one timeline. Names are relative to
    /// the folder.
    pub(crate) fn of_collector(
        folder: &Path,
        names: &[String],
        model: Option<&str>,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Self, UserError> {
        let sources =
            names.iter().map(|name| Source::open(&folder.join(name), progress)).collect::<Result<Vec<_>, _>>()?;
        let contents: Vec<_> =
            names.iter().zip(&sources).map(|(name, source)| (name.as_str(), source.bytes())).collect();
        let timeline = ingest::wire::read_all(&contents)?;
        let file = |(name, source): (&String, &Source)| TraceSource {
            path: name.clone(),
            format: timeline.format.name().to_owned(),
            tool: timeline.tool.clone(),
            bytes: source.size(),
            blake3: Some(source.digest()),
            sha256: None,
            rank: None,
        };
        let files = names.iter().zip(&sources).map(file).collect();
        let mut parts = Parts::default();
        parts.add("trace", Part::Timeline(Box::new(timeline)))?;
        parts.join_captures()?;
        Ok(Self::place(parts, files, model, progress))
    }

    /// Timelines with the names of their devices, as far as those are known.
    pub(crate) fn timelines(&self, devices: &[BTreeMap<u32, DeviceId>]) -> Vec<PlacedTimeline<'_>> {
        let placed = |(place, one)| {
            let (Placed { timeline, attribution, rank, .. }, devices): (&Placed, _) = (one, devices.get(place));
            PlacedTimeline { timeline, attribution, rank: *rank, devices: devices.cloned().unwrap_or_default() }
        };
        self.placed.iter().enumerate().map(placed).collect()
    }

    /// All of it as evidence; `devices` are the names of each timeline's devices.
    pub(crate) fn evidence(&self, devices: &[BTreeMap<u32, DeviceId>]) -> Evidence<'_> {
        let clock = |(number, one): (u32, &Placed)| Clock { id: ClockId(number), ..one.timeline.clock.clone() };
        Evidence {
            clocks: (0u32..).zip(&self.placed).map(clock).collect(),
            trace: Some(Trace {
                timelines: self.timelines(devices),
                counters: self.counters.clone(),
                listed: self.listed.clone(),
                sources: self.sources.clone(),
                recorded_here: false,
                input: None,
            }),
            missing: self.missing.clone(),
            quality: self.quality.clone(),
            ..Evidence::default()
        }
    }

    /// Devices of pages of counters and tables of kernels, with the name that a page has for them.
    pub(crate) fn counted_devices(&self) -> BTreeMap<DeviceId, Option<String>> {
        let unnumbered = || DeviceId::unnumbered();
        let name = self.tables.iter().find_map(device_name);
        let counted = self.counters.iter().map(|one| one.device().unwrap_or_else(unnumbered));
        counted.chain(self.listed.iter().map(|_| unnumbered())).map(|id| (id, name.clone())).collect()
    }

    /// Regions of the pages of counters; absent where there is none, and where a timeline shows the ranges themselves.
    pub(crate) fn regions(&self, choice: &RegionChoice) -> Option<Vec<RegionSummary>> {
        (self.placed.is_empty() && !self.tables.is_empty()).then(|| choice.summaries(self.tables.iter()))
    }

    /// Kinds of the files, as the engine of a run that nobody names.
    pub(crate) fn engine(&self) -> String {
        let mut formats: Vec<_> = self.sources.iter().map(|file| file.format.as_str()).collect();
        formats.dedup();
        formats.join(" + ")
    }
}

/// The timelines in files: one for each, but for files of the collector, which make one together.
pub(crate) fn timelines(paths: &[PathBuf]) -> Result<Vec<Timeline>, UserError> {
    let sources = paths.iter().map(|path| Source::open(path, &mut |_| {})).collect::<Result<Vec<_>, _>>()?;
    let collected = |source: &&Source| source.bytes().starts_with(b"LLMPERFW");
    let contents: Vec<_> = sources.iter().filter(collected).map(|it| (it.name.as_str(), it.bytes())).collect();
    let mut timelines = Vec::new();
    if !contents.is_empty() {
        timelines.push(ingest::wire::read_all(&contents)?);
    }
    for source in sources.iter().filter(|source| !collected(source)) {
        if let (Part::Timeline(timeline), _) = parts::read(source, &parts::kind(source)?, &|_| false)? {
            timelines.push(*timeline);
        }
    }
    Ok(timelines)
}

/// The same, placed.
pub(crate) fn placed(paths: &[PathBuf], model: Option<&str>) -> Result<Vec<Placed>, UserError> {
    let settings = attribution::AttributionSettings { model: model.map(str::to_owned), ..Default::default() };
    Ok(timelines(paths)?.into_iter().map(|timeline| Placed::new(timeline, &settings)).collect())
}

fn listed(source: &Source, path: String, part: &Part, blake3: String) -> TraceSource {
    TraceSource {
        path,
        format: part.format().to_owned(),
        tool: part.tool(),
        bytes: source.size(),
        blake3: Some(blake3),
        sha256: None,
        rank: part.rank(),
    }
}

fn same_file_twice(files: &[TraceSource]) -> Result<(), UserError> {
    for (index, file) in files.iter().enumerate() {
        if let Some(first) = files[..index].iter().find(|other| other.blake3 == file.blake3) {
            return Err(parts::not_one_run(&first.path, &file.path, "they have the same contents"));
        }
    }
    Ok(())
}
