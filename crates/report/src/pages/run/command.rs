//! A command measured from outside: its page and its lines on a terminal.

use types::view::{CommandView, RunView};
use types::{CommandFacts, CommandRun, Count, Environment, Nanos};

use super::phrase::{environment, overhead};
use super::quality::quality;
use super::{caveats, findings, import_terminal, imported, lost, recorded};
use crate::render::Page;
use crate::render::Table;
use crate::render::text::{code, prose, sentence};
use crate::words::number::{UNKNOWN, count, known, milliseconds, percent};

/// The run as Markdown; empty for a run of a model.
pub fn command_page(run: &RunView<'_>, machine: &Environment) -> Page {
    let metrics = run.metrics;
    let [first, beside @ ..] = run.commands.as_slice() else { return Page::default() };
    let mut page = Page::new(if beside.is_empty() { "Profile of a command" } else { "Profile of commands" });
    caveats::callout(&mut page, metrics);
    match beside {
        [] => page.paragraph(&format!("{}. Command: {}", headline(first), code(&first.facts.command))),
        _ => page.table(&relative(&run.commands)),
    }
    page.paragraph(
        "Times run from the start of the command to its exit, without a profiler. CPU time and memory are those the operating system \
         counts for the command and the processes it waited for. Device figures are the driver's and include other programs.",
    );
    page.list(notes(run));
    for command in &run.commands {
        page.heading(&match beside {
            [] => "Runs (measured)".to_owned(),
            _ => format!("Runs of {} (measured)", code(&command.facts.command)),
        });
        page.table(&runs(command));
        let devices = devices(command.facts);
        if !devices.is_empty() {
            page.heading("Devices during the runs (counted)");
            page.table(&devices);
        }
    }
    if let Some(trace) = &metrics.conditions.trace {
        page.heading("Profiled run");
        page.paragraph(&format!(
            "One more run with the collector attached; everything below refers to it. {} {}",
            overhead(metrics),
            imported::headline(run)
        ));
        findings::section(&mut page, run);
        imported::stages(&mut page, run, trace);
        lost::lost_time(&mut page, run);
        recorded::ranks(&mut page, run);
        imported::top_kernels(&mut page, run);
        page.list(imported::coverage(trace).map(|coverage| format!("coverage: {coverage}")));
    }
    if metrics.conditions.trace.is_some() || !metrics.conclusions.quality.is_empty() {
        quality(&mut page, run);
    }
    page.heading("Environment");
    page.list(environment(metrics, machine));
    page
}

/// The run in a few lines.
pub fn command_terminal(run: &RunView<'_>) -> String {
    let metrics = run.metrics;
    let [first, beside @ ..] = run.commands.as_slice() else { return String::new() };
    let mut page = Page::default();
    caveats::callout(&mut page, metrics);
    match beside {
        [] => {
            page.paragraph(&headline(first));
            page.table(&runs(first));
            let devices = devices(first.facts);
            if !devices.is_empty() {
                page.table(&devices);
            }
        }
        _ => page.table(&relative(&run.commands)),
    }
    notes(run).iter().for_each(|note| page.paragraph(note));
    if metrics.conditions.trace.is_some() {
        page.heading(&format!("One more run with the collector attached. {}", overhead(metrics)));
        import_terminal::blocks(&mut page, run);
    } else {
        run.data_warnings.iter().for_each(|one| page.heading(&format!("not recorded: {}", sentence(&one.remedy))));
    }
    page.terminal()
}

/// One line per command: seconds, as `hyperfine --export-csv` names and writes them.
pub fn command_csv(run: &RunView<'_>) -> String {
    let mut text = "command,mean,stddev,median,user,system,min,max\n".to_owned();
    for command in &run.commands {
        let times = command.facts.wall_ms.as_ref();
        let seconds =
            |milliseconds: Option<f64>| milliseconds.map(|value| (value / 1e3).to_string()).unwrap_or_default();
        let cpu = |part: usize| seconds(command.cpu_mean.map(|times| times[part].get() as f64 / 1e6));
        let name = format!("\"{}\"", command.facts.command.replace('"', "\"\""));
        let cells = [
            name,
            seconds(times.map(|times| times.mean)),
            seconds(times.and_then(|times| times.std)),
            seconds(times.map(|times| times.median)),
            cpu(0),
            cpu(1),
            seconds(times.map(|times| times.min)),
            seconds(times.map(|times| times.max)),
        ];
        text += &(cells.join(",") + "\n");
    }
    text
}

