//! Laws that hold for every workload: scaling, sums, determinism.

use llm_perf_meter::hardware::Catalogue;
use llm_perf_meter::{Prediction, Roofline, Subject, WorkloadSettings, layer_pages, matrix_dtypes, predict, summarise};
use network::Model;
use network::config::ModelConfig;
use proptest::prelude::*;
use types::{
    AnalyticReport, AttentionKind, Cost, DType, LayerPage, LogitsKind, PageKind, Parallel, Quantisation, RoutingKind,
    Seconds, Workload,
};

struct Case {
    config: ModelConfig,
    model: Model,
}

impl Case {
    fn new() -> Self {
        let text = include_str!("fixtures/deepseek-ocr-tiny.json");
        let config = ModelConfig::from_json("deepseek-ocr-tiny.json", text).unwrap();
        let model = Model::new(&config);
        Self { config, model }
    }

    fn workload(&self, settings: &WorkloadSettings) -> Workload {
        settings.resolve(&self.model, DType::Bf16).unwrap()
    }

    fn predict(&self, settings: &WorkloadSettings) -> Prediction {
        predict(&self.model, &self.workload(settings)).unwrap()
    }

    fn report(&self, settings: &WorkloadSettings) -> (AnalyticReport, Vec<LayerPage>) {
        let workload = self.workload(settings);
        let prediction = predict(&self.model, &workload).unwrap();
        let catalogue = Catalogue::built_in().unwrap();
        let device =
            |name: &str| Roofline::new(catalogue.find(name).unwrap(), matrix_dtypes(&prediction), None).unwrap();
        let rooflines = [device("h200"), device("a100-sxm-80gb")];
        let subject = Subject {
            model_id: "tiny",
            config_path: "tiny.json",
            config: &self.config,
            model: &self.model,
            workload: &workload,
            prediction: &prediction,
            tool_version: "0",
        };
        (summarise(&subject, &rooflines[0], &rooflines), layer_pages(&subject, &rooflines[0]))
    }
}

fn settings() -> WorkloadSettings {
    WorkloadSettings {
        profile_id: "test".into(),
        description: String::new(),
        doc_kind: PageKind::Synthetic,
        num_pages: 1,
        batch: 1,
        dtype: Some("bf16".into()),
        attention: AttentionKind::Eager,
        logits: LogitsKind::All,
        routing: RoutingKind::Balanced,
        base_size: Some(256),
        image_size: Some(160),
        crop_mode: None,
        crop_grid: Some([2, 1]),
        image_pixels: None,
        text_tokens: Some(13),
        seq_len: None,
        max_new_tokens: None,
        decode_steps: Some(8),
        quantisation: Quantisation::default(),
        parallel: Parallel::default(),
    }
}

fn any_settings() -> impl Strategy<Value = WorkloadSettings> {
    (1u64..4, 1u64..4, 1u64..4, 1u64..40, 1u64..30, any::<bool>(), any::<bool>()).prop_map(
        |(batch, wide, high, text, steps, flash, last)| WorkloadSettings {
            batch,
            crop_grid: Some([wide, high]),
            image_pixels: None,
            text_tokens: Some(text),
            decode_steps: Some(steps),
            attention: if flash { AttentionKind::Flash } else { AttentionKind::Eager },
            logits: if last { LogitsKind::Last } else { LogitsKind::All },
            ..settings()
        },
    )
}

fn decode_total(prediction: &Prediction) -> Cost {
    prediction.decode.as_ref().unwrap().total()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn twice_the_batch_is_twice_the_matrix_work(settings in any_settings()) {
        let case = Case::new();
        let once = case.predict(&settings);
        let twice = case.predict(&WorkloadSettings { batch: settings.batch * 2, ..settings });
        prop_assert_eq!(twice.prefill.total().flops_matrix, once.prefill.total().flops_matrix * 2);
        prop_assert_eq!(decode_total(&twice).flops_matrix, decode_total(&once).flops_matrix * 2);
    }

    #[test]
    fn many_decode_steps_equal_the_sum_of_single_ones(settings in any_settings()) {
        let case = Case::new();
        let steps = settings.decode_steps.unwrap();
        let together = decode_total(&case.predict(&settings));
        let one_by_one: Cost = (0..steps)
            .map(|step| {
                // Step `n` decodes behind `n` more tokens; a longer prompt without images stands for them.
                let later = WorkloadSettings {
                    text_tokens: Some(settings.text_tokens.unwrap() + step),
                    decode_steps: Some(1),
                    ..settings.clone()
                };
                decode_total(&case.predict(&later))
            })
            .sum();
        prop_assert_eq!(together, one_by_one);
    }

    #[test]
    fn flash_never_computes_or_moves_more_than_eager(settings in any_settings()) {
        let case = Case::new();
        let of = |attention| case.predict(&WorkloadSettings { attention, ..settings.clone() }).prefill.total();
        let (flash, eager) = (of(AttentionKind::Flash), of(AttentionKind::Eager));
        prop_assert!(flash.flops_matrix <= eager.flops_matrix);
        prop_assert!(flash.bytes.total() < eager.bytes.total());
    }

    #[test]
    fn parts_of_a_report_sum_to_their_wholes(settings in any_settings()) {
        let (report, _) = Case::new().report(&settings);
        let row = |id: &str| report.module_metrics.iter().find(|row| row.module_id == id).unwrap();
        for node in &report.modules {
            let whole = row(&node.module_id);
            let parts: f64 = node.children.iter().map(|child| row(child).total_time_ms).sum();
            let sum = parts + whole.self_time_ms;
            prop_assert!((sum - whole.total_time_ms).abs() <= 1e-9 * whole.total_time_ms.max(1e-9), "{}", node.module_id);
            let flops: u128 = whole.flops_matrix.get() + whole.flops_vector.get();
            let by_kind: f64 = whole.operator_breakdown.iter().map(|kind| kind.flops_tflops * 1e12).sum();
            prop_assert!((by_kind - flops as f64).abs() <= 1e-9 * (flops as f64).max(1.0), "{}", node.module_id);
            prop_assert!((0.0..=1.0).contains(&whole.share_of_model_time));
        }
        let root = row("(root)");
        let stage = |name: &str| &report.stages[name];
        let matrix = stage("prefill").flops_matrix + stage("decode").flops_matrix;
        prop_assert_eq!(root.flops_matrix, matrix);
        prop_assert_eq!(root.bytes.total(), stage("prefill").bytes.total() + stage("decode").bytes.total());
        let nested = stage("vision").flops_matrix + stage("prefill_text").flops_matrix;
        prop_assert_eq!(nested, stage("prefill").flops_matrix);
        let vision = stage("sam").flops_matrix + stage("clip").flops_matrix + stage("projector").flops_matrix;
        prop_assert_eq!(vision, stage("vision").flops_matrix);
        let total = stage("prefill").time_ms + stage("decode").time_ms;
        prop_assert!((report.predicted_total_time_ms - total).abs() < 1e-12);
    }
}

