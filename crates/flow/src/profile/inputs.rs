//! The images a run is given: found, hashed, measured, chosen.

use std::path::{Path, PathBuf};

use engine::image;
use globset::{Glob, GlobSet, GlobSetBuilder};
use include_dir::{Dir, include_dir};
use serde::Deserialize;
use types::{Bytes, InputImage, InputSet, SchemaTag};

use super::ProfileError;

static PAGES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../assets/pages");

/// How a dataset that ships with the program is named.
const BUILT_IN: &str = "builtin:";

/// Largest image file that is read.
const LARGEST_FILE: u64 = 512 << 20;

/// The `dataset` part of a configuration.
#[derive(Clone, Debug, Deserialize)]
pub struct DatasetSettings {
    /// Folder, or `builtin:pages`.
    pub root: String,
    /// Patterns of files to take.
    pub include: Vec<String>,
    /// Patterns of files to leave.
    pub exclude: Vec<String>,
    /// File with one path a line, instead of the patterns.
    pub file_list: Option<PathBuf>,
    /// Whether folders inside are searched.
    pub recursive: bool,
    /// Which of them are measured, and how often.
    pub sampling: SamplingSettings,
}

/// The `dataset.sampling` part.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct SamplingSettings {
    /// Passes over the chosen inputs.
    pub epochs: u32,
    /// Inputs taken each epoch; all when open.
    pub samples_per_epoch: Option<usize>,
    /// Seed of the choice.
    pub seed: u64,
    /// Whether inputs are taken in random order.
    pub shuffle: bool,
    /// Runs of each input before measuring.
    pub warmup_rounds: u32,
    /// Measured runs of each input.
    pub repeats: u32,
}

/// One image, in memory.
#[derive(Debug)]
pub(super) struct Input {
    pub(super) facts: InputImage,
    /// Its bytes; absent when it could not be read.
    pub(super) content: Option<Vec<u8>>,
}

/// Every image of a dataset, by name, readable or not.
pub(super) fn find(settings: &DatasetSettings) -> Result<Vec<Input>, ProfileError> {
    let inputs = match settings.root.strip_prefix(BUILT_IN) {
        Some("pages") => built_in(settings)?,
        Some(other) => return Err(ProfileError::NoDataset { name: other.to_owned() }),
        None => on_disk(settings)?,
    };
    if inputs.is_empty() {
        return Err(ProfileError::NoImages { root: settings.root.clone(), patterns: settings.include.join(", ") });
    }
    Ok(inputs)
}

/// The inputs of one epoch, as indices; the same seed and epoch give the same.
pub(super) fn choose(settings: &SamplingSettings, usable: &[usize], epoch: u32) -> Vec<usize> {
    let mut order = usable.to_vec();
    if settings.shuffle {
        let mut state = settings.seed ^ (u64::from(epoch) << 32);
        for index in (1..order.len()).rev() {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            order.swap(index, ((mixed ^ (mixed >> 31)) % (index as u64 + 1)) as usize);
        }
    }
    order.truncate(settings.samples_per_epoch.unwrap_or(usize::MAX));
    order
}

/// The document of these inputs.
pub(super) fn document(settings: &DatasetSettings, inputs: &[Input]) -> InputSet {
    InputSet {
        schema: SchemaTag::new(),
        dataset_root: settings.root.clone(),
        subset_filelist: settings.file_list.as_ref().map(|file| file.display().to_string()),
        count: inputs.len() as u64,
        images: inputs.iter().map(|input| input.facts.clone()).collect(),
        prompts: Vec::new(),
    }
}

fn built_in(settings: &DatasetSettings) -> Result<Vec<Input>, ProfileError> {
    #[derive(Deserialize)]
    struct Manifest {
        pages: Vec<Page>,
    }
    #[derive(Deserialize)]
    struct Page {
        file: String,
        category: String,
    }
    let broken = |reason: String| ProfileError::Shipped { reason };
    let manifest = PAGES.get_file("manifest.yaml").and_then(|file| file.contents_utf8());
    let manifest = manifest.ok_or_else(|| broken("manifest.yaml is not there".to_owned()))?;
    let manifest: Manifest = serde_saphyr::from_str(manifest).map_err(|error| broken(error.to_string()))?;
    let filter = Filter::new(settings)?;
    let mut inputs = Vec::new();
    for page in manifest.pages.into_iter().filter(|page| filter.takes(Path::new(&page.file))) {
        let file = PAGES.get_file(&page.file).ok_or_else(|| broken(format!("{} is not there", page.file)))?;
        let path = format!("{BUILT_IN}pages/{}", page.file);
        inputs.push(Input::new(page.file, path, Some(page.category), Ok(file.contents().to_vec())));
    }
    Ok(inputs)
}