pub(super) fn headline(command: &CommandView<'_>) -> String {
    match &command.facts.wall_ms {
        Some(times) if times.n > 1 => {
            let spread = times.std.map(|std| format!(", std {}", milliseconds(std))).unwrap_or_default();
            let range = format!("{} to {}", milliseconds(times.min), milliseconds(times.max));
            format!(
                "**{} per run (median of {}; mean {}{spread}, {range})**",
                milliseconds(times.median),
                times.n,
                milliseconds(times.mean)
            )
        }
        Some(times) => format!("**{} for a single run**", milliseconds(times.median)),
        None => format!("**{}, none successful**", count(command.measured, "run")),
    }
}

/// Commands beside each other.
fn relative(commands: &[CommandView<'_>]) -> Table {
    let mut table = Table::new("command | >mean | >std | >median | >min | >max | >runs | >relative to fastest");
    for command in commands {
        let times = command.facts.wall_ms.as_ref();
        let figure = |of: Option<f64>| known(of.map(milliseconds));
        let relative = command.relative.map(|(ratio, spread)| {
            let spread = spread.map(|spread| format!(" ± {spread:.2}")).unwrap_or_default();
            format!("{ratio:.2}{spread}")
        });
        table.row([
            code(&command.facts.command),
            figure(times.map(|times| times.mean)),
            figure(times.and_then(|times| times.std)),
            figure(times.map(|times| times.median)),
            figure(times.map(|times| times.min)),
            figure(times.map(|times| times.max)),
            times.map_or(0, |times| times.n).to_string(),
            known(relative),
        ]);
    }
    table
}

/// What a reader must know to read the times right.
fn notes(run: &RunView<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    let runs = || run.commands.iter().flat_map(|command| &command.facts.runs);
    if let Some(cost) = run.commands.first().and_then(|command| command.facts.start_cost_ns) {
        notes.push(format!("process start takes {cost}; every time includes it"));
    }
    let outliers = runs().filter(|run| run.outlier).count() as u64;
    if outliers > 0 {
        notes.push(format!("{}, included in the statistics", count(outliers, "outlier")));
    }
    if let Some([disturbed, all]) = run.disturbed.filter(|[disturbed, _]| *disturbed > 0) {
        let causes = run.disturbance_causes.join("; ");
        notes.push(format!("{disturbed} of {} disturbed ({})", count(all, "run"), prose(&causes)));
    }
    let left = runs().map(|run| run.left_running).sum::<Count>().get();
    if left > 0 {
        notes.push(format!("{} still running after the command exited, and terminated", count(left, "process")));
    }
    notes
}

fn runs(command: &CommandView<'_>) -> Table {
    let mut table = Table::new("run | >wall | >user | >system | >CPU use | >waited for CPU | >peak memory | exit");
    for (number, view) in command.runs.iter().enumerate() {
        let run = view.run;
        let mut marks = Vec::new();
        marks.extend(run.warmup.then_some("warm-up"));
        marks.extend(run.outlier.then_some("outlier"));
        marks.extend(run.disturbance.as_ref().is_some_and(types::Disturbance::is_disturbed).then_some("disturbed"));
        let marks = if marks.is_empty() { String::new() } else { format!(" ({})", marks.join(", ")) };
        table.row([
            format!("{}{marks}", number + 1),
            run.wall_ns.to_string(),
            run.user_ns.to_string(),
            run.system_ns.to_string(),
            percent(view.core_share),
            waited(run),
            memory(run),
            ended(run),
        ]);
    }
    table
}

fn waited(run: &CommandRun) -> String {
    known(run.disturbance.as_ref().and_then(|found| found.waited_ns).map(|time: Nanos| time.to_string()))
}

fn memory(run: &CommandRun) -> String {
    match (run.peak_memory_bytes, run.peak_memory_at_most_bytes) {
        (Some(bytes), _) => bytes.to_string(),
        (None, Some(bytes)) => format!("< {bytes}"),
        (None, None) => UNKNOWN.to_owned(),
    }
}

fn ended(run: &CommandRun) -> String {
    if let Some(reason) = &run.ended_for {
        return format!("ended by {}", prose(reason));
    }
    match run.exit_code {
        Some(code) => code.to_string(),
        None => "by signal".to_owned(),
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
