//! Pages of Nsight Compute rolled up per NVTX region: what `regions` reports on and what an import of the same pages shows.
//!
//! Running the profiler and reading its files is left to others; the roll-up itself is `analysis::region`.

use std::collections::BTreeMap;

use analysis::region::{
    Include, KernelSelection, RegionCapture, RegionInputs, RegionSettings, RolledRegions, SelectionError, is_counted,
    roll_up,
};
use collect::tool::ncu::{Options, Preset};
use types::counter::{CounterTable, CounterValue, DetailedWork};
use types::{
    DeviceId, Hardware, IncludeRecord, MetricRule, Nanos, Region, RegionSelection, RegionSummary, RegionTotals, RollUp,
};

/// Column with the name the driver has for the device.
const DEVICE_NAME: &str = "device__attribute_display_name";

/// What one run of the profiler gave.
pub(crate) struct CounterPage<'a> {
    /// The raw page.
    pub(crate) table: &'a CounterTable,
    /// The details page; empty where there is none.
    pub(crate) details: &'a [DetailedWork],
    /// What the profiler was told to include; empty for everything.
    pub(crate) include: &'a [String],
}

/// Which regions, kernels and metrics of imported pages are asked for.
#[derive(Debug)]
pub struct RegionChoice {
    options: Options,
    kernels: KernelSelection,
    include: Vec<Include>,
    exclude: Vec<Include>,
    aggregate: bool,
}

impl RegionChoice {
    /// What a preset asks for; an error names the key whose pattern is wrong.
    pub fn new(preset: &Preset) -> Result<Self, (&'static str, SelectionError)> {
        let options = preset.ncu_cli.clone();
        let includes = |texts: &[String]| texts.iter().map(|text| Include::new(text)).collect();
        Ok(Self {
            kernels: kernels(&options)?,
            include: includes(&options.nvtx.include),
            exclude: includes(&options.nvtx.exclude),
            aggregate: preset.regions.aggregate,
            options,
        })
    }

    /// Whether a counter of a page is used, so that the hundreds of others are not kept.
    pub(crate) fn keeps(&self, counter: &str) -> bool {
        keeps(&self.options.metrics, counter)
    }

    /// The regions of pages, as `metrics.json` lists them.
    pub(crate) fn summaries<'a>(&self, tables: impl Iterator<Item = &'a CounterTable>) -> Vec<RegionSummary> {
        let rolled = self.rolled(tables.map(|table| CounterPage { table, details: &[], include: &[] }), None);
        summaries(rolled.regions.iter().map(|region| &region.region), &rolled.metrics)
    }

    /// The regions of pages with all that was counted in them.
    pub(crate) fn rolled<'a>(
        &self,
        pages: impl Iterator<Item = CounterPage<'a>>,
        hardware: Option<&Hardware>,
    ) -> RolledRegions {
        let options = &self.options;
        let settings = RegionSettings {
            include: &self.include,
            exclude: &self.exclude,
            kernels: &self.kernels,
            metrics: &options.metrics,
            sections: if options.set.is_some() { &[] } else { &options.sections },
            aggregate: self.aggregate,
            hardware,
        };
        roll(pages, None, &settings)
    }

    /// Whether regions have totals over all processes and devices.
    pub(crate) fn is_aggregated(&self) -> bool {
        self.aggregate
    }

    /// What is asked for, and what of these regions it named.
    pub(crate) fn selection(&self, rolled: &RolledRegions) -> RegionSelection {
        let record = |(include, matched): (&Include, &Vec<String>)| IncludeRecord {
            expression: include.text().to_owned(),
            profiler: include.expressions(),
            matched: matched.clone(),
        };
        let options = &self.options;
        RegionSelection {
            include: self.include.iter().zip(&rolled.matched).map(record).collect(),
            kernel_name: options.kernel_name.clone(),
            kernel_name_base: options.kernel_name_base.name().to_owned(),
            kernel_exclude: options.kernel_exclude.clone(),
            kernels_left_out: rolled.kernels_left_out,
            set: options.set.clone(),
            sections: options.sections.clone(),
            metrics: options.metrics.clone(),
            aggregate: self.aggregate,
        }
    }
}

/// Kernels of a region that count; an error names the key whose pattern is wrong.
pub(crate) fn kernels(options: &Options) -> Result<KernelSelection, (&'static str, SelectionError)> {
    let (base, name) = (options.kernel_name_base, options.kernel_name.as_deref());
    KernelSelection::new(base, name, &[]).map_err(|error| ("kernel_name", error))?;
    KernelSelection::new(base, name, &options.kernel_exclude).map_err(|error| ("kernel_exclude", error))
}

