//! A small hand-made report and pages for the tests of this module. Sums are sums; the sizes are those of nothing real.

use std::collections::BTreeMap;

use types::*;

/// Module path, class, list of alike children, then own time in microseconds, own matrix FLOPs and own bytes, in millions.
type Row = (&'static str, &'static str, RepetitionKind, [u64; 3]);

const LIST: RepetitionKind = RepetitionKind::For;
const ONE: RepetitionKind = RepetitionKind::None;

const MODULES: &[Row] = &[
    ("(root)", "modeling_deepseekocr.DeepseekOCRForCausalLM", ONE, [0, 0, 0]),
    ("model", "modeling_deepseekocr.DeepseekOCRModel", ONE, [0, 0, 0]),
    ("model.embed_tokens", "torch.nn.Embedding", ONE, [5, 0, 24]),
    ("model.layers", "torch.nn.ModuleList", LIST, [0, 0, 0]),
    ("model.layers.0", "modeling_deepseekv2.DeepseekV2DecoderLayer", ONE, [3, 0, 14]),
    (
        "model.layers.0.self_attn",
        "transformers.models.llama.modeling_llama.LlamaAttention",
        ONE,
        [6_000, 8_000, 28_000],
    ),
    ("model.layers.0.mlp", "modeling_deepseekv2.DeepseekV2MLP", ONE, [0, 0, 0]),
    ("model.layers.0.mlp.down_proj", "torch.nn.Linear", ONE, [2_000, 3_000, 9_000]),
    ("model.layers.1", "modeling_deepseekv2.DeepseekV2DecoderLayer", ONE, [3, 0, 14]),
    (
        "model.layers.1.self_attn",
        "transformers.models.llama.modeling_llama.LlamaAttention",
        ONE,
        [4_000, 5_000, 19_000],
    ),
    ("model.layers.1.mlp", "modeling_deepseekv2.DeepseekV2MoE", ONE, [0, 0, 0]),
    ("model.layers.1.mlp.experts", "torch.nn.ModuleList", RepetitionKind::Parfor, [0, 0, 0]),
    ("model.layers.1.mlp.experts.*", "modeling_deepseekv2.DeepseekV2MLP", ONE, [0, 0, 0]),
    ("model.layers.1.mlp.experts.*.down_proj", "torch.nn.Linear", ONE, [15_000, 15_000, 72_000]),
    ("model.layers.1.mlp.gate", "modeling_deepseekv2.MoEGate", ONE, [450, 50, 2_150]),
    ("model.layers.1.mlp.shared_experts", "modeling_deepseekv2.DeepseekV2MLP", ONE, [0, 0, 0]),
    ("model.layers.1.mlp.shared_experts.down_proj", "torch.nn.Linear", ONE, [3_000, 4_500, 14_000]),
    ("model.layers.1.input_layernorm", "modeling_deepseekv2.DeepseekV2RMSNorm", ONE, [3, 0, 14]),
    ("model.layers.2", "modeling_deepseekv2.DeepseekV2DecoderLayer", ONE, [3, 0, 14]),
    (
        "model.layers.2.self_attn",
        "transformers.models.llama.modeling_llama.LlamaAttention",
        ONE,
        [4_000, 5_000, 19_000],
    ),
    ("model.layers.2.mlp", "modeling_deepseekv2.DeepseekV2MoE", ONE, [0, 0, 0]),
    ("model.layers.2.mlp.experts", "torch.nn.ModuleList", RepetitionKind::Parfor, [0, 0, 0]),
    ("model.layers.2.mlp.experts.*", "modeling_deepseekv2.DeepseekV2MLP", ONE, [0, 0, 0]),
    ("model.layers.2.mlp.experts.*.down_proj", "torch.nn.Linear", ONE, [15_000, 15_000, 72_000]),
    ("model.layers.2.mlp.gate", "modeling_deepseekv2.MoEGate", ONE, [450, 50, 2_150]),
    ("model.layers.2.mlp.shared_experts", "modeling_deepseekv2.DeepseekV2MLP", ONE, [0, 0, 0]),
    ("model.layers.2.mlp.shared_experts.down_proj", "torch.nn.Linear", ONE, [3_000, 4_500, 14_000]),
    ("model.layers.2.input_layernorm", "modeling_deepseekv2.DeepseekV2RMSNorm", ONE, [3, 0, 14]),
    ("model.sam_model", "deepencoder.ImageEncoderViT", ONE, [4_000, 2_400_000, 4_000]),
    ("model.vision_model", "deepencoder.VitModel", ONE, [1_100, 900_000, 1_500]),
    ("model.projector", "deepencoder.MlpProjector", ONE, [4, 2_600, 12]),
    ("lm_head", "torch.nn.Linear", ONE, [34_000, 170_000, 165_000]),
];

