//! A profiled or imported run written down: the report, its operators and kernels, a summary in plain words, its
//! assumptions, and the terminal.
//!
//! Everything comes from the view of the run and its environment; here it is arranged, rounded and put into words.

pub(crate) mod advice;
mod appendix;
mod assumptions;
pub(crate) mod caveats;
mod command;
mod communication;
pub(crate) mod critical_path;
mod device_time;
pub(crate) mod findings;
mod headline;
mod import_terminal;
mod imported;
pub(crate) mod kernels;
mod lost;
mod memory;
pub(crate) mod operators;
pub(crate) mod phrase;
mod quality;
mod recorded;
mod report;
#[cfg(test)]
pub(crate) mod sample;
#[cfg(test)]
pub(crate) mod sample_serving;
pub(crate) mod serving;
mod show;
mod steps;
pub(crate) mod summary;
mod terminal;
mod tries;

pub use assumptions::{Assumptions, Setting, assumptions_page};
pub use command::{command_csv, command_page, command_terminal};
pub(crate) use headline::headline;
pub(crate) use import_terminal::blocks as import_blocks;
pub use import_terminal::import_terminal;
pub use kernels::kernels_page;
pub use operators::operators_page;
pub use phrase::set_aside;
pub(crate) use phrase::{device, imported_facts, model, no_utilisation, profiled_pass};
pub use report::report_page;
pub use show::{Glance, glance};
pub use summary::summary_page;
pub use terminal::{stage_times_terminal, terminal};

#[cfg(test)]
mod tests {
    use types::documents;

    use super::{sample, sample_serving};

    #[test]
    fn the_reference_explains_every_key_of_the_document() {
        let page = include_str!("../../../../../docs/reference/metrics.md");
        let schema = documents::find("metrics").unwrap().schema();
        let keys = schema["properties"].as_object().unwrap().keys();
        let missing: Vec<_> = keys.filter(|key| !page.contains(&format!("`{key}"))).collect();
        assert_eq!(missing, Vec::<&String>::new());
    }

    #[test]
    fn the_documents_the_pages_come_from_follow_their_schema() {
        let serving = [sample_serving::traced(), sample_serving::client_alone()];
        for metrics in [sample::metrics(), sample::without_peak(), sample::empty()].into_iter().chain(serving) {
            let found = crate::validate(&serde_json::to_vec(&metrics).unwrap()).unwrap();
            assert_eq!(found.violations, [], "{:?}", metrics.run);
        }
    }
}
