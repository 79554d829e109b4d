//! What is seen in a picture, in a sentence above it.

use types::view::RunView;
use types::{AnalyticReport, ModuleSummary, Nanos, Stage};

use super::documents::Documents;

use crate::pages::run::imported_facts;
use crate::render::text::{capital, code, prose};
use crate::words::number::{count, milliseconds, percent, time_share};

/// A device that is idle for longer than this share of its time is said to be idle rather than busy.
const MUCH_IDLE: f64 = 0.2;

/// The sentence above the pictures of a section, as Markdown; absent where nothing stands out.
pub(super) fn of_section(section: &str, run: &RunView<'_>, documents: &Documents<'_>) -> Option<String> {
    match section {
        "lost-time" => lost(run),
        "stages" => stages(run),
        "device-time" => device(run),
        "shares" => families(run),
        "critical-path" => critical(run),
        "steps" => steps(run),
        "repeats" => repeats(run),
        "roofline" => roofline(run),
        "latencies" => latencies(run),
        "forecast" => documents.modelled.and_then(forecast),
        "ranks" => ranks(run),
        "flame" => modules(run),
        "timeline" => timeline(run),
        _ => None,
    }
}

/// `Decode takes 1.8 times its roofline time; its largest loss is launch overhead, 54.0% of the measured time.`
fn lost(run: &RunView<'_>) -> Option<String> {
    let top = run.stages.iter().filter(|view| view.stage.parent.is_none());
    let said: Vec<String> = top
        .filter_map(|view| {
            let (wall, least) = (view.stage.wall_ns?, view.stage.speed_of_light_ns?);
            let times = (least > Nanos::ZERO).then(|| wall.get() as f64 / least.get() as f64)?;
            let lost = run.metrics.conclusions.lost_time.iter().filter(|lost| lost.stage == Some(view.stage.name));
            let most = lost.max_by_key(|lost| lost.lost_ns)?;
            let share = percent(Some(time_share(most.lost_ns, wall)?));
            let name = capital(view.stage.name.name());
            Some(format!(
                "{name} takes {times:.1} times its roofline time; its largest loss is {}, {share} of the measured time.",
                most.cause
            ))
        })
        .collect();
    (!said.is_empty()).then(|| said.join(" "))
}

fn stages(run: &RunView<'_>) -> Option<String> {
    let top = run.stages.iter().filter(|view| view.stage.parent.is_none() && view.run_share.is_some());
    let most = top.max_by_key(|view| view.stage.wall_ns)?;
    let runs = count(most.stage.instances, "instance");
    let of = if imported_facts(run.metrics).is_some() { "recording" } else { "run" };
    Some(format!("{} takes {} of the {of}, in {runs}.", capital(most.stage.name.name()), percent(most.run_share)))
}

fn device(run: &RunView<'_>) -> Option<String> {
    let view =
        run.device_time.iter().max_by(|one, other| one.idle.unwrap_or(0.0).total_cmp(&other.idle.unwrap_or(0.0)))?;
    let mut device = prose(&view.time.device.to_string());
    if run.device_time.len() > 1 {
        device += &format!(", the least busy of {} devices,", run.device_time.len());
    }
    // Both shares are of the span, as in the chart.
    let idle = view.idle.filter(|idle| *idle >= MUCH_IDLE).map(|idle| percent(Some(idle)));
    let cause = view.causes.iter().max_by_key(|(idle, _)| idle.ns);
    Some(match (idle, cause) {
        (Some(idle), Some((most, Some(share)))) => {
            let cause = crate::words::idle::cause(most.cause);
            format!("{device} is idle for {idle} of its time: {cause} takes {}.", percent(Some(*share)))
        }
        (Some(idle), _) => format!("{device} is idle for {idle} of its time."),
        (None, _) => format!("{device} is busy for {} of its time.", percent(Some(view.busy?))),
    })
}

fn families(run: &RunView<'_>) -> Option<String> {
    let most = run.kernels.families.iter().max_by(|a, b| a.share.unwrap_or(0.0).total_cmp(&b.share.unwrap_or(0.0)))?;
    let name = capital(crate::words::cause::family(most.family));
    Some(format!("{name}: {} of the kernel time.", percent(Some(most.share?))))
}

fn critical(run: &RunView<'_>) -> Option<String> {
    let most = run.metrics.conclusions.critical_path.first()?;
    Some(format!("{}: {} of the critical path.", capital(&most.cause.to_string()), percent(Some(most.share))))
}

