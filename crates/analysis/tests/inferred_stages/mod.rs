//! Stages that follow from what ran: look-ups of tokens, choices, annotated steps of engines, and towers of vision.

use llm_perf_analysis::attribution::{AttributionSettings, Inference, attribute};
use llm_perf_analysis::time::Span;
use types::timeline::Timeline;
use types::{Facts, Nanos, Remark, Stage};

use super::attribution_builder::{call, empty, kernel, launched, operator, range};
use super::{attributed, reason, stages};

/// A look-up of so many positions, its work, and the choice of a token.
fn pass(timeline: &mut Timeline, start: i64, ids: &[u64], chooses: bool) {
    operator(timeline, "aten::embedding", &[&[50_000, 1_024], ids], start, 100);
    launched(timeline, 0, "kernel", start + 50, 10);
    if chooses {
        operator(timeline, "aten::argmax", &[&[1, 50_000]], start + 500, 100);
    }
}

#[test]
fn two_requests_one_after_the_other_have_a_prefill_each() {
    let mut timeline = empty();
    for (place, positions) in [512, 1, 1, 1, 300, 1, 1].into_iter().enumerate() {
        pass(&mut timeline, place as i64 * 1_000, &[1, positions], true);
    }
    let found: Vec<_> = attributed(&timeline).stages.iter().map(|stage| (stage.stage, stage.work)).collect();
    assert_eq!(found, [(Stage::Prefill, 1), (Stage::Decode, 3), (Stage::Prefill, 1), (Stage::Decode, 2)]);
}

#[test]
fn passes_of_an_encoder_are_no_prefill() {
    let mut timeline = empty();
    for place in 0..5 {
        pass(&mut timeline, place * 1_000, &[1, 16], false);
    }
    let attribution = attributed(&timeline);
    assert_eq!(attribution.stages, []);
    let expected = Remark::new("stages.unconnected-passes", Facts::new().with("passes", 5_u64));
    assert_eq!(*reason(&attribution), expected);
}

#[test]
fn an_encoder_belongs_to_the_pass_of_the_decoder_that_chooses_the_first_token() {
    let mut timeline = empty();
    pass(&mut timeline, 0, &[4, 300], false);
    for place in 1..4 {
        pass(&mut timeline, place * 1_000, &[4, 1], true);
    }
    assert_eq!(stages(&attributed(&timeline)), [(Stage::Prefill, None, 2), (Stage::Decode, None, 2)]);
}

#[test]
fn a_draft_model_and_its_target_are_not_one_model() {
    let mut timeline = empty();
    for (place, (positions, width)) in
        [(200, 1_024), (1, 512), (1, 512), (3, 1_024), (1, 512), (3, 1_024)].into_iter().enumerate()
    {
        let start = place as i64 * 1_000;
        operator(&mut timeline, "aten::embedding", &[&[50_000, width], &[1, positions]], start, 100);
        launched(&mut timeline, 0, "kernel", start + 50, 10);
        operator(&mut timeline, "aten::argmax", &[&[1, 50_000]], start + 500, 100);
    }
    let facts = Facts::new().with("rows", 50_000_u64).with("width", 1_024_u64).with("other", 512_u64);
    assert_eq!(*reason(&attributed(&timeline)), Remark::new("stages.several-models", facts));
    // A second table of one model is read before anything is chosen.
    let mut timeline = empty();
    for (place, positions) in [200, 1, 1].into_iter().enumerate() {
        let start = place as i64 * 1_000;
        operator(&mut timeline, "aten::embedding", &[&[50_000, 256], &[1, positions]], start + 10, 10);
        pass(&mut timeline, start, &[1, positions], true);
    }
    assert_eq!(stages(&attributed(&timeline)), [(Stage::Prefill, None, 1), (Stage::Decode, None, 2)]);
}

#[test]
fn passes_that_grow_by_the_chosen_token_keep_nothing() {
    let mut timeline = empty();
    for place in 0..4 {
        pass(&mut timeline, place * 1_000, &[1, 100 + place as u64], true);
    }
    let facts = Facts::new().with("passes", 4_u64).with("first", 100_u64).with("last", 103_u64);
    assert_eq!(*reason(&attributed(&timeline)), Remark::new("stages.recomputed", facts));
}

#[test]
fn passes_over_more_keys_than_they_bring_begin_no_prompt() {
    // Positions and keys of each pass: drafted tokens are checked five at a time.
    let found = |passes: &[(u64, u64)]| {
        let mut timeline = empty();
        for (place, (positions, keys)) in passes.iter().enumerate() {
            let start = place as i64 * 1_000;
            let name = "aten::scaled_dot_product_attention";
            operator(&mut timeline, name, &[&[1, 8, *positions, 64], &[1, 8, *keys, 64]], start + 200, 100);
            pass(&mut timeline, start, &[1, *positions], true);
        }
        attributed(&timeline)
    };
    let facts = Facts::new().with("continued", 2_u64).with("passes", 4_u64);
    let expected = Remark::new("stages.continued", facts);
    assert_eq!(*reason(&found(&[(100, 100), (5, 105), (5, 108), (1, 109)])), expected);
    // A static cache has one length from the first pass on.
    let fixed = found(&[(100, 512), (1, 512), (1, 512)]);
    assert_eq!(stages(&fixed), [(Stage::Prefill, None, 1), (Stage::Decode, None, 2)]);
}