/// A report of one model on one device.
pub(crate) fn report() -> AnalyticReport {
    let modules: Vec<ModuleNode> = MODULES.iter().map(node).collect();
    let metrics: Vec<ModuleMetrics> = MODULES.iter().map(metrics).collect();
    let total = metrics[0].total_time_ms;
    let metrics =
        metrics.into_iter().map(|one| ModuleMetrics { share_of_model_time: one.total_time_ms / total, ..one });
    AnalyticReport {
        schema: SchemaTag::new(),
        report_id: "deepseek-ocr.dsocr-standard-v1.h200".to_owned(),
        tool_version: "0.1.0".to_owned(),
        origin: Origin::Modelled,
        model: model(),
        workload: workload(),
        device: h200(),
        stages: stages(total),
        memory: MemoryNeed {
            weights_bytes: Bytes::new(6_672_212_480),
            activations_peak_bytes: Bytes::new(401_000_000),
            kv_bytes_per_token: Some(Bytes::new(61_440)),
            kv_bytes: Bytes::new(62_853_120),
            total_bytes: Bytes::new(7_136_065_600),
            fits: true,
            sequences_that_fit: Some(2_130),
        },
        modules,
        operator_categories: vec![
            category("linear", "Linear layers"),
            category("attention", "Attention"),
            category("pooling", "Pooling"),
            category("other", "Other"),
        ],
        module_metrics: metrics.collect(),
        categories: vec![
            OperatorShare { time_ms: 12.0, flops_tflops: 2.5, io_tb: 0.06, calls: 6_000, ..kind("attention", 0.7) },
            OperatorShare { time_ms: 80.0, flops_tflops: 1.0, io_tb: 0.35, calls: 90_000, ..kind("linear", 0.28) },
            kind("pooling", 0.0),
            OperatorShare { time_ms: 0.021, flops_tflops: 0.07, io_tb: 1e-4, calls: 500, ..kind("other", 0.02) },
        ],
        flops_in_named_categories: 0.98,
        time_in_named_categories: 0.999_8,
        devices: vec![prediction(h200(), total, 1.0)],
        exchanges: Vec::new(),
        coverage: Some(Coverage { target: target(), covered: 2, uncovered: Vec::new() }),
        profile_run_id: None,
        predicted_total_time_ms: total,
        measured_total_time_ms: None,
        predicted_vs_measured_ratio: None,
        forecast_vs_measured_ratio: None,
        measured_parts: Vec::new(),
        forecast_total: types::ForecastTime::default(),
        forecast: None,
        assumptions: vec![Assumption {
            text:
                "each token chooses its 6 of 64 experts evenly and independently: E * (1 - (1 - k / E)^T) are touched"
                    .to_owned(),
            origin: Origin::Assumed,
        }],
        notes: vec!["Decode is summed exactly over 511 steps.".to_owned()],
        layer_docs_dir: "layers".to_owned(),
    }
}

/// The same report with a second device that is too small, and a class nobody models.
pub(super) fn on_two_devices() -> AnalyticReport {
    let mut report = report();
    let small =
        DeviceUsed { id: "tiny".to_owned(), name: "Tiny 4".to_owned(), memory_bytes: Bytes::new(4 << 30), ..h200() };
    report.devices.push(DevicePrediction {
        fits: false,
        sequences_that_fit: Some(0),
        ..prediction(small, report.predicted_total_time_ms, 15.0)
    });
    report.coverage = Some(Coverage { target: target(), covered: 1, uncovered: vec!["Odd".to_owned()] });
    report
}

