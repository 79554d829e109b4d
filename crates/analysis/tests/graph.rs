//! Kernels of CUDA graphs in layers, on captures of one program with and without a graph.

mod attribution_builder;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;

use attribution_builder::{call, empty, kernel, range};
use llm_perf_analysis::alignment::{ModelledOperator, ModelledRun};
use llm_perf_analysis::attribution::{Attribution, AttributionSettings, attribute};
use llm_perf_analysis::{Evidence, PlacedTimeline, Subject, Trace};
use types::timeline::{CapturedRange, CapturedRangeId, GraphNode, Timeline, WorkKind};
use types::{Cost, Metrics, Nanos, Op, PlacedBy, Stage};

fn capture(name: &str) -> Timeline {
    let path = format!("{}/../ingest/tests/data/collector/{name}.wire", env!("CARGO_MANIFEST_DIR"));
    ingest::wire::read(name, &std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))).unwrap()
}

fn attributed(timeline: &Timeline) -> Attribution {
    attribute(timeline, &AttributionSettings::default())
}

fn metrics(timeline: &Timeline) -> Metrics {
    metrics_beside(timeline, None)
}

fn metrics_beside(timeline: &Timeline, modelled: Option<ModelledRun>) -> Metrics {
    let attribution = attributed(timeline);
    let placed = PlacedTimeline { timeline, attribution: &attribution, rank: None, devices: BTreeMap::new() };
    let subject = Subject { modelled, ..Subject::default() };
    let trace = Trace { timelines: vec![placed], ..Trace::default() };
    llm_perf_analysis::metrics(&subject, &Evidence { trace: Some(trace), ..Evidence::default() })
}

/// Names of the ranges around a kernel that lie inside its step, outermost first; the captured ones last.
fn inside_step(timeline: &Timeline, attribution: &Attribution, work: usize) -> Option<String> {
    let mut names = Vec::new();
    let mut around = attribution.captured[work];
    while let Some(id) = around {
        let range = &timeline.captured_ranges[id.0 as usize];
        names.push(timeline.name(range.name));
        around = range.parent;
    }
    let mut around = attribution.range[work];
    while let Some(index) = around {
        let name = timeline.name(timeline.ranges[index.0 as usize].name);
        if name == "decode_step" {
            names.reverse();
            return Some(names.join("/"));
        }
        names.push(name);
        around = attribution.projections.parent(index);
    }
    None
}

/// Kernels of every decode step: by the ranges inside the step, and by name.
fn steps(timeline: &Timeline) -> Vec<BTreeMap<(String, String), u64>> {
    let attribution = attributed(timeline);
    let mut steps: Vec<BTreeMap<(String, String), u64>> = vec![BTreeMap::new(); attribution.steps.len()];
    for (place, work) in timeline.work.iter().enumerate() {
        let (Some(step), Some(inside)) = (attribution.step[place], inside_step(timeline, &attribution, place)) else {
            continue;
        };
        if work.kind == WorkKind::Kernel {
            assert_eq!(attribution.stage[place], Some(Stage::Decode), "the stage is that of the launch");
            *steps[step as usize].entry((inside, timeline.name(work.name).to_owned())).or_default() += 1;
        }
    }
    steps
}

#[test]
fn a_graph_is_divided_over_layers_as_the_same_program_without_one_is() {
    let (eager, graph) = (steps(&capture("eager")), steps(&capture("graph")));
    assert_eq!((eager.len(), graph.len()), (6, 6), "two rounds of three; those of the warm-up are set aside");
    let inside: BTreeSet<_> = graph[0].keys().map(|(inside, _)| inside.as_str()).collect();
    assert_eq!(inside, BTreeSet::from(["", "layer_0", "layer_1"]));
    for (number, (graph, eager)) in graph.iter().zip(&eager).enumerate() {
        assert_eq!(graph, eager, "step {number}, kernel by kernel");
    }
}

/// Regions below a decode stage, by path: times entered, kernels inside, kernels of their own.
fn decode_regions(metrics: &Metrics) -> BTreeMap<String, (u64, Option<u64>, Option<u64>)> {
    let rows = metrics.breakdown.regions.iter().filter(|row| row.segments.iter().any(|name| name == "decode"));
    rows.map(|row| (row.path.clone(), (row.instances, row.kernels_inclusive, row.kernels_exclusive))).collect()
}

