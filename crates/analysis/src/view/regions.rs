//! Regions: shares of the whole, work of both units, and the launches they are made of.

use types::counter::CounterTable;
use types::view::{RegionLaunch, RegionView, RegionsView};
use types::{MetricRule, Nanos, Region, RegionReport};

use super::time_share;
use crate::region::{RolledRegion, TIME};

/// The view of a report on regions.
pub fn regions<'a>(report: &'a RegionReport) -> RegionsView<'a> {
    let whole = top_level(report);
    let time = |region: &Region| region.aggregate.as_ref()?.total_ns_inclusive;
    let view = |region: &'a Region| RegionView {
        region,
        top_level_share: time(region).zip(whole).and_then(|(part, whole)| time_share(part, whole)),
        flops: region.roofline.as_ref().and_then(|counted| match (counted.flops_vector, counted.flops_matrix) {
            (None, None) => None,
            (vector, matrix) => Some(vector.into_iter().chain(matrix).sum()),
        }),
        flops_modelled: region.modelled.as_ref().map(|model| model.flops_matrix + model.flops_vector),
    };
    let lacks = |region: &Region| {
        region.roofline.as_ref().is_some_and(|found| found.flops_vector.is_some() && found.flops_matrix.is_none())
    };
    let lacks_tensor_counters = report.regions.iter().any(lacks);
    RegionsView { report, regions: report.regions.iter().map(view).collect(), lacks_tensor_counters }
}

/// The launches of a region, or the instances of its ranges.
pub fn launches<'a>(
    region: &'a RolledRegion,
    pages: &[&'a CounterTable],
    metrics: &[MetricRule],
) -> Vec<RegionLaunch<'a>> {
    let launch = |member: &'a crate::region::Member| {
        let page = pages.get(member.capture)?;
        Some(RegionLaunch {
            capture: member.capture,
            region: &member.innermost,
            work: page.work.get(member.row)?,
            time_ns: page.number(member.row, TIME),
            metrics: metrics.iter().map(|metric| page.number(member.row, &metric.name)).collect(),
        })
    };
    region.members.iter().filter_map(launch).collect()
}

/// Time of regions that are in no other region of the report; absent where several domains or styles would be added.
fn top_level(report: &RegionReport) -> Option<Nanos> {
    let is_top = |region: &&Region| {
        report.regions.iter().all(|other| Some(&other.path) != region.parent.as_ref() || other.domain != region.domain)
    };
    let first = report.regions.first()?;
    let is_one = report.regions.iter().all(|region| (&region.domain, region.style) == (&first.domain, first.style));
    let top = report.regions.iter().filter(is_top);
    is_one.then(|| top.map(|region| region.aggregate.as_ref()?.total_ns_inclusive).sum::<Option<Nanos>>())?
}
