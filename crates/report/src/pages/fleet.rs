//! A fleet written down: ranks of a job side by side, and runs over time.

use types::{Fleet, FleetCollective, FleetJob, FleetRank, Nanos, Trend};

use crate::render::Page;
use crate::render::table::{Table, printable};
use crate::words::kind::Phrase;
use crate::words::number::{decimal, known, milliseconds, percent, ranges, signed};

/// Rows of a table on the terminal.
const TERMINAL_ROWS: usize = 16;
/// Rows of a table of the page.
const PAGE_ROWS: usize = 200;

/// The page.
pub fn page(fleet: &Fleet) -> Page {
    let mut page = Page::new("Fleet");
    for job in &fleet.jobs {
        page.heading(&format!("Job {}", printable(&job.job)));
        page.paragraph(&headline(job));
        page.list(findings(job));
        page.subheading("Ranks");
        page.table_or(&ranks(job, PAGE_ROWS), "No rank has device work.");
        page.subheading("Idle time by cause");
        page.table_or(&idle(job, PAGE_ROWS), "No device was idle.");
        page.subheading("Collectives");
        page.paragraph(
            "Transfer is from the arrival of the last rank to the end, the median over calls; waiting is for that rank, averaged \
             over ranks. Both need all ranks of the group.",
        );
        page.table_or(&collectives(job, PAGE_ROWS), "No collective was found on several ranks.");
        page.subheading("Critical path over ranks");
        page.table_or(&path(job, PAGE_ROWS), no_path(job));
        page.subheading("Kernels that one rank runs slower");
        page.table_or(&slow_kernels(job), "None takes 1.2 times as long as on the others and costs 0.5% of the time.");
        if !job.quality.is_empty() {
            page.subheading("Data quality");
            page.list(job.quality.iter().map(|counter| format!("`{}`: {}", counter.counter, counter.remedy)));
        }
    }
    if !fleet.trends.is_empty() {
        page.heading("Runs over time");
        page.paragraph(
            "A change is where runs before and after it differ beyond doubt (Wilcoxon's rank-sum test, p below 0.01 over all places \
             it could be at), by 2% or more, with four runs on each side.",
        );
        page.table(&trends(&fleet.trends));
        page.list(fleet.trends.iter().flat_map(changes));
    }
    page
}

/// For a terminal.
pub fn terminal(fleet: &Fleet) -> String {
    let mut text = String::new();
    for job in &fleet.jobs {
        text += &format!("{}: {}\n", printable(&job.job), headline(job));
        for finding in findings(job) {
            text += &format!("- {finding}\n");
        }
        text += &format!("\n{}", ranks(job, TERMINAL_ROWS));
        let parts = [path(job, 5), collectives(job, 8)];
        for table in parts.iter().filter(|table| !table.is_empty()) {
            text += &format!("\n{table}");
        }
        for counter in &job.quality {
            text += &format!("\nnote: {}\n", counter.remedy);
        }
        text += "\n";
    }
    if !fleet.trends.is_empty() {
        text += &format!("{}", trends(&fleet.trends));
        for change in fleet.trends.iter().flat_map(changes) {
            text += &format!("- {change}\n");
        }
    }
    text
}

/// What is here, and on which clock.
pub(crate) fn headline(job: &FleetJob) -> String {
    let here = job.ranks.len();
    let ranks = match (job.world_size, job.missing_ranks.len()) {
        (Some(world), 0) => format!("{world} of {world} ranks are here"),
        (Some(world), missing) => {
            format!(
                "{here} of {world} ranks are here, {missing} {} missing ({})",
                if missing == 1 { "is" } else { "are" },
                ranges(&job.missing_ranks)
            )
        }
        (None, _) => format!("{here} ranks are here; how many the job has is not recorded"),
    };
    let clock = match job.clock.uncertainty_ns {
        Some(error) => format!("clocks are aligned on {}, to within {error}", job.clock.basis.phrase()),
        None => format!("clocks are aligned on {}", job.clock.basis.phrase()),
    };
    let verdict = match job.findings.first() {
        Some(_) => "",
        None if job.missing_ranks.is_empty() => "; no rank, device or group stands out",
        None => "",
    };
    format!("{ranks}; {clock}{verdict}.")
}

/// Each finding: what stands out, the numbers behind it, and what to do.
pub(crate) fn findings(job: &FleetJob) -> Vec<String> {
    job.findings.iter().map(|finding| format!("{} {}", finding.evidence.join(" "), finding.advice)).collect()
}

pub(crate) fn name(rank: Option<u32>) -> String {
    rank.map_or_else(|| "-".to_owned(), |rank| rank.to_string())
}

fn part(time: Nanos, whole: Nanos) -> String {
    percent((whole > Nanos::ZERO).then(|| time.get() as f64 / whole.get() as f64))
}

fn ranks(job: &FleetJob, most: usize) -> Table {
    let mut table = Table::new(
        ">rank|device|>span|>compute|>communication, exposed|>copies, exposed|>idle|>step, median|>last to arrive|>waited|>waited for|\
         >exchanged|>kernels against usual|>clock",
    );
    for row in shown(&job.ranks, most) {
        let idle: Nanos = row.idle.iter().map(|part| part.ns).sum();
        table.row([
            name(row.rank),
            printable(row.device_name.as_deref().unwrap_or("-")).into_owned(),
            row.span_ns.to_string(),
            part(row.compute_ns, row.span_ns),
            part(row.communication_exposed_ns, row.span_ns),
            part(row.copies_exposed_ns, row.span_ns),
            part(idle, row.span_ns),
            row.step_ms.as_ref().map_or("-".to_owned(), |step| milliseconds(step.median)),
            known(row.arrived_last),
            known(row.waited_ns),
            known(row.waited_for_ns),
            known(row.exchanged_bytes),
            row.kernel_pace.map_or("-".to_owned(), |pace| format!("{pace:.2}x")),
            clock(row),
        ]);
    }
    table
}

