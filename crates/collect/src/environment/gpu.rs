//! GPUs, as NVIDIA's management library (NVML) describes them. The library is loaded at run time, so a machine without
//! it is described too.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::enum_wrappers::device::{Clock, ComputeMode, TemperatureSensor};
use nvml_wrapper::enums::device::DeviceArchitecture;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml, cuda_driver_version_major, cuda_driver_version_minor};
use types::{Bytes, GpuInfo};

/// One answer of one device.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Answer {
    pub(super) utilisation: Option<f64>,
    pub(super) memory_used: Option<u64>,
    pub(super) power_watts: Option<f64>,
    pub(super) sm_clock_mhz: Option<u32>,
    /// Why clocks are held down, where they are.
    pub(super) throttle_reasons: Vec<String>,
    /// Processes on it.
    pub(super) processes: Option<Vec<u32>>,
}

/// The library's name, by which the loader finds it on most machines.
const LIBRARY: &str = "libnvidia-ml.so.1";

/// Why there is no GPU to be seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GpuProblem {
    /// The management library is not on this machine.
    NoLibrary,
    /// The library is here, the kernel's part of the driver is not loaded.
    DriverNotLoaded,
    /// Library and kernel module are of different versions.
    VersionMismatch,
    /// This user may not ask.
    NoPermission,
    /// The driver works and has no device.
    NoDevice,
    /// The driver did not answer in this time.
    Silent(Duration),
    /// Anything else, in the library's words.
    Other(String),
}

impl fmt::Display for GpuProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLibrary => write!(f, "could not query GPUs: NVML ({LIBRARY}) not found"),
            Self::DriverNotLoaded => write!(f, "could not query GPUs: the NVIDIA kernel module is not loaded"),
            Self::VersionMismatch => {
                write!(f, "could not query GPUs: NVML and the NVIDIA kernel module have different versions")
            }
            Self::NoPermission => write!(f, "could not query GPUs: this user has no access to the NVIDIA driver"),
            Self::NoDevice => write!(f, "the NVIDIA driver reports no GPU"),
            Self::Silent(limit) => write!(f, "the NVIDIA driver did not answer within {} s", limit.as_secs()),
            Self::Other(reason) => write!(f, "NVML failed: {reason}"),
        }
    }
}

/// What the driver says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct GpuCapture {
    pub(super) gpus: Vec<GpuInfo>,
    pub(super) driver: Option<String>,
    pub(super) cuda: Option<String>,
    pub(super) nvml: Option<String>,
    pub(super) problem: Option<GpuProblem>,
    pub(super) notes: Vec<String>,
}

impl GpuCapture {
    /// The driver that did not answer.
    pub(super) fn silent(limit: Duration) -> Self {
        Self::failed(GpuProblem::Silent(limit))
    }

    fn failed(problem: GpuProblem) -> Self {
        Self { problem: Some(problem), ..Self::default() }
    }
}

/// Asks the driver about every GPU; `folders` is where the library may be when the loader does not know it.
pub(super) fn capture(folders: &[PathBuf]) -> GpuCapture {
    let nvml = match start(folders) {
        Ok(nvml) => nvml,
        Err(error) => return GpuCapture::failed(problem(&error)),
    };
    let mut capture = GpuCapture {
        driver: nvml.sys_driver_version().ok(),
        nvml: nvml.sys_nvml_version().ok(),
        cuda: nvml
            .sys_cuda_driver_version()
            .ok()
            .map(|number| format!("{}.{}", cuda_driver_version_major(number), cuda_driver_version_minor(number))),
        ..GpuCapture::default()
    };
    match nvml.device_count() {
        Ok(0) => capture.problem = Some(GpuProblem::NoDevice),
        Ok(count) => {
            for index in 0..count {
                match nvml.device_by_index(index) {
                    Ok(device) => {
                        let (gpu, note) = describe(index, &device);
                        capture.gpus.push(gpu);
                        capture.notes.extend(note);
                    }
                    Err(error) => capture.notes.push(format!("could not query GPU {index}: {error}")),
                }
            }
        }
        Err(error) => capture.problem = Some(problem(&error)),
    }
    capture
}

/// By the loader's own rules first, then in the usual folders.
pub(super) fn start(folders: &[PathBuf]) -> Result<Nvml, NvmlError> {
    let first = match Nvml::builder().lib_path(LIBRARY.as_ref()).init() {
        Err(error @ NvmlError::LibloadingError(_)) => error,
        answer => return answer,
    };
    let elsewhere = folders.iter().map(|folder| folder.join(LIBRARY)).find(|path| path.is_file());
    elsewhere.map_or(Err(first), |path| Nvml::builder().lib_path(path.as_os_str()).init())
}

