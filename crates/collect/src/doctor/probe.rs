//! The facts the checks judge.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use types::{Bytes, Calibration, Failure, Nanos};

use crate::calibrate::{self, Store};
use crate::environment::EnvironmentFacts;

/// Everything the checks may look at.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    /// The machine. Whoever knows the catalogue has put each GPU's entry into it.
    pub capture: EnvironmentFacts,
    /// Whether counters may be read.
    pub counters: CounterFacts,
    /// Where runs are written.
    pub output: OutputFacts,
    /// Whether our own collector loads, or why not.
    pub collector: Result<(), String>,
    /// Processes that wanted to run during the last minute.
    pub load_average: Option<f64>,
    /// The clock.
    pub clock: ClockFacts,
    /// Threads work is spread over.
    pub threads: usize,
    /// The kept rates for this processor and these threads, or why they cannot be read.
    pub calibration: Result<Option<Calibration>, CalibrationProblem>,
}

/// Why kept rates cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CalibrationProblem {
    /// What is wrong.
    pub reason: String,
    /// What to do about it, where that is known.
    pub hint: Option<String>,
}

/// What decides whether GPU counters may be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CounterFacts {
    /// Whether the kernel module keeps counters to administrators; absent when it does not say.
    pub restricted: Option<bool>,
    /// Whether this process has `CAP_SYS_ADMIN`.
    pub system_administrator: bool,
    /// Whether this process has `CAP_PERFMON`.
    pub performance_monitor: bool,
    /// Whether this process is in a user namespace of its own, where capabilities do not reach the host.
    pub user_namespace: bool,
}

/// What decides whether a run can be written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutputFacts {
    /// The folder runs go to.
    pub root: PathBuf,
    /// The nearest part of it that exists.
    pub existing: PathBuf,
    /// Whether that part is a folder.
    pub is_folder: bool,
    /// Whether this user may write there.
    pub writable: bool,
    /// Room there for this user.
    pub free: Option<Bytes>,
}

/// What decides whether short times can be measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClockFacts {
    /// What the kernel counts with.
    pub source: Option<String>,
    /// What reading the clock costs.
    pub cost: Nanos,
}

impl Probe {
    /// Gathers what the capture does not hold.
    pub fn gather(capture: EnvironmentFacts, output_root: &Path) -> Self {
        let threads = calibrate::threads();
        let calibration = Store::of_this_user()
            .and_then(|store| store.read(&calibrate::processor_name(), threads))
            .map_err(|error| CalibrationProblem { reason: error.to_string(), hint: error.hint() });
        Self {
            capture,
            counters: CounterFacts::of_this_process(),
            output: OutputFacts::of(output_root),
            collector: collector(),
            load_average: read("/proc/loadavg").and_then(|text| text.split(' ').next()?.parse().ok()),
            clock: ClockFacts::of_this_machine(),
            threads,
            calibration,
        }
    }
}

impl CounterFacts {
    fn of_this_process() -> Self {
        let status = read("/proc/self/status").unwrap_or_default();
        let capabilities = read_capabilities(&status).unwrap_or_default();
        Self {
            restricted: read("/proc/driver/nvidia/params").and_then(|text| read_restriction(&text)),
            // Numbers of linux/capability.h.
            system_administrator: capabilities & (1 << 21) != 0,
            performance_monitor: capabilities & (1 << 38) != 0,
            user_namespace: read("/proc/self/uid_map").is_some_and(|text| is_own_namespace(&text)),
        }
    }
}

impl OutputFacts {
    fn of(root: &Path) -> Self {
        // A relative path ends in an empty one, which means the current folder.
        let existing = root.ancestors().find(|path| path.symlink_metadata().is_ok() || path.as_os_str().is_empty());
        let existing = existing.filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let is_folder = existing.is_dir();
        let (writable, free) =
            CString::new(existing.as_os_str().as_bytes()).map_or((false, None), |path| (may_write(&path), room(&path)));
        Self { root: root.to_owned(), existing: existing.to_owned(), is_folder, writable, free }
    }
}

impl ClockFacts {
    fn of_this_machine() -> Self {
        const READS: u32 = 1000;
        // The best of some rounds: a round in which this process had to wait says nothing about the clock.
        let round = || {
            let started = Instant::now();
            (1..READS).for_each(|_| _ = std::hint::black_box(Instant::now()));
            started.elapsed() / READS
        };
        let cost = (0..5).map(|_| round()).min().and_then(Nanos::from_duration).unwrap_or_default();
        Self { source: read("/sys/devices/system/clocksource/clocksource0/current_clocksource"), cost }
    }
}