/// A report of a model that does nothing.
pub(crate) fn empty() -> AnalyticReport {
    let full = report();
    let zero = || StageCost { operations: 0, passes: 0, time_ms: 0.0, ..full.stages["decode"].clone() };
    AnalyticReport {
        stages: BTreeMap::from([("decode".to_owned(), zero())]),
        modules: Vec::new(),
        module_metrics: Vec::new(),
        categories: Vec::new(),
        operator_categories: Vec::new(),
        devices: Vec::new(),
        coverage: None,
        assumptions: Vec::new(),
        notes: Vec::new(),
        predicted_total_time_ms: 0.0,
        workload: WorkloadProfile { seq_len: 0, image_tokens: 0, max_new_tokens: 0, base_size: None, ..full.workload },
        memory: MemoryNeed {
            kv_bytes_per_token: None,
            kv_bytes: Bytes::ZERO,
            fits: false,
            sequences_that_fit: None,
            ..full.memory
        },
        ..report()
    }
}

/// The page of a class with parts, operations of its own and an assumption.
pub(super) fn mixture_page() -> LayerPage {
    let part = |name: &str, class: &str| LayerPart { name: name.to_owned(), class: class.to_owned() };
    let experts = (0..64).map(|index| part(&format!("experts.{index}"), "DeepseekV2MLP"));
    LayerPage {
        class: "DeepseekV2MoE".to_owned(),
        qualified_class: "modeling_deepseekv2.DeepseekV2MoE".to_owned(),
        aliases: vec!["DeepseekMoE".to_owned()],
        definition: "y = sum over the chosen experts of score * expert(x), plus shared_experts(x)".to_owned(),
        instances: 11,
        example: "model.layers.1.mlp".to_owned(),
        settings: vec![("n_routed_experts".to_owned(), "64".to_owned()), ("top_k".to_owned(), "6".to_owned())],
        parameters: 226_918_400,
        parts: experts.chain([part("gate", "MoEGate"), part("shared_experts", "DeepseekV2MLP")]).collect(),
        passes: vec![
            LayerPass {
                name: "prefill".to_owned(),
                inputs: vec!["x [1, 512, 1280] bf16".to_owned()],
                output: Some("[1, 512, 1280] bf16".to_owned()),
                operations: vec![linear(512), combine(512)],
                parts: vec![
                    part_cost("gate", "MoEGate", 83_886_080),
                    part_cost("shared_experts", "DeepseekV2MLP", 7_046_430_720),
                ],
                sums: vec![FormulaLine {
                    quantity: "flops_matrix".to_owned(),
                    formula: "gate + shared_experts + own".to_owned(),
                    substituted: "83886080 + 7046430720 + 0".to_owned(),
                    value: 7_130_316_800,
                    origin: Origin::Modelled,
                }],
                total: cost(),
                time: Seconds::new(98e-6),
            },
            LayerPass {
                name: "decode step 1 of 511".to_owned(),
                inputs: Vec::new(),
                output: None,
                operations: Vec::new(),
                parts: Vec::new(),
                sums: Vec::new(),
                total: Cost::ZERO,
                time: Seconds::ZERO,
            },
        ],
        assumptions: vec!["tokens choose experts evenly".to_owned()],
    }
}

fn part_cost(name: &str, class: &str, flops: u128) -> PartCost {
    PartCost {
        symbol: name.to_owned(),
        names: vec![name.to_owned()],
        class: class.to_owned(),
        cost: Cost { flops_matrix: Flops::new(flops), ..Cost::ZERO },
        formulas: vec![("linear".to_owned(), vec!["flops_matrix = 2 * M * N * K".to_owned()])],
        has_parts: class == "DeepseekV2MLP",
    }
}

/// The page of a class that the workload never reaches.
pub(super) fn idle_page() -> LayerPage {
    LayerPage {
        class: "Conv2d".to_owned(),
        qualified_class: "torch.nn.Conv2d".to_owned(),
        aliases: Vec::new(),
        definition: "each output is the sum over channels and taps of input times weight, plus bias".to_owned(),
        instances: 1,
        example: "model.vision_model.embeddings.patch_embedding".to_owned(),
        parameters: 602_112,
        settings: Vec::new(),
        parts: Vec::new(),
        passes: Vec::new(),
        assumptions: Vec::new(),
    }
}

