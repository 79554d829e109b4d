//! A fleet written down: ranks of a job side by side, and runs over time.

use types::{ClockBasis, Fleet, FleetCollective, FleetJob, FleetRank, Nanos, Severity, Trend};

use crate::render::text::{capital, code, prose, sentence};
use crate::render::{Page, Table};
use crate::words::caveat::READ_FIRST;
use crate::words::idle as idle_words;
use crate::words::number::{count, decimal, grouped, known, milliseconds, percent, ranges, signed, time_share};

/// Rows of a table on the page.
const PAGE_ROWS: usize = 200;

/// The page.
pub fn page(fleet: &Fleet) -> Page {
    let mut page = Page::new("Fleet");
    page.callout(READ_FIRST, fleet.jobs.iter().flat_map(caveats));
    for job in &fleet.jobs {
        page.heading(&format!("Job {}", prose(&job.job)));
        page.paragraph(&headline(job));
        page.list(findings(job));
        page.subheading("Ranks");
        page.table_or(&ranks(job, PAGE_ROWS), "No rank has device work.");
        page.subheading("Idle time by cause");
        page.table_or(&idle(job, PAGE_ROWS), "No device was idle.");
        page.subheading("Collectives");
        page.paragraph(
            "Transfer is the median time from the arrival of the last rank to the end of a call. Waiting is the time spent waiting \
             for that rank, summed over calls and averaged over ranks. Both need all ranks of the group.",
        );
        page.table_or(&collectives(job, PAGE_ROWS), no_collectives(job));
        page.subheading("Critical path over ranks");
        page.table_or(&path(job, PAGE_ROWS), no_path(job));
        page.subheading("Kernels that one rank runs slower");
        page.table_or(
            &slow_kernels(job),
            "No kernel takes 1.2 times as long as on the other ranks and costs 0.5% of the time.",
        );
    }
    if !fleet.trends.is_empty() {
        page.heading("Runs over time");
        page.paragraph(
            "A change is a point where the runs before and after differ significantly (Wilcoxon's rank-sum test, p below 0.01 over \
             all candidate points), by 2% or more, with at least four runs on each side.",
        );
        page.table(&trends(&fleet.trends));
        page.list(fleet.trends.iter().flat_map(changes));
    }
    page
}

/// For a terminal: fewer tables, and fewer rows of each.
pub fn terminal(fleet: &Fleet) -> String {
    let mut page = Page::new("");
    page.callout(READ_FIRST, fleet.jobs.iter().flat_map(caveats));
    for job in &fleet.jobs {
        page.heading(&prose(&job.job));
        page.paragraph(&headline(job));
        page.list(findings(job));
        let tables = [ranks(job, 16), path(job, 5), collectives(job, 8)];
        tables.iter().filter(|table| !table.is_empty()).for_each(|table| page.table(table));
    }
    if !fleet.trends.is_empty() {
        page.table(&trends(&fleet.trends));
        page.list(fleet.trends.iter().flat_map(changes));
    }
    page.terminal()
}

/// What a reader must know before the first number of a job.
pub(crate) fn caveats(job: &FleetJob) -> Vec<String> {
    let missing = job.missing_ranks.len();
    let ranks = match job.world_size {
        Some(world) if missing > 0 => Some(format!(
            "{missing} of {world} ranks {} missing ({}). The job may wait for one of them, so no straggler and no critical path \
             are reported.",
            if missing == 1 { "is" } else { "are" },
            ranges(&job.missing_ranks)
        )),
        Some(_) => None,
        None => Some("The traces do not record how many ranks the job has.".to_owned()),
    };
    let clock = match job.clock.basis {
        _ if job.ranks.len() < 2 => None,
        ClockBasis::Collectives => None,
        ClockBasis::WallClock => {
            Some("Clocks are not aligned: too few collectives of all ranks were recorded. Times use each host's wall clock, whose \
                  error is unknown.".to_owned())
        }
        ClockBasis::None => Some("Clocks are not aligned: the traces share no clock.".to_owned()),
    };
    // What is said above is not said again.
    let said = |counter: &str| ["ranks_missing", "clocks_not_aligned"].contains(&counter);
    let counters = job.quality.iter().filter(|one| one.severity > Severity::Info && !said(&one.counter));
    let counters = counters.map(|one| capital(&sentence(one.remedy.trim_end_matches('.'))) + ".");
    let lines = ranks.into_iter().chain(clock).chain(counters);
    lines.map(|line| format!("{}: {line}", code(&job.job))).collect()
}

/// What is here, and on which clock.
pub(crate) fn headline(job: &FleetJob) -> String {
    let here = job.ranks.len();
    let ranks = match job.world_size {
        Some(world) => format!("{here} of {} recorded", count(world.into(), "rank")),
        None => format!("{} recorded", count(here as u64, "rank")),
    };
    let clock = match (job.clock.basis, job.clock.uncertainty_ns) {
        (ClockBasis::Collectives, Some(error)) => format!("; clocks are aligned on collective end times, to {error}"),
        (ClockBasis::Collectives, None) => "; clocks are aligned on collective end times".to_owned(),
        _ => String::new(),
    };
    let verdict = if job.findings.is_empty() && job.missing_ranks.is_empty() {
        "; no rank, device or group stands out"
    } else {
        ""
    };
    format!("{ranks}{clock}{verdict}.")
}

/// Each finding: what stands out, the numbers behind it, and what to do.
pub(crate) fn findings(job: &FleetJob) -> Vec<String> {
    let said = |finding: &types::FleetFinding| sentence(&format!("{} {}", finding.evidence.join(" "), finding.advice));
    job.findings.iter().map(said).collect()
}