#[test]
fn regions_of_a_graph_are_those_of_the_same_program_without_one() {
    let (eager, graph) = (metrics(&capture("eager")), metrics(&capture("graph")));
    assert_eq!(decode_regions(&graph), decode_regions(&eager));
    let row = |path: &str| graph.breakdown.regions.iter().find(|row| row.path == path).unwrap();
    let layer = row("decode::decode_step::layer_1");
    assert_eq!((layer.instances, layer.kernels_inclusive), (6, Some(324)));
    assert_eq!(layer.kernels_captured, 324, "all by the capture");
    assert_eq!(row("decode::decode_step").kernels_captured, 0, "all by the launch");
    assert_eq!(row("prefill::layer_1").kernels_captured, 0, "prefill was launched kernel by kernel");
    assert_eq!(row("capture").kernels_inclusive, Some(2), "what ran there, not what was captured there");
    assert!(eager.breakdown.regions.iter().all(|row| row.kernels_captured == 0));
}

#[test]
fn stages_of_a_graph_have_the_kernels_of_the_same_program_without_one() {
    let (eager, graph) = (metrics(&capture("eager")), metrics(&capture("graph")));
    let kernels = |metrics: &Metrics| -> BTreeMap<_, _> {
        metrics.times.stages.iter().map(|stage| (stage.name, (stage.instances, stage.kernel_count))).collect()
    };
    assert_eq!(kernels(&graph), kernels(&eager));
}

/// The recorded program as a model, with so many layers.
fn model(layers: usize) -> ModelledRun {
    let operator = |module: String, stage: Stage| ModelledOperator {
        module,
        class: "Linear".to_owned(),
        stage,
        op: Op::Linear,
        weight: Some(vec![256, 256]),
        spread: false,
        cost: Cost::ZERO,
        roofline: None,
    };
    let modules = (0..layers).map(|number| format!("model.layers.{number}.q_proj")).chain(["lm_head".to_owned()]);
    let pass = |stage: Stage| modules.clone().map(|module| operator(module, stage)).collect();
    let layer = |number| (format!("model.layers.{number}"), "Layer".to_owned());
    let classes = (0..layers).map(layer).collect();
    ModelledRun { prefill: pass(Stage::Prefill), decode: pass(Stage::Decode), classes }
}

/// Time of the layers of a stage and what placed it there.
fn layers(metrics: &Metrics, stage: Stage) -> BTreeMap<String, (Option<Nanos>, BTreeSet<PlacedBy>)> {
    let rows = metrics.breakdown.modules.iter().filter(|row| row.stage == stage);
    rows.map(|row| (row.path.clone(), (row.measured_ns, row.placed_by.clone()))).collect()
}

fn placed_by(metrics: &Metrics, stage: Stage) -> Vec<(String, Vec<PlacedBy>)> {
    layers(metrics, stage).into_iter().map(|(path, (_, by))| (path, by.into_iter().collect())).collect()
}

fn both_layers(by: PlacedBy) -> Vec<(String, Vec<PlacedBy>)> {
    ["model.layers.0", "model.layers.1"].map(|path| (path.to_owned(), vec![by])).into()
}

/// The same capture with nothing known of how its graph was made, as other tools have it.
fn without_nodes(mut timeline: Timeline) -> Timeline {
    timeline.graph_nodes.clear();
    timeline.captured_ranges.clear();
    timeline
}

#[test]
fn layers_of_a_model_say_whether_ranges_or_the_capture_tell_them() {
    let eager = metrics_beside(&capture("eager"), Some(model(2)));
    let graph = metrics_beside(&capture("graph"), Some(model(2)));
    assert_eq!(placed_by(&eager, Stage::Decode), both_layers(PlacedBy::Ranges));
    assert_eq!(placed_by(&graph, Stage::Decode), both_layers(PlacedBy::Capture));
    assert_eq!(placed_by(&graph, Stage::Prefill), both_layers(PlacedBy::Ranges));
}

#[test]
fn the_order_of_kernels_tells_the_layers_that_the_capture_tells() {
    let graph = capture("graph");
    let captured = metrics_beside(&graph, Some(model(2)));
    let ordered = metrics_beside(&without_nodes(graph), Some(model(2)));
    assert_eq!(placed_by(&ordered, Stage::Decode), both_layers(PlacedBy::Order));
    let times =
        |metrics: &Metrics| layers(metrics, Stage::Decode).into_values().map(|(time, _)| time).collect::<Vec<_>>();
    assert_eq!(times(&ordered), times(&captured), "kernel by kernel the same");
    let counter = |metrics: &Metrics, name: &str| {
        metrics.conclusions.quality.iter().find(|row| row.counter == name).map(|row| row.value)
    };
    assert_eq!(counter(&ordered, "work_with_layer_by_order"), Some(6 * 108));
    assert_eq!(counter(&ordered, "graph_launches_undivided"), Some(6));
    assert_eq!(counter(&captured, "work_with_layer_by_order"), None);
    assert_eq!(counter(&captured, "graph_launches_undivided"), None);
}