fn linear(rows: u128) -> OperationLines {
    OperationLines {
        name: "linear".to_owned(),
        definition: "y = x W^T + bias, for R rows of I inputs and O outputs".to_owned(),
        derivation: "Each of the R * O results takes I multiply-adds.".to_owned(),
        source: "counted from the definition".to_owned(),
        inputs: vec!["activation [512, 1280] bf16".to_owned(), "weight [1280, 1280] bf16".to_owned()],
        output: "[512, 1280] bf16".to_owned(),
        formulas: vec![
            formula("flops_matrix", "2 * R * I * O", &format!("2 * {rows} * 1280 * 1280"), 2 * rows * 1280 * 1280),
            formula("bytes.activations_in", "N * b / 8", &format!("{} * 16 / 8", rows * 1280), rows * 1280 * 2),
            FormulaLine {
                origin: Origin::Assumed,
                ..formula(
                    "bytes.weights",
                    "round(w * E * (1 - (1 - k / E)^T))",
                    "round(3276800.0 * 64 * (1 - (1 - 6 / 64)^1))",
                    19_660_800,
                )
            },
        ],
        peaks: "bf16 matrix peak of 990 TFLOP/s and 4.80 TB/s".to_owned(),
        time: Seconds::new(4.1e-6),
        bound: "memory",
    }
}

fn combine(tokens: u128) -> OperationLines {
    OperationLines {
        name: "combine".to_owned(),
        definition: "y[t] = sum over k of score[t, k] * x[t * k]".to_owned(),
        derivation: "A product and an addition for each element, P = S * (T - S) + S * (S + 1) / 2 of them.".to_owned(),
        source: "Dai et al. 2024, DeepSeekMoE, equation 9".to_owned(),
        inputs: vec!["activation [3072, 1280] bf16".to_owned()],
        output: "[512, 1280] bf16".to_owned(),
        formulas: vec![
            formula("flops_vector", "2 * T * k * O", &format!("2 * {tokens} * 6 * 1280"), 2 * tokens * 6 * 1280),
            formula("bytes.activations_in", "N * b / 8", "3932160 * 16 / 8", 7_864_320),
            formula("bytes.activations_out", "N * b / 8", "655360 * 16 / 8", 1_310_720),
            formula("bytes.kv_read", "N * b / 8", "0 * 16 / 8", 0),
            formula("bytes.kv_write", "2 * (S * (T - S) + S * (S + 1) / 2)", "2 * (3 * (5 - 3) + 3 * (3 + 1) / 2)", 24),
            formula("scratch_bytes", "2 ^ n", "2 ^ 10", 1_024),
        ],
        peaks: "fp32 vector peak of 66.9 TFLOP/s and 4.80 TB/s".to_owned(),
        time: Seconds::new(1.9e-6),
        bound: "memory",
    }
}

fn formula(quantity: &str, formula: &str, substituted: &str, value: u128) -> FormulaLine {
    let [quantity, formula, substituted] = [quantity, formula, substituted].map(str::to_owned);
    FormulaLine { quantity, formula, substituted, value, origin: Origin::Modelled }
}

fn cost() -> Cost {
    Cost {
        flops_matrix: Flops::new(24_159_191_040),
        flops_vector: Flops::new(7_864_320),
        bytes: Traffic { weights: Bytes::new(453_836_800), activations_in: Bytes::new(9_175_040), ..Traffic::ZERO },
    }
}

fn node(&(path, class, repetition, _): &Row) -> ModuleNode {
    let children: Vec<_> = MODULES.iter().filter(|child| parent(child.0) == Some(path)).map(|child| child.0).collect();
    ModuleNode {
        module_id: path.to_owned(),
        name: path.rsplit('.').next().unwrap_or(path).to_owned(),
        qualified_class_name: class.to_owned(),
        stage: ModuleStage::Decode,
        parent_id: parent(path).map(str::to_owned),
        repetition,
        repetition_count: (repetition != ONE).then_some(children.len() as u64),
        children: children.into_iter().map(str::to_owned).collect(),
        constructor_params: BTreeMap::new(),
    }
}

fn parent(path: &str) -> Option<&str> {
    match path.rsplit_once('.') {
        Some((parent, _)) => Some(parent),
        None if path == "(root)" => None,
        None => Some("(root)"),
    }
}

