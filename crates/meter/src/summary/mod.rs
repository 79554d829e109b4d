//! A prediction laid out by stage, module and kind of operator, with roofline times: the analytic report.

mod metrics;
mod modules;
mod pages;
mod part_sums;
mod stages;
mod timed_ops;

use std::collections::{BTreeMap, BTreeSet};

use network::{Model, config::ModelConfig};
use types::{
    AnalyticReport, Assumption, Bytes, ComputeUnit, DType, DevicePrediction, DeviceUsed, Exchange, ForecastTime,
    MemoryNeed, ModelSpec, OperatorCategory, Origin, Parallel, ParameterCounts, Quantisation, RateUsed, SchemaTag,
    Stage, Workload, WorkloadProfile,
};

use crate::{Category, Collective, Prediction, Roofline};

use modules::ModuleTree;
pub use pages::layer_pages;
use timed_ops::TimedOps;

/// What a report is about.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// Name of the model on the command line, or the file its configuration came from.
    pub model_id: &'a str,
    /// File the configuration came from; `builtin:NAME` for embedded ones.
    pub config_path: &'a str,
    /// Sizes.
    pub config: &'a ModelConfig,
    /// The network of these sizes.
    pub model: &'a Model,
    /// The workload.
    pub workload: &'a Workload,
    /// What it costs.
    pub prediction: &'a Prediction,
    /// Version of llm-perf.
    pub tool_version: &'a str,
}