fn on_disk(settings: &DatasetSettings) -> Result<Vec<Input>, ProfileError> {
    let root = Path::new(&settings.root);
    let unreadable = |path: &Path| {
        let path = path.to_owned();
        move |reason| ProfileError::Unreadable { path, reason }
    };
    let mut files = match &settings.file_list {
        Some(list) => {
            let text = std::fs::read_to_string(list).map_err(unreadable(list))?;
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
            lines.map(PathBuf::from).collect()
        }
        None if root.is_file() => vec![PathBuf::new()],
        None => {
            let filter = Filter::new(settings)?;
            let mut found = Vec::new();
            walk(root, Path::new(""), settings.recursive, &mut found).map_err(unreadable(root))?;
            found.retain(|path| filter.takes(path));
            found
        }
    };
    files.sort();
    files.dedup();
    let inputs = files.into_iter().map(|relative| {
        let path = if relative.as_os_str().is_empty() { root.to_owned() } else { root.join(&relative) };
        let name = if relative.as_os_str().is_empty() { path.file_name().map(PathBuf::from) } else { Some(relative) };
        let name = name.unwrap_or_default().display().to_string();
        let absolute = std::path::absolute(&path).unwrap_or_else(|_| path.clone());
        Input::new(name, absolute.display().to_string(), None, read(&path))
    });
    Ok(inputs.collect())
}

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let size = std::fs::metadata(path)?.len();
    if size > LARGEST_FILE {
        return Err(std::io::Error::other(format!("{size} bytes are too many for an image")));
    }
    std::fs::read(path)
}

/// Files under `root`, relative to it.
fn walk(root: &Path, inside: &Path, recursive: bool, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(root.join(inside))? {
        let entry = entry?;
        let path = inside.join(entry.file_name());
        // A link to a folder is not followed: it may lead back here.
        if entry.file_type()?.is_dir() {
            if recursive {
                walk(root, &path, recursive, found)?;
            }
        } else {
            found.push(path);
        }
    }
    Ok(())
}

impl Input {
    fn new(name: String, path: String, category: Option<String>, content: std::io::Result<Vec<u8>>) -> Self {
        let mut facts = InputImage {
            name,
            path,
            width: None,
            height: None,
            bytes: None,
            sha256: None,
            category,
            used: false,
            problem: None,
        };
        let content = match content {
            Err(error) => {
                facts.problem = Some(format!("cannot read {}: {error}", facts.path));
                return Self { facts, content: None };
            }
            Ok(content) => content,
        };
        facts.bytes = Some(Bytes::new(content.len() as u64));
        facts.sha256 = Some(collect::run::sha256(&content));
        match image::measure(&facts.name, &content) {
            Ok(page) => {
                facts.width = Some(page.width.into());
                facts.height = Some(page.height.into());
                Self { facts, content: Some(content) }
            }
            Err(error) => {
                facts.problem = Some(error.to_string());
                Self { facts, content: None }
            }
        }
    }
}

/// Which files a dataset takes.
struct Filter {
    include: GlobSet,
    exclude: GlobSet,
}

impl Filter {
    fn new(settings: &DatasetSettings) -> Result<Self, ProfileError> {
        let set = |key: &'static str, patterns: &[String]| {
            let mut builder = GlobSetBuilder::new();
            for pattern in patterns {
                // A pattern without a folder means any folder.
                let anywhere = if pattern.contains('/') { pattern.clone() } else { format!("**/{pattern}") };
                let glob = Glob::new(&anywhere).map_err(|error| ProfileError::Pattern {
                    key,
                    pattern: pattern.clone(),
                    reason: error.to_string(),
                })?;
                builder.add(glob);
            }
            builder.build().map_err(|error| ProfileError::Pattern {
                key,
                pattern: patterns.join(", "),
                reason: error.to_string(),
            })
        };
        Ok(Self { include: set("include", &settings.include)?, exclude: set("exclude", &settings.exclude)? })
    }

    fn takes(&self, path: &Path) -> bool {
        self.include.is_match(path) && !self.exclude.is_match(path)
    }
}
