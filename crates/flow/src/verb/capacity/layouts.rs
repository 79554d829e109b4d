//! Layouts of a server: the same load on each, several at a time, their frontier and the best of them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use collect::run::RunRequest;
use rayon::prelude::*;
use serde_json::{Map, Value};
use types::{Capacity, CapacitySweep, ForecastRange, LayoutFigures, LayoutPoint, SchemaTag, SweepAxis, UserError};

use super::document::spec;
use super::{CapacityRequest, Device, Effort, device, simulated};
use crate::pipeline::folder::run::{EndedRun, run};
use crate::pipeline::model::LoadedModel;

/// The document inside a run folder.
const JSON: &str = "capacity-sweep.json";
/// The chart.
const CHART: &str = "capacity-sweep.svg";
/// The page to read first.
const PAGE: &str = "capacity-sweep.md";

/// Simulations of every layout beside the likely one: 19 are the fewest that make a 90% interval.
const EFFORT: Effort = Effort { load: 18, highest: 2 };

/// One layout.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The value of every axis, by key.
    pub settings: Map<String, Value>,
    /// The server and its load.
    pub request: CapacityRequest,
}

/// What a sweep tells and asks while it runs, from several threads.
pub struct Watch<'a> {
    /// Called with the number of layouts just done.
    pub done: &'a (dyn Fn(u64) + Sync),
    /// Asked before each layout.
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

/// Simulates every layout; nothing is written. One that cannot be simulated says why; where none can be, that is an error.
pub fn layouts(
    model: &LoadedModel,
    axes: &[SweepAxis],
    layouts: &[Layout],
    watch: &Watch<'_>,
) -> Result<CapacitySweep, UserError> {
    let mut devices: BTreeMap<&str, Device> = BTreeMap::new();
    for Layout { request, .. } in layouts {
        if !devices.contains_key(request.device()) {
            devices.insert(request.device(), device(request)?);
        }
    }
    let stopped = AtomicBool::new(false);
    let simulate = |(number, layout): (usize, &Layout)| {
        if stopped.load(Ordering::Relaxed) || (watch.stop)() {
            stopped.store(true, Ordering::Relaxed);
            return None;
        }
        let point = point(model, number as u64, layout, &devices[layout.request.device()]);
        (watch.done)(1);
        Some(point)
    };
    let mut points: Vec<LayoutPoint> = layouts.par_iter().enumerate().filter_map(simulate).collect();
    let (Some(Layout { request, .. }), true) = (layouts.first(), points.iter().any(|point| point.figures.is_some()))
    else {
        return Err(none_simulated(points.first().and_then(|point| point.error.clone())));
    };
    mark_frontier(&mut points);
    let objective = request.objective;
    let best = objective.filter(|_| share_a_load(layouts)).and_then(|_| best(&points));
    Ok(CapacitySweep {
        schema: SchemaTag::new(),
        tool_version: request.tool_version.clone(),
        model: spec(model),
        axes: axes.to_vec(),
        objective,
        points_planned: layouts.len() as u64,
        stopped: stopped.into_inner(),
        simulations: EFFORT.load + 1,
        points,
        best,
    })
}

fn none_simulated(first: Option<String>) -> UserError {
    match first {
        Some(first) => UserError::usage(format!("none of the layouts can be simulated; the first: {first}")),
        None => UserError::failed("stopped before the first layout was done"),
    }
}

fn point(model: &LoadedModel, point: u64, layout: &Layout, device: &Device) -> LayoutPoint {
    let (figures, error) = match simulated(model, &layout.request, device, EFFORT, &mut |_| {}) {
        Ok((capacity, unmet)) => (Some(figures(&capacity)), unmet),
        Err(error) => (None, Some(error)),
    };
    let error = error.map(|error| error.message);
    LayoutPoint { point, settings: layout.settings.clone(), figures, error, on_frontier: false }
}

fn figures(capacity: &Capacity) -> LayoutFigures {
    let (server, devices) = (&capacity.server, capacity.server.devices as f64);
    let per_user = |ForecastRange { value, low, high }: ForecastRange| ForecastRange {
        value: 1e3 / value,
        low: 1e3 / high,
        high: 1e3 / low,
    };
    let each = |value: f64| value / devices;
    let ForecastRange { value: tokens, low: fewest, high: most } = capacity.figures.output_throughput;
    let highest_rate = capacity.highest.and_then(|highest| highest.requests_per_second).map(|rate| rate.low);
    let needed = highest_rate.filter(|rate| *rate > 0.0).zip(capacity.load.arrivals.peak());
    let servers_needed = needed.map(|(highest, asked)| (asked / highest).ceil().max(1.0) as u64);
    LayoutFigures {
        server: server.clone(),
        load: capacity.load,
        origin: capacity.origin,
        figures: capacity.figures,
        tokens_per_second_per_user: capacity.figures.tpot_ms.map(|tpot| per_user(tpot.mean)),
        tokens_per_second_per_device: ForecastRange { value: each(tokens), low: each(fewest), high: each(most) },
        highest: capacity.highest,
        servers_needed,
        devices_needed: servers_needed.map(|servers| servers.saturating_mul(server.devices)),
        price: capacity.price,
        assumptions: capacity.assumptions.clone(),
    }
}