/// Lays the prediction out, with times for `first` and, beside them, for all of `rooflines`.
pub fn summarise(subject: &Subject<'_>, first: &Roofline<'_>, rooflines: &[Roofline<'_>]) -> AnalyticReport {
    let Subject { prediction, workload, model, .. } = *subject;
    let timed = TimedOps::new(prediction, first);
    let tree = ModuleTree::new(model.blueprint(), prediction);
    let stages = stages::stages(model, prediction, &timed);
    let total_ms = stages::total_ms(&stages);
    let memory = memory(prediction, first.hardware().memory_bytes);
    let metrics = metrics::Metrics::new(subject, &tree, &timed);
    let devices = rooflines.iter().map(|roofline| device_prediction(subject, roofline)).collect();
    AnalyticReport {
        schema: SchemaTag::new(),
        report_id: format!("{}/{}/{}", subject.model_id, workload.profile_id, first.hardware().id),
        tool_version: subject.tool_version.to_owned(),
        origin: Origin::Modelled,
        model: model_spec(subject.model_id, subject.config_path, subject.config, model),
        workload: profile(workload),
        device: device_used(first, prediction),
        predicted_total_time_ms: total_ms,
        memory,
        modules: tree.nodes(model),
        operator_categories: categories(),
        module_metrics: metrics.rows(),
        categories: metrics.categories(),
        flops_in_named_categories: metrics.named_flops(),
        time_in_named_categories: metrics.named_time(),
        stages,
        devices,
        exchanges: exchanges(prediction, first),
        coverage: None,
        profile_run_id: None,
        forecast_total: ForecastTime::default(),
        forecast: None,
        measured_total_time_ms: None,
        predicted_vs_measured_ratio: None,
        forecast_vs_measured_ratio: None,
        measured_parts: Vec::new(),
        caveats: Vec::new(),
        assumptions: assumptions(subject, first),
        notes: vec![
            "Times are roofline times, not a forecast: real kernels reach only part of each peak, and launches, \
             synchronisation and host work add to them."
                .to_owned(),
        ],
        layer_docs_dir: "layers".to_owned(),
    }
}

/// Element types in which the prediction does matrix work.
pub fn matrix_dtypes(prediction: &Prediction) -> Vec<DType> {
    let prefill = prediction.prefill.ops.iter();
    let decode = prediction.decode.iter().flat_map(|decode| decode.ops.iter().map(|op| &op.record));
    let matrix = prefill.chain(decode).filter(|record| record.cost.flops_matrix.get() > 0);
    matrix.map(|record| record.price.matrix_dtype).collect::<BTreeSet<_>>().into_iter().collect()
}

fn device_prediction(subject: &Subject<'_>, roofline: &Roofline<'_>) -> DevicePrediction {
    let Subject { prediction, workload, model, .. } = *subject;
    let timed = TimedOps::new(prediction, roofline);
    let stages = stages::stages(model, prediction, &timed);
    let ttft_ms = stages.get(Stage::Prefill.name()).map_or(0.0, |stage| stage.time_ms);
    let per_step = stages
        .get(Stage::Decode.name())
        .filter(|stage| stage.passes > 0)
        .map(|stage| stage.time_ms / stage.passes as f64);
    DevicePrediction {
        device: device_used(roofline, prediction),
        predicted_total_time_ms: stages::total_ms(&stages),
        ttft_ms,
        time_per_output_token_ms: per_step,
        decode_tokens_per_second: per_step.filter(|ms| *ms > 0.0).map(|ms| workload.batch as f64 / ms * 1e3),
        fits: prediction.footprint.fits(roofline.hardware().memory_bytes),
        sequences_that_fit: prediction.footprint.sequences(roofline.hardware().memory_bytes),
        stages,
    }
}

fn memory(prediction: &Prediction, device: Bytes) -> MemoryNeed {
    let need = &prediction.footprint;
    MemoryNeed {
        weights_bytes: need.weights,
        activations_peak_bytes: need.activations,
        kv_bytes_per_token: need.kv_per_token,
        kv_bytes_per_token_later: need.kv_per_token_later.filter(|later| Some(*later) != need.kv_per_token),
        kv_bytes: need.kv(),
        total_bytes: need.total(),
        fits: need.fits(device),
        sequences_that_fit: need.sequences(device),
    }
}

/// Exchanges of one kind and size, added up.
fn exchanges(prediction: &Prediction, roofline: &Roofline<'_>) -> Vec<Exchange> {
    let link = roofline.hardware().interconnect_bytes_per_second;
    let mut found: Vec<Exchange> = Vec::new();
    let decode = prediction.decode.as_ref().map(|decode| &decode.first);
    for (stage, pass) in [(Stage::Prefill, Some(&prediction.prefill)), (Stage::Decode, decode)] {
        for message in pass.iter().flat_map(|pass| &pass.messages) {
            let (stage, collective) = (stage.name(), message.collective.name());
            let is_same = |other: &&mut Exchange| {
                other.stage == stage
                    && other.collective == collective
                    && other.devices == message.devices
                    && other.tensor_bytes == message.tensor
            };
            let time_ms = link.map_or(0.0, |link| message.time(link).as_millis());
            match found.iter_mut().find(is_same) {
                Some(same) => {
                    same.per_pass += message.count;
                    same.time_per_pass_ms += time_ms;
                    if message.collective != Collective::PointToPoint {
                        same.sent_bytes_per_pass += message.sent();
                    }
                }
                None => found.push(Exchange {
                    stage: stage.to_owned(),
                    collective: collective.to_owned(),
                    devices: message.devices,
                    per_pass: message.count,
                    tensor_bytes: message.tensor,
                    sent_bytes_per_pass: message.sent(),
                    time_per_pass_ms: time_ms,
                }),
            }
        }
    }
    found
}

/// What reports say of a model: `model_id` is its name, `config_path` the file its sizes came from.
pub fn model_spec(model_id: &str, config_path: &str, config: &ModelConfig, model: &Model) -> ModelSpec {
    let facts = config.facts();
    let blueprint = model.blueprint();
    let parts = blueprint.modules().filter(|(_, entry)| !entry.path.is_empty() && entry.path.split('.').count() <= 2);
    let by_module: BTreeMap<_, _> = parts
        .map(|(_, entry)| (entry.path.clone(), blueprint.parameters_under(&entry.path)))
        .filter(|(_, count)| *count > 0)
        .collect();
    let total = blueprint.parameters_under("");
    let idle = config.decoder().map_or(0, |decoder| decoder.idle_parameters());
    let table = config.decoder().filter(|decoder| !decoder.tied_embeddings).map(|decoder| decoder.table());
    ModelSpec {
        model_id: model_id.to_owned(),
        model_variant: facts.class.to_owned(),
        part_of: config.decoder().and_then(|decoder| decoder.part_of.clone()),
        hf_revision: None,
        config_path: config_path.to_owned(),
        hidden_size: facts.width,
        intermediate_size: facts.intermediate,
        num_layers: facts.layers,
        num_attention_heads: facts.heads,
        vision_backbone: facts.vision_backbone.map(str::to_owned),
        uses_moe: facts.mixes_experts,
        dtype: config.dtype(),
        quantisation: config.quantisation().map(|quantisation| quantisation.description()),
        parameters: ParameterCounts {
            total,
            active: (idle > 0).then_some(total.saturating_sub(idle)),
            embedding: table,
            by_module,
        },
        notes: String::new(),
    }
}

fn profile(workload: &Workload) -> WorkloadProfile {
    let image = workload.image;
    WorkloadProfile {
        profile_id: workload.profile_id.clone(),
        description: workload.description.clone(),
        seq_len: workload.seq_len,
        text_tokens: workload.text_tokens,
        image_tokens: workload.seq_len - workload.text_tokens,
        base_size: image.map(|image| image.base_size),
        image_size: image.map(|image| image.image_size),
        crop_mode: image.is_some_and(|image| image.crop_grid != [1, 1]),
        crop_grid: image.map(|image| image.crop_grid),
        max_new_tokens: workload.max_new_tokens,
        decode_steps: workload.decode_steps,
        doc_kind: workload.doc_kind,
        num_pages: workload.num_pages,
        batch: workload.batch,
        dtype: workload.dtype,
        attention: workload.attention,
        logits: workload.logits,
        routing: workload.routing,
        quantisation: workload.quantisation,
        parallel: workload.parallel,
    }
}

fn device_used(roofline: &Roofline<'_>, prediction: &Prediction) -> DeviceUsed {
    let hardware = roofline.hardware();
    let source = |dtype: DType, unit: ComputeUnit| {
        let peak = hardware.peak(dtype, unit)?;
        let title = hardware.sources.get(&peak.source).map_or(peak.source.as_str(), |source| source.title.as_str());
        Some(title.to_owned())
    };
    let vector_source = source(DType::Fp32, ComputeUnit::Vector)
        .or_else(|| source(DType::Fp32, ComputeUnit::Matrix))
        .unwrap_or_default();
    // A type the matrix unit does not have runs at the vector rate, which is listed anyway.
    let computed: BTreeSet<DType> =
        matrix_dtypes(prediction).into_iter().map(|dtype| roofline.computed_in(dtype)).collect();
    let mut rates: Vec<_> = computed
        .into_iter()
        .filter_map(|dtype| {
            let source = source(dtype, ComputeUnit::Matrix)?;
            Some(RateUsed { dtype, unit: "matrix".to_owned(), flops: roofline.matrix(dtype)?, source })
        })
        .collect();
    let vector =
        RateUsed { dtype: DType::Fp32, unit: "vector".to_owned(), flops: roofline.vector(), source: vector_source };
    rates.push(vector);
    let number_source = |name: &str| {
        let key = &hardware.number_sources.get(name)?.source;
        Some(hardware.sources.get(key).map_or_else(|| key.clone(), |source| source.title.clone()))
    };
    DeviceUsed {
        id: hardware.id.clone(),
        name: hardware.name.clone(),
        memory_bytes: hardware.memory_bytes,
        memory_source: number_source("memory_bytes"),
        bytes_per_second: hardware.bytes_per_second,
        bandwidth_source: number_source("bytes_per_second"),
        interconnect_bytes_per_second: hardware.interconnect_bytes_per_second,
        interconnect_source: number_source("interconnect_bytes_per_second"),
        rates,
        launch_us: roofline.launch().map(|launch| launch.get() * 1e6),
    }
}

fn categories() -> Vec<OperatorCategory> {
    Category::ALL
        .into_iter()
        .map(|category| {
            let (display_name, description) = category.words();
            OperatorCategory {
                category_id: category.name().to_owned(),
                display_name: display_name.to_owned(),
                description: description.to_owned(),
                match_classes: category.match_classes().iter().map(|class| (*class).to_owned()).collect(),
            }
        })
        .collect()
}

fn assumptions(subject: &Subject<'_>, roofline: &Roofline<'_>) -> Vec<Assumption> {
    let mut texts = basis(roofline.launch().is_some());
    if let Some(spread) = subject.prediction.prefill.ops.iter().find_map(|op| op.spread) {
        texts.push(format!(
            "Each token chooses {} of {} experts, independently and with equal probability. The weights of each expert \
             that is used are read once; prefill is expected to use {:.2} of {}.",
            spread.per_token,
            spread.experts,
            spread.distinct(),
            spread.experts
        ));
    }
    if let Some(whole) = subject.config.decoder().and_then(|decoder| decoder.part_of.as_deref()) {
        texts.push(format!("Only the decoder of {whole} is modelled, on text: its other parts are not supported."));
    }
    texts.extend(of_checkpoint(subject));
    if let Some((stored, computed)) = roofline.widened() {
        let stored = stored.iter().map(|dtype| dtype.name()).collect::<Vec<_>>().join(" or ");
        texts.push(format!(
            "{} has no {stored} matrix unit: weights stored in {stored} are widened, and their GEMMs run in {computed}, as \
             engines do there.",
            roofline.hardware().name
        ));
    }
    texts.extend(of_storage(&subject.workload.quantisation));
    texts.extend(of_sharing(&subject.workload.parallel));
    assumed(texts)
}

/// What a quantised checkpoint takes for granted, where the workload does not override it.
fn of_checkpoint(subject: &Subject<'_>) -> Option<String> {
    let quantisation = subject.config.quantisation().filter(|_| subject.workload.quantisation.weights.is_none())?;
    Some(format!(
        "The checkpoint is quantised ({}); all other weights are in {}. Converting between element types is free, and \
         activations are not quantised in memory. GEMMs in an element type the device has no peak for run in {}.",
        quantisation.description(),
        subject.workload.dtype,
        subject.workload.dtype
    ))
}

fn of_storage(quantisation: &Quantisation) -> Vec<String> {
    let mut texts = Vec::new();
    if let Some(weights) = quantisation.weights {
        texts.push(format!(
            "The weight matrices of decoder layers are stored in {weights} with 16-bit scales; norms, biases, embeddings, \
             head, routers and vision keep the workload's element type. Converting between element types is free, and \
             activations are not quantised in memory."
        ));
    }
    if let Some(kv) = quantisation.kv {
        texts.push(format!("The KV cache is stored in {kv}; converting it is free."));
    }
    texts
}

fn of_sharing(parallel: &Parallel) -> Vec<String> {
    if parallel.is_single() {
        return Vec::new();
    }
    let mut texts = vec![format!(
        "The model runs on {} devices (tensor {}, expert {}, pipeline {}); FLOPs, bytes and memory are per device. \
         Collectives send the bytes of a ring algorithm at the link's bandwidth in one direction, without latency and \
         without overlap.",
        parallel.devices(),
        parallel.tensor,
        parallel.expert,
        parallel.pipeline
    )];
    if parallel.pipeline > 1 {
        texts.push("One batch passes through the pipeline stages in sequence, without micro-batches.".to_owned());
    }
    texts
}

/// What every prediction takes as given; `launches` says whether launching operations costs time, `shared` whether
/// several devices share the model.
pub fn basic_assumptions(launches: bool, shared: bool) -> Vec<Assumption> {
    let mut texts = basis(launches);
    if shared {
        texts.push(
            "On several devices, FLOPs, bytes and memory are per device. Collectives send the bytes of a ring algorithm \
             at the link's bandwidth in one direction, without latency and without overlap."
                .to_owned(),
        );
    }
    texts.push("Each token chooses its experts independently and with equal probability.".to_owned());
    assumed(texts)
}

fn basis(launches: bool) -> Vec<String> {
    let mut texts = vec![
        "Every operation reads its inputs from device memory and writes its output there: no data stays in a cache \
         between operations, and only what the network fuses is fused."
            .to_owned(),
        "Matrix, vector and memory units overlap within an operation; operations run one after another.".to_owned(),
        "Elementwise work runs at the fp32 vector peak, whatever the tensors are stored in.".to_owned(),
    ];
    if !launches {
        texts.push("Launches are free.".to_owned());
    }
    texts
}

fn assumed(texts: Vec<String>) -> Vec<Assumption> {
    texts.into_iter().map(|text| Assumption { text, origin: Origin::Assumed }).collect()
}
