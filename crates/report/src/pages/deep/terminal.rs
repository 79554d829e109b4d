//! What `llm-perf deep` ends with, and what it says it will do.

use types::DeepPlan;
use types::view::{CountersView, RunView};

use super::counters::{noise, passes};
use super::pages::bottlenecks;
use crate::pages::run::import_terminal;
use crate::render::table::printable;
use crate::words::number::count;

/// The plan as plain text: every pass with what is typed.
pub fn plan_terminal(plan: &DeepPlan) -> String {
    let mut text = format!(
        "{} in {} mode, timeline by {}; a trace may take {}\n",
        count(plan.passes.len() as u64, "pass"),
        plan.mode,
        plan.collector,
        plan.largest_trace
    );
    for (number, pass) in plan.passes.iter().enumerate() {
        text += &format!("\n{}. {}: {}\n", number + 1, pass.name, pass.about);
        if let Some(command) = &pass.command {
            text += &format!("   {}\n", printable(command));
        }
    }
    if !plan.left_out.is_empty() {
        text.push('\n');
    }
    for line in &plan.left_out {
        text += &format!("left out: {}\n", printable(line));
    }
    text
}

/// The run as plain text.
pub fn terminal(run: &RunView<'_>, view: &CountersView<'_>) -> String {
    let mut text = format!("{}\n{}", import_terminal(run), passes(view.report));
    if let Some(noise) = noise(run.metrics) {
        text += &format!("{noise}\n");
    }
    text.push('\n');
    for (number, line) in bottlenecks(view).iter().enumerate() {
        text += &printable(&format!("bottleneck {}: {}", number + 1, line.replace('`', "")));
        text.push('\n');
    }
    text
}
