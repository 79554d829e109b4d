//! A copy of a run without the values that identify the machine, its user and the inputs.
//!
//! Documents are copied without such values. Pages are made again from those documents, so that nothing is on them that is not in
//! a document. Of everything else only what cannot hold anything of the user is kept; the rest is left out, and the index says so.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use collect::identity::{Identity, chance};
use collect::run::{MANIFEST, StoredRun, sha256};
use report::html::{Documents, RunPageKind};
use tempfile::TempDir;
use types::{
    AnalyticReport, Artifact, Bytes, Capacity, Document, Environment, Fleet, InputSet, KernelReport, LeftOutFile,
    Metrics, Redaction, RegionReport, RunManifest, Sweep, UserError,
};

use super::document::{gather, names_of_ours, redacted};
use super::scrubber::{Kind, Scrubber, Term};
use super::words::redacted_command;
use crate::pipeline::folder::documents::REGIONS;
use crate::pipeline::scratch::scratch_folder;
use crate::pipeline::{folder::bundle, folder::thumbnails, model::analytic, recorded::provenance, recorded::recording};

/// How hashes are made, as the manifest says it.
const HASH: &str =
    "the first 16 digits of SHA-256 over a salt and the value; the salt is random for each bundle and never stored";

/// Why files are left out.
const OUTPUT: &str = "program output, which may contain anything";
const RAW: &str = "raw profiler file, which contains the recorded environment, paths and command lines";
const GENERATED: &str = "generated text";
const REMADE: &str = "`llm-perf report RUN` recreates it";
const SETTINGS: &str = "free text; the settings are in config.yaml";
const PICTURE: &str = "an input image";
const UNKNOWN: &str = "unknown contents";
const NOT_CLEAN: &str = "it contains redacted values";
const UNREADABLE: &str = "it is not a valid document of its kind";

/// A redacted copy, which lasts as long as this.
pub(super) struct RedactedRun {
    pub(super) run: StoredRun,
    pub(super) left_out: Vec<LeftOutFile>,
    _folder: TempDir,
}

/// What is done with a file.
enum Fate {
    /// A document of that kind.
    Json(String),
    Yaml(&'static str),
    /// A page that is made again from documents.
    Page,
    /// Holds names of our own modules and operators only.
    Kept,
    /// Kept where nothing has to be scrubbed.
    KeptIfClean,
    LeftOut(&'static str),
}

impl RedactedRun {
    /// Makes the copy.
    pub(super) fn of(run: &StoredRun) -> Result<Self, UserError> {
        let folder = scratch_folder().map_err(UserError::io("create a folder in", &std::env::temp_dir()))?;
        let salt = chance().map_err(UserError::io("read", Path::new("/dev/urandom")))?;
        let of_metrics = run.has_file("metrics.json");
        let fates: Vec<(&Artifact, Fate)> =
            run.manifest().files.iter().map(|file| (file, fate(file, of_metrics))).collect();
        let mut documents = BTreeMap::new();
        for (file, fate) in &fates {
            if let Some((kind, json)) = as_json(run, file, fate)? {
                documents.insert(file.path.as_str(), (kind, json));
            }
        }
        let mut ours = inputs(&documents).as_ref().map(names_of_ours).unwrap_or_default();
        // What was recorded into the run is named by where it lies in it.
        ours.extend(run.manifest().files.iter().map(|file| file.path.clone()));
        let mut terms = of_machine();
        for (kind, json) in documents.values() {
            // What is no JSON after all is left out below.
            let _ = gather(kind, json, &ours, &mut terms);
        }
        let texts: Vec<&str> = documents.values().map(|(_, json)| json.as_str()).collect();
        terms.extend(users_in(&texts));
        let mut copy = Copy {
            folder: folder.path(),
            scrubber: Scrubber::new(salt, terms),
            ours,
            written: BTreeMap::new(),
            left_out: Vec::new(),
        };
        for (file, fate) in &fates {
            copy.take(run, file, fate, &documents)?;
        }
        for source in recording::sources(run) {
            if !run.has_file(&source.name) {
                let path = copy.scrubber.scrub(&source.name).into_owned();
                copy.left_out.push(LeftOutFile { path, bytes: Some(source.bytes), reason: RAW.to_owned() });
            }
        }
        copy.pages(&fates)?;
        let left_out = copy.finish(run.manifest())?;
        Ok(Self { run: StoredRun::open(folder.path())?, left_out, _folder: folder })
    }
}

/// The copy while it is made.
struct Copy<'a> {
    folder: &'a Path,
    scrubber: Scrubber,
    /// Names that are ours: of inputs that ship with the program, and of files of the run.
    ours: BTreeSet<String>,
    written: BTreeMap<String, (Vec<u8>, Option<String>)>,
    left_out: Vec<LeftOutFile>,
}

impl Copy<'_> {
    fn take(
        &mut self,
        run: &StoredRun,
        file: &Artifact,
        fate: &Fate,
        documents: &BTreeMap<&str, (String, String)>,
    ) -> Result<(), UserError> {
        let bytes = || run.read(&file.path).map_err(UserError::io("read", &run.path().join(&file.path)));
        match fate {
            Fate::Page => {}
            Fate::LeftOut(reason) => self.leave_out(file, reason),
            Fate::Kept => self.write(&file.path, bytes()?, file.document.clone()),
            Fate::KeptIfClean => match String::from_utf8(bytes()?) {
                Ok(text) if text.lines().all(|line| self.scrubber.scrub(line) == line) => {
                    self.write(&file.path, text.into_bytes(), None);
                }
                _ => self.leave_out(file, NOT_CLEAN),
            },
            Fate::Json(_) | Fate::Yaml(_) => match documents.get(file.path.as_str()) {
                Some((kind, json)) => self.document(file, kind, json, matches!(fate, Fate::Yaml(_))),
                None => self.leave_out(file, UNREADABLE),
            },
        }
        Ok(())
    }

