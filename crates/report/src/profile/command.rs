//! A command measured from outside: its page and its lines on a terminal.

use types::{CommandFacts, CommandRun, Environment, Metrics, Severity};

use super::import_terminal::import_terminal;
use super::imported;
use super::lost;
use super::page::Page;
use super::phrase::{environment, known, overhead};
use super::recorded;
use super::report::{findings, quality};
use crate::markdown::code;
use crate::number::{count, milliseconds, percent, share};
use crate::table::{Column, Table, printable};

/// The run as Markdown; empty for a run of a model.
pub fn command_markdown(metrics: &Metrics, found: &Environment) -> String {
    let Some(facts) = &metrics.conditions.command else { return String::new() };
    let mut page = Page::new("Profile of a command");
    page.paragraph(&format!("{}. Measured: {}", headline(facts), code(&facts.command)));
    page.paragraph(
        "Times are from its start to its end, with no instruments inside; processor time and memory are as the system counts \
         them for the command and what it waited for; devices are as their driver sees them, other programs included.",
    );
    page.heading("Runs (measured)");
    page.table(&runs(facts));
    let devices = devices(facts);
    if !devices.is_empty() {
        page.heading("Devices while it ran (counted)");
        page.table(&devices);
    }
    if let Some(trace) = &metrics.conditions.trace {
        page.heading("Recorded run");
        page.paragraph(&format!(
            "One more run with the collector inside; all below is of it. {} {}",
            overhead(metrics),
            imported::headline(metrics)
        ));
        lost::lost_time(&mut page, metrics);
        imported::stages(&mut page, metrics, trace);
        recorded::ranks(&mut page, metrics);
        imported::top_kernels(&mut page, metrics);
        findings(&mut page, metrics);
        imported::coverage(&mut page, trace);
    }
    if metrics.conditions.trace.is_some() || !metrics.conclusions.quality.is_empty() {
        quality(&mut page, metrics);
    }
    page.heading("Environment");
    page.list(environment(metrics, found));
    page.finish()
}

/// The run in a few lines.
pub fn command_terminal(metrics: &Metrics) -> String {
    let Some(facts) = &metrics.conditions.command else { return String::new() };
    let mut text = format!("{}\n\n{}", headline(facts).replace("**", ""), runs(facts).plain());
    let devices = devices(facts);
    if !devices.is_empty() {
        text += &format!("\n{}", devices.plain());
    }
    if metrics.conditions.trace.is_some() {
        text +=
            &format!("\nOne more run with the collector inside. {}\n{}", overhead(metrics), import_terminal(metrics));
    }
    if metrics.conditions.trace.is_none() {
        for doubt in metrics.conclusions.quality.iter().filter(|counter| counter.severity > Severity::Info) {
            text += &format!("\nnot recorded: {}\n", printable(&doubt.remedy));
        }
    }
    text
}

fn headline(facts: &CommandFacts) -> String {
    let measured = facts.runs.iter().filter(|run| !run.warmup).count() as u64;
    match &facts.wall_ms {
        Some(times) if times.n > 1 => {
            let spread = times.std.map(|std| format!(", std {}", milliseconds(std))).unwrap_or_default();
            format!("**{} a run (median of {}{spread})**", milliseconds(times.median), times.n)
        }
        Some(times) => format!("**{} for one run**", milliseconds(times.median)),
        None => format!("**{} and none ended well**", count(measured, "run")),
    }
}

fn runs(facts: &CommandFacts) -> Table<7> {
    let mut table = Table::new([
        Column::text("run"),
        Column::number("wall"),
        Column::number("user"),
        Column::number("system"),
        Column::number("of a core"),
        Column::number("peak memory"),
        Column::text("ended"),
    ]);
    for (number, run) in facts.runs.iter().enumerate() {
        let busy = share((run.user_ns + run.system_ns).get() as f64, run.wall_ns.get() as f64);
        table.row([
            format!("{}{}", number + 1, if run.warmup { " (warm-up)" } else { "" }),
            run.wall_ns.to_string(),
            run.user_ns.to_string(),
            run.system_ns.to_string(),
            percent(busy),
            known(run.peak_memory_bytes),
            ended(run),
        ]);
    }
    table
}

fn ended(run: &CommandRun) -> String {
    match run.exit_code {
        Some(0) => "well".to_owned(),
        Some(code) => format!("with code {code}"),
        None => "by a signal".to_owned(),
    }
}

fn devices(facts: &CommandFacts) -> Table<6> {
    let mut table = Table::new([
        Column::text("run"),
        Column::text("device"),
        Column::number("busy, mean"),
        Column::number("busy, max"),
        Column::number("memory, max"),
        Column::number("power, mean"),
    ]);
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
