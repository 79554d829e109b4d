//! `hardware`: which devices are known and what they can do, this machine's processor among them once it was measured.

use std::path::Path;

use collect::calibrate::{self, Store};
use meter::hardware::{Catalogue, HardwareError};
use types::{Hardware, HardwareListing, SchemaTag, UserError};

/// The device a prediction is for when nobody names one.
pub const DEFAULT_DEVICE: &str = "h200";

/// The name this machine's processor goes by.
pub const PROCESSOR: &str = "cpu";

/// What `hardware` lists.
#[derive(Clone, Debug, PartialEq)]
pub struct Devices {
    /// The document.
    pub listing: HardwareListing,
    /// Why the processor is not in it, when it is not.
    pub note: Option<String>,
}

/// Every device.
pub fn list(config_dir: Option<&Path>) -> Result<Devices, UserError> {
    let mut devices: Vec<Hardware> = catalogue(config_dir)?.devices().cloned().collect();
    let note = match processor() {
        Ok(processor) => {
            devices.push(processor);
            None
        }
        Err(error) => {
            let hint: String = error.hints.iter().map(|hint| format!("; {hint}")).collect();
            Some(format!("`{PROCESSOR}` is not listed: {error}{hint}"))
        }
    };
    Ok(Devices { listing: HardwareListing { schema: SchemaTag::new(), devices }, note })
}

/// One device, by id, name or the name the driver reports.
pub fn find(config_dir: Option<&Path>, name: &str) -> Result<Hardware, UserError> {
    let catalogue = catalogue(config_dir)?;
    // A user may describe a processor of their own under that name.
    match catalogue.find(name) {
        Err(HardwareError::Unknown { .. }) if name.eq_ignore_ascii_case(PROCESSOR) => processor(),
        answer => Ok(answer?.clone()),
    }
}

/// These devices, or the one that a prediction is for when nobody names one.
pub(crate) fn named(config_dir: Option<&Path>, names: &[String]) -> Result<Vec<Hardware>, UserError> {
    match names {
        [] => Ok(vec![find(config_dir, DEFAULT_DEVICE)?]),
        names => names.iter().map(|name| find(config_dir, name)).collect(),
    }
}

/// The built-in devices, and the ones in `hardware/` of the configuration folder.
pub fn catalogue(config_dir: Option<&Path>) -> Result<Catalogue, UserError> {
    let built_in = Catalogue::built_in()?;
    match config_dir {
        Some(folder) => Ok(built_in.with_files(own_files(folder)?)?),
        None => Ok(built_in),
    }
}

/// Name and text of each of the user's device files, by name.
fn own_files(config_dir: &Path) -> Result<Vec<(String, String)>, UserError> {
    if !config_dir.is_dir() {
        return Err(UserError::usage(format!("--config-dir {} is not a folder", config_dir.display())));
    }
    let folder = config_dir.join("hardware");
    let entries = match std::fs::read_dir(&folder) {
        Err(reason) if reason.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        answer => answer.map_err(UserError::io("read", &folder))?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(UserError::io("read", &folder))?.path();
        if path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml") {
            let text = collect::document::read_text(&path).map_err(UserError::io("read", &path))?;
            files.push((path.display().to_string(), text));
        }
    }
    files.sort();
    Ok(files)
}

/// This machine's processor, as it was measured.
fn processor() -> Result<Hardware, UserError> {
    let (name, threads) = (calibrate::processor_name(), calibrate::threads());
    let kept = Store::of_this_user()?.read(&name, threads)?;
    kept.map(|kept| calibrate::hardware(&kept)).ok_or_else(|| {
        UserError::failed(format!("this CPU ({name}, {threads} threads) is not calibrated"))
            .hint("run `llm-perf doctor --calibrate` (about a second)")
    })
}

#[cfg(test)]
mod tests {
    use types::Exit;

    use super::*;

    #[test]
    fn a_folder_without_devices_adds_none() {
        let folder = tempfile::tempdir().unwrap();
        let built_in = catalogue(None).unwrap().devices().len();
        assert_eq!(catalogue(Some(folder.path())).unwrap().devices().len(), built_in);
    }

    #[test]
    fn a_users_device_is_found_by_its_drivers_name() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("hardware")).unwrap();
        let hint = find(None, "NVIDIA Unheard Of").unwrap_err().hints.concat();
        let file = hint.split_once("\n\n").unwrap().1;
        let file = file.replace("value: 0", "value: 7").replace("flops: 0", "flops: 1e12");
        std::fs::write(folder.path().join("hardware/unheard-of.yaml"), file).unwrap();
        std::fs::write(folder.path().join("hardware/notes.txt"), "no device").unwrap();
        assert_eq!(find(Some(folder.path()), "NVIDIA Unheard Of").unwrap().sm_count, 7);
    }

    #[test]
    fn a_folder_that_is_none_is_wrong_usage() {
        let error = catalogue(Some(Path::new("/nowhere"))).unwrap_err();
        assert_eq!(error.to_string(), "--config-dir /nowhere is not a folder");
        assert_eq!(error.exit, Exit::Usage);
    }

    #[test]
    fn a_broken_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("hardware")).unwrap();
        std::fs::write(folder.path().join("hardware/broken.yaml"), "id: [").unwrap();
        let error = catalogue(Some(folder.path())).unwrap_err();
        assert!(error.to_string().contains("broken.yaml"), "{error}");
    }
}