/// Loads the collector from a folder of its own, as a CUDA process would.
fn collector() -> Result<(), String> {
    let folder = std::env::temp_dir().join(format!("llm-perf-doctor-{}", std::process::id()));
    std::fs::create_dir(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    let checked = crate::tool::inject::self_check(&folder);
    let _ = std::fs::remove_dir(&folder);
    checked
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn may_write(path: &CString) -> bool {
    // SAFETY: `path` is a C string that outlives the call.
    unsafe { libc::access(path.as_ptr(), libc::W_OK | libc::X_OK) == 0 }
}

/// Room for a user without privileges.
fn room(path: &CString) -> Option<Bytes> {
    let mut data = std::mem::MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: `path` is a C string and `data` has room for the structure; both outlive the call.
    let failed = unsafe { libc::statvfs(path.as_ptr(), data.as_mut_ptr()) } != 0;
    if failed {
        return None;
    }
    // SAFETY: the call succeeded and filled the structure, which was zeroed before and has no invalid bit patterns.
    let data = unsafe { data.assume_init() };
    data.f_bavail.checked_mul(data.f_frsize).map(Bytes::new)
}

/// `CapEff: 000001ffffffffff` in `/proc/self/status`.
fn read_capabilities(status: &str) -> Option<u64> {
    let text = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(text.trim(), 16).ok()
}

/// `RmProfilingAdminOnly: 1` in `/proc/driver/nvidia/params`.
fn read_restriction(parameters: &str) -> Option<bool> {
    let value = parameters.lines().find_map(|line| line.strip_prefix("RmProfilingAdminOnly:"))?;
    match value.trim() {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

/// The first namespace maps every user to itself: `0 0 4294967295`.
fn is_own_namespace(uid_map: &str) -> bool {
    uid_map.split_whitespace().collect::<Vec<_>>() != ["0", "0", "4294967295"]
}

/// Facts of machines, for the tests of the checks.
#[cfg(test)]
pub(super) mod samples {
    use types::{
        BytesPerSecond, CalibratedRate, CpuInfo, DType, Environment, FlopsPerSecond, FrameworkVersions, GpuInfo,
        MemoryInfo, OperatingSystem, SchemaTag, ToolVersion, ToolVersions,
    };

    use super::*;
    use crate::environment::GpuProblem;

    pub(in crate::doctor) fn tool(version: &str, path: &str) -> ToolVersion {
        ToolVersion { version: Some(version.into()), path: Some(path.into()) }
    }

    pub(in crate::doctor) fn gpu(name: &str) -> GpuInfo {
        let gibibyte = 1 << 30;
        GpuInfo {
            index: 0,
            name: Some(name.into()),
            uuid: None,
            hardware: None,
            compute_capability: Some("9.0".into()),
            architecture: Some("Hopper".into()),
            memory_bytes: Some(Bytes::new(140 * gibibyte)),
            memory_used_bytes: Some(Bytes::new(gibibyte / 2)),
            sm_clock_mhz: Some(345),
            sm_clock_max_mhz: Some(1980),
            memory_clock_mhz: None,
            memory_clock_max_mhz: None,
            power_limit_watts: Some(700.0),
            power_draw_watts: None,
            temperature_celsius: Some(31),
            throttle_reasons: Some(vec!["gpu_idle".into()]),
            mig_enabled: Some(false),
            ecc_enabled: Some(true),
            persistence_mode: Some(true),
            compute_mode: Some("default".into()),
            pci_bus_id: None,
            pcie_generation: None,
            pcie_width: None,
            cuda_cores: None,
            vbios: None,
        }
    }

    /// A virtual machine without a GPU.
    pub(in crate::doctor) fn processor_only() -> Probe {
        let environment = Environment {
            schema: SchemaTag::new(),
            captured_at: "2025-11-15T04:00:00+00:00".into(),
            tool_version: "0.1.0".into(),
            tool_features: vec![],
            named: types::NamedVersions::default(),
            gpus: vec![],
            tools: ToolVersions::default(),
            frameworks: FrameworkVersions {
                python: Some(tool("3.11.7", "/usr/bin/python3")),
                ..FrameworkVersions::default()
            },
            cpu: CpuInfo { model: Some("Some Processor".into()), threads_available: Some(2), ..CpuInfo::default() },
            memory: MemoryInfo::default(),
            operating_system: OperatingSystem::default(),
            git: None,
            variables: Default::default(),
            notes: vec![],
        };
        Probe {
            capture: EnvironmentFacts {
                environment,
                gpu_problem: Some(GpuProblem::NoLibrary),
                kernel_driver: None,
                cupti_interface: None,
                cupti_major: None,
                nsys_lacks_importer: false,
            },
            counters: CounterFacts::default(),
            output: OutputFacts {
                root: "tmp/profile-output".into(),
                existing: ".".into(),
                is_folder: true,
                writable: true,
                free: Some(Bytes::new(49_000_000_000)),
            },
            collector: Ok(()),
            load_average: Some(0.1),
            clock: ClockFacts { source: Some("tsc".into()), cost: Nanos::new(25) },
            threads: 2,
            calibration: Ok(None),
        }
    }

    /// A GPU machine as it should be.
    pub(in crate::doctor) fn h200() -> Probe {
        let mut probe = processor_only();
        let environment = &mut probe.capture.environment;
        environment.gpus = vec![GpuInfo { hardware: Some("h200".into()), ..gpu("NVIDIA H200") }];
        environment.tools = ToolVersions {
            driver: Some("580.159.04".into()),
            cuda_driver: Some("13.0".into()),
            nvml: Some("13.580.159.04".into()),
            cuda_toolkit: Some(tool("13.0.3", "/usr/local/cuda")),
            cupti: Some(tool("2025.3.1", "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13")),
            nsys: Some(tool("2025.3.2.367-253235822126v0", "/opt/nvidia/nsight-systems/2025.3.2/bin/nsys")),
            ncu: Some(tool("2025.3.1.0", "/opt/nvidia/nsight-compute/2025.3.1/ncu")),
        };
        environment.frameworks = FrameworkVersions {
            python: Some(tool("3.12.3", "/opt/torch/bin/python3")),
            torch: Some("2.11.0+cu130".into()),
            torch_cuda: Some("13.0".into()),
            transformers: Some("5.17.0".into()),
        };
        environment.cpu.governor = Some("performance".into());
        probe.capture.gpu_problem = None;
        probe.capture.cupti_interface = Some(Ok(130_000));
        probe.capture.cupti_major = Some(13);
        probe.counters = CounterFacts { restricted: Some(false), ..CounterFacts::default() };
        probe.calibration = Ok(Some(calibration()));
        probe
    }

    /// A GPU machine in a container, with old tools and without permission.
    pub(in crate::doctor) fn neglected() -> Probe {
        let mut probe = h200();
        let environment = &mut probe.capture.environment;
        environment.gpus = vec![gpu("NVIDIA Unheard Of")];
        environment.tools.nsys = Some(tool("2023.4.4.54-234433681190v0", "/usr/bin/nsys"));
        environment.tools.ncu = Some(tool("2024.1.1.0", "/usr/bin/ncu"));
        environment.tools.cupti = None;
        environment.frameworks.torch_cuda = None;
        environment.operating_system.container = Some("docker".into());
        environment.cpu.governor = Some("powersave".into());
        probe.capture.cupti_interface = None;
        probe.counters.restricted = Some(true);
        probe.output.free = Some(Bytes::new(900_000_000));
        probe.collector = Err("failed to map segment from shared object: Operation not permitted".into());
        probe.load_average = Some(3.5);
        probe.clock = ClockFacts { source: Some("hpet".into()), cost: Nanos::new(1400) };
        probe.calibration = Err(CalibrationProblem {
            reason: "cannot read x.json as a calibration: expected value at line 1 column 1".into(),
            hint: Some("`llm-perf doctor --calibrate` measures again and replaces it".into()),
        });
        probe
    }

    pub(in crate::doctor) fn calibration() -> Calibration {
        let rate = |dtype, flops| CalibratedRate {
            dtype,
            flops: FlopsPerSecond::new(flops),
            method: "gemm 1024x1024x1024".into(),
            samples_ns: vec![],
        };
        Calibration {
            schema: SchemaTag::new(),
            cpu_model: "Some Processor".into(),
            threads: 2,
            measured_at: "2025-11-15T04:00:00+00:00".into(),
            tool_version: "0.1.0".into(),
            matrix: vec![rate(DType::Fp32, 101e9), rate(DType::Fp16, 88e9)],
            thread_share: Some(0.99),
            bytes_per_second: BytesPerSecond::new(21.4e9),
            copy_method: "copy".into(),
            copy_samples_ns: vec![],
            memory_bytes: Bytes::new(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_module_says_about_counters_is_read() {
        let text = "ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 1\nTemporaryFilePath: \"\"\n";
        assert_eq!(read_restriction(text), Some(true));
        assert_eq!(read_restriction("RmProfilingAdminOnly: 0"), Some(false));
        assert_eq!(read_restriction("ResmanDebugLevel: 1"), None);
    }

    #[test]
    fn capabilities_are_read_as_bits() {
        let all = read_capabilities("Name:\tx\nCapEff:\t000001ffffffffff\n").unwrap();
        assert!(all & (1 << 21) != 0 && all & (1 << 38) != 0);
        let docker = read_capabilities("CapEff:\t00000000a80425fb\n").unwrap();
        assert!(docker & (1 << 21) == 0 && docker & (1 << 38) == 0, "a container's root is no administrator");
    }

    #[test]
    fn the_first_user_namespace_maps_everyone_to_themselves() {
        assert!(!is_own_namespace("         0          0 4294967295\n"));
        assert!(is_own_namespace("         0       1000          1\n         1     100000      65536\n"));
    }

    #[test]
    fn the_nearest_existing_part_of_the_output_folder_decides() {
        let folder = tempfile::tempdir().unwrap();
        let facts = OutputFacts::of(&folder.path().join("not/yet/there"));
        assert_eq!(facts.existing, folder.path());
        assert!(facts.is_folder && facts.writable);
        assert!(facts.free.is_some());
        let relative = OutputFacts::of(Path::new("no-such-folder-here/runs"));
        assert_eq!(relative.existing, Path::new("."));
        assert!(relative.is_folder);

        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let blocked = OutputFacts::of(&file.join("runs"));
        assert_eq!((blocked.existing, blocked.is_folder), (file, false));
    }
}