#[test]
fn order_claims_nothing_where_the_model_has_another_number_of_layers() {
    for layers in [1, 3, 4] {
        let metrics = metrics_beside(&without_nodes(capture("graph")), Some(model(layers)));
        assert_eq!(placed_by(&metrics, Stage::Decode), [], "{layers}");
    }
}

/// Captured ranges `layer_0`, with `mlp` entered twice in it, and nodes 1, 2 and 3 inside of them; node 4 is in none.
fn captured() -> Timeline {
    let mut timeline = empty();
    let (layer, mlp) = (timeline.names.place("layer_0"), timeline.names.place("mlp"));
    for (name, parent) in [(layer, None), (mlp, Some(0)), (mlp, Some(0))] {
        timeline.captured_ranges.push(CapturedRange { name, domain: None, parent: parent.map(CapturedRangeId) });
    }
    for node in 1..=3u32 {
        let number = NonZeroU64::new(u64::from(node)).unwrap();
        timeline.graph_nodes.push(GraphNode { process: Some(1), node: number, range: CapturedRangeId(node - 1) });
    }
    timeline
}

/// A launch of the graph whose nodes are numbered 1 to 4, without its call where that is not recorded.
fn launch(timeline: &mut Timeline, queue: u32, at: i64, number: u64, is_recorded: bool) {
    if is_recorded {
        call(timeline, queue, "cudaGraphLaunch", at, 5, number);
    }
    for node in 1..=4 {
        kernel(timeline, queue, "gemm", at + 10 * node, 10, number);
        timeline.work.last_mut().unwrap().graph_node = NonZeroU64::new(node as u64);
    }
}

/// Path, times entered, kernels inside, kernels of its own, kernels by the capture.
type Row = (String, u64, Option<u64>, Option<u64>, u64);

fn regions(timeline: &Timeline) -> Vec<Row> {
    let row = |row: &types::RegionSummary| {
        (row.path.clone(), row.instances, row.kernels_inclusive, row.kernels_exclusive, row.kernels_captured)
    };
    let mut rows: Vec<_> = metrics(timeline).breakdown.regions.iter().map(row).collect();
    rows.sort();
    rows
}

#[test]
fn every_launch_of_a_graph_enters_its_captured_ranges_once() {
    let mut timeline = captured();
    range(&mut timeline, 0, None, "decode", 0, Some(1_000));
    launch(&mut timeline, 0, 10, 1, true);
    launch(&mut timeline, 0, 100, 2, true);
    let all = [
        ("decode".to_owned(), 1, Some(8), Some(2), 0),
        ("decode::layer_0".to_owned(), 2, Some(6), Some(2), 6),
        ("decode::layer_0::mlp".to_owned(), 4, Some(4), Some(4), 4),
    ];
    assert_eq!(regions(&timeline), all);
}

#[test]
fn a_graph_launched_outside_of_every_range_still_has_its_layers() {
    let mut timeline = captured();
    launch(&mut timeline, 0, 10, 1, true);
    let all = [("layer_0".to_owned(), 1, Some(3), Some(1), 3), ("layer_0::mlp".to_owned(), 2, Some(2), Some(2), 2)];
    assert_eq!(regions(&timeline), all);
}

#[test]
fn nodes_of_one_process_are_not_those_of_another() {
    let mut timeline = captured();
    launch(&mut timeline, 2, 10, 1, true);
    let attribution = attributed(&timeline);
    assert_eq!(attribution.captured, [None; 4], "queue 2 is of process 2, the nodes are of process 1");
    let counter = attribution.quality.iter().find(|row| row.counter == "graph_launches_undivided").unwrap();
    assert_eq!((counter.value, counter.share), (1, Some(1.0)));
}

#[test]
fn work_whose_launch_is_not_in_the_trace_is_in_no_captured_range() {
    let mut timeline = captured();
    range(&mut timeline, 0, None, "decode", 0, Some(1_000));
    launch(&mut timeline, 0, 10, 1, false);
    assert_eq!(attributed(&timeline).captured, [None; 4]);
    assert_eq!(regions(&timeline), [("decode".to_owned(), 1, Some(0), Some(0), 0)]);
}