    /// A document, unless it is none any more without the values: then one of them is a word of ours too.
    fn document(&mut self, file: &Artifact, kind: &str, json: &str, is_yaml: bool) {
        let text = redacted(kind, json, &self.scrubber, &self.ours).ok().and_then(|json| {
            if is_yaml {
                report::yaml(&serde_json::from_str::<serde_json::Value>(&json).ok()?).ok()
            } else {
                Some(json)
            }
        });
        let is_valid = |text: &String| {
            kind == "config" || report::validate(text.as_bytes()).is_ok_and(|found| found.violations.is_empty())
        };
        match text.filter(is_valid) {
            Some(text) => self.write(&file.path, text.into_bytes(), file.document.clone()),
            None => self.leave_out(file, NOT_CLEAN),
        }
    }

    /// The pages of the run, from its documents as they are now.
    fn pages(&mut self, fates: &[(&Artifact, Fate)]) -> Result<(), UserError> {
        let mut made: BTreeMap<String, String> = BTreeMap::new();
        if let (Some(metrics), Some(environment)) = (self.read::<Metrics>("metrics.json"), self.read("env.json")) {
            let environment: Environment = environment;
            let kernels: Option<KernelReport> = self.read("kernels.json");
            let (modelled, regions) = (self.read(analytic::REPORT), self.read(REGIONS));
            let documents =
                Documents { modelled: modelled.as_ref(), kernels: kernels.as_ref(), regions: regions.as_ref() };
            let pictures = report::html::pictures(&analysis::view::run(&metrics), &documents);
            let (pages, charts) = bundle::pages(&metrics, &environment, kernels.as_ref(), None, &pictures);
            made.extend(pages.into_iter().map(|(page, text)| (page.file(), text.markdown())));
            made.extend(charts);
        }
        if let Some(fleet) = self.read::<Fleet>("fleet.json") {
            made.insert("report.md".to_owned(), report::pages::fleet::page(&fleet).markdown());
            made.insert("report.html".to_owned(), report::html::fleet_page(&fleet, &[], None));
        }
        if let Some(report) = self.read::<AnalyticReport>(analytic::REPORT) {
            if !made.contains_key("report.html") {
                made.insert("report.html".to_owned(), report::html::analytic_page(&report, None));
            }
            let summary = report::pages::analytic::summary_page(&report).markdown();
            made.insert(analytic::SUMMARY.to_owned(), summary);
            made.extend(report::yaml(&report).ok().map(|text| (analytic::REPORT_YAML.to_owned(), text)));
        }
        if let Some(sweep) = self.read::<Sweep>(crate::sweep::JSON) {
            made.insert("report.html".to_owned(), report::html::sweep_page(&sweep, None));
        }
        if let Some(found) = self.read::<Capacity>(crate::capacity::JSON) {
            made.insert("report.html".to_owned(), report::html::capacity_page(&found, None));
        }
        if let Some(report) = self.read::<RegionReport>(REGIONS) {
            made.insert("ncu/regions/report.md".to_owned(), report::pages::regions::overview_page(&report).markdown());
            for region in &report.regions {
                let place = |name: &str| format!("ncu/regions/{}/{name}", region.folder);
                made.insert(place("report.md"), report::pages::regions::region_page(&report, region).markdown());
                made.insert(place("sections.txt"), report::pages::regions::sections_text(region));
            }
        }
        for (file, _) in fates.iter().filter(|(_, fate)| matches!(fate, Fate::Page)) {
            match made.remove(&file.path) {
                Some(text) => self.write(&file.path, text.into_bytes(), file.document.clone()),
                None => self.leave_out(file, NOT_CLEAN),
            }
        }
        Ok(())
    }

