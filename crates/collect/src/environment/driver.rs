//! The NVIDIA driver as the kernel shows it: no library is loaded for it, so that asking costs microseconds.

use std::path::Path;

/// The driver and the devices it drives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstalledDriver {
    /// Its version.
    pub version: String,
    /// Names of its devices.
    pub devices: Vec<String>,
}

/// The driver of this machine; `None` where the kernel shows none.
pub fn installed_driver() -> Option<InstalledDriver> {
    read(Path::new("/proc/driver/nvidia"))
}

fn read(folder: &Path) -> Option<InstalledDriver> {
    let text = std::fs::read_to_string(folder.join("version")).ok()?;
    let is_version =
        |word: &&str| word.split('.').count() >= 2 && word.split('.').all(|part| part.parse::<u32>().is_ok());
    let version = text.lines().next()?.split_whitespace().find(is_version)?.to_owned();
    let gpus = std::fs::read_dir(folder.join("gpus")).into_iter().flatten().flatten();
    let texts = gpus.filter_map(|gpu| std::fs::read_to_string(gpu.path().join("information")).ok());
    let name = |text: String| Some(text.lines().find_map(|line| line.strip_prefix("Model:"))?.trim().to_owned());
    Some(InstalledDriver { version, devices: texts.filter_map(name).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_and_devices_are_those_the_kernel_shows() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(folder.path()), None);
        let gpu = folder.path().join("gpus/0000:19:00.0");
        std::fs::create_dir_all(&gpu).unwrap();
        let open =
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build\nGCC version: 12.3\n";
        std::fs::write(folder.path().join("version"), open).unwrap();
        std::fs::write(gpu.join("information"), "Model: \t\t NVIDIA H200\nIRQ: 18\n").unwrap();
        let expected = InstalledDriver { version: "570.86.15".into(), devices: vec!["NVIDIA H200".into()] };
        assert_eq!(read(folder.path()), Some(expected));
    }
}
