//! Files of other projects, read in place; they are no part of this one.

mod ncu;
mod nsys;
#[path = "../nsys_sums/mod.rs"]
mod nsys_sums;
mod requests;
mod torch;
mod torchinfo;

use testkit::need::Need;

testkit::suite! {
    [Need::Reference("third-party/ncu-rtx5090")] => { ncu::sections_of_other_makers_are_read_in_place }
    [Need::Reference("third-party/nsys-t4")] => {
        nsys::another_version_on_another_device_sums_up_to_what_nsys_prints,
        nsys::a_table_of_a_t4_is_read,
    }
    [Need::Reference("third-party/nsys-rtx5090")] => { nsys::a_table_of_an_rtx_5090_is_read }
    [Need::Reference("third-party/traces")] => { nsys::operators_of_a_strangers_export_have_no_numbers_in_their_names }
    [Need::Reference("third-party/kineto")] => {
        torch::kernel_and_operator_totals_equal_those_of_tracelens,
        torch::traces_of_other_ages_are_read,
    }
    [Need::Reference("serving")] => { requests::results_of_vllm_have_the_totals_they_say }
    [Need::Reference("third-party/torchinfo")] => { torchinfo::a_third_party_snapshot_lists_twenty_nine_classes }
}