/// Whether a counter of a page is used where these metrics are asked for.
pub(crate) fn keeps(metrics: &[String], counter: &str) -> bool {
    // A name without its ending stands for all of them, and a pattern for what nobody knows here.
    let named = |wanted: &String| counter.starts_with(wanted.as_str()) || wanted.starts_with("regex:");
    counter == DEVICE_NAME || is_counted(counter) || metrics.iter().any(named)
}

/// The device of the first row that names one.
pub(crate) fn device_name(table: &CounterTable) -> Option<String> {
    let column = table.column(DEVICE_NAME)?;
    let text = |row: usize| column.value(row).as_ref().and_then(CounterValue::text).map(str::to_owned);
    (0..table.work.len()).find_map(text)
}

/// Rolls the pages up that have rows.
pub(crate) fn roll<'a>(
    pages: impl Iterator<Item = CounterPage<'a>>,
    survey: Option<&'a CounterTable>,
    settings: &RegionSettings<'_>,
) -> RolledRegions {
    let rollable = pages.filter(|page| !page.table.work.is_empty());
    let capture = |CounterPage { table, details, include }: CounterPage<'a>| RegionCapture { table, details, include };
    roll_up(&RegionInputs { captures: rollable.map(capture).collect(), survey }, settings)
}

/// Regions as `metrics.json` lists them: one row per process and device, threads taken together.
pub(crate) fn summaries<'a>(regions: impl Iterator<Item = &'a Region>, rules: &[MetricRule]) -> Vec<RegionSummary> {
    regions.flat_map(|region| rows(region, rules)).collect()
}

/// One row per process and device; threads are taken together.
fn rows(region: &Region, rules: &[MetricRule]) -> Vec<RegionSummary> {
    let mut parts: BTreeMap<(Option<u32>, Option<DeviceId>), Vec<&RegionTotals>> = BTreeMap::new();
    for part in &region.parts {
        parts.entry((part.process, part.device.clone())).or_default().push(&part.totals);
    }
    let row = |((process, device), totals): ((Option<u32>, Option<DeviceId>), Vec<&RegionTotals>)| {
        // A survey counts kernels of ranges for the whole region and not for its parts.
        let whole = region.aggregate.as_ref().filter(|_| region.parts.len() == 1);
        let count = |of: fn(&RegionTotals) -> Option<u64>| {
            totals.iter().map(|totals| of(totals)).sum::<Option<u64>>().or_else(|| whole.and_then(of))
        };
        let time = |of: fn(&RegionTotals) -> Option<Nanos>| {
            totals.iter().map(|totals| of(totals)).sum::<Option<Nanos>>().or_else(|| whole.and_then(of))
        };
        let metric = |rule: &MetricRule| Some((rule.name.clone(), together(&totals, rule)?));
        RegionSummary {
            path: region.path.clone(),
            domain: region.domain.clone(),
            segments: region.segments.clone(),
            process,
            device,
            parent: region.parent.clone(),
            instances: totals.iter().map(|totals| totals.instances).sum(),
            instances_exact: totals.iter().all(|totals| totals.instances_exact),
            kernels_inclusive: count(|totals| totals.kernels_inclusive),
            kernels_exclusive: count(|totals| totals.kernels_exclusive),
            kernels_captured: 0,
            total_ns_inclusive: time(|totals| totals.total_ns_inclusive),
            total_ns_exclusive: time(|totals| totals.total_ns_exclusive),
            metrics: rules.iter().filter_map(metric).collect(),
        }
    };
    parts.into_iter().map(row).collect()
}

/// A metric over threads, by its rule.
fn together(totals: &[&RegionTotals], rule: &MetricRule) -> Option<f64> {
    let values: Vec<(f64, f64)> = totals
        .iter()
        .filter_map(|totals| {
            let time = totals.total_ns_inclusive.map_or(0.0, |time| time.get() as f64);
            Some((totals.metrics.get(&rule.name)?.inclusive?, time))
        })
        .collect();
    if let [(only, _)] = values.as_slice() {
        return Some(*only);
    }
    let all = || values.iter().map(|(value, _)| *value);
    match rule.rule {
        RollUp::Sum => (!values.is_empty()).then(|| all().sum()),
        RollUp::Max => all().reduce(f64::max),
        RollUp::Min => all().reduce(f64::min),
        RollUp::TimeWeightedMean => {
            let weight: f64 = values.iter().map(|(_, time)| time).sum();
            (weight > 0.0).then(|| values.iter().map(|(value, time)| value * time).sum::<f64>() / weight)
        }
    }
}
