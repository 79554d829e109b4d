//! What a reader should know about a region report: above all why something is not in it.

use analysis::region::{Include, RegionKey, RolledRegions};
use collect::tool::Complaint;
use report::words::Spoken;
use types::{Facts, Remark, ReplayMode};

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
#[derive(Debug, Default, PartialEq)]
pub(super) struct Said {
    /// Good to know; nothing that could be measured is missing.
    pub(super) notes: Vec<Remark>,
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
        said.notes.push(Remark::new("regions.no-kernel", Facts::new()));
        return said;
    }
    if rolled.seen.is_empty() {
        said.notes.push(without_ranges(seen, surveyed.unwrap_or(results)));
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
            said.notes.push(Remark::new("regions.filtered", paths([region.region.path.clone()])));
        }
    }
    if seen.mode.measures_ranges() && seen.selects_kernels {
        said.notes.push(Remark::new("regions.whole-ranges", Facts::new().with("mode", seen.mode.name())));
    }
    said.notes.extend(sections(seen, rolled));
    if rolled.outside.is_none() && !rolled.regions.is_empty() {
        said.notes.push(Remark::new("regions.outside-unknown", Facts::new()));
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

/// Facts with the paths of regions.
fn paths(paths: impl IntoIterator<Item = String>) -> Facts {
    Facts::new().with("regions", rows("path", paths))
}

fn rows(name: &str, values: impl IntoIterator<Item = String>) -> Vec<Facts> {
    values.into_iter().map(|value| Facts::new().with(name, value)).collect()
}

/// Kernels, but no range around any of them.
fn without_ranges(seen: &Seen<'_>, kernels: usize) -> Remark {
    let facts = match kernels {
        0 => Facts::new().with_if("nothing", true),
        kernels => Facts::new().with("kernels", kernels),
    };
    let asked = rows("name", seen.plan.include().iter().map(|include| include.text().to_owned()));
    if asked.is_empty() {
        Remark::new("regions.none-present", facts)
    } else {
        let facts = facts.with("asked", asked).with_if("selected", seen.selects_kernels);
        Remark::new("regions.none-matching", facts)
    }
}

/// An expression that names nothing, and what there is instead.
fn unmatched(include: &Include, seen: &[RegionKey]) -> Remark {
    let facts = Facts::new().with("asked", include.text());
    let name = include.text().rsplit_once('@').map_or(include.text(), |(_, name)| name);
    let elsewhere = seen.iter().filter(|key| key.segments.last().is_some_and(|last| &**last == name));
    let elsewhere = rows("path", elsewhere.map(RegionKey::path));
    if !elsewhere.is_empty() {
        return Remark::new("regions.unmatched", facts.with("elsewhere", elsewhere));
    }
    let mut paths: Vec<String> = seen.iter().map(RegionKey::path).collect();
    paths.dedup();
    let more = paths.len().checked_sub(NAMED).filter(|more| *more > 0);
    paths.truncate(NAMED);
    Remark::new("regions.unmatched", facts.with("regions", rows("path", paths)).with_known("more", more))
}

/// Regions that the survey saw kernels in, and no capture has.
fn uncaptured(seen: &Seen<'_>, rolled: &RolledRegions, said: &mut Said) {
    if seen.survey.is_none() {
        let nothing = seen.captures.iter().all(|captured| captured.table.work.is_empty());
        if nothing && seen.mode.measures_ranges() && !seen.plan.include().is_empty() {
            said.notes.push(not_replayed(Facts::new(), seen.mode));
        }
        return;
    }
    let has = |key: &RegionKey| rolled.regions.iter().any(|region| region.region.path == key.path());
    let wanted = seen.plan.selected(&rolled.seen).into_iter();
    let lost: Vec<String> = wanted.filter(|key| !has(key)).map(RegionKey::path).collect();
    if lost.is_empty() {
        return;
    }
    let lost = paths(lost);
    match seen.mode.measures_ranges() {
        true => said.missing.push(not_replayed(lost, seen.mode).spoken().text),
        false if seen.plan.limits_launches() => said.notes.push(Remark::new("regions.launches-skipped", lost)),
        false if seen.selects_kernels => said.notes.push(Remark::new("regions.filtered", lost)),
        false => said.missing.push(Remark::new("regions.not-captured", lost).spoken().text),
    }
}

/// That these regions could not be replayed as a whole; without regions, that nothing could.
fn not_replayed(regions: Facts, mode: ReplayMode) -> Remark {
    let facts = regions.with("mode", mode.name()).with_if("range", mode == ReplayMode::Range);
    Remark::new("regions.not-replayed", facts)
}

/// Sections that were asked for and have no numbers in any region.
fn sections(seen: &Seen<'_>, rolled: &RolledRegions) -> Option<Remark> {
    let totals = rolled
        .regions
        .iter()
        .flat_map(|region| region.region.aggregate.iter().chain(region.region.parts.iter().map(|part| &part.totals)));
    let found: Vec<&str> =
        totals.flat_map(|totals| &totals.sections).filter_map(|section| section.id.as_deref()).collect();
    let has_details = seen.captures.iter().any(|captured| !captured.details.is_empty());
    let absent: Vec<String> =
        seen.sections.iter().filter(|id| !id.starts_with("regex:") && !found.contains(&id.as_str())).cloned().collect();
    (has_details && !absent.is_empty()).then(|| {
        let facts = Facts::new().with("sections", rows("id", absent)).with("mode", seen.mode.name());
        Remark::new("regions.no-section-values", facts)
    })
}
