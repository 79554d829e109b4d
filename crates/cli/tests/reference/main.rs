//! Data of other people's runs, read in place; it is no part of this project.

mod capacity;
mod claims;
mod conclusions;
mod imported;
#[path = "../support/scratch.rs"]
#[allow(dead_code, reason = "an import needs less of it than a profile")]
mod scratch;
mod serving;
mod shares;
mod strangers;
#[path = "../support/mod.rs"]
#[allow(dead_code, reason = "an import needs less of it than a profile")]
mod support;
mod truth;
mod verdicts;

use testkit::need::Need;

testkit::suite! {
    [Need::Reference("third-party/traces")] => {
        conclusions::every_figure_of_other_programs_is_found_again,
        conclusions::what_an_expert_says_first_is_said_first_and_what_is_false_is_not_said,
        conclusions::steps_that_an_engine_annotates_are_what_it_says,
        conclusions::kernels_are_of_the_families_an_expert_names_and_hardly_any_of_none,
        conclusions::ranks_of_one_job_are_compared_at_the_collectives_they_share,
        conclusions::kernels_that_repeat_show_the_steps_that_the_profiler_had_marked,
        conclusions::copies_within_a_device_are_told_where_there_are_many,
        conclusions::a_replayed_graph_has_the_operators_of_its_capture,
        conclusions::a_capture_of_another_graph_or_process_is_refused_with_the_reason,
        conclusions::a_model_fits_its_own_trace_and_no_other,
        strangers::jobs_of_other_days_devices_and_sizes_are_not_one_run,
        strangers::ranks_of_one_job_are_joined_and_missing_ones_are_said,
        strangers::a_device_is_known_by_its_name_or_by_its_properties,
        strangers::shapes_have_rates_without_a_model,
        strangers::convolutions_and_attention_have_rates_too,
        strangers::a_model_that_is_not_the_one_in_the_trace_yields_no_utilisation,
        strangers::a_device_that_is_not_the_one_in_the_trace_is_told,
        strangers::collectives_have_their_message_group_and_bandwidth,
        strangers::older_traces_tell_the_message_of_a_collective_and_not_its_group,
        strangers::memory_peaks_are_those_the_allocator_reported,
        strangers::a_trace_without_memory_events_has_no_memory,
        strangers::operators_have_the_python_that_calls_them,
        strangers::ranks_of_a_stranger_have_the_figures_that_others_counted,
        claims::work_of_before_the_recording_is_in_no_step_and_waits_for_collectives,
        claims::the_device_of_memory_is_that_of_the_kernels,
        claims::training_is_not_advised_to_do_what_it_does,
        claims::copies_of_one_pass_are_not_said_to_come_back,
        claims::rates_of_shapes_are_said_to_be_modelled,
        claims::short_gaps_are_the_device_s_own_and_long_ones_have_no_recorded_cause,
    }
    [Need::Reference("third-party/traces-2")] => {
        strangers::parts_of_a_rank_add_up_to_its_span,
        conclusions::communication_in_stages_is_the_first_finding_and_saves_what_a_replay_does,
        conclusions::work_of_before_the_recording_is_said_and_no_synchronisation_is_blamed_for_it,
        serving::prompts_of_a_draft_model_count_once,
        serving::rounds_of_a_draft_and_its_target_are_speculative_decoding,
        serving::a_replayed_decode_step_is_inference,
        serving::steps_that_follow_each_other_leave_no_time_without_work,
        shares::accumulators_are_no_gemms_in_single_precision,
        shares::cost_centres_are_shares_of_all_device_work,
        shares::stages_are_not_idle_while_a_device_runs_the_work_of_others,
        shares::little_time_outside_of_steps_makes_no_finding,
        claims::first_calls_are_named,
        claims::what_no_device_recorded_is_not_zero,
        claims::launches_before_the_first_graph_are_told_from_those_around_graphs,
        verdicts::every_trace_of_the_truths_has_a_verdict,
        verdicts::what_is_true_of_ten_more_traces_is_said_and_what_is_false_is_not,
    }
    [Need::Reference("serving/llama-1b")] => { serving::a_server_between_its_requests_has_no_work_and_loses_nothing }
    [Need::Reference("serving/llama-8b")] => {
        capacity::a_server_of_another_model_is_forecast_as_well,
        capacity::forecasts_are_as_far_off_as_the_documentation_says,
        serving::mixed_steps_are_why_work_is_in_no_stage,
        claims::gaps_inside_graphs_are_no_delay_of_launches,
    }
    [Need::Reference("serving/llama-8b"), Need::Reference("serving/llama-1b")] => {
        capacity::memory_holds_about_as_many_blocks_as_the_server_found,
    }
    [Need::Reference("third-party/traces-2"), Need::Reference("serving/llama-1b")] => {
        conclusions::what_runs_in_graphs_is_not_advised_to,
    }
    [Need::Reference("third-party/ncu-rtx5090")] => { strangers::pages_of_one_launch_are_one_launch }
    [Need::Reference("third-party/kineto")] => { strangers::another_run_is_told_other_things }
    [Need::Reference("third-party/torchinfo")] => { strangers::every_class_of_a_strangers_torchinfo_snapshot_is_covered }
    // The same checks on captures of this project.
    [] => { conclusions::what_must_hold_of_any_run_holds_of_the_captures_of_this_project }
}