pub(crate) fn name(rank: Option<u32>) -> String {
    rank.map_or_else(|| "-".to_owned(), |rank| rank.to_string())
}

fn ranks(job: &FleetJob, most: usize) -> Table {
    let mut table = Table::new(
        ">rank|device|>span|>compute, of span|>exposed communication, of span|>exposed copies, of span|>idle, of span|>median step|>last to arrive|\
         >waited|>waited for|>exchanged|>kernel time vs. median rank|>clock offset",
    );
    for row in shown(&job.ranks, most) {
        let of_span = |time: Nanos| percent(time_share(time, row.span_ns));
        let idle: Nanos = row.idle.iter().map(|part| part.ns).sum();
        table.row([
            name(row.rank),
            prose(row.device_name.as_deref().unwrap_or("-")),
            row.span_ns.to_string(),
            of_span(row.compute_ns),
            of_span(row.communication_exposed_ns),
            of_span(row.copies_exposed_ns),
            of_span(idle),
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
    let heads: Vec<String> = causes.iter().map(|(cause, _)| format!(">{}", idle_words::named(cause))).collect();
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
        "collective|type|>bytes per call|group|ranks|>calls|>device time, all calls|>transfer per call|>bus bandwidth|>of link|>waiting, all calls",
    );
    for row in job.collectives.iter().take(most) {
        table.row([
            prose(&row.name),
            prose(row.dtype.as_deref().unwrap_or("-")),
            known(row.bytes),
            prose(row.process_group.as_deref().unwrap_or("-")),
            group(row),
            grouped(row.calls),
            row.device_ns.to_string(),
            known(row.transfer_ns),
            known(row.bus_bytes_per_second),
            percent(row.link_share),
            known(row.waited_ns),
        ]);
    }
    table
}

/// Communication that no call on another rank could be found for is not known to be one rank's own.
fn no_collectives(job: &FleetJob) -> &'static str {
    match job.ranks.iter().any(|rank| rank.communication_exposed_ns > types::Nanos::ZERO) {
        true => "Unknown: the communication of one rank could not be matched with that of another.",
        false => "No collective was found on several ranks.",
    }
}

fn group(row: &FleetCollective) -> String {
    match row.group_size {
        Some(size) if size as usize > row.ranks.len() => format!("{} of {size}", ranges(&row.ranks)),
        _ => ranges(&row.ranks),
    }
}

fn path(job: &FleetJob, most: usize) -> Table {
    let mut table = Table::new("the job waits for|>time|>of critical path");
    for part in job.critical_path.iter().take(most) {
        let who = part.rank.map_or("communication".to_owned(), |rank| format!("work of rank {rank}"));
        table.row([who, part.ns.to_string(), percent(Some(part.share))]);
    }
    table
}

fn no_path(job: &FleetJob) -> &'static str {
    if job.missing_ranks.is_empty() {
        "No collective was matched across ranks, so it is unknown whether one waits for another."
    } else {
        "Unknown: ranks are missing, and the job may wait for one of them."
    }
}

fn slow_kernels(job: &FleetJob) -> Table {
    let mut table = Table::new(">rank|kernel|>calls|>median on this rank|>median of all ranks|>extra time, all calls");
    for kernel in &job.slow_kernels {
        table.row([
            name(kernel.rank),
            code(&kernel.name),
            grouped(kernel.calls),
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
            trend.changes.iter().map(|change| format!("{} at {}", signed(change.change), prose(&change.run))).collect();
        table.row([
            prose(&trend.subject),
            trend.quantity.clone(),
            trend.points.len().to_string(),
            value(trend.points.first()),
            value(trend.points.last()),
            if changes.is_empty() { "none".to_owned() } else { changes.join("; ") },
        ]);
    }
    table
}

/// Each change in a sentence.
pub(crate) fn changes(trend: &Trend) -> Vec<String> {
    let sentence = |change: &types::TrendChange| {
        let also = if change.differences.is_empty() {
            "no other recorded difference from the run before".to_owned()
        } else {
            format!("also changed: {}", prose(&change.differences.join("; ")))
        };
        format!(
            "{}, {}: {} since {}, from {} to {} (p = {:.1e}); {also}",
            prose(&trend.subject),
            trend.quantity,
            signed(change.change),
            prose(&change.run),
            decimal(change.before),
            decimal(change.after),
            change.p_value
        )
    };
    trend.changes.iter().map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use types::{ClockBasis, FleetClock, FleetRank, Nanos};

    use super::*;

    #[test]
    fn communication_that_matches_no_other_is_not_said_to_be_none() {
        let job = |exposed: i64| FleetJob {
            job: "job".to_owned(),
            world_size: Some(2),
            missing_ranks: Vec::new(),
            clock: FleetClock { basis: ClockBasis::WallClock, reference_rank: None, uncertainty_ns: None },
            ranks: vec![FleetRank {
                rank: Some(0),
                device_name: None,
                clock_offset_ns: None,
                clock_uncertainty_ns: None,
                span_ns: Nanos::new(10),
                busy_ns: Nanos::new(exposed),
                compute_ns: Nanos::ZERO,
                communication_exposed_ns: Nanos::new(exposed),
                copies_exposed_ns: Nanos::ZERO,
                idle: Vec::new(),
                step_ms: None,
                arrived_last: None,
                waited_ns: None,
                waited_for_ns: None,
                exchanged_bytes: None,
                kernel_pace: None,
            }],
            collectives: Vec::new(),
            slow_kernels: Vec::new(),
            critical_path: Vec::new(),
            findings: Vec::new(),
            quality: Vec::new(),
        };
        assert!(no_collectives(&job(5)).starts_with("Unknown"));
        assert_eq!(no_collectives(&job(0)), "No collective was found on several ranks.");
    }
}
