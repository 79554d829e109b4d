//! What `llm-perf deep` ends with, and what it says it will do.

use types::view::RunView;
use types::{DeepPlan, KernelReport};

use super::counters::{noise, passes};
use super::pages::bottlenecks;
use crate::pages::run::{caveats, import_blocks};
use crate::render::Page;
use crate::render::text::prose;
use crate::words::number::count;

/// The plan as plain text: every pass with its command.
pub fn plan_terminal(plan: &DeepPlan) -> String {
    let mut page = Page::default();
    page.paragraph(&format!(
        "{} in {} mode, timeline by {}; a trace may take up to {}",
        count(plan.passes.len() as u64, "pass"),
        plan.mode,
        plan.collector,
        plan.largest_trace
    ));
    for (number, pass) in plan.passes.iter().enumerate() {
        page.heading(&format!("{}. {}: {}", number + 1, pass.name, prose(&pass.about)));
        pass.command.iter().for_each(|command| page.paragraph(&format!("   {}", prose(command))));
    }
    for (index, line) in plan.left_out.iter().enumerate() {
        let line = format!("left out: {}", prose(line));
        if index == 0 { page.heading(&line) } else { page.paragraph(&line) }
    }
    page.terminal()
}

/// The run as plain text.
pub fn terminal(run: &RunView<'_>, report: &KernelReport) -> String {
    let mut page = Page::default();
    caveats::callout(&mut page, run.metrics);
    import_blocks(&mut page, run);
    page.table(&passes(report));
    noise(run.metrics).iter().for_each(|noise| page.paragraph(noise));
    let bottlenecks = bottlenecks(report);
    if !bottlenecks.is_empty() {
        page.heading("bottlenecks:");
        page.steps(bottlenecks);
    }
    page.terminal()
}
