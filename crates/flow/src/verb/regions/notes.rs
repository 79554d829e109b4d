//! What a reader should know about a region report, in plain words: above all why something is not in it.

use analysis::region::{Include, RegionKey, RolledRegions};
use collect::tool::Complaint;
use types::ReplayMode;

use super::capture::Captured;
use super::plan::Plan;

/// Regions named in a note.
const NAMED: usize = 12;

/// What there was to see.
pub(super) struct Seen<'a> {
    /// How counters were read.
    pub(super) mode: ReplayMode,
    /// What was asked for.
    pub(super) plan: &'a Plan,
    /// Every capture.
    pub(super) captures: &'a [Captured],
    /// The survey.
    pub(super) survey: Option<&'a Captured>,
    /// Whether kernels were chosen by name.
    pub(super) selects_kernels: bool,
    /// Sections that were asked for.
    pub(super) sections: &'a [String],
}

/// What is said, and what of what was asked for is missing.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Said {
    /// Good to know; nothing that could be measured is missing.
    pub(super) notes: Vec<String>,
    /// Why the run is partial.
    pub(super) missing: Vec<String>,
}

/// Everything that needs words.
pub(super) fn say(seen: &Seen<'_>, rolled: &RolledRegions) -> Said {
    let mut said = Said::default();
    let results: usize = seen.captures.iter().map(|captured| captured.table.work.len()).sum();
    let surveyed = seen.survey.map(|survey| survey.table.work.len());
    complaints(seen, &mut said);
    said.missing.extend(seen.captures.iter().flat_map(|captured| captured.missing.iter().cloned()));
    if surveyed == Some(0) {
        said.notes
            .push("no kernels found: the program launched none on a device that Nsight Compute can profile".to_owned());
        return said;
    }
    if rolled.seen.is_empty() {
        said.notes.extend(without_ranges(seen, surveyed.unwrap_or(results)));
        return said;
    }
    for (include, matched) in seen.plan.include().iter().zip(&rolled.matched) {
        if matched.is_empty() {
            said.notes.push(unmatched(include, &rolled.seen));
        }
    }
    uncaptured(seen, rolled, &mut said);
    for region in &rolled.regions {
        if region.members.is_empty() && seen.selects_kernels {
            said.notes.push(format!("no kernel of `{}` matches the kernel filter", region.region.path));
        }
    }
    if seen.mode.measures_ranges() && seen.selects_kernels {
        said.notes.push(format!(
            "{} replay measures whole ranges: the kernel filter applies only to the list of kernels; use --replay-mode \
             kernel for counters of selected kernels",
            seen.mode.name()
        ));
    }
    said.notes.extend(sections(seen, rolled));
    if rolled.outside.is_none() && !rolled.regions.is_empty() {
        said.notes.push("work outside these regions was not counted; count it with --survey".to_owned());
    }
    said
}

fn complaints(seen: &Seen<'_>, said: &mut Said) {
    let all = seen.captures.iter().chain(seen.survey).filter_map(|captured| captured.complaint);
    let mut known = Vec::new();
    for complaint in all.filter(|complaint| !matches!(complaint, Complaint::NoKernel | Complaint::NoRange)) {
        if !known.contains(&complaint) {
            known.push(complaint);
            said.missing.push(format!("{}: {}", complaint.message(), complaint.hint()));
        }
    }
}

/// Kernels, but no range around any of them.
fn without_ranges(seen: &Seen<'_>, kernels: usize) -> Option<String> {
    let found = match kernels {
        0 => "no kernels were profiled in an NVTX range".to_owned(),
        1 => "one kernel ran, outside any NVTX range".to_owned(),
        kernels => format!("{kernels} kernels ran, none of them inside an NVTX range"),
    };
    let asked: Vec<&str> = seen.plan.include().iter().map(Include::text).collect();
    let asked = asked.join("`, `");
    Some(match (asked.is_empty(), seen.selects_kernels) {
        (true, _) => format!("no region present: {found}; mark them with nvtxRangePush or torch.cuda.nvtx.range"),
        (false, false) => {
            format!("no matching regions: {found} named `{asked}`; ranges without kernels are not found either")
        }
        (false, true) => format!(
            "no matching regions: {found} named `{asked}`; either the range does not exist, or no kernel in it matches \
             the kernel filter"
        ),
    })
}

