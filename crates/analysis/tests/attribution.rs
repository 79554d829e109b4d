//! Attribution compared with what NVIDIA's tools and the ranges of real captures say.

mod attribution_captures;
mod projections;

use std::collections::BTreeMap;

use attribution_captures as captures;
use llm_perf_analysis::attribution::{Attribution, AttributionSettings, Inference, StageOrigin, attribute};
use projections::{nvidia, ours};
use types::Stage;
use types::timeline::{Timeline, WorkKind};

fn kernels_by_stage(timeline: &Timeline, attribution: &Attribution) -> BTreeMap<Option<Stage>, u64> {
    let mut counts = BTreeMap::new();
    let kernels = timeline.work.iter().zip(&attribution.stage).filter(|(work, _)| work.kind == WorkKind::Kernel);
    for (_, stage) in kernels {
        *counts.entry(*stage).or_default() += 1;
        let mut parent = stage.and_then(Stage::parent);
        while let Some(stage) = parent {
            *counts.entry(Some(stage)).or_default() += 1;
            parent = stage.parent();
        }
    }
    counts
}

fn without_ranges(timeline: &Timeline) -> Timeline {
    Timeline { ranges: Vec::new(), ..timeline.clone() }
}

fn named(model: &str) -> AttributionSettings {
    AttributionSettings { model: Some(model.to_owned()), ..AttributionSettings::default() }
}

/// Share of kernels with the same stage; `top` compares prefill and decode only.
fn agreement(timeline: &Timeline, one: &Attribution, other: &Attribution, top: bool) -> f64 {
    let outermost = |stage: Option<Stage>| match stage {
        Some(Stage::Decode) | None => stage,
        Some(_) if top => Some(Stage::Prefill),
        Some(_) => stage,
    };
    let kernels = || (0..timeline.work.len()).filter(|place| timeline.work[*place].kind == WorkKind::Kernel);
    let same = kernels().filter(|place| outermost(one.stage[*place]) == outermost(other.stage[*place])).count();
    same as f64 / kernels().count() as f64
}

#[test]
fn the_projection_of_ranges_is_the_one_nsys_prints() {
    let timeline = captures::nsys_h200();
    let attribution = attribute(&timeline, &AttributionSettings::default());
    let expected = nvidia(&captures::text("nsys_stats/nsys-dsocr-nvtx_gpu_proj_sum.csv"));
    assert_eq!(ours(&timeline, &attribution, ":"), expected);
}

#[test]
fn kernels_of_the_torch_trace_are_in_the_stage_that_launched_them() {
    let timeline = captures::torch_h200();
    let attribution = attribute(&timeline, &AttributionSettings::default());
    let counts = kernels_by_stage(&timeline, &attribution);
    let expected = [
        (Some(Stage::Prefill), 3_208),
        (Some(Stage::Vision), 504 + 244 + 1),
        (Some(Stage::Sam), 504),
        (Some(Stage::Clip), 244),
        (Some(Stage::Projector), 1),
        (Some(Stage::Decode), 4_936),
    ];
    assert_eq!(counts, BTreeMap::from(expected));
    assert_eq!(attribution.inference, Inference::NotNeeded);
    let stages: Vec<_> = attribution.stages.iter().map(|stage| (stage.stage, stage.parent, stage.work)).collect();
    assert_eq!(
        stages,
        [
            (Stage::Prefill, None, 3_315),
            (Stage::Sam, Some(0), 537),
            (Stage::Clip, Some(0), 268),
            (Stage::Projector, Some(0), 1),
            (Stage::Decode, None, 5_120),
        ]
    );
    let steps: Vec<_> = attribution.steps.iter().map(|step| (step.number, step.instance, step.work)).collect();
    assert_eq!(steps, [(0, Some(4), 1_280), (1, Some(4), 1_280), (2, Some(4), 1_280), (3, Some(4), 1_280)]);
}

#[test]
fn nearly_all_device_time_of_the_torch_trace_has_a_stage_and_an_operator() {
    let timeline = captures::torch_h200();
    let attribution = attribute(&timeline, &AttributionSettings::default());
    let coverage = &attribution.coverage;
    assert!(coverage.share(coverage.stage()).unwrap() >= 0.98, "{coverage:?}");
    assert!(coverage.share(coverage.operator).unwrap() >= 0.95, "{coverage:?}");
    assert_eq!(coverage.launch, coverage.all);
}

#[test]
fn stages_inferred_from_shapes_agree_with_the_ranges_that_were_there() {
    let timeline = captures::torch_h200();
    let marked = attribute(&timeline, &AttributionSettings::default());
    let inferred = attribute(&without_ranges(&timeline), &named("deepseek-ocr"));
    let agreement = agreement(&timeline, &marked, &inferred, false);
    println!("{agreement} of kernels in the same stage: {:?}", inferred.inference);
    assert!(agreement >= 0.95, "{agreement}: {:?}", kernels_by_stage(&timeline, &inferred));
    assert!(inferred.stages.iter().all(|stage| stage.origin == StageOrigin::Tokens));
    let found: Vec<_> = inferred.stages.iter().map(|stage| stage.stage).collect();
    assert_eq!(found, [Stage::Prefill, Stage::Sam, Stage::Clip, Stage::Projector, Stage::Decode]);
    assert_eq!(inferred.steps.len(), 4);
    assert!(matches!(inferred.inference, Inference::Done { .. }));
    assert!(inferred.quality.iter().any(|counter| counter.counter == "work_with_inferred_stage"));
}

#[test]
fn kernels_alone_make_no_stages() {
    for timeline in [captures::nsys_h200(), captures::torch_h200()] {
        let bare = Timeline { operators: Vec::new(), ..without_ranges(&timeline) };
        let attribution = attribute(&bare, &named("deepseek-ocr"));
        assert_eq!(attribution.stages, [], "a kernel that chooses a token may classify");
        assert!(matches!(attribution.inference, Inference::Refused { .. }));
    }
}

#[test]
fn without_the_name_of_the_model_vision_is_part_of_prefill() {
    let timeline = without_ranges(&captures::torch_h200());
    let attribution = attribute(&timeline, &AttributionSettings::default());
    let found: Vec<_> = attribution.stages.iter().map(|stage| stage.stage).collect();
    assert_eq!(found, [Stage::Prefill, Stage::Decode]);
}

#[test]
fn inference_can_be_switched_off() {
    let timeline = without_ranges(&captures::torch_h200());
    let attribution = attribute(&timeline, &AttributionSettings { infer: false, ..AttributionSettings::default() });
    assert_eq!(attribution.stages, []);
    let counter = attribution.quality.iter().find(|counter| counter.counter == "work_without_stage").unwrap();
    assert_eq!((counter.value, counter.share), (timeline.work.len() as u64, Some(1.0)));
}

#[test]
fn both_captures_of_one_workload_have_the_same_work_in_every_step() {
    let steps = |timeline: &Timeline| -> Vec<u64> {
        attribute(timeline, &AttributionSettings::default()).steps.iter().map(|step| step.work).collect()
    };
    assert_eq!(steps(&captures::torch_h200()), steps(&captures::nsys_h200()));
}