fn metrics(&(path, _, _, own): &Row) -> ModuleMetrics {
    let inside = |other: &&Row| {
        path == "(root)" || other.0 == path || other.0.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'))
    };
    let sum = |part: usize| MODULES.iter().filter(inside).map(|row| row.3[part]).sum::<u64>();
    let million = 1_000_000;
    ModuleMetrics {
        module_id: path.to_owned(),
        profile_id: "dsocr-standard-v1".to_owned(),
        calls: 512,
        total_time_ms: sum(0) as f64 / 1e3,
        self_time_ms: own[0] as f64 / 1e3,
        total_flops_tflops: sum(1) as f64 / 1e6,
        total_io_tb: sum(2) as f64 / 1e6,
        flops_matrix: Flops::new(u128::from(sum(1)) * million),
        flops_vector: Flops::new(u128::from(sum(1)) * 1_000),
        bytes: Traffic { weights: Bytes::new(sum(2) * million as u64), ..Traffic::ZERO },
        memory_weights_gb: 0.0,
        memory_activations_gb: 0.0,
        memory_kvcache_gb: 0.0,
        share_of_model_time: 0.0,
        operator_breakdown: Vec::new(),
        forecast: types::ForecastTime::default(),
    }
}

fn stages(total: f64) -> BTreeMap<String, StageCost> {
    let stage = |time_ms: f64, bound: &str, flops: u128, gigabytes: u64, passes: u64| StageCost {
        flops_matrix: Flops::new(flops),
        flops_vector: Flops::new(flops / 300),
        bytes: Traffic {
            weights: Bytes::new(gigabytes * 900_000_000),
            activations_in: Bytes::new(gigabytes * 60_000_000),
            activations_out: Bytes::new(gigabytes * 40_000_000),
            kv_read: Bytes::new(if passes > 1 { 24_000_000_000 } else { 0 }),
            kv_write: Bytes::new(passes * 61_440),
        },
        operations: passes * 1_280,
        time_ms,
        compute_bound_ms: if bound == "compute" { time_ms * 0.8 } else { 0.0 },
        memory_bound_ms: if bound == "compute" { time_ms * 0.2 } else { time_ms },
        communication_ms: 0.0,
        sent_bytes: Bytes::ZERO,
        bound: bound.to_owned(),
        passes,
        forecast: types::ForecastTime::default(),
    };
    let prefill = 6.2;
    let stages = [
        ("prefill", stage(prefill, "compute", 3_400_000_000_000, 11, 1)),
        ("vision", stage(5.104, "compute", 3_302_600_000_000, 6, 1)),
        ("sam", stage(4.0, "compute", 2_400_000_000_000, 4, 1)),
        ("clip", stage(1.1, "compute", 900_000_000_000, 1, 1)),
        ("projector", stage(0.004, "memory", 2_600_000_000, 0, 1)),
        ("prefill_text", stage(prefill - 5.104, "memory", 97_400_000_000, 5, 1)),
        ("decode", stage(total - prefill, "memory", 595_000_000_000, 402, 511)),
    ];
    BTreeMap::from(stages.map(|(name, cost)| (name.to_owned(), cost)))
}

fn prediction(device: DeviceUsed, total: f64, slower: f64) -> DevicePrediction {
    let step = (total - 6.2) * slower / 511.0;
    DevicePrediction {
        device,
        stages: stages(total),
        predicted_total_time_ms: total * slower,
        ttft_ms: 6.2 * slower,
        time_per_output_token_ms: Some(step),
        decode_tokens_per_second: Some(1e3 / step),
        fits: true,
        sequences_that_fit: Some(2_130),
    }
}

fn model() -> ModelSpec {
    ModelSpec {
        model_id: "deepseek-ocr".to_owned(),
        model_variant: "DeepseekOCRForCausalLM".to_owned(),
        part_of: None,
        hf_revision: None,
        config_path: "builtin:deepseek-ocr".to_owned(),
        hidden_size: 1280,
        intermediate_size: Some(6848),
        num_layers: 12,
        num_attention_heads: Some(10),
        vision_backbone: Some("SAM ViT-B and CLIP-L".to_owned()),
        uses_moe: true,
        quantisation: None,
        dtype: DType::Bf16,
        parameters: ParameterCounts {
            total: 3_336_106_240,
            by_module: BTreeMap::from([
                ("model.sam_model".to_owned(), 95_569_152),
                ("lm_head".to_owned(), 165_478_400),
            ]),
        },
        notes: String::new(),
    }
}