/// Something that asks every GPU how busy it is, each time it is called; `None` where there is no GPU to ask.
pub(super) fn questions(folders: &[PathBuf]) -> Option<impl FnMut() -> Vec<Answer>> {
    let nvml = start(folders).ok()?;
    let count = nvml.device_count().ok().filter(|count| *count > 0)?;
    Some(move || (0..count).map(|index| answer(&nvml, index)).collect())
}

fn answer(nvml: &Nvml, index: u32) -> Answer {
    let Ok(device) = nvml.device_by_index(index) else { return Answer::default() };
    Answer {
        utilisation: device.utilization_rates().ok().map(|rates| (f64::from(rates.gpu) / 100.0).clamp(0.0, 1.0)),
        memory_used: device.memory_info().ok().map(|memory| memory.used),
        power_watts: device.power_usage().ok().map(|milliwatts| f64::from(milliwatts) / 1e3),
        sm_clock_mhz: device.clock_info(Clock::SM).ok(),
        throttle_reasons: device.current_throttle_reasons().map(held_down).unwrap_or_default(),
        processes: device.running_compute_processes().ok().map(|all| all.iter().map(|one| one.pid).collect()),
    }
}

/// Reasons that hold clocks down; idling and clocks that the user chose are none.
fn held_down(reasons: ThrottleReasons) -> Vec<String> {
    let chosen = ThrottleReasons::GPU_IDLE
        | ThrottleReasons::APPLICATIONS_CLOCKS_SETTING
        | ThrottleReasons::DISPLAY_CLOCK_SETTING
        | ThrottleReasons::NONE;
    (reasons - chosen).iter_names().map(|(name, _)| name.to_lowercase()).collect()
}

fn problem(error: &NvmlError) -> GpuProblem {
    match error {
        NvmlError::LibloadingError(_) | NvmlError::LibraryNotFound => GpuProblem::NoLibrary,
        NvmlError::DriverNotLoaded => GpuProblem::DriverNotLoaded,
        NvmlError::LibRmVersionMismatch => GpuProblem::VersionMismatch,
        NvmlError::NoPermission => GpuProblem::NoPermission,
        other => GpuProblem::Other(other.to_string()),
    }
}

/// Everything about one GPU, and a note that lists what it would not say.
fn describe(index: u32, device: &Device<'_>) -> (GpuInfo, Option<String>) {
    let mut silent = UnansweredQuestions::default();
    let memory = silent.or_none("memory_bytes", device.memory_info());
    let pci = silent.or_none("pci_bus_id", device.pci_info());
    let gpu = GpuInfo {
        index,
        name: silent.or_none("name", device.name()),
        uuid: silent.or_none("uuid", device.uuid()),
        hardware: None,
        compute_capability: silent
            .or_none("compute_capability", device.cuda_compute_capability())
            .map(|capability| format!("{}.{}", capability.major, capability.minor)),
        architecture: silent
            .or_none("architecture", device.architecture())
            .filter(|architecture| *architecture != DeviceArchitecture::Unknown)
            .map(|architecture| architecture.to_string()),
        memory_bytes: memory.as_ref().map(|memory| Bytes::new(memory.total)),
        memory_used_bytes: memory.as_ref().map(|memory| Bytes::new(memory.used)),
        sm_clock_mhz: silent.or_none("sm_clock_mhz", device.clock_info(Clock::SM)),
        sm_clock_max_mhz: silent.or_none("sm_clock_max_mhz", device.max_clock_info(Clock::SM)),
        memory_clock_mhz: silent.or_none("memory_clock_mhz", device.clock_info(Clock::Memory)),
        memory_clock_max_mhz: silent.or_none("memory_clock_max_mhz", device.max_clock_info(Clock::Memory)),
        power_limit_watts: silent.or_none("power_limit_watts", device.enforced_power_limit()).map(watts),
        power_draw_watts: silent.or_none("power_draw_watts", device.power_usage()).map(watts),
        temperature_celsius: silent.or_none("temperature_celsius", device.temperature(TemperatureSensor::Gpu)),
        throttle_reasons: silent
            .or_none("throttle_reasons", device.current_throttle_reasons())
            .map(|reasons| reasons.iter_names().map(|(name, _)| name.to_lowercase()).collect()),
        mig_enabled: silent.or_none("mig_enabled", device.mig_mode()).map(|mode| mode.current == 1),
        ecc_enabled: silent.or_none("ecc_enabled", device.is_ecc_enabled()).map(|state| state.currently_enabled),
        persistence_mode: silent.or_none("persistence_mode", device.is_in_persistent_mode()),
        compute_mode: silent.or_none("compute_mode", device.compute_mode()).map(|mode| compute_mode(&mode).to_owned()),
        pci_bus_id: pci.map(|pci| pci.bus_id),
        pcie_generation: silent.or_none("pcie_generation", device.current_pcie_link_gen()),
        pcie_width: silent.or_none("pcie_width", device.current_pcie_link_width()),
        cuda_cores: silent.or_none("cuda_cores", device.num_cores()),
        vbios: silent.or_none("vbios", device.vbios_version()),
    };
    (gpu, silent.note(index))
}

