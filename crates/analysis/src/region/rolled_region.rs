//! Regions with their totals: what comes out.

use types::counter::CounterTable;
use types::{MetricRule, OutsideRegions, QualityCounter, Region, RegionLaunch, RegionTotals};

use super::TIME;
use super::key::RegionKey;

/// A kernel or a range of a region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Which of the captures.
    pub capture: usize,
    /// Its row there.
    pub row: usize,
    /// The innermost region it is in, of those nested in this one.
    pub innermost: String,
}

/// A region and what it is made of.
#[derive(Clone, Debug)]
pub struct RolledRegion {
    /// The region.
    pub region: Region,
    /// Its kernels or instances, nested regions included, in the order of their launch.
    pub members: Vec<Member>,
}

impl RolledRegion {
    /// Its launches, or the instances of its ranges, with the configured metrics.
    pub fn launches<'a>(&'a self, pages: &[&'a CounterTable], metrics: &[MetricRule]) -> Vec<RegionLaunch<'a>> {
        let launch = |member: &'a Member| {
            let page = pages.get(member.capture)?;
            Some(RegionLaunch {
                capture: member.capture,
                region: &member.innermost,
                work: page.work.get(member.row)?,
                time_ns: page.number(member.row, TIME),
                metrics: metrics.iter().map(|metric| page.number(member.row, &metric.name)).collect(),
            })
        };
        self.members.iter().filter_map(launch).collect()
    }
}

/// Regions, and what is not in them.
#[derive(Clone, Debug)]
pub struct RolledRegions {
    /// Metrics and their rules.
    pub metrics: Vec<MetricRule>,
    /// Regions, each before those nested in it.
    pub regions: Vec<RolledRegion>,
    /// Everything inside the regions; absent where it cannot be added up.
    pub totals: Option<RegionTotals>,
    /// Kernels of no region; absent where only regions were profiled.
    pub outside: Option<OutsideRegions>,
    /// Kernels of regions that the selection leaves out.
    pub kernels_left_out: u64,
    /// For each include expression, the regions it names.
    pub matched: Vec<Vec<String>>,
    /// Every region that was seen, of whatever name.
    pub seen: Vec<RegionKey>,
    /// What was lost or is uncertain.
    pub quality: Vec<QualityCounter>,
}
