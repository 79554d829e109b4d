//! What a run was given: what a model is fed, a command with the files it names, or files that were read.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use collect::run::{RunFolder, blake3_of};
use types::UserError;
use types::view::WorkModules;
use types::{Bytes, Document, InputCommand, InputFile, InputRole, InputSet, TraceSource};

use crate::pipeline::trace::STANDARD_INPUT;

/// Where the document stands in a run folder.
pub(crate) const INPUTS: &str = "inputs.yaml";

/// Operators of our own engine as they ran.
pub(crate) const NATIVE_TRACE: &str = "trace/native.json.gz";

/// The modules of the device work of the run's one trace, as [`WorkModules`] in JSON.
pub(crate) const MODULES: &str = "trace/modules.json";

/// Keeps the modules of device work with a run, where any are known.
pub(crate) fn write_modules(folder: &mut RunFolder, modules: &WorkModules) -> Result<(), UserError> {
    match serde_json::to_vec(modules) {
        Ok(json) if !modules.is_empty() => folder.write_file(MODULES, &json),
        _ => Ok(()),
    }
}

/// The modules that a run keeps; none where it keeps none.
pub(crate) fn modules(run: &Path) -> WorkModules {
    let text = fs::read(run.join(MODULES)).ok();
    text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

/// A file larger than this is not hashed: reading it would take longer than many a run.
const MOST_HASHED: u64 = 4 << 30;

/// What a model is fed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FedInputs {
    /// Every input, and which of them are used.
    pub document: InputSet,
    /// Small pictures of those used, each with its file in the run folder.
    pub(crate) thumbnails: Vec<(String, Vec<u8>)>,
}

impl FedInputs {
    /// Keeps them in the run folder.
    pub(crate) fn write(&self, folder: &mut RunFolder) -> Result<(), UserError> {
        write(folder, &self.document)?;
        self.thumbnails.iter().try_for_each(|(name, jpeg)| folder.write_file(name, jpeg))
    }
}

/// A command: its program, its arguments, and the files that these name.
pub(crate) fn of_command(argv: &[OsString]) -> InputSet {
    let text = |word: &OsString| word.to_string_lossy().into_owned();
    let program = argv.first().and_then(|program| {
        let path = collect::tool::find_program(program, &collect::tool::path_folders())?;
        file(InputRole::Program, program, &path)
    });
    let mut files: Vec<InputFile> = program.into_iter().collect();
    for word in argv.iter().skip(1) {
        // `--config=run.yaml` names a file as `--config run.yaml` does.
        let value = word.to_str().and_then(|text| text.split_once('=')).map(|(_, value)| OsStr::new(value));
        let named = [Some(word.as_os_str()), value].into_iter().flatten();
        let found = named.filter_map(|name| file(InputRole::Argument, name, Path::new(name))).next();
        files.extend(found.filter(|found| !files.iter().any(|other| other.path == found.path)));
    }
    let written = collect::masked(argv);
    let command = InputCommand {
        program: written.first().map(text).unwrap_or_default(),
        arguments: written.iter().skip(1).map(text).collect(),
        folder: std::env::current_dir().unwrap_or_default().display().to_string(),
    };
    InputSet { command: Some(command), ..InputSet::of_files("command", files) }
}

/// Files that were read and hashed already.
pub(crate) fn of_sources(sources: &[TraceSource]) -> InputSet {
    let file = |source: &TraceSource| InputFile {
        role: InputRole::Trace,
        name: source.path.clone(),
        path: match source.path.as_str() {
            STANDARD_INPUT => STANDARD_INPUT.to_owned(),
            path => absolute(Path::new(path)),
        },
        bytes: Some(source.bytes),
        blake3: source.blake3.clone(),
        sha256: source.sha256.clone(),
        problem: None,
    };
    InputSet::of_files("files", sources.iter().map(file).collect())
}

/// Files that were read.
pub(crate) fn of_files(paths: &[PathBuf]) -> InputSet {
    let files = paths.iter().filter_map(|path| file(InputRole::Trace, path.as_os_str(), path));
    InputSet::of_files("files", files.collect())
}

/// The document of a run folder, by its text.
pub(crate) fn read(yaml: &str) -> Result<InputSet, String> {
    let json = report::json_of_yaml(yaml).map_err(|error| error.to_string())?;
    // Its places are those of the JSON between.
    InputSet::from_json(&json).map_err(|error| error.to_string().split(" at line ").take(1).collect())
}

/// Keeps the document in the run folder.
pub(crate) fn write(folder: &mut RunFolder, inputs: &InputSet) -> Result<(), UserError> {
    let text = report::yaml(inputs).map_err(|error| UserError::failed(format!("cannot write {INPUTS}: {error}")))?;
    folder.write_file(INPUTS, text.as_bytes())
}

/// What is there under a path; absent where nothing is, and for what is neither a file nor a folder.
fn file(role: InputRole, name: &OsStr, path: &Path) -> Option<InputFile> {
    let found = fs::metadata(path).ok()?;
    let (digest, problem) = match found.len() {
        _ if found.is_dir() => (None, Some("a folder: contents not hashed".to_owned())),
        _ if !found.is_file() => return None,
        bytes if bytes > MOST_HASHED => (None, Some(format!("larger than {}: not hashed", Bytes::new(MOST_HASHED)))),
        _ => match blake3_of(path) {
            Ok(digest) => (Some(digest), None),
            Err(error) => (None, Some(format!("cannot be read: {error}"))),
        },
    };
    Some(InputFile {
        role,
        name: name.to_string_lossy().into_owned(),
        path: absolute(path),
        bytes: found.is_file().then(|| Bytes::new(found.len())),
        blake3: digest,
        sha256: None,
        problem,
    })
}

fn absolute(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_its_program_and_every_file_it_names_once() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("model.py");
        fs::write(&script, "abc").unwrap();
        let words = ["sh", script.to_str().unwrap(), "--steps", "8", &format!("--again={}", script.display())];
        let inputs = of_command(&words.map(OsString::from));
        let roles: Vec<InputRole> = inputs.files.iter().map(|file| file.role).collect();
        assert_eq!((inputs.count, roles), (2, vec![InputRole::Program, InputRole::Argument]));
        let file = &inputs.files[1];
        // Of `b3sum` 1.5: BLAKE3("abc").
        let abc = "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85";
        assert_eq!((file.bytes, file.blake3.as_deref()), (Some(Bytes::new(3)), Some(abc)));
        assert_eq!(inputs.command.unwrap().arguments[1], "--steps");
    }

    #[test]
    fn a_value_behind_an_equals_sign_names_a_file_and_a_folder_is_not_hashed() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("run.yaml");
        fs::write(&config, "").unwrap();
        let words = ["sh".to_owned(), format!("--config={}", config.display()), folder.path().display().to_string()];
        let inputs = of_command(&words.map(OsString::from));
        assert_eq!(inputs.files[1].name, config.display().to_string());
        assert!(inputs.files[2].blake3.is_none() && inputs.files[2].problem.is_some());
    }
}