fn watts(milliwatts: u32) -> f64 {
    f64::from(milliwatts) / 1000.0
}

fn compute_mode(mode: &ComputeMode) -> &'static str {
    match mode {
        ComputeMode::Default => "default",
        ComputeMode::ExclusiveThread => "exclusive_thread",
        ComputeMode::Prohibited => "prohibited",
        ComputeMode::ExclusiveProcess => "exclusive_process",
    }
}

/// Fields a device would not give, by reason.
#[derive(Default)]
struct UnansweredQuestions(Vec<(String, &'static str)>);

impl UnansweredQuestions {
    fn or_none<T>(&mut self, field: &'static str, answer: Result<T, NvmlError>) -> Option<T> {
        answer.map_err(|error| self.0.push((error.to_string(), field))).ok()
    }

    /// One line for all of them, fields with the same reason together.
    fn note(mut self, index: u32) -> Option<String> {
        self.0.sort();
        let mut parts: Vec<(String, Vec<&str>)> = Vec::new();
        for (reason, field) in self.0 {
            match parts.last_mut() {
                Some((last, fields)) if *last == reason => fields.push(field),
                _ => parts.push((reason, vec![field])),
            }
        }
        let parts: Vec<String> =
            parts.into_iter().map(|(reason, fields)| format!("{} unknown ({reason})", fields.join(", "))).collect();
        (!parts.is_empty()).then(|| format!("GPU {index}: {}", parts.join("; ")))
    }
}

/// The version in `/proc/driver/nvidia/version`:
/// `NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build ...`.
pub(super) fn read_kernel_driver(text: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with("NVRM version:"))?;
    let version = |word: &&str| word.contains('.') && word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    line.split_whitespace().find(version).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_part_of_the_driver_states_its_version() {
        let open = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (dvs-builder)\n\
                    GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n";
        assert_eq!(read_kernel_driver(open).as_deref(), Some("580.159.04"));
        let closed = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024\n";
        assert_eq!(read_kernel_driver(closed).as_deref(), Some("535.183.01"));
        assert_eq!(read_kernel_driver("GCC version: gcc 12.2.0"), None);
    }

    #[test]
    fn a_machine_without_the_library_says_so() {
        let missing = NvmlError::LibraryNotFound;
        assert_eq!(problem(&missing), GpuProblem::NoLibrary);
        assert_eq!(problem(&NvmlError::DriverNotLoaded), GpuProblem::DriverNotLoaded);
        assert_eq!(problem(&NvmlError::GpuLost), GpuProblem::Other(NvmlError::GpuLost.to_string()));
    }

    #[test]
    fn fields_that_are_unknown_for_one_reason_share_a_note() {
        let mut silent = UnansweredQuestions::default();
        assert_eq!(silent.or_none("name", Ok("NVIDIA H200")), Some("NVIDIA H200"));
        assert_eq!(silent.or_none::<u32>("mig_enabled", Err(NvmlError::NotSupported)), None);
        assert_eq!(silent.or_none::<u32>("vbios", Err(NvmlError::NoPermission)), None);
        assert_eq!(silent.or_none::<u32>("ecc_enabled", Err(NvmlError::NotSupported)), None);
        assert_eq!(
            silent.note(0).unwrap(),
            "GPU 0: vbios unknown (the current user does not have permission to perform this operation); \
             ecc_enabled, mig_enabled unknown (the requested operation is not available on the target device)"
        );
        assert_eq!(UnansweredQuestions::default().note(0), None);
    }
}