#[test]
fn single_tokens_that_nobody_chose_are_no_decode() {
    let mut timeline = empty();
    for place in 0..5 {
        pass(&mut timeline, place * 1_000, &[8, 1], false);
    }
    assert_eq!(attributed(&timeline).stages, []);
}

#[test]
fn a_classifier_that_chooses_in_every_pass_does_not_generate() {
    let mut timeline = empty();
    for place in 0..5 {
        pass(&mut timeline, place * 1_000, &[1, 128], true);
    }
    assert_eq!(attributed(&timeline).stages, []);
}

#[test]
fn steps_that_an_engine_annotates_are_stages_and_a_mixed_one_is_none() {
    let mut timeline = empty();
    let names = [
        "execute_100_context_2(sq100sk100sqsq5000sqsk5000)_generation_0(sq0sk0sqsq0sqsk0)",
        "execute_4_context_0(sq0sk0sqsq0sqsk0)_generation_4(sq4sk200sqsq4sqsk200)",
        "execute_54_context_1(sq50sk50sqsq2500sqsk2500)_generation_4(sq4sk204sqsq4sqsk204)",
    ];
    for (place, name) in names.into_iter().enumerate() {
        let start = place as i64 * 1_000;
        range(&mut timeline, 0, None, name, start, Some(start + 500));
        launched(&mut timeline, 0, "kernel", start + 100, 50);
    }
    let attribution = attributed(&timeline);
    assert_eq!(stages(&attribution), [(Stage::Prefill, None, 1), (Stage::Decode, None, 1)]);
    assert_eq!((attribution.steps.len(), attribution.stage[2]), (1, None));
}

#[test]
fn a_first_step_that_waits_for_work_in_no_recording_begins_with_its_own() {
    // As a step of vLLM on an MI300X: its copies are launched 0.5 ms after its start, and run 7.8 ms later.
    let mut timeline = empty();
    range(&mut timeline, 0, None, "execute_context_0(0)_generation_32(32)", 0, Some(2_400_000));
    call(&mut timeline, 0, "hipMemcpyAsync", 534_000, 10_000, 1);
    kernel(&mut timeline, 0, "copy", 8_371_000, 4_000, 1);
    call(&mut timeline, 0, "hipGraphLaunch", 1_543_000, 507_000, 2);
    kernel(&mut timeline, 0, "moe", 8_428_000, 10_000_000, 2);
    let wall = |timeline: &Timeline| attributed(timeline).stages[0].wall;
    assert_eq!(wall(&timeline), Span::new(Nanos::new(8_371_000), Nanos::new(18_428_000)));
    // Work that starts soon after its launch found the device idle: the time before it is the step's.
    timeline.work[0].start = Nanos::new(600_000);
    assert_eq!(wall(&timeline).start, Nanos::ZERO);
}

/// Steps of one batch, each with so many kernels of so many nanoseconds.
fn extended(steps: &[(i64, i64)]) -> Timeline {
    let mut timeline = empty();
    for (place, (kernels, time)) in steps.iter().enumerate() {
        let start = place as i64 * 1_000;
        range(&mut timeline, 0, None, "step[EXTEND bs=4 toks=64]", start, Some(start + 900));
        for kernel in 0..*kernels {
            launched(&mut timeline, 0, "kernel", start + 10 + kernel * 20, *time);
        }
    }
    timeline
}

#[test]
fn a_batch_that_comes_twice_with_far_less_work_is_a_draft_the_second_time() {
    let both = attributed(&extended(&[(20, 10), (2, 10), (20, 10), (2, 10)]));
    assert_eq!(stages(&both), [(Stage::Prefill, None, 22), (Stage::Prefill, None, 22)]);
    let facts = Facts::new().with("prefills", 2_u64).with_if("speculative", true).with("drafts", 2_u64);
    assert_eq!(both.inference, Inference::Done { evidence: Remark::new("stages.engine", facts) });
    // The recording begins and ends between the two.
    let cut = attributed(&extended(&[(2, 10), (20, 10), (2, 10), (20, 10), (2, 10), (20, 10)]));
    assert_eq!(stages(&cut).len(), 4);
    // Prompts of one length, one warm-up and a pair that may be by chance are no drafts.
    for steps in [&[(20, 10), (20, 10), (20, 10), (20, 10)][..], &[(20, 10), (2, 10)], &[(20, 10), (2, 10), (2, 10)]] {
        assert_eq!(stages(&attributed(&extended(steps))).len(), steps.len());
    }
}

