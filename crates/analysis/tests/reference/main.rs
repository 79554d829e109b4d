//! Captures of other projects, read in place; they are no part of this one.

mod attribution;
#[path = "../attribution_captures/mod.rs"]
mod attribution_captures;
mod captures;
mod kernel;
mod latency;
#[path = "../projections/mod.rs"]
mod projections;
mod replay;
#[path = "../replay_checks/mod.rs"]
mod replay_checks;
mod serving;

use testkit::need::Need;

const TRACES: Need = Need::Reference("third-party/traces");
const KINETO: Need = Need::Reference("third-party/kineto");
const T4: Need = Need::Reference("third-party/nsys-t4");

testkit::suite! {
    [T4] => { attribution::the_projection_of_hundreds_of_nested_ranges_is_the_one_nsys_prints }
    [KINETO] => {
        attribution::work_launched_before_the_trace_began_is_counted_and_not_placed_by_time,
        kernel::families_cover_the_device_time_of_a_decoder_on_an_h100,
    }
    [TRACES] => {
        kernel::families_cover_the_kernel_time_of_strangers_traces,
        replay::a_busy_device_gains_nothing_from_graphs,
        replay::graphs_do_not_save_what_the_data_loader_costs,
        replay::hidden_communication_saves_at_most_what_is_exposed,
    }
    [Need::Reference("serving")] => { latency::latencies_of_vllm_results_are_those_vllm_prints }
    [Need::Reference("serving")] => { latency::only_the_server_that_compiled_under_its_load_was_cold }
    [Need::Reference("third-party/nsys-rtx5090")] => {
        kernel::families_cover_the_device_time_of_another_build_of_the_model,
    }
    [Need::Reference("serving/llama-8b")] => { serving::tokens_are_in_the_steps_that_the_scheduler_put_them_in }
    [Need::Reference("serving/llama-1b")] => {
        serving::steps_have_the_sequences_their_engine_says,
        serving::requests_are_joined_to_steps_that_nothing_annotates,
    }
    [TRACES, KINETO, T4] => {
        replay::an_unchanged_replay_gives_back_every_capture,
        replay::copies_that_are_hidden_or_removed_save_no_more_than_they_take,
        replay::changes_together_never_save_more_than_the_run,
    }
}
