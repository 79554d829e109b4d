//! `assumptions.md`: what one has to know to repeat a run.

use crate::render::Page;
use crate::render::Table;
use crate::render::text::{code, prose};

/// One thing that was set or taken as given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// What, such as `warm-up rounds`.
    pub name: String,
    /// Its value, in plain text.
    pub value: String,
}

impl Setting {
    /// `name` was `value`.
    pub fn new(name: impl Into<String>, value: impl ToString) -> Self {
        Self { name: name.into(), value: value.to_string() }
    }
}

/// Everything a run took as given, by subject. An empty subject is printed as not recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assumptions {
    /// Run they belong to.
    pub run: String,
    /// Device, threads, and the peak rates that utilisation is relative to, with their source.
    pub device: Vec<Setting>,
    /// Warm-up rounds, repeats, epochs.
    pub repeats: Vec<Setting>,
    /// Inputs at once.
    pub batch: Vec<Setting>,
    /// Model, weights and their source, element type.
    pub model: Vec<Setting>,
    /// Sampling, token limit, stop conditions.
    pub decoding: Vec<Setting>,
    /// How images and text become inputs.
    pub preprocessing: Vec<Setting>,
    /// What was profiled, and in which passes.
    pub profiling: Vec<Setting>,
    /// Where the inputs come from and how they were chosen.
    pub data: Vec<Setting>,
    /// Command that repeats the run; absent when it cannot be repeated.
    pub repeat_command: Option<String>,
}

/// The assumptions as Markdown.
pub fn assumptions_page(assumptions: &Assumptions) -> Page {
    let mut page = Page::new(&format!("Assumptions of run {}", prose(&assumptions.run)));
    let sections = [
        ("Device", &assumptions.device),
        ("Repeats", &assumptions.repeats),
        ("Batch", &assumptions.batch),
        ("Model and weights", &assumptions.model),
        ("Decoding", &assumptions.decoding),
        ("Preprocessing", &assumptions.preprocessing),
        ("Profiling settings", &assumptions.profiling),
        ("Data selection", &assumptions.data),
    ];
    for (heading, settings) in sections {
        page.heading(heading);
        let mut table = Table::new("setting | value");
        for setting in settings {
            table.row([prose(&setting.name), prose(&setting.value)]);
        }
        page.table_or(&table, "Not recorded.");
    }
    page.heading("Repeating the run");
    match &assumptions.repeat_command {
        Some(command) => page.paragraph(&code(command)),
        None => page.paragraph("This run cannot be repeated from its folder."),
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subject_has_its_section_also_when_nothing_is_recorded() {
        let assumptions = Assumptions {
            run: "20251115-034712".to_owned(),
            device: vec![Setting::new("device", "cpu"), Setting::new("threads", 2)],
            repeats: vec![Setting::new("repeats", 3), Setting::new("warm-up rounds", 1)],
            decoding: vec![Setting::new("sampling", "greedy"), Setting::new("no_repeat_ngram_size", "*off*")],
            repeat_command: Some("llm-perf profile --from 20251115-034712".to_owned()),
            ..Assumptions::default()
        };
        insta::assert_snapshot!(assumptions_page(&assumptions).markdown());
    }

    #[test]
    fn a_run_that_cannot_be_repeated_says_so() {
        assert!(assumptions_page(&Assumptions::default()).markdown().contains("cannot be repeated"));
    }
}
