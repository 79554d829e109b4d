//! Sections of the profiler, rolled up over a region.

use std::collections::HashMap;
use std::sync::Arc;

use types::counter::{CounterUnit, DetailedWork};
use types::{RegionSection, RollUp, SectionValue};

use super::rule;
use super::value::Accumulator;

/// Identifiers of sections, and the titles the details page has instead. From the section files of 2025.3.
const TITLES: [(&str, &str); 23] = [
    ("SpeedOfLight", "GPU Speed Of Light Throughput"),
    ("SpeedOfLight_RooflineChart", "GPU Speed Of Light Roofline Chart"),
    (
        "SpeedOfLight_HierarchicalDoubleRooflineChart",
        "GPU Speed Of Light Hierarchical Roofline Chart (Double Precision)",
    ),
    ("SpeedOfLight_HierarchicalHalfRooflineChart", "GPU Speed Of Light Hierarchical Roofline Chart (Half Precision)"),
    (
        "SpeedOfLight_HierarchicalSingleRooflineChart",
        "GPU Speed Of Light Hierarchical Roofline Chart (Single Precision)",
    ),
    ("SpeedOfLight_HierarchicalTensorRooflineChart", "GPU Speed Of Light Hierarchical Roofline Chart (Tensor Core)"),
    ("PmSampling", "PM Sampling"),
    ("PmSampling_WarpStates", "PM Sampling: Warp States"),
    ("ComputeWorkloadAnalysis", "Compute Workload Analysis"),
    ("MemoryWorkloadAnalysis", "Memory Workload Analysis"),
    ("MemoryWorkloadAnalysis_Chart", "Memory Workload Analysis Chart"),
    ("MemoryWorkloadAnalysis_Tables", "Memory Workload Analysis Tables"),
    ("SchedulerStats", "Scheduler Statistics"),
    ("WarpStateStats", "Warp State Statistics"),
    ("InstructionStats", "Instruction Statistics"),
    ("Nvlink", "NVLink"),
    ("Nvlink_Tables", "NVLink Tables"),
    ("Nvlink_Topology", "NVLink Topology"),
    ("NumaAffinity", "NUMA Affinity"),
    ("LaunchStats", "Launch Statistics"),
    ("Occupancy", "Occupancy"),
    ("SourceCounters", "Source Counters"),
    ("WorkloadDistribution", "GPU and Memory Workload Distribution"),
];

/// Where the profiler puts metrics that were asked for by name; the report has them on their own.
const BY_NAME: &str = "Command line profiler metrics";

/// The identifier of a section by its title.
fn section_id(title: &str) -> Option<&'static str> {
    TITLES.iter().find(|(_, known)| *known == title).map(|(id, _)| *id)
}

/// Numbers of sections while kernels are added.
#[derive(Debug, Default)]
pub(super) struct Sections {
    sections: Vec<(Arc<str>, Vec<Entry>)>,
    /// One title may have two metrics of a name in different units, as `Memory Throughput` in % and in byte/s.
    places: HashMap<Metric, (usize, usize)>,
}

/// Title of a section, and name and unit of a metric in it.
type Metric = (Arc<str>, Arc<str>, CounterUnit);

#[derive(Debug)]
struct Entry {
    name: Arc<str>,
    unit: CounterUnit,
    rule: RollUp,
    all: Accumulator,
}

impl Sections {
    /// Adds the sections of one kernel or range that were asked for; all of them where none was named.
    pub(super) fn add(&mut self, work: &DetailedWork, time: Option<f64>, wanted: &[String]) {
        for section in &work.sections {
            if !is_wanted(&section.title, wanted) {
                continue;
            }
            // Tables and charts repeat names; the numbers of the section itself are what it is read for.
            for metric in section.metrics.iter().filter(|metric| metric.label.is_none()) {
                let number = metric.value.as_ref().and_then(|value| value.number());
                let is_text = number.is_none() && metric.value.is_some();
                if is_text {
                    continue;
                }
                let place = self.place(&section.title, &metric.name, &metric.unit);
                self.sections[place.0].1[place.1].all.add(number, time);
            }
        }
    }

    fn place(&mut self, title: &Arc<str>, name: &Arc<str>, unit: &CounterUnit) -> (usize, usize) {
        let key = (Arc::clone(title), Arc::clone(name), unit.clone());
        if let Some(place) = self.places.get(&key) {
            return *place;
        }
        let section = self.sections.iter().position(|(known, _)| known == title).unwrap_or_else(|| {
            self.sections.push((Arc::clone(title), Vec::new()));
            self.sections.len() - 1
        });
        let entries = &mut self.sections[section].1;
        let (name, rule) = (Arc::clone(name), rule::of_title(name, unit));
        entries.push(Entry { name, unit: unit.clone(), rule, all: Accumulator::default() });
        let place = (section, entries.len() - 1);
        self.places.insert(key, place);
        place
    }

    /// The sections as the report has them.
    pub(super) fn finish(self) -> Vec<RegionSection> {
        let value = |entry: Entry| SectionValue {
            value: entry.all.value(entry.rule),
            name: entry.name.to_string(),
            unit: entry.unit.to_string(),
            rule: entry.rule,
        };
        let section = |(title, entries): (Arc<str>, Vec<Entry>)| RegionSection {
            id: section_id(&title).map(str::to_owned),
            title: title.to_string(),
            metrics: entries.into_iter().map(value).collect(),
        };
        self.sections.into_iter().map(section).collect()
    }
}

fn is_wanted(title: &str, wanted: &[String]) -> bool {
    if title == BY_NAME {
        return false;
    }
    match section_id(title) {
        // A section that is not known here was collected because it was asked for.
        None => true,
        Some(id) => wanted.is_empty() || wanted.iter().any(|name| name == id || is_pattern(name)),
    }
}

fn is_pattern(name: &str) -> bool {
    name.starts_with("regex:")
}
