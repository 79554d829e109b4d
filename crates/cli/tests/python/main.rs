//! What a Python interpreter is needed for: the reader of runs, the driver of PyTorch and the engines of `query`.

mod query;
mod reader;
#[path = "../support/scratch.rs"]
mod scratch;
#[path = "../support/mod.rs"]
#[allow(dead_code, reason = "each suite takes what it needs")]
mod support;
mod torch;

use testkit::need::Need;

testkit::suite! {
    [Need::Python] => {
        reader::the_reader_reads_what_the_program_wrote,
        reader::the_driver_of_queries_is_python_that_old_interpreters_read,
    }
    [Need::Torch] => {
        torch::the_dummy_resnet_runs_in_torch_alone,
        torch::a_factory_of_the_users_is_run_and_what_is_wrong_with_one_is_told,
    }
    [Need::Transformers] => {
        torch::a_model_of_transformers_is_made_from_its_config_and_counts_the_same_flops,
        torch::code_that_a_folder_brings_is_not_run_unasked,
        torch::remedies_are_tried_in_turns_and_one_that_needs_a_gpu_says_so,
    }
    [Need::QueryEngine] => {
        query::the_interval_views_find_what_the_script_knows,
        query::an_imported_trace_is_answered_as_its_metrics_say,
        query::every_question_is_answered_and_empty_tables_are_there,
        query::answers_are_written_in_every_form,
        query::a_statement_sees_nothing_but_the_folders_named_and_changes_nothing,
        query::a_damaged_file_is_an_error_that_names_it,
    }
    [Need::QueryEngines] => { query::every_question_is_answered_alike_by_both_engines }
}