/// The program's GEMMs as it does them, layer by layer.
fn gemms(layers: usize) -> ModelledRun {
    let operator = |module: String, stage: Stage, op: Op, weight: Option<Vec<u64>>| ModelledOperator {
        module,
        class: "Linear".to_owned(),
        stage,
        op,
        weight,
        spread: false,
        cost: Cost::ZERO,
        roofline: None,
    };
    let pass = |stage: Stage| {
        let mut all = Vec::new();
        for number in 0..layers {
            let layer = |part: &str| format!("model.layers.{number}.{part}");
            for part in ["attn.q", "attn.k", "attn.v"] {
                all.push(operator(layer(part), stage, Op::Linear, Some(vec![512, 512])));
            }
            all.push(operator(layer("attn"), stage, Op::MatMulTransposed, None));
            all.push(operator(layer("attn"), stage, Op::MatMulTransposed, None));
            all.push(operator(layer("attn.o"), stage, Op::Linear, Some(vec![512, 512])));
            for part in ["mlp.gate", "mlp.up", "mlp.down"] {
                all.push(operator(layer(part), stage, Op::Linear, Some(vec![512, 2048])));
            }
        }
        all.push(operator("lm_head".to_owned(), stage, Op::Linear, Some(vec![512, 1000])));
        all
    };
    let class = |path: String| (path, "Module".to_owned());
    let parts =
        (0..layers).flat_map(|number| ["", ".attn", ".mlp"].map(|part| class(format!("model.layers.{number}{part}"))));
    let classes = parts.chain(["model", "model.layers"].map(|path| class(path.to_owned()))).collect();
    ModelledRun { prefill: pass(Stage::Prefill), decode: pass(Stage::Decode), classes }
}

/// The same capture without ranges around layers, and with nothing known of how its graph was made.
fn without_layers(timeline: Timeline) -> Timeline {
    let mut bare = without_nodes(timeline);
    let others: Vec<bool> = bare.names.iter().map(|(_, name)| !name.starts_with("layer_")).collect();
    bare.ranges.retain(|range| others[range.name.index()]);
    bare
}

#[test]
fn gemms_tell_the_layers_that_ranges_tell() {
    let marked = metrics_beside(&capture("eager"), Some(gemms(2)));
    let bare = metrics_beside(&without_layers(capture("eager")), Some(gemms(2)));
    for stage in [Stage::Prefill, Stage::Decode] {
        let (known, found) = (layers(&marked, stage), layers(&bare, stage));
        for layer in ["model.layers.0", "model.layers.1"] {
            let (known, found) = (&known[layer], &found[layer]);
            assert_eq!(found.1, BTreeSet::from([PlacedBy::Gemms]));
            // All but the norm with which a layer starts, which lies between the GEMMs of two layers.
            let part = found.0.unwrap().get() as f64 / known.0.unwrap().get() as f64;
            assert!((0.8..1.0).contains(&part), "{stage} {layer}: {part}");
        }
        assert!(found.contains_key("model.layers.1.attn") && !known.contains_key("model.layers.1.attn"));
        // What differs by its layer alone is also told together.
        let kind = bare
            .breakdown
            .module_kinds
            .iter()
            .find(|row| row.stage == stage && row.path == "model.layers.*.attn")
            .unwrap();
        let both = ["model.layers.0.attn", "model.layers.1.attn"].map(|path| found[path].0.unwrap());
        assert_eq!((kind.measured_ns, kind.class.as_str()), (Some(both[0] + both[1]), "Linear"));
        assert!(bare.breakdown.module_kinds.iter().all(|row| row.path.contains('*')));
    }
    let told = bare.conclusions.quality.iter().find(|row| row.counter == "work_with_module_by_gemms").unwrap();
    assert!(told.share.unwrap() > 0.8, "{told:?}");
}

#[test]
fn gemms_claim_nothing_where_the_model_has_another_number_of_layers() {
    for number in [1, 3] {
        let metrics = metrics_beside(&without_layers(capture("eager")), Some(gemms(number)));
        assert_eq!(layers(&metrics, Stage::Decode), BTreeMap::new(), "{number}");
    }
}

#[test]
fn gemms_leave_alone_what_a_graphs_order_tells() {
    let metrics = metrics_beside(&without_layers(capture("graph")), Some(gemms(2)));
    let decode = layers(&metrics, Stage::Decode);
    assert_eq!(decode["model.layers.0"].1, BTreeSet::from([PlacedBy::Order]));
}