/// An expression that names nothing, and what there is instead.
fn unmatched(include: &Include, seen: &[RegionKey]) -> String {
    let name = include.text().rsplit_once('@').map_or(include.text(), |(_, name)| name);
    let elsewhere: Vec<String> = seen
        .iter()
        .filter(|key| key.segments.last().is_some_and(|last| &**last == name))
        .map(|key| format!("`{}`", key.path()))
        .collect();
    let mut paths: Vec<String> = seen.iter().map(|key| format!("`{}`", key.path())).collect();
    paths.dedup();
    let more = paths.len().saturating_sub(NAMED);
    paths.truncate(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let instead = match elsewhere.as_slice() {
        [] => format!("regions with kernels: {}{more}", paths.join(", ")),
        found => format!("found {}", found.join(", ")),
    };
    format!("no matching regions for `{}`: {instead}", include.text())
}

/// Regions that the survey saw kernels in, and no capture has.
fn uncaptured(seen: &Seen<'_>, rolled: &RolledRegions, said: &mut Said) {
    if seen.survey.is_none() {
        let nothing = seen.captures.iter().all(|captured| captured.table.work.is_empty());
        if nothing && seen.mode.measures_ranges() && !seen.plan.include().is_empty() {
            said.notes.push(not_replayed("nothing could be measured", seen.mode));
        }
        return;
    }
    let has = |key: &RegionKey| rolled.regions.iter().any(|region| region.region.path == key.path());
    let wanted = seen.plan.selected(&rolled.seen).into_iter();
    let lost: Vec<String> = wanted.filter(|key| !has(key)).map(|key| format!("`{}`", key.path())).collect();
    if lost.is_empty() {
        return;
    }
    let text = lost.join(", ");
    match seen.mode.measures_ranges() {
        true => said.missing.push(not_replayed(&format!("{text} could not be measured"), seen.mode)),
        false if seen.plan.limits_launches() => {
            said.notes.push(format!("{text}: launch_skip and launch_count exclude all of its launches"));
        }
        false if seen.selects_kernels => {
            said.notes.push(format!("no kernel of {text} matches the kernel filter"));
        }
        false => {
            said.missing.push(format!("{text}: its kernels ran in the survey but were not captured in the second run"))
        }
    }
}

fn not_replayed(what: &str, mode: ReplayMode) -> String {
    let other = if mode == ReplayMode::Range { "app-range, or --replay-mode kernel" } else { "kernel" };
    format!(
        "{what} as a whole range: work must start and end inside it (synchronise before the range closes), and {} \
         replay supports only some calls inside a range; try --replay-mode {other}",
        mode.name()
    )
}

/// Sections that were asked for and have no numbers in any region.
fn sections(seen: &Seen<'_>, rolled: &RolledRegions) -> Option<String> {
    let totals = rolled
        .regions
        .iter()
        .flat_map(|region| region.region.aggregate.iter().chain(region.region.parts.iter().map(|part| &part.totals)));
    let found: Vec<&str> =
        totals.flat_map(|totals| &totals.sections).filter_map(|section| section.id.as_deref()).collect();
    let has_details = seen.captures.iter().any(|captured| !captured.details.is_empty());
    let absent: Vec<String> = seen
        .sections
        .iter()
        .filter(|id| !id.starts_with("regex:") && !found.contains(&id.as_str()))
        .map(|id| format!("`{id}`"))
        .collect();
    (has_details && !absent.is_empty())
        .then(|| format!("the sections {} have no values in {} replay", absent.join(", "), seen.mode.name()))
}
