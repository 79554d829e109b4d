//! Which files a dataset takes: patterns and lists on disk, and what ships with the program.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use include_dir::{Dir, include_dir};
use serde::Deserialize;
use types::UserError;

use super::dataset::DatasetSettings;

static PAGES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../assets/pages");
static PROMPTS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../assets/prompts");

/// How a dataset that ships with the program is named.
const BUILT_IN: &str = "builtin:";

/// Largest file that is read.
const LARGEST_FILE: u64 = 512 << 20;

/// One file of a dataset.
pub(super) struct DatasetFile {
    /// Path below the root.
    pub(super) name: String,
    /// Absolute path, or `builtin:` and the name.
    pub(super) path: String,
    pub(super) category: Option<String>,
    pub(super) content: std::io::Result<Vec<u8>>,
}

/// The pages that ship with the program, in order of their names.
pub(crate) fn built_in_pages() -> impl Iterator<Item = &'static [u8]> {
    let is_image = |path: &Path| path.extension().is_some_and(|extension| extension != "yaml");
    PAGES.files().filter(move |file| is_image(file.path())).map(|file| file.contents())
}

/// Every file of a dataset, by name, readable or not.
pub(super) fn find(settings: &DatasetSettings) -> Result<Vec<DatasetFile>, UserError> {
    match settings.root.to_str().and_then(|root| root.strip_prefix(BUILT_IN)) {
        Some("pages") => built_in("pages", &PAGES, settings),
        Some("prompts") => built_in("prompts", &PROMPTS, settings),
        Some(other) => Err(UserError::usage(format!(
            "unknown dataset `builtin:{other}`; expected `builtin:pages` or `builtin:prompts`"
        ))),
        None => on_disk(settings),
    }
}

fn built_in(name: &str, folder: &Dir<'_>, settings: &DatasetSettings) -> Result<Vec<DatasetFile>, UserError> {
    #[derive(Deserialize)]
    struct Manifest {
        #[serde(alias = "pages", alias = "prompts")]
        files: Vec<Entry>,
    }
    #[derive(Deserialize)]
    struct Entry {
        file: String,
        category: String,
    }
    let broken = |reason: String| UserError::failed(format!("the built-in {name} are broken: {reason}"));
    let manifest = folder.get_file("manifest.yaml").and_then(|file| file.contents_utf8());
    let manifest = manifest.ok_or_else(|| broken("manifest.yaml is missing".to_owned()))?;
    let manifest = report::json_of_yaml(manifest).map_err(|error| broken(error.to_string()))?;
    let manifest: Manifest = serde_json::from_slice(&manifest).map_err(|error| broken(error.to_string()))?;
    let filter = Filter::new(settings)?;
    let taken = manifest.files.into_iter().filter(|entry| filter.takes(Path::new(&entry.file)));
    taken
        .map(|Entry { file, category }| {
            let content = folder.get_file(&file).ok_or_else(|| broken(format!("{file} is missing")))?.contents();
            let path = format!("{BUILT_IN}{name}/{file}");
            Ok(DatasetFile { name: file, path, category: Some(category), content: Ok(content.to_vec()) })
        })
        .collect()
}

fn on_disk(settings: &DatasetSettings) -> Result<Vec<DatasetFile>, UserError> {
    let root = settings.root.as_path();
    let mut files = match &settings.file_list {
        Some(list) => {
            let text = collect::document::read_text(list).map_err(UserError::unreadable(list))?;
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
            lines.map(PathBuf::from).collect()
        }
        None if root.is_file() => vec![PathBuf::new()],
        None => {
            let filter = Filter::new(settings)?;
            let mut found = Vec::new();
            walk(root, Path::new(""), settings.recursive, &mut found).map_err(UserError::unreadable(root))?;
            found.retain(|path| filter.takes(path));
            found
        }
    };
    files.sort();
    files.dedup();
    let found = files.into_iter().map(|relative| {
        let path = if relative.as_os_str().is_empty() { root.to_owned() } else { root.join(&relative) };
        let name = if relative.as_os_str().is_empty() { path.file_name().map(PathBuf::from) } else { Some(relative) };
        let name = name.unwrap_or_default().display().to_string();
        let absolute = std::path::absolute(&path).unwrap_or_else(|_| path.clone());
        DatasetFile { name, path: absolute.display().to_string(), category: None, content: read(&path) }
    });
    Ok(found.collect())
}

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    collect::document::read_from(collect::document::open(path)?, LARGEST_FILE)
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

/// Which files a dataset takes.
struct Filter {
    include: GlobSet,
    exclude: GlobSet,
}

impl Filter {
    fn new(settings: &DatasetSettings) -> Result<Self, UserError> {
        let set = |key: &'static str, patterns: &[String]| {
            let mut builder = GlobSetBuilder::new();
            let wrong = |pattern: &str, error: &globset::Error| {
                UserError::usage(format!("dataset.{key}: invalid pattern `{pattern}`: {error}"))
            };
            for pattern in patterns {
                // A pattern without a folder means any folder.
                let anywhere = if pattern.contains('/') { pattern.clone() } else { format!("**/{pattern}") };
                // `.JPG` is a JPEG too.
                let glob = GlobBuilder::new(&anywhere).case_insensitive(true).build();
                builder.add(glob.map_err(|error| wrong(pattern, &error))?);
            }
            builder.build().map_err(|error| wrong(&patterns.join(", "), &error))
        };
        Ok(Self { include: set("include", &settings.include)?, exclude: set("exclude", &settings.exclude)? })
    }

    fn takes(&self, path: &Path) -> bool {
        self.include.is_match(path) && !self.exclude.is_match(path)
    }
}