fn workload() -> WorkloadProfile {
    WorkloadProfile {
        profile_id: "dsocr-standard-v1".to_owned(),
        description: "one page of mixed layout".to_owned(),
        seq_len: 512,
        text_tokens: 19,
        image_tokens: 493,
        base_size: Some(1024),
        image_size: Some(640),
        crop_mode: true,
        crop_grid: Some([1, 2]),
        max_new_tokens: 512,
        decode_steps: 511,
        doc_kind: PageKind::MixedLayout,
        num_pages: 1,
        batch: 1,
        dtype: DType::Bf16,
        attention: AttentionKind::Eager,
        logits: LogitsKind::All,
        routing: RoutingKind::Balanced,
        quantisation: Quantisation::default(),
        parallel: Parallel::default(),
    }
}

fn h200() -> DeviceUsed {
    let rate = |dtype, unit: &str, flops| RateUsed {
        dtype,
        unit: unit.to_owned(),
        flops: FlopsPerSecond::new(flops),
        source: "NVIDIA H200 datasheet, dense".to_owned(),
    };
    DeviceUsed {
        id: "h200".to_owned(),
        name: "NVIDIA H200".to_owned(),
        memory_bytes: Bytes::new(141_000_000_000),
        memory_source: Some("NVML on the device".to_owned()),
        bytes_per_second: BytesPerSecond::new(4.8e12),
        bandwidth_source: Some("NVIDIA H200 Tensor Core GPU datasheet".to_owned()),
        interconnect_bytes_per_second: Some(BytesPerSecond::new(900e9)),
        interconnect_source: Some("NVIDIA H200 Tensor Core GPU datasheet".to_owned()),
        rates: vec![rate(DType::Bf16, "matrix", 989.5e12), rate(DType::Fp32, "vector", 66.9e12)],
        launch_us: None,
    }
}

fn category(id: &str, name: &str) -> OperatorCategory {
    OperatorCategory {
        category_id: id.to_owned(),
        display_name: name.to_owned(),
        description: String::new(),
        match_classes: Vec::new(),
    }
}

fn kind(id: &str, share: f64) -> OperatorShare {
    OperatorShare {
        category_id: id.to_owned(),
        calls: 0,
        flops_tflops: 0.0,
        io_tb: 0.0,
        time_ms: 0.0,
        share_of_module_flops: share,
    }
}

fn target() -> TargetOperatorList {
    let operator = |class: &str| TargetOperator {
        class_name: class.to_owned(),
        class_name_qualified: format!("torch.nn.{class}"),
        is_pytorch_builtin: true,
        is_custom: false,
        children_classes: Vec::new(),
        default_category_id: String::new(),
    };
    TargetOperatorList {
        snapshot_id: "2025-01-01T00:00:00Z".to_owned(),
        source_artifact_dir: "snapshots".to_owned(),
        layers_md_path: None,
        layers_json_path: "snapshots/torchinfo-unique-layers.json".to_owned(),
        stages_json_path: None,
        operators: vec![operator("Linear"), operator("Odd")],
    }
}

/// A forecast without a calibration, in eager mode only.
pub(crate) fn assumed_forecast() -> Forecast {
    let range = |value: f64| ForecastRange { value, low: value / 2.0, high: value * 2.0 };
    Forecast {
        origin: Origin::Assumed,
        basis: "70% of the matrix peak, 80% of the bandwidth; not calibrated".to_owned(),
        calibrated_share: 0.0,
        mode: ExecutionMode::Eager,
        memory_bytes: Bytes::new(7_000_000_000),
        modes: vec![ModeForecast {
            mode: ExecutionMode::Eager,
            total: ForecastTime::default(),
            ttft_ms: range(90.0),
            time_per_output_token_ms: Some(range(19.0)),
            decode_tokens_per_second: Some(range(52.0)),
            prefill_device_ms: range(20.0),
            decode_device_ms: Some(range(3.0)),
            launch_gaps_ns: Nanos::new(8_000_000_000),
            kernels: 100_000,
            prefill_contributions: Vec::new(),
            decode_contributions: Vec::new(),
        }],
        kernel_families: Vec::new(),
        notes: vec!["the cost of launches was not measured: it is assumed".to_owned()],
    }
}
