//! A small profiled run for tests, put through the real analysis so that its numbers fit together.

use analysis::{Evidence, InputWork, OperatorPass, PlainRuns, PricedOperator, Subject};
use types::{
    Bytes, BytesPerSecond, Cost, CpuInfo, DType, Device, DeviceId, Environment, Flops, FlopsPerSecond,
    FrameworkVersions, GitInfo, InputFacts, MemoryInfo, Metrics, Nanos, OperatingSystem, OperatorRecord, PeakUsed,
    ProfileSettings, RunHeader, Sample, SchemaTag, Stage, ToolVersions, Traffic, Work,
};

use crate::words::Spoken;

/// Milliseconds of one run of each stage: a page with tiles, and one without.
type Page = (&'static str, [u64; 2], [(Stage, i64); 6]);
const PAGES: [Page; 2] = [
    (
        "invoice.png",
        [2, 3],
        [
            (Stage::Prefill, 400),
            (Stage::Vision, 300),
            (Stage::Sam, 220),
            (Stage::Clip, 70),
            (Stage::Projector, 10),
            (Stage::Decode, 310),
        ],
    ),
    (
        "letter.png",
        [1, 1],
        [
            (Stage::Prefill, 120),
            (Stage::Vision, 60),
            (Stage::Sam, 44),
            (Stage::Clip, 14),
            (Stage::Projector, 2),
            (Stage::Decode, 155),
        ],
    ),
];

/// Work of one run: stage, GFLOP, MB.
const WORK: [(Stage, u64, u64); 6] = [
    (Stage::Prefill, 16, 400),
    (Stage::Vision, 13, 200),
    (Stage::Sam, 9, 120),
    (Stage::Clip, 4, 70),
    (Stage::Projector, 1, 10),
    (Stage::Decode, 2, 1_500),
];

/// Operators: name, module, class, stage, milliseconds, MFLOP, MB moved, calls.
type Call = (&'static str, &'static str, &'static str, Stage, i64, u64, u64, usize);
const CALLS: [Call; 8] = [
    ("linear", "lm_head", "Linear", Stage::Prefill, 60, 3_000, 40, 2),
    ("linear", "lm_head", "Linear", Stage::Decode, 4, 6, 20, 45),
    ("linear", "model.layers.0.mlp.gate_proj", "Linear", Stage::Decode, 2, 4, 10, 45),
    ("silu", "model.layers.0.mlp", "DeepseekV2MLP", Stage::Decode, 1, 0, 1, 45),
    ("attention", "model.layers.0.self_attn", "LlamaAttention", Stage::Decode, 2, 1, 8, 45),
    ("conv2d", "model.sam_model.patch_embed", "PatchEmbed", Stage::Sam, 30, 2_000, 12, 2),
    ("attention", "model.sam_model.blocks.0.attn", "Attention", Stage::Sam, 105, 9_000, 50, 2),
    ("linear", "model.projector", "MlpProjector", Stage::Projector, 6, 1_000, 5, 2),
];

/// The run.
pub(crate) fn metrics() -> Metrics {
    analysis::metrics(&subject(), &evidence()).spoken()
}

/// The same on a device whose rates are not known, without decode.
pub(crate) fn without_peak() -> Metrics {
    let (mut subject, mut evidence) = (subject(), evidence());
    subject.peak = None;
    subject.inputs.iter_mut().for_each(|input| input.generated_tokens = 1);
    subject.logits_all_positions = false;
    evidence.plain.iter_mut().for_each(|plain| {
        plain.samples.retain(|sample| sample.stage != Stage::Decode);
        plain.profiled.retain(|sample| sample.stage != Stage::Decode);
    });
    let calls = &mut evidence.operators.calls;
    calls.retain(|operator| operator.record.stage != Some(Stage::Decode));
    calls.iter_mut().for_each(|operator| operator.roofline_ns = None);
    analysis::metrics(&subject, &evidence).spoken()
}

/// A run that measured nothing.
pub(crate) fn empty() -> Metrics {
    let subject = subject();
    let run = RunHeader { model: None, device: None, weights: None, ..subject.run };
    let plain = PlainRuns { load_ns: Some(LOAD), ..PlainRuns::default() };
    let evidence = Evidence { plain: Some(plain), ..Evidence::default() };
    analysis::metrics(&Subject { run, settings: subject.settings, ..Subject::default() }, &evidence).spoken()
}

/// The machine it ran on.
pub(crate) fn environment() -> Environment {
    Environment {
        schema: SchemaTag::default(),
        captured_at: "2025-11-15T03:47:12Z".to_owned(),
        tool_version: "0.1.0".to_owned(),
        tool_features: Vec::new(),
        named: types::NamedVersions::default(),
        gpus: Vec::new(),
        tools: ToolVersions::default(),
        frameworks: FrameworkVersions::default(),
        cpu: CpuInfo {
            model: Some("Abacus 9000".to_owned()),
            architecture: "x86_64".to_owned(),
            threads_available: Some(2),
            ..CpuInfo::default()
        },
        memory: MemoryInfo { total_bytes: Some(Bytes::new(8_000_000_000)), ..MemoryInfo::default() },
        operating_system: OperatingSystem { name: Some("Debian 13".to_owned()), ..OperatingSystem::default() },
        git: Some(GitInfo { revision: "0123abc".to_owned(), dirty: Some(true) }),
        variables: Default::default(),
        notes: Vec::new(),
    }
}

/// Time that loading the model took.
const LOAD: Nanos = Nanos::new(81_000_000);

/// Rates of the device: FLOP and bytes per second.
fn rates() -> (FlopsPerSecond, BytesPerSecond) {
    (FlopsPerSecond::new(100e9), BytesPerSecond::new(20e9))
}

fn subject() -> Subject {
    let (flops, bytes_per_second) = rates();
    Subject {
        run: RunHeader {
            id: "20251115-034712".to_owned(),
            engine: "native".to_owned(),
            model: Some("deepseek-ocr-tiny".to_owned()),
            device: Some(DeviceId::cpu()),
            weights: Some("synthetic, seed 7".to_owned()),
        },
        devices: vec![Device {
            id: DeviceId::cpu(),
            name: "Abacus 9000".to_owned(),
            uuid: None,
            hardware: None,
            memory_bytes: None,
            multiprocessors: None,
        }],
        settings: Some(ProfileSettings {
            repeats: 3,
            epochs: 1,
            warmup_rounds: 1,
            batch: 1,
            seed: Some(7),
            ..ProfileSettings::default()
        }),
        inputs: PAGES.iter().map(|(name, grid, _)| input(name, *grid)).collect(),
        logits_all_positions: true,
        work: work(),
        peak: Some(PeakUsed {
            flops,
            bytes_per_second,
            dtype: DType::Fp32,
            source: "measured here, 2 threads".to_owned(),
        }),
        ..Subject::default()
    }
}

fn evidence() -> Evidence<'static> {
    let (flops, bandwidth) = rates();
    let profiled = samples().into_iter().filter(|sample| !sample.warmup && sample.repeat == 1).map(slower).collect();
    let calls = CALLS.iter().flat_map(|call| calls(call, flops, bandwidth)).collect();
    Evidence {
        plain: Some(PlainRuns { samples: samples(), profiled, load_ns: Some(LOAD) }),
        operators: OperatorPass { calls, routing: Vec::new() },
        ..Evidence::default()
    }
}

/// A warm-up round and three repeats that differ by a few percent; decode of the first page by much more.
fn samples() -> Vec<Sample> {
    let mut samples = Vec::new();
    for (name, _, stages) in PAGES {
        for (stage, time) in stages {
            for (repeat, percent) in [(0, 130), (0, 100), (1, 98), (2, 103)] {
                let unsteady = stage == Stage::Decode && name == "invoice.png" && repeat == 2;
                let wall_ns = Nanos::new(time * 10_000 * if unsteady { 150 } else { percent });
                let (input, warmup) = (Some(name.to_owned()), percent == 130);
                samples.push(Sample { stage, input, epoch: 0, repeat, rank: None, warmup, wall_ns });
            }
        }
    }
    samples
}

fn slower(sample: Sample) -> Sample {
    Sample { wall_ns: Nanos::new(sample.wall_ns.get() * 11 / 10), ..sample }
}

fn input(name: &str, grid: [u64; 2]) -> InputFacts {
    let tiled = grid != [1, 1];
    InputFacts {
        name: name.to_owned(),
        width: Some(1_240),
        height: Some(1_754),
        crop_grid: Some(grid),
        batch: 1,
        prompt_tokens: if tiled { 913 } else { 283 },
        image_tokens: if tiled { 903 } else { 273 },
        generated_tokens: if tiled { 32 } else { 16 },
    }
}

fn work() -> Vec<InputWork> {
    let mut work = Vec::new();
    for (page, (name, ..)) in PAGES.iter().enumerate() {
        let share = [1, 3][page];
        for (stage, gflop, mb) in WORK {
            let flops_matrix = Flops::new(u128::from(gflop * 1_000_000_000 / share));
            let bytes = Bytes::new(mb * 1_000_000 / share);
            work.push(InputWork { input: (*name).to_owned(), stage, work: Work { flops_matrix, bytes } });
        }
    }
    work
}

fn calls(call: &Call, flops: FlopsPerSecond, bandwidth: BytesPerSecond) -> Vec<PricedOperator> {
    let (name, module, class, stage, milliseconds, mflop, mb, calls) = *call;
    let traffic = Traffic { weights: Bytes::new(mb * 1_000_000), ..Traffic::ZERO };
    let cost =
        Cost { flops_matrix: Flops::new(u128::from(mflop) * 1_000_000), flops_vector: Flops::ZERO, bytes: traffic };
    let roofline = (cost.flops_matrix / flops).max(traffic.total() / bandwidth);
    let record = OperatorRecord {
        name: name.to_owned(),
        module: Some(module.to_owned()),
        stage: Some(stage),
        shapes: vec![vec![1, mflop.max(1), 64], vec![64, 128]],
        dtype: Some(DType::Fp32),
        clock: types::ClockId(0),
        start_ns: Nanos::ZERO,
        duration_ns: Nanos::new(milliseconds * 1_000_000),
        bytes_allocated: Some(Bytes::new(mb * 100_000)),
    };
    let roofline_ns = Some(Nanos::new((roofline.get() * 1e9).round() as i64));
    vec![PricedOperator { record, class: class.to_owned(), cost, roofline_ns }; calls]
}