    fn read<D: Document>(&self, path: &str) -> Option<D> {
        D::from_json(&self.written.get(path)?.0).ok()
    }

    fn write(&mut self, path: &str, bytes: Vec<u8>, document: Option<String>) {
        self.written.insert(path.to_owned(), (bytes, document));
    }

    /// The path is a value like any other.
    fn leave_out(&mut self, file: &Artifact, reason: &str) {
        let path = self.scrubber.scrub(&file.path).into_owned();
        self.left_out.push(LeftOutFile { path, bytes: Some(file.bytes), reason: reason.to_owned() });
    }

    /// Writes everything, and a manifest that lists it.
    fn finish(mut self, manifest: &RunManifest) -> Result<Vec<LeftOutFile>, UserError> {
        let mut files = Vec::new();
        for (path, (bytes, document)) in std::mem::take(&mut self.written) {
            // A region is named by the user, and its folder after it.
            if self.scrubber.scrub(&path) != path.as_str() {
                let (bytes, sha256) = (Bytes::new(bytes.len() as u64), String::new());
                self.leave_out(&Artifact { path, bytes, sha256, document }, NOT_CLEAN);
                continue;
            }
            let target = self.folder.join(&path);
            let parent = target.parent().unwrap_or(self.folder);
            std::fs::create_dir_all(parent).map_err(UserError::io("create folder", parent))?;
            std::fs::write(&target, &bytes).map_err(UserError::io("write", &target))?;
            files.push(Artifact { path, bytes: Bytes::new(bytes.len() as u64), sha256: sha256(&bytes), document });
        }
        let scrubbed = |text: &String| self.scrubber.scrub(text).into_owned();
        let known: Vec<&str> = manifest.model.iter().chain(&manifest.device).map(String::as_str).collect();
        let mut manifest = RunManifest {
            command: redacted_command(&manifest.command, &known, &self.scrubber),
            reasons: manifest.reasons.iter().map(scrubbed).collect(),
            model: manifest.model.as_ref().map(scrubbed),
            device: manifest.device.as_ref().map(scrubbed),
            files,
            ..manifest.clone()
        };
        // The run has ended, so that nobody asks for its process; the identifier of the boot is that of a machine.
        (manifest.process.start_ticks, manifest.process.boot_id, manifest.process.pid_namespace) = (None, None, None);
        manifest.redacted = Some(Redaction { hash: HASH.to_owned(), replaced: self.scrubber.replaced() });
        let path = self.folder.join(MANIFEST);
        let text = serde_json::to_vec_pretty(&manifest).map_err(|error| UserError::io("write", &path)(error.into()))?;
        std::fs::write(&path, text).map_err(UserError::io("write", &path))?;
        Ok(self.left_out)
    }
}