/// Marks the layouts that no other one beats in tokens per device and per user.
fn mark_frontier(points: &mut [LayoutPoint]) {
    let place = |point: &LayoutPoint| {
        let figures = point.figures.as_ref()?;
        Some([figures.tokens_per_second_per_user?.value, figures.tokens_per_second_per_device.value])
    };
    let places: Vec<Option<[f64; 2]>> = points.iter().map(place).collect();
    points.iter_mut().zip(on_frontier(&places)).for_each(|(point, is_on)| point.on_frontier = is_on);
}

/// Which places no other one beats: it is at least as high in both figures, and another.
fn on_frontier(places: &[Option<[f64; 2]>]) -> Vec<bool> {
    let beats = |one: &[f64; 2], other: &[f64; 2]| one[0] >= other[0] && one[1] >= other[1] && one != other;
    let is_on = |own: [f64; 2]| !places.iter().flatten().any(|other| beats(other, &own));
    places.iter().map(|own| own.is_some_and(is_on)).collect()
}

/// Whether every layout is under the same load: else none of them is better than another.
fn share_a_load(layouts: &[Layout]) -> bool {
    layouts.windows(2).all(|pair| Arc::ptr_eq(&pair[0].request.load, &pair[1].request.load))
}

/// The layout that holds the rate within the objective for least: by price an hour where there is one, else by devices.
fn best(points: &[LayoutPoint]) -> Option<u64> {
    let cost = |point: &LayoutPoint| {
        let figures = point.figures.as_ref()?;
        let devices = figures.devices_needed? as f64;
        Some([devices * figures.price.map_or(1.0, |price| price.per_device_hour), devices])
    };
    let known = points.iter().filter_map(|point| Some((point.point, cost(point)?)));
    known.min_by(|a, b| a.1[0].total_cmp(&b.1[0]).then(a.1[1].total_cmp(&b.1[1]))).map(|(point, _)| point)
}

/// What a sweep lacks of what was asked for.
pub fn missing(sweep: &CapacitySweep) -> Vec<String> {
    let done = sweep.points.len();
    let stopped = sweep.stopped.then(|| format!("stopped after {done} of {} layouts", sweep.points_planned));
    let failed: Vec<&LayoutPoint> = sweep.points.iter().filter(|point| point.figures.is_none()).collect();
    let first = failed.first().and_then(|point| point.error.clone()).unwrap_or_default();
    let failures =
        (!failed.is_empty()).then(|| format!("{} of {done} layouts could not be simulated: {first}", failed.len()));
    stopped.into_iter().chain(failures).collect()
}

/// Writes a sweep into a run folder of its own; where its page is.
pub fn keep_layouts(sweep: &CapacitySweep, config_yaml: &str, request: RunRequest) -> Result<PathBuf, UserError> {
    let request = RunRequest { model: Some(sweep.model.model_id.clone()), ..request };
    let EndedRun { folder, .. } = run(request, |folder| {
        folder.write_file("config.yaml", config_yaml.as_bytes())?;
        folder.write_json(JSON, sweep)?;
        folder.write_file(CHART, report::html::layouts_chart(sweep).as_bytes())?;
        folder.write_file(PAGE, report::pages::capacity::layouts_page(sweep, JSON, CHART).markdown().as_bytes())?;
        let html = report::html::layouts_page(sweep, Some(folder.manifest()), [JSON, CHART]);
        folder.write_file("report.html", html.as_bytes())?;
        folder.end_step("capacity")?;
        Ok(((), missing(sweep)))
    })?;
    Ok(folder.join(PAGE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_frontier_has_what_nothing_else_beats() {
        // Worked by hand: (1, 5) and (2, 3) trade one for the other, (1, 3) is beaten by both, and equals do not beat each other.
        let places = [Some([1.0, 5.0]), Some([2.0, 3.0]), Some([1.0, 3.0]), None, Some([2.0, 3.0])];
        assert_eq!(on_frontier(&places), [true, true, false, false, true]);
        assert!(on_frontier(&[]).is_empty());
    }
}