#[test]
fn a_function_or_a_range_around_a_step_says_that_it_drafts() {
    let mut timeline = extended(&[(20, 10), (20, 10)]);
    range(&mut timeline, 0, None, "draft_extend", 990, Some(1_950));
    assert_eq!(stages(&attributed(&timeline)), [(Stage::Prefill, None, 40)]);
    let mut timeline = extended(&[(20, 10), (20, 10)]);
    range(&mut timeline, 0, None, "draft_extend", 0, Some(1_950));
    assert_eq!(stages(&attributed(&timeline)).len(), 2, "nothing is left to draft for");
}

#[test]
fn a_round_of_speculative_decoding_is_one_decode_step() {
    let mut timeline = empty();
    let round = ["step[DECODE bs=2]", "step[DECODE bs=2]", "step[TARGET_VERIFY bs=2]", "step[DRAFT_EXTEND_V2 bs=2]"];
    for (place, name) in round.into_iter().cycle().take(8).enumerate() {
        let start = place as i64 * 1_000;
        range(&mut timeline, 0, None, name, start, Some(start + 500));
        launched(&mut timeline, 0, "kernel", start + 100, 50);
    }
    let attribution = attributed(&timeline);
    assert_eq!(stages(&attribution), [(Stage::Decode, None, 4), (Stage::Decode, None, 4)]);
    assert_eq!(attribution.steps.len(), 2);
    let facts = Facts::new().with_if("speculative", true).with("verifications", 2_u64).with("drafts", 6_u64);
    assert_eq!(attribution.inference, Inference::Done { evidence: Remark::new("stages.engine", facts) });
}

#[test]
fn rows_of_positions_from_several_requests_are_refused() {
    let mut timeline = empty();
    for (place, positions) in [512, 1, 37, 1, 260].into_iter().enumerate() {
        operator(&mut timeline, "aten::embedding", &[&[50_000, 1_024], &[positions]], place as i64 * 1_000, 100);
        launched(&mut timeline, 0, "kernel", place as i64 * 1_000 + 50, 10);
    }
    let attribution = attributed(&timeline);
    let expected = Remark::new("stages.mixed-batches", Facts::new().with("mixed", 2_u64).with("passes", 5_u64));
    assert_eq!(*reason(&attribution), expected);
}

#[test]
fn one_prompt_in_one_row_and_then_single_tokens_is_no_mix() {
    let mut timeline = empty();
    for (place, positions) in [512, 1, 1].into_iter().enumerate() {
        pass(&mut timeline, place as i64 * 1_000, &[positions], true);
    }
    assert_eq!(stages(&attributed(&timeline)), [(Stage::Prefill, None, 1), (Stage::Decode, None, 2)]);
}

#[test]
fn training_has_no_stages_of_inference() {
    let mut timeline = empty();
    operator(&mut timeline, "aten::embedding", &[&[50_000, 1_024], &[1, 512]], 0, 100);
    operator(&mut timeline, "autograd::engine::evaluate_function: MmBackward0", &[], 200, 100);
    launched(&mut timeline, 0, "kernel", 50, 10);
    assert_eq!(reason(&attributed(&timeline)).id, "stages.training");
}

#[test]
fn a_vision_tower_that_runs_for_tiles_and_for_the_page_is_found_twice() {
    let mut timeline = empty();
    let mut at = 0;
    let mut step = |timeline: &mut Timeline, name: &str, shapes: &[&[u64]]| {
        operator(timeline, name, shapes, at, 50);
        launched(timeline, 0, "kernel", at + 30, 5);
        at += 100;
    };
    step(&mut timeline, "aten::embedding", &[&[129_280, 1_280], &[1, 900]]);
    for views in [6, 1] {
        step(&mut timeline, "aten::conv2d", &[&[views, 3, 640, 640], &[768, 3, 16, 16]]);
        step(&mut timeline, "aten::linear", &[&[views, 40, 40, 768], &[2_304, 768]]);
        step(&mut timeline, "aten::conv2d", &[&[views, 512, 20, 20], &[1_024, 512, 3, 3]]);
        step(&mut timeline, "aten::linear", &[&[views, 101, 1_024], &[3_072, 1_024]]);
        step(&mut timeline, "aten::add", &[&[views, 101, 1_024], &[views, 101, 1_024]]);
        step(&mut timeline, "aten::cat", &[&[views, 100, 1_024], &[views, 100, 1_024]]);
        step(&mut timeline, "aten::linear", &[&[views, 100, 2_048], &[1_280, 2_048]]);
    }
    step(&mut timeline, "aten::linear", &[&[1, 900, 1_280], &[1_280, 1_280]]);
    step(&mut timeline, "aten::argmax", &[&[1, 129_280]]);
    step(&mut timeline, "aten::embedding", &[&[129_280, 1_280], &[1, 1]]);
    let attribution = attribute(
        &timeline,
        &AttributionSettings { model: Some("DeepSeek-OCR".to_owned()), ..AttributionSettings::default() },
    );
    let parts = [(Stage::Sam, Some(0), 3), (Stage::Clip, Some(0), 2), (Stage::Projector, Some(0), 1)];
    let expected: Vec<_> =
        [(Stage::Prefill, None, 17)].into_iter().chain(parts).chain(parts).chain([(Stage::Decode, None, 1)]).collect();
    assert_eq!(stages(&attribution), expected);
}
