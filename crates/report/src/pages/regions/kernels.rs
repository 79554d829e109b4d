//! `ncu/regions/<folder>/kernels.csv`: every launch, or every instance of a range, with the configured metrics.

use types::counter::ProfiledKind;
use types::{MetricRule, RegionLaunch};

use crate::pages::sweep::csv::cell;

/// The launches of a region. Numbers are in base units; what was not counted is empty.
pub fn kernels_csv(launches: &[RegionLaunch<'_>], metrics: &[MetricRule]) -> String {
    let mut text = String::from("capture,id,kind,region,process,device,stream,name,grid,block,time_ns");
    for metric in metrics {
        text.push(',');
        text += &cell(&metric.name);
    }
    text.push('\n');
    for launch in launches {
        let work = launch.work;
        let kind = match work.kind {
            ProfiledKind::Kernel => "kernel",
            ProfiledKind::Range => "range",
            ProfiledKind::Other => "other",
        };
        let number = |number: Option<u32>| number.map(|number| number.to_string()).unwrap_or_default();
        let sizes = |sizes: Option<[u32; 3]>| sizes.map(|[x, y, z]| format!("{x}x{y}x{z}")).unwrap_or_default();
        let value = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
        let mut cells = vec![
            launch.capture.to_string(),
            work.id.to_string(),
            kind.to_owned(),
            cell(launch.region).into_owned(),
            number(work.process),
            number(work.device),
            number(work.stream),
            cell(&work.name).into_owned(),
            sizes(work.grid),
            sizes(work.block),
            value(launch.time_ns),
        ];
        cells.extend(launch.metrics.iter().copied().map(value));
        text += &cells.join(",");
        text.push('\n');
    }
    text
}