/// `Prefill takes 4.28 s in the median of 9 instances, from 2.33 s to 6.33 s.`
fn repeats(run: &RunView<'_>) -> Option<String> {
    let times = |stage| run.metrics.times.aggregates.stage_ms.get(&stage).filter(|times| times.n > 1);
    let said = [Stage::Prefill, Stage::Decode].into_iter().filter_map(|stage| {
        let found = times(stage)?;
        let [median, min, max] = [found.median, found.min, found.max].map(milliseconds);
        let name = capital(stage.name());
        Some(format!("{name} takes {median} in the median of {}, from {min} to {max}.", count(found.n, "instance")))
    });
    let said: Vec<String> = said.collect();
    (!said.is_empty()).then(|| said.join(" "))
}

/// How fast the stages are for the peak of the device.
fn roofline(run: &RunView<'_>) -> Option<String> {
    let top = run.stages.iter().filter(|view| view.stage.parent.is_none());
    let of_roof = top.filter_map(|view| {
        let share = time_share(view.stage.speed_of_light_ns?, view.stage.wall_ns?)?;
        Some(format!("{} at {}", view.stage.name, percent(Some(share))))
    });
    let of_roof: Vec<String> = of_roof.collect();
    (!of_roof.is_empty()).then(|| format!("Relative to its roofline: {}.", of_roof.join(", ")))
}

fn latencies(run: &RunView<'_>) -> Option<String> {
    let load = &run.metrics.served.serving.as_ref()?;
    let ttft = load.recorded.as_ref().unwrap_or(&load.load).ttft.as_ref()?;
    Some(format!("Half of the requests have their first token after {}, 99% after {}.", ttft.p50.ns, ttft.p99.ns))
}

/// How the forecast fits what was measured.
fn forecast(report: &AnalyticReport) -> Option<String> {
    let millis = |time: Nanos| time.get() as f64 / 1e6;
    let measured = report.measured_total_time_ms?;
    let total = &report.forecast_total;
    let (forecast, low, high) = (total.forecast_ns?, total.forecast_low_ns?, total.forecast_high_ns?);
    let place = match measured {
        _ if measured < millis(low) => "below",
        _ if measured > millis(high) => "above",
        _ => "inside",
    };
    let times = (forecast > Nanos::ZERO).then(|| measured / millis(forecast))?;
    Some(format!("The measured time is {times:.2} times the forecast and {place} its 90% interval."))
}

fn ranks(run: &RunView<'_>) -> Option<String> {
    let arrivals = run.metrics.times.rank_arrivals.as_ref()?;
    let last = arrivals.ranks.iter().max_by_key(|one| one.last).filter(|one| one.last > 0)?;
    let of = count(arrivals.collectives, "shared collective");
    Some(format!("Rank {} is the last to reach {} of {of}.", last.rank, last.last))
}

/// The module with most time of its own.
fn modules(run: &RunView<'_>) -> Option<String> {
    let own = |module: &&&ModuleSummary| module.exclusive_ns;
    let rows: Vec<&ModuleSummary> = if run.module_kinds.is_empty() {
        run.metrics.breakdown.modules.iter().collect()
    } else {
        run.module_kinds.clone()
    };
    let most = rows.iter().filter(|module| !module.path.is_empty()).max_by_key(own)?;
    Some(format!("Most self time: {} in {}, {}.", code(&most.path), most.stage, most.exclusive_ns?))
}

/// What the lanes of devices hold: a column is as high as the share of its time in which something ran.
fn timeline(run: &RunView<'_>) -> Option<String> {
    let [view] = run.device_time.as_slice() else { return None };
    let device = prose(&view.time.device.to_string());
    Some(format!("{device} is busy for {} of {}.", percent(Some(view.busy?)), view.time.span_ns))
}

/// How steps differ: the median and the longest.
fn steps(run: &RunView<'_>) -> Option<String> {
    let steps = run.metrics.times.steps.as_ref()?;
    let wall = steps.wall_ms.as_ref()?;
    let number = count(steps.list.len() as u64, "step");
    Some(format!("{number}: {} in the median, {} at most.", milliseconds(wall.median), milliseconds(wall.max)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_picture_of_the_sample_says_what_is_seen_in_it() {
        let metrics = crate::pages::run::sample::metrics();
        let view = analysis::view::run(&metrics);
        let said = |section| of_section(section, &view, &Documents::default()).unwrap_or_default();
        assert!(["lost-time", "stages", "roofline"].iter().all(|section| said(section).contains('%')));
        assert!(said("lost-time").contains("times its roofline time"), "{}", said("lost-time"));
        assert_eq!(said("inputs"), "");
    }
}