/// A page of a run with metrics can be made of them at any time; others are made again here.
fn fate(file: &Artifact, of_metrics: bool) -> Fate {
    let path = file.path.as_str();
    let is_page = RunPageKind::ALL.iter().any(|page| *page != RunPageKind::Assumptions && page.file() == path);
    let schema = file.document.as_deref().and_then(|name| name.strip_prefix("llm-perf/")?.split('/').next());
    let in_folder = |folder: &str| path.starts_with(&format!("{folder}/"));
    match schema {
        Some(kind) => Fate::Json(kind.to_owned()),
        None if is_page || path == analytic::SUMMARY || path == analytic::REPORT_YAML => Fate::Page,
        None if path == provenance::INPUTS => Fate::Yaml("inputs"),
        None if path == "config.yaml" => Fate::Yaml("config"),
        None if path == "assumptions.md" => Fate::LeftOut(SETTINGS),
        None if path == "predictions.jsonl" => Fate::LeftOut(GENERATED),
        None if path == "report.html" && of_metrics => Fate::LeftOut(REMADE),
        None if path == "report.html" || in_folder("charts") => Fate::Page,
        None if path == provenance::NATIVE_TRACE => Fate::Kept,
        None if in_folder(thumbnails::FOLDER) => Fate::LeftOut(PICTURE),
        None if in_folder("logs") => Fate::LeftOut(OUTPUT),
        None if in_folder("ncu/regions") && (path.ends_with(".md") || path.ends_with("/sections.txt")) => Fate::Page,
        None if in_folder("ncu/regions") && path.ends_with("/kernels.csv") => Fate::KeptIfClean,
        None if in_folder("static_analysis") || path == "sweep.csv" => Fate::KeptIfClean,
        None if in_folder("trace") || in_folder("nsys") || in_folder("ncu") => Fate::LeftOut(RAW),
        None => Fate::LeftOut(UNKNOWN),
    }
}

/// A document as JSON, with its kind; none for what is no document.
fn as_json(run: &StoredRun, file: &Artifact, fate: &Fate) -> Result<Option<(String, String)>, UserError> {
    let text = || run.read_text(&file.path).map_err(UserError::io("read", &run.path().join(&file.path)));
    Ok(match fate {
        Fate::Json(kind) => Some((kind.clone(), text()?)),
        Fate::Yaml(kind) => {
            let value = serde_saphyr::from_str::<serde_json::Value>(&text()?).ok();
            value.map(|value| ((*kind).to_owned(), value.to_string()))
        }
        _ => None,
    })
}

fn inputs(documents: &BTreeMap<&str, (String, String)>) -> Option<InputSet> {
    InputSet::from_json(documents.get(provenance::INPUTS)?.1.as_bytes()).ok()
}

/// This machine and its user. A run may come from another, whose users show in the paths of its documents.
fn of_machine() -> Vec<Term> {
    let Identity { host, user, home, folder } = Identity::now();
    let names = [(host, Kind::Host), (user, Kind::User)].into_iter();
    let names = names.filter_map(|(name, kind)| Some((name.filter(|name| is_name(name))?, kind)));
    let folders = [home, folder].into_iter().flatten().map(|path| (path.display().to_string(), Kind::Path));
    let terms = names.chain(folders.filter(|(path, _)| path.len() > 4));
    terms.map(|(value, kind)| Term { value, kind }).collect()
}

/// A name that is somebody's: `root` is everybody's.
fn is_name(name: &str) -> bool {
    name.len() > 1 && !["root", "localhost", "user"].contains(&name)
}

fn users_in(texts: &[&str]) -> Vec<Term> {
    let mut users = BTreeSet::new();
    for text in texts {
        for start in ["/home/", "/Users/"] {
            let behind = text.split(start).skip(1);
            let names = behind.filter_map(|rest| rest.split(['/', '"', ' ', '\\', '\'']).next());
            users.extend(names.filter(|name| is_name(name) && name.len() < 40));
        }
    }
    users.into_iter().map(|user| Term { value: user.to_owned(), kind: Kind::User }).collect()
}
