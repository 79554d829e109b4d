//! Pages in a browser.

mod accessibility;
#[path = "../support/browser.rs"]
mod browser;
mod hostile;
mod page;
#[path = "../support/scratch.rs"]
mod scratch;
#[path = "../support/mod.rs"]
mod support;

use testkit::need::Need;

testkit::suite! {
    [Need::Browser] => {
        page::a_real_capture_can_be_sorted_filtered_zoomed_and_summed,
        page::what_is_painted_is_what_the_metrics_say_at_three_zooms,
        page::labels_of_the_axis_are_distinct_at_every_zoom,
        page::search_finds_what_it_counts_and_the_address_opens_what_was_seen,
        page::a_run_of_our_own_has_its_timeline_at_once,
        page::pictures_of_inputs_are_small_and_drawn,
        page::ranks_are_drawn_on_one_clock_and_sum_to_their_metrics,
        page::keys_alone_reach_everything,
        page::requests_and_steps_lead_to_each_other_and_to_the_timeline,
        page::every_number_of_the_first_screen_leads_to_its_source_in_two_clicks,
        page::labels_keep_off_bars_and_off_each_other,
        page::a_page_is_dark_where_wanted_fits_a_phone_and_prints_whole,
        page::names_from_a_trace_cannot_get_out_of_their_place,
        page::runs_without_kernels_and_comparisons_are_pages_too,
        hostile::two_hundred_thousand_kernels_with_endless_names_are_drawn,
        hostile::sixty_four_ranks_are_side_by_side,
        hostile::a_trace_without_kernels_and_one_with_half_of_its_stages_have_pages,
    }
    [Need::Firefox] => { page::firefox_draws_the_page_and_sums_the_same }
    [Need::Browser, Need::Axe] => {
        accessibility::the_page_of_an_imported_run_has_nothing_that_axe_core_objects_to,
        accessibility::the_page_of_two_ranks_has_nothing_that_axe_core_objects_to,
        accessibility::the_page_of_a_load_has_nothing_that_axe_core_objects_to,
        accessibility::the_page_of_a_run_of_our_own_has_nothing_that_axe_core_objects_to,
        accessibility::the_pages_of_an_analysis_and_a_sweep_have_nothing_that_axe_core_objects_to,
        accessibility::the_page_of_a_fleet_has_nothing_that_axe_core_objects_to,
        accessibility::the_page_of_a_comparison_has_nothing_that_axe_core_objects_to,
    }
}
