//! What a traced run rests on, and the machine it came from as far as its files tell.

use report::pages::run::{Assumptions, Setting};
use types::{
    CpuInfo, Environment, FrameworkVersions, GpuInfo, Hardware, MemoryInfo, Metrics, OperatingSystem, SchemaTag,
    ToolVersions,
};

/// The machine as far as imported files describe it. This one is another, and nothing of it is recorded.
pub(crate) fn imported_environment(metrics: &Metrics, imported_at: &str) -> Environment {
    let gpu = |(index, device): (u32, &types::Device)| GpuInfo {
        index,
        name: Some(device.name.clone()),
        uuid: device.uuid.clone(),
        hardware: device.hardware.clone(),
        memory_bytes: device.memory_bytes,
        ..GpuInfo::default()
    };
    Environment {
        schema: SchemaTag::new(),
        captured_at: imported_at.to_owned(),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        tool_features: Vec::new(),
        named: types::NamedVersions::default(),
        gpus: (0u32..).zip(&metrics.devices).map(gpu).collect(),
        tools: ToolVersions::default(),
        frameworks: FrameworkVersions::default(),
        cpu: CpuInfo { architecture: "unknown".to_owned(), ..CpuInfo::default() },
        memory: MemoryInfo::default(),
        operating_system: OperatingSystem::default(),
        git: None,
        variables: Default::default(),
        notes: vec![
            "imported: devices are as described in the files; nothing else is known about their machine".to_owned(),
            "captured_at is the time of the import".to_owned(),
        ],
    }
    .with_names()
}

/// What the run rests on.
pub(crate) fn of_trace(metrics: &Metrics, hardware: Option<&Hardware>) -> Assumptions {
    let unknown = || "not known".to_owned();
    let facts = metrics.conditions.trace.as_ref();
    let mut device: Vec<_> =
        metrics.devices.iter().map(|device| Setting::new(device.id.to_string(), device.name.clone())).collect();
    device.extend(hardware.map(|hardware| Setting::new("peak rates of", hardware.name.clone())));
    if let Some(peak) = &metrics.utilisation.peak {
        device.push(Setting::new(format!("{} matrix rate", peak.dtype), format!("{} ({})", peak.flops, peak.source)));
        device.push(Setting::new("memory bandwidth", peak.bytes_per_second));
    }
    let workload = facts.and_then(|facts| facts.workload.as_ref());
    let batch = workload.and_then(|traced| traced.workload.as_ref()).map(|workload| workload.batch);
    let evidence = workload.into_iter().flat_map(|traced| &traced.evidence);
    let missing = workload.into_iter().flat_map(|traced| &traced.missing);
    let basis = facts.and_then(|facts| facts.stages.as_ref()).map_or_else(unknown, |basis| basis.basis.to_string());
    let sources = facts.into_iter().flat_map(|facts| &facts.sources);
    Assumptions {
        run: metrics.run.id.clone(),
        device,
        repeats: vec![Setting::new(
            "instances of stages",
            match facts.and_then(|facts| facts.set_aside.as_ref()) {
                Some(aside) => format!("as marked by ranges; excluded: {}", report::pages::run::set_aside(aside)),
                None => "all in the trace; none is treated as warm-up".to_owned(),
            },
        )],
        batch: batch.map(|batch| Setting::new("prompts per batch", batch)).into_iter().collect(),
        model: vec![
            Setting::new("model", metrics.run.model.clone().unwrap_or_else(unknown)),
            Setting::new("weights", metrics.run.weights.clone().unwrap_or_else(unknown)),
        ],
        decoding: evidence
            .map(|line| Setting::new("workload", line))
            .chain(missing.map(|line| Setting::new("not known", line)))
            .collect(),
        preprocessing: Vec::new(),
        profiling: vec![
            Setting::new("stages", basis),
            Setting::new(
                "times",
                "recorded with a profiler, which slows the host: stage times are longer, and MFU and MBU lower, than \
                 without one",
            ),
            Setting::new("device work", "attributed to the stage and the operator that launched it"),
            Setting::new("attention", "counted in full for MFU, whichever kernel ran"),
        ],
        data: sources
            .map(|source| {
                let digest = source.digest().map(|digest| format!(", {digest}")).unwrap_or_default();
                Setting::new(source.path.clone(), format!("{}{digest}", source.format))
            })
            .collect(),
        repeat_command: None,
    }
}
