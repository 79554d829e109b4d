//! Layouts of a server: the best one, the frontier as a chart, and the table.

use types::{CapacitySweep, ForecastRange, LayoutFigures, LayoutPoint, LimitedLatency};

use super::figures::{interval, money, times};
use crate::pages::sweep::csv::value;
use crate::render::text::{link, prose};
use crate::render::{Page, Table};
use crate::words::caveat::READ_FIRST;
use crate::words::kind::Phrase;
use crate::words::number::{count, grouped, known, rate};
use crate::words::serving::objective;

/// Lines of the table that are printed.
const LINES: usize = 40;
/// How a highest load differs from the other figures.
const HIGHEST: &str =
    "; a load within target is the one under the likely times, with those under other times as its interval";
/// Lines of the table on the page; the JSON has all.
const MOST_LINES: usize = 500;

/// A sweep as plain text.
pub fn layouts_terminal(sweep: &CapacitySweep) -> String {
    let mut page = Page::new("");
    head(&mut page, sweep);
    page.table(&table(sweep, LINES));
    more(&mut page, sweep, LINES);
    page.list(notes(sweep));
    page.terminal()
}

/// The page; `json` and `chart` are the files beside it.
pub fn layouts_page(sweep: &CapacitySweep, json: &str, chart: &str) -> Page {
    let layouts = count(sweep.points.len() as u64, "layout");
    let mut page = Page::new(&format!("{}: {layouts}", prose(&sweep.model.model_id)));
    head(&mut page, sweep);
    page.chart("Output tokens per second of each device against those of each user", chart);
    page.table(&table(sweep, MOST_LINES));
    more(&mut page, sweep, MOST_LINES);
    page.paragraph(&format!("Exact numbers: {}.", link(json, json)));
    page.heading("Assumptions");
    page.list(notes(sweep));
    page
}

fn head(page: &mut Page, sweep: &CapacitySweep) {
    let stopped = sweep.stopped.then(|| {
        let (done, all) = (grouped(sweep.points.len() as u128), grouped(sweep.points_planned));
        format!("The sweep stopped after {done} of {all} layouts.")
    });
    page.callout(READ_FIRST, stopped);
    let load = sweep.points.iter().find_map(|point| point.figures.as_ref()).map(|figures| figures.load);
    page.facts([
        ("model", Some(prose(&sweep.model.model_id))),
        ("requests", load.map(|load| grouped(load.requests))),
        ("target", sweep.objective.as_ref().map(objective)),
        ("best layout", best(sweep)),
    ]);
}

/// `workload.parallel.tensor=2 on h200: 3 servers, 6 devices`.
pub(crate) fn best(sweep: &CapacitySweep) -> Option<String> {
    let point = sweep.points.iter().find(|point| Some(point.point) == sweep.best)?;
    let figures = point.figures.as_ref()?;
    let devices = figures.devices_needed?;
    let cost = figures
        .price
        .map_or_else(String::new, |price| format!(", {} an hour", money(price.per_device_hour * devices as f64)));
    let asked = known(figures.load.arrivals.peak().map(rate));
    Some(format!(
        "{}: {} with {} hold {asked} requests a second within the target{cost}",
        described(sweep, point),
        count(figures.servers_needed?, if figures.server.router.is_some() { "deployment" } else { "server" }),
        count(devices, "device"),
    ))
}

pub(crate) fn described(sweep: &CapacitySweep, point: &LayoutPoint) -> String {
    let set = |axis: &types::SweepAxis| Some(format!("{}={}", short(&axis.key), value(point.settings.get(&axis.key)?)));
    prose(&sweep.axes.iter().filter_map(set).collect::<Vec<_>>().join(", "))
}

fn short(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

fn table(sweep: &CapacitySweep, lines: usize) -> Table {
    let mut table = Table::default();
    for axis in &sweep.axes {
        table.column(short(&axis.key), axis.values.iter().all(serde_json::Value::is_number));
    }
    let heads = [
        "device",
        ">tokens/s per device",
        ">tokens/s per user",
        ">TTFT p99",
        ">TPOT p99",
        ">requests/s within target",
        ">per million out",
        "frontier",
    ];
    for head in heads {
        table.column(head.trim_start_matches('>'), head.starts_with('>'));
    }
    for point in sweep.points.iter().take(lines) {
        let settings = sweep.axes.iter().map(|axis| point.settings.get(&axis.key).map(value).unwrap_or_default());
        let cells: Vec<String> = settings.chain(cells(point)).collect();
        table.row(cells);
    }
    table
}

fn cells(point: &LayoutPoint) -> Vec<String> {
    let Some(figures) = &point.figures else {
        let mut cells = vec![known(None::<u64>); 7];
        cells.push(prose(point.error.as_deref().unwrap_or_default()));
        return cells;
    };
    let LayoutFigures { server, highest, price, .. } = figures;
    let device =
        if server.devices > 1 { format!("{} x {}", server.devices, server.hardware) } else { server.hardware.clone() };
    let is_open = highest.is_some_and(|highest| highest.limited_by == LimitedLatency::NotReached);
    let within = highest.and_then(|highest| highest.requests_per_second.or(highest.concurrency));
    vec![
        prose(&device),
        rates(figures.tokens_per_second_per_device),
        known(figures.tokens_per_second_per_user.map(rates)),
        times(figures.figures.ttft_ms.p99),
        known(figures.figures.tpot_ms.map(|tpot| times(tpot.p99))),
        known(within.map(|range| format!("{}{}", if is_open { "at least " } else { "" }, rates(range)))),
        known(price.map(|price| interval(price.per_million_output_tokens, money))),
        if point.on_frontier { "yes" } else { "" }.to_owned(),
    ]
}

fn rates(range: ForecastRange) -> String {
    interval(range, rate)
}

fn more(page: &mut Page, sweep: &CapacitySweep, lines: usize) {
    if sweep.points.len() > lines {
        page.paragraph(&format!("... and {} more", count((sweep.points.len() - lines) as u64, "layout")));
    }
}

fn notes(sweep: &CapacitySweep) -> Vec<String> {
    let assumed =
        sweep.points.iter().filter_map(|point| point.figures.as_ref()).flat_map(|figures| &figures.assumptions);
    let assumed: std::collections::BTreeSet<_> = assumed.collect();
    let lines = assumed.into_iter().map(|assumption| format!("assumed: {}", assumption.phrase()));
    let origin = format!(
        "origin: simulated; values are means of {} per layout, with 90% intervals{}",
        count(sweep.simulations, "simulation"),
        if sweep.objective.is_some() { HIGHEST } else { "" }
    );
    std::iter::once(origin).chain(lines).collect()
}
