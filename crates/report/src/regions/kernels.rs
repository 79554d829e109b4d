//! `ncu/regions/<folder>/kernels.csv`: every launch, or every instance of a range, with the configured metrics.

use analysis::region::{RolledRegion, TIME};
use types::MetricRule;
use types::counter::{CounterTable, ProfiledKind};

/// The rows of a region. Numbers are in base units; what was not counted is empty.
pub fn kernels_csv(region: &RolledRegion, pages: &[&CounterTable], metrics: &[MetricRule]) -> String {
    let mut text = String::from("capture,id,kind,region,process,device,stream,name,grid,block,time_ns");
    for metric in metrics {
        text.push(',');
        text += &cell(&metric.name);
    }
    text.push('\n');
    for member in &region.members {
        let Some((page, work)) = pages.get(member.capture).and_then(|page| Some((page, page.work.get(member.row)?)))
        else {
            continue;
        };
        let kind = match work.kind {
            ProfiledKind::Kernel => "kernel",
            ProfiledKind::Range => "range",
            ProfiledKind::Other => "other",
        };
        let number = |number: Option<u32>| number.map(|number| number.to_string()).unwrap_or_default();
        let sizes = |sizes: Option<[u32; 3]>| sizes.map(|[x, y, z]| format!("{x}x{y}x{z}")).unwrap_or_default();
        let value = |name: &str| page.number(member.row, name).map(|value| value.to_string()).unwrap_or_default();
        let mut cells = vec![
            member.capture.to_string(),
            work.id.to_string(),
            kind.to_owned(),
            cell(&member.innermost),
            number(work.process),
            number(work.device),
            number(work.stream),
            cell(&work.name),
            sizes(work.grid),
            sizes(work.block),
            value(TIME),
        ];
        cells.extend(metrics.iter().map(|metric| value(&metric.name)));
        text += &cells.join(",");
        text.push('\n');
    }
    text
}

/// A text with what would end a cell put into quotes.
fn cell(text: &str) -> String {
    if !text.contains([',', '"', '\n', '\r']) {
        return text.to_owned();
    }
    format!("\"{}\"", text.replace('"', "\"\""))
}
