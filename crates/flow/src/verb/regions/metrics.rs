//! The metrics of a regions run: what every run has, with its regions.

use std::collections::BTreeMap;

use analysis::{Evidence, LaunchCounters, Subject, Trace};
use types::counter::{CounterTable, CounterValue};
use types::{
    Device, DeviceId, Hardware, MetricRule, Metrics, Nanos, RegionReport, RegionSummary, RegionTotals, RollUp,
    RunHeader,
};

/// Column with the name the driver has for the device.
pub(super) const DEVICE_NAME: &str = "device__attribute_display_name";

/// The device of the first row that names one.
pub(super) fn device_name(table: &CounterTable) -> Option<String> {
    let column = table.column(DEVICE_NAME)?;
    let text = |row: usize| column.value(row).as_ref().and_then(CounterValue::text).map(str::to_owned);
    (0..table.work.len()).find_map(text)
}

/// The document, from the report and the page that shows most of the program.
pub(super) fn metrics(
    report: &RegionReport,
    shown: Option<&CounterTable>,
    engine: &str,
    model: Option<&str>,
    hardware: Option<&Hardware>,
) -> Metrics {
    let devices = devices(shown, report, hardware);
    let subject = Subject {
        run: RunHeader {
            id: report.run.clone(),
            engine: engine.to_owned(),
            model: model.map(str::to_owned),
            device: devices.first().map(|device| device.id.clone()),
            weights: None,
        },
        devices,
        multiprocessors: hardware.map(|hardware| u64::from(hardware.sm_count)),
        ..Subject::default()
    };
    let counters = shown.map(LaunchCounters::of_table).unwrap_or_default();
    let evidence = Evidence {
        trace: Some(Trace { counters, ..Trace::default() }),
        regions: Some(report.regions.iter().flat_map(|region| rows(region, &report.metrics)).collect()),
        quality: report.quality.clone(),
        ..Evidence::default()
    };
    analysis::metrics(&subject, &evidence)
}

fn devices(shown: Option<&CounterTable>, report: &RegionReport, hardware: Option<&Hardware>) -> Vec<Device> {
    let mut ordinals: Vec<u32> =
        shown.into_iter().flat_map(|table| &table.work).filter_map(|work| work.device).collect();
    ordinals.sort_unstable();
    ordinals.dedup();
    let name = report.device.clone().unwrap_or_else(|| "a device the profiler does not name".to_owned());
    let device = |ordinal: u32| Device {
        id: DeviceId::cuda(ordinal),
        name: name.clone(),
        uuid: None,
        hardware: hardware.map(|hardware| hardware.id.clone()),
        memory_bytes: None,
        multiprocessors: None,
    };
    ordinals.into_iter().map(device).collect()
}

/// One row per process and device; threads are taken together.
fn rows(region: &types::Region, rules: &[MetricRule]) -> Vec<RegionSummary> {
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
