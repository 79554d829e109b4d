//! Where measured rates are kept: one small file for each processor and number of threads.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use types::{Calibration, DeviceCalibration, Document, UserError};

use crate::user_folder::user_folder;

/// The folder with the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    folder: PathBuf,
}

impl Store {
    /// Files directly in `folder`.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// The user's own: `$LLM_PERF_DATA_DIR`, or `llm-perf` in the data folder of the desktop standard, and `calibration`
    /// in it.
    pub fn of_this_user() -> Result<Self, UserError> {
        user_folder().map(|folder| Self::new(folder.join("calibration"))).ok_or_else(|| {
            UserError::failed(
                "no folder to store measured rates in: LLM_PERF_DATA_DIR, XDG_DATA_HOME and HOME are all unset",
            )
            .hint(WRITABLE)
        })
    }

    /// What is kept for this processor and number of threads.
    pub fn read(&self, cpu: &str, threads: usize) -> Result<Option<Calibration>, UserError> {
        let path = self.path(cpu, threads);
        let Some(calibration) = read::<Calibration>(path)? else { return Ok(None) };
        // Two names may differ only in what a file name cannot hold.
        let same = calibration.cpu_model == cpu && calibration.threads as usize == threads;
        Ok(same.then_some(calibration))
    }

    /// Makes the folder, so that measuring is not started where the result cannot be kept.
    pub fn prepare(&self) -> Result<(), UserError> {
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder);
        made.map_err(not_kept(&self.folder))
    }

    /// Keeps rates; the file appears whole or not at all.
    pub fn write(&self, calibration: &Calibration) -> Result<PathBuf, UserError> {
        let path = self.path(&calibration.cpu_model, calibration.threads as usize);
        let text = serde_json::to_string_pretty(calibration);
        self.keep(path, text)
    }

    /// What is kept of operations on the device of that catalogue name.
    pub fn read_device(&self, device: &str) -> Result<Option<DeviceCalibration>, UserError> {
        let calibration = read::<DeviceCalibration>(self.device_path(device))?;
        Ok(calibration.filter(|calibration| calibration.device == device))
    }

    /// Keeps times of operations; on one line, because there may be tens of thousands.
    pub fn write_device(&self, calibration: &DeviceCalibration) -> Result<PathBuf, UserError> {
        self.keep(self.device_path(&calibration.device), serde_json::to_string(calibration))
    }

    fn keep(&self, path: PathBuf, text: serde_json::Result<String>) -> Result<PathBuf, UserError> {
        self.prepare()?;
        let part = path.with_extension(format!("{}.part", std::process::id()));
        let text = text.map_err(|reason| unreadable(&path, &reason))?;
        let written = File::create(&part)
            .and_then(|mut file| file.write_all(format!("{text}\n").as_bytes()).and_then(|()| file.sync_all()))
            .and_then(|()| std::fs::rename(&part, &path));
        written.map_err(|reason| {
            let _ = std::fs::remove_file(&part);
            not_kept(&path)(reason)
        })?;
        Ok(path)
    }

    /// `intel-r-xeon-r-processor-2.json`. A build without optimisation keeps its rates apart: they are a tenth of what
    /// the same processor does in a build that anyone would measure with.
    fn path(&self, cpu: &str, threads: usize) -> PathBuf {
        let build = if cfg!(debug_assertions) { "-debug" } else { "" };
        self.folder.join(format!("{}-{threads}{build}.json", words(cpu)))
    }

    /// `device-h200.json`; what a build without optimisation measured of the processor is kept apart here too.
    fn device_path(&self, device: &str) -> PathBuf {
        let build = if cfg!(debug_assertions) && device == "cpu" { "-debug" } else { "" };
        self.folder.join(format!("device-{}{build}.json", words(device)))
    }
}

