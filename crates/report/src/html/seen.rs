//! What is seen in a picture, in a sentence above it.

use types::Nanos;
use types::view::RunView;

use crate::pages::run::imported_facts;
use crate::render::html_line;
use crate::render::text::{capital, prose};
use crate::words::number::{count, percent, time_share};

/// A device that is idle for longer than this share of its time is said to be idle rather than busy.
const MUCH_IDLE: f64 = 0.2;

/// The sentence above the pictures of a section; empty where nothing stands out.
pub(super) fn html(section: &str, run: &RunView<'_>) -> String {
    let said = match section {
        "lost-time" => lost(run),
        "stages" => stages(run),
        "device-time" => device(run),
        "treemap" => families(run),
        "critical-path" => critical(run),
        "steps" => steps(run),
        _ => None,
    };
    said.map(|said| format!("<p class=\"seen\">{}</p>\n", html_line(&said))).unwrap_or_default()
}

/// `Decode takes 1.8 times its roofline time; launch overhead is 54.0% of its measured time.`
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
                "{name} takes {times:.1} times its roofline time; {} is {share} of its measured time.",
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
    let device = prose(&view.time.device.to_string());
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
    Some(format!("{name} take {} of the kernel time.", percent(Some(most.share?))))
}

fn critical(run: &RunView<'_>) -> Option<String> {
    let most = run.metrics.conclusions.critical_path.first()?;
    Some(format!("{}: {} of the critical path.", capital(&most.cause.to_string()), percent(Some(most.share))))
}

/// How steps differ: the median and the longest.
fn steps(run: &RunView<'_>) -> Option<String> {
    let steps = run.metrics.times.steps.as_ref()?;
    let wall = steps.wall_ms.as_ref()?;
    let times = |time: f64| crate::words::number::milliseconds(time);
    let number = count(steps.list.len() as u64, "step");
    Some(format!("{number}: {} in the median, {} at most.", times(wall.median), times(wall.max)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_picture_of_the_sample_says_what_is_seen_in_it() {
        let metrics = crate::pages::run::sample::metrics();
        let view = analysis::view::run(&metrics);
        for section in ["lost-time", "stages"] {
            let said = html(section, &view);
            assert!(said.starts_with("<p class=\"seen\">") && said.contains('%'), "{section}: {said}");
        }
        assert!(html("lost-time", &view).contains("times its roofline time"));
        assert_eq!(html("roofline", &view), "");
    }
}
