//! A command measured from outside: its page and its lines on a terminal.

use types::view::RunView;
use types::{CommandFacts, CommandRun, Environment};

use super::import_terminal::import_terminal;
use super::imported;
use super::lost;
use super::phrase::{environment, overhead};
use super::recorded;
use super::report::{findings, quality};
use crate::markdown::code;
use crate::number::{count, known, milliseconds, percent};
use crate::page::Page;
use crate::table::{Table, printable};

/// The run as Markdown; empty for a run of a model.
pub fn command_markdown(run: &RunView<'_>, machine: &Environment) -> String {
    let metrics = run.metrics;
    let Some(facts) = &metrics.conditions.command else { return String::new() };
    let mut page = Page::new("Profile of a command");
    page.paragraph(&format!("{}. Measured: {}", headline(run, facts), code(&facts.command)));
    page.paragraph(
        "Times are from the start of the command to its end, without a profiler. Processor time and memory are as the operating \
         system counts them for the command and the processes it waited for. Device figures are as the driver sees them, including \
         other programs.",
    );
    page.heading("Runs (measured)");
    page.table(&runs(run));
    let devices = devices(facts);
    if !devices.is_empty() {
        page.heading("Devices while it ran (counted)");
        page.table(&devices);
    }
    if let Some(trace) = &metrics.conditions.trace {
        page.heading("Profiled run");
        page.paragraph(&format!(
            "One more run with the collector attached; everything below refers to it. {} {}",
            overhead(metrics),
            imported::headline(run)
        ));
        lost::lost_time(&mut page, run);
        imported::stages(&mut page, run, trace);
        recorded::ranks(&mut page, run);
        imported::top_kernels(&mut page, run);
        findings(&mut page, run);
        imported::coverage(&mut page, trace);
    }
    if metrics.conditions.trace.is_some() || !metrics.conclusions.quality.is_empty() {
        quality(&mut page, run);
    }
    page.heading("Environment");
    page.list(environment(metrics, machine));
    page.finish()
}

/// The run in a few lines.
pub fn command_terminal(run: &RunView<'_>) -> String {
    let metrics = run.metrics;
    let Some(facts) = &metrics.conditions.command else { return String::new() };
    let mut text = format!("{}\n\n{}", headline(run, facts).replace("**", ""), runs(run));
    let devices = devices(facts);
    if !devices.is_empty() {
        text += &format!("\n{devices}");
    }
    if metrics.conditions.trace.is_some() {
        let overhead = overhead(metrics);
        return text + &format!("\nOne more run with the collector attached. {overhead}\n{}", import_terminal(run));
    }
    for warning in &run.data_warnings {
        text += &format!("\nnot recorded: {}\n", printable(&warning.remedy));
    }
    text
}

pub(super) fn headline(run: &RunView<'_>, facts: &CommandFacts) -> String {
    match &facts.wall_ms {
        Some(times) if times.n > 1 => {
            let spread = times.std.map(|std| format!(", std {}", milliseconds(std))).unwrap_or_default();
            format!("**{} per run (median of {}{spread})**", milliseconds(times.median), times.n)
        }
        Some(times) => format!("**{} for one run**", milliseconds(times.median)),
        None => format!("**{}, none successful**", count(run.command_runs_measured, "run")),
    }
}

fn runs(run: &RunView<'_>) -> Table {
    let mut table = Table::new("run | >wall | >user | >system | >of a core | >peak memory | ended");
    for (number, view) in run.command_runs.iter().enumerate() {
        let run = view.run;
        table.row([
            format!("{}{}", number + 1, if run.warmup { " (warm-up)" } else { "" }),
            run.wall_ns.to_string(),
            run.user_ns.to_string(),
            run.system_ns.to_string(),
            percent(view.core_share),
            known(run.peak_memory_bytes),
            ended(run),
        ]);
    }
    table
}

fn ended(run: &CommandRun) -> String {
    match run.exit_code {
        Some(0) => "successfully".to_owned(),
        Some(code) => format!("with exit code {code}"),
        None => "by a signal".to_owned(),
    }
}

fn devices(facts: &CommandFacts) -> Table {
    let mut table = Table::new("run | device | >busy, mean | >busy, max | >memory, max | >power, mean");
    for (number, run) in facts.runs.iter().enumerate() {
        for device in &run.devices {
            table.row([
                (number + 1).to_string(),
                device.device.to_string(),
                percent(device.utilisation_mean),
                percent(device.utilisation_max),
                known(device.memory_max_bytes),
                known(device.power_mean_watts.map(|watts| format!("{watts:.0} W"))),
            ]);
        }
    }
    table
}
