//! Facts of machines, for the tests of the checks.

use types::{
    Bytes, BytesPerSecond, CalibratedRate, Calibration, CpuInfo, DType, Environment, FlopsPerSecond, FrameworkVersions,
    GpuInfo, MemoryInfo, Nanos, OperatingSystem, SchemaTag, ToolVersion, ToolVersions,
};

use super::probe::{CalibrationProblem, ClockFacts, CounterFacts, OutputFacts, Probe};
use crate::environment::{EnvironmentFacts, GpuProblem};

pub(super) fn tool(version: &str, path: &str) -> ToolVersion {
    ToolVersion { version: Some(version.into()), path: Some(path.into()) }
}

pub(super) fn gpu(name: &str) -> GpuInfo {
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
pub(super) fn processor_only() -> Probe {
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
            query_engines: vec!["duckdb 1.4.1".to_owned()],
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
pub(super) fn h200() -> Probe {
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
pub(super) fn neglected() -> Probe {
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
    probe.capture.query_engines.clear();
    probe.counters.restricted = Some(true);
    probe.output.free = Some(Bytes::new(900_000_000));
    probe.collector = Err("failed to map segment from shared object: Operation not permitted".into());
    probe.load_average = Some(3.5);
    probe.clock = ClockFacts { source: Some("hpet".into()), cost: Nanos::new(1400) };
    probe.calibration = Err(CalibrationProblem {
        reason: "cannot read x.json as a calibration: expected value at line 1 column 1".into(),
        hint: Some("measure again with `llm-perf doctor --calibrate`, which replaces it".into()),
    });
    probe
}

pub(super) fn calibration() -> Calibration {
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