/// All ranks, or of many those that others wait for, and the first.
fn shown(ranks: &[FleetRank], most: usize) -> Vec<&FleetRank> {
    let mut order: Vec<&FleetRank> = ranks.iter().collect();
    if ranks.len() > most {
        order.sort_by_key(|row| (std::cmp::Reverse(row.waited_for_ns), row.rank));
        order.truncate(most);
    }
    order
}

fn clock(row: &FleetRank) -> String {
    match (row.clock_offset_ns, row.clock_uncertainty_ns) {
        (Some(offset), Some(error)) => format!("{offset} ± {error}"),
        (Some(offset), None) => offset.to_string(),
        (None, _) => "-".to_owned(),
    }
}

fn idle(job: &FleetJob, most: usize) -> Table {
    let mut causes: std::collections::BTreeMap<&str, Nanos> = std::collections::BTreeMap::new();
    for part in job.ranks.iter().flat_map(|row| &row.idle) {
        *causes.entry(&part.cause).or_default() += part.ns;
    }
    let mut causes: Vec<_> = causes.into_iter().filter(|(_, ns)| *ns > Nanos::ZERO).collect();
    causes.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    if causes.is_empty() {
        return Table::new("rank");
    }
    let heads: Vec<String> = causes.iter().map(|(cause, _)| format!(">{cause}")).collect();
    let mut table = Table::new(&format!(">rank|{}", heads.join("|")));
    for row in job.ranks.iter().take(most) {
        let of = |cause: &str| row.idle.iter().filter(|part| part.cause == cause).map(|part| part.ns).sum::<Nanos>();
        let cells = causes.iter().map(|(cause, _)| of(cause).to_string());
        table.row([name(row.rank)].into_iter().chain(cells));
    }
    table
}

fn collectives(job: &FleetJob, most: usize) -> Table {
    let mut table = Table::new(
        "collective|type|>bytes|group|ranks|>calls|>device time|>transfer|>bus bandwidth|>of the link|>waiting",
    );
    for row in job.collectives.iter().take(most) {
        table.row([
            printable(&row.name).into_owned(),
            printable(row.dtype.as_deref().unwrap_or("-")).into_owned(),
            known(row.bytes),
            printable(row.process_group.as_deref().unwrap_or("-")).into_owned(),
            group(row),
            row.calls.to_string(),
            row.device_ns.to_string(),
            known(row.transfer_ns),
            known(row.bus_bytes_per_second),
            percent(row.link_share),
            known(row.waited_ns),
        ]);
    }
    table
}

fn group(row: &FleetCollective) -> String {
    match row.group_size {
        Some(size) if size as usize > row.ranks.len() => format!("{} of {size}", ranges(&row.ranks)),
        _ => ranges(&row.ranks),
    }
}

fn path(job: &FleetJob, most: usize) -> Table {
    let mut table = Table::new("the job waits for|>time|>share");
    for part in job.critical_path.iter().take(most) {
        let who = part.rank.map_or("communication".to_owned(), |rank| format!("work of rank {rank}"));
        table.row([who, part.ns.to_string(), percent(Some(part.share))]);
    }
    table
}

fn no_path(job: &FleetJob) -> &'static str {
    if job.missing_ranks.is_empty() {
        "No collective was matched over ranks, so none is known to wait for another."
    } else {
        "Ranks are missing, and the job may wait for one of them."
    }
}

fn slow_kernels(job: &FleetJob) -> Table {
    let mut table = Table::new(">rank|kernel|>calls|>median here|>usual|>above the usual");
    for kernel in &job.slow_kernels {
        table.row([
            name(kernel.rank),
            printable(&kernel.name).into_owned(),
            kernel.calls.to_string(),
            kernel.median_ns.to_string(),
            kernel.usual_ns.to_string(),
            kernel.extra_ns.to_string(),
        ]);
    }
    table
}

fn trends(trends: &[Trend]) -> Table {
    let mut table = Table::new("runs of|quantity|>runs|>first|>last|changes");
    for trend in trends {
        let value = |point: Option<&types::TrendPoint>| point.map_or("-".to_owned(), |point| decimal(point.value));
        let changes: Vec<_> =
            trend.changes.iter().map(|change| format!("{} at {}", signed(change.change), change.run)).collect();
        table.row([
            printable(&trend.subject).into_owned(),
            trend.quantity.clone(),
            trend.points.len().to_string(),
            value(trend.points.first()),
            value(trend.points.last()),
            if changes.is_empty() { "none shown".to_owned() } else { changes.join("; ") },
        ]);
    }
    table
}

/// Each change in a sentence.
pub(crate) fn changes(trend: &Trend) -> Vec<String> {
    let sentence = |change: &types::TrendChange| {
        let also = match change.differences.is_empty() {
            true => "nothing else that is recorded differs from the run before".to_owned(),
            false => format!("with it changed {}", change.differences.join("; ")),
        };
        format!(
            "{}, {}: {} since {}, from {} to {} (p = {:.1e}); {also}",
            printable(&trend.subject),
            trend.quantity,
            signed(change.change),
            printable(&change.run),
            decimal(change.before),
            decimal(change.after),
            change.p_value
        )
    };
    trend.changes.iter().map(sentence).collect()
}