/// A document, where there is one.
fn read<D: Document>(path: PathBuf) -> Result<Option<D>, UserError> {
    match crate::document::read(&path) {
        Err(reason) if matches!(reason.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        answer => {
            let json = answer.map_err(UserError::io("read", &path))?;
            D::from_json(&json).map(Some).map_err(|reason| unreadable(&path, &reason))
        }
    }
}

/// A name as a file's.
fn words(name: &str) -> String {
    let words = name.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-")
}

fn not_kept(path: &Path) -> impl FnOnce(std::io::Error) -> UserError {
    let message = format!("cannot store measured rates in {}", path.display());
    move |reason| UserError::failed(format!("{message}: {reason}")).hint(WRITABLE)
}

fn unreadable(path: &Path, reason: &serde_json::Error) -> UserError {
    UserError::failed(format!("cannot read {} as a calibration: {reason}", path.display()))
        .hint("measure again with `llm-perf doctor --calibrate`, which replaces it")
}

const WRITABLE: &str = "set LLM_PERF_DATA_DIR to a writable folder";

#[cfg(test)]
mod tests {
    use super::*;
    use types::{Bytes, BytesPerSecond, SchemaTag};

    fn calibration(cpu: &str, threads: u32) -> Calibration {
        Calibration {
            schema: SchemaTag::new(),
            cpu_model: cpu.into(),
            threads,
            measured_at: "2025-11-15T04:00:00+00:00".into(),
            tool_version: "0.1.0".into(),
            matrix: vec![],
            thread_share: Some(0.99),
            bytes_per_second: BytesPerSecond::new(1e10),
            copy_method: "copy".into(),
            copy_samples_ns: vec![],
            memory_bytes: Bytes::new(1),
        }
    }

    #[test]
    fn what_is_written_is_read_back_for_the_same_machine_only() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path().join("new/calibration"));
        let kept = calibration("Intel(R) Xeon(R) Processor", 2);
        assert_eq!(store.read(&kept.cpu_model, 2).unwrap(), None);
        let path = store.write(&kept).unwrap();
        assert!(path.file_name().unwrap().to_str().unwrap().starts_with("intel-r-xeon-r-processor-2"));
        assert_eq!(store.read(&kept.cpu_model, 2).unwrap(), Some(kept.clone()));
        assert_eq!(store.read(&kept.cpu_model, 4).unwrap(), None);
        assert_eq!(store.read("Intel Xeon R R Processor", 2).unwrap(), None);
        assert_eq!(store.read("Intel R Xeon R Processor", 2).unwrap(), None, "the same file, another processor");
        let left: Vec<_> = std::fs::read_dir(path.parent().unwrap()).unwrap().collect();
        assert_eq!(left.len(), 1, "no half-written file is left");
    }

    #[test]
    fn a_file_that_cannot_be_understood_is_an_error_that_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path());
        std::fs::write(store.path("X", 1), r#"{"schema": "llm-perf/calibration/2"}"#).unwrap();
        let error = store.read("X", 1).unwrap_err();
        let message = error.to_string();
        assert!(message.contains("x-1") && message.contains("a newer llm-perf"), "{message}");
        assert_eq!(error.hints, ["measure again with `llm-perf doctor --calibrate`, which replaces it"]);
    }

    #[test]
    fn the_folder_follows_the_variables_in_order() {
        let find = |set: &[(&str, &str)]| {
            crate::user_folder::data_folder(|name| {
                set.iter().find(|(key, _)| *key == name).map(|(_, value)| PathBuf::from(value))
            })
        };
        let home = ("HOME", "/home/someone");
        assert_eq!(find(&[home]), Some("/home/someone/.local/share/llm-perf".into()));
        assert_eq!(find(&[home, ("XDG_DATA_HOME", "/data")]), Some("/data/llm-perf".into()));
        assert_eq!(find(&[home, ("XDG_DATA_HOME", "data")]), Some("/home/someone/.local/share/llm-perf".into()));
        assert_eq!(find(&[home, ("LLM_PERF_DATA_DIR", "here")]), Some("here".into()));
        assert_eq!(find(&[]), None);
    }
}
