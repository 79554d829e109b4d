//! The metrics of a regions run: what every run has, with its regions.

use analysis::{Evidence, LaunchCounters, Subject, Trace};
use types::counter::CounterTable;
use types::{Device, DeviceId, Hardware, Metrics, RegionReport, RunHeader};

use crate::pipeline::trace::regions::summaries;

/// The document, from the report and the page that shows most of the program.
pub(super) fn metrics(
    report: &RegionReport,
    missing: &[String],
    shown: Option<&CounterTable>,
    (engine, model): (&str, Option<&str>),
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
        regions: Some(summaries(report.regions.iter(), &report.metrics)),
        missing: missing.to_vec(),
        quality: report.quality.clone(),
        ..Evidence::default()
    };
    crate::pipeline::metrics::metrics(&subject, &evidence)
}

fn devices(shown: Option<&CounterTable>, report: &RegionReport, hardware: Option<&Hardware>) -> Vec<Device> {
    let mut ordinals: Vec<u32> =
        shown.into_iter().flat_map(|table| &table.work).filter_map(|work| work.device).collect();
    ordinals.sort_unstable();
    ordinals.dedup();
    let name = report.device.clone().unwrap_or_else(|| "a device not named by the profiler".to_owned());
    let device = |ordinal: u32| Device {
        hardware: hardware.map(|hardware| hardware.id.clone()),
        ..Device::new(DeviceId::cuda(ordinal), name.clone())
    };
    ordinals.into_iter().map(device).collect()
}