#[test]
fn ids_are_unique_and_references_resolve() {
    let (report, _) = Case::new().report(&settings());
    let ids: std::collections::HashSet<_> = report.modules.iter().map(|node| node.module_id.as_str()).collect();
    assert_eq!(ids.len(), report.modules.len());
    assert_eq!(report.module_metrics.len(), report.modules.len());
    for node in &report.modules {
        assert!(node.parent_id.as_deref().is_none_or(|parent| ids.contains(parent)), "{}", node.module_id);
        for child in &node.children {
            let child = report.modules.iter().find(|other| other.module_id == *child).unwrap();
            assert_eq!(child.parent_id.as_deref(), Some(node.module_id.as_str()));
        }
    }
    let kinds: Vec<_> = report.operator_categories.iter().map(|kind| kind.category_id.as_str()).collect();
    for row in &report.module_metrics {
        assert!(ids.contains(row.module_id.as_str()));
        assert!(row.operator_breakdown.iter().all(|kind| kinds.contains(&kind.category_id.as_str())));
    }
}

#[test]
fn all_operations_and_all_time_are_in_named_kinds() {
    let (report, _) = Case::new().report(&settings());
    assert!((report.flops_in_named_categories - 1.0).abs() < 1e-12, "{}", report.flops_in_named_categories);
    assert!((report.time_in_named_categories - 1.0).abs() < 1e-9, "{}", report.time_in_named_categories);
}

#[test]
fn experts_are_one_node_that_holds_all_their_weights() {
    let case = Case::new();
    let (report, _) = case.report(&settings());
    let row = |id: &str| report.module_metrics.iter().find(|row| row.module_id == id).unwrap();
    let experts = row("model.layers.1.mlp.experts.*");
    // Eight experts of three 64 x 48 matrices in bf16.
    assert!((experts.memory_weights_gb * 1e9 - (8 * 3 * 64 * 48 * 2) as f64).abs() < 1e-6);
    let node = report.modules.iter().find(|node| node.module_id == "model.layers.1.mlp.experts").unwrap();
    assert_eq!(node.repetition_count, Some(8));
    assert_eq!(node.children, ["model.layers.1.mlp.experts.*"]);
    // The root holds every parameter of the model.
    let all = case.model.blueprint().parameters_under("") * 2;
    assert!((row("(root)").memory_weights_gb * 1e9 - all as f64).abs() < 1e-3);
}

#[test]
fn the_same_inputs_give_the_same_bytes() {
    let text = || serde_json::to_string(&Case::new().report(&settings()).0).unwrap();
    assert_eq!(text(), text());
}

#[test]
fn every_class_has_a_page_and_the_unused_convolution_of_clip_does_not_run() {
    let case = Case::new();
    let (report, pages) = case.report(&settings());
    for node in &report.modules {
        assert!(pages.iter().any(|page| page.qualified_class == node.qualified_class_name), "{}", node.module_id);
    }
    let unused = report.module_metrics.iter().find(|row| row.module_id.ends_with("patch_embedding")).unwrap();
    assert_eq!((unused.calls, unused.total_time_ms), (0, 0.0));
    assert!(unused.memory_weights_gb > 0.0);
    let attention = pages.iter().find(|page| page.class == "LlamaAttention").unwrap();
    assert_eq!(attention.passes.len(), 2);
    assert!(attention.passes.iter().all(|pass| pass.time > Seconds::ZERO && !pass.operations.is_empty()));
}
