//! What `llm-perf analyze --sweep` prints: the best points, how figures run along the first axis, and the table.

use types::{Origin, Sweep, SweepPoint};

use super::csv::value;
use super::series::{PlottedPoint, Series};
use super::table::{short, table};
use crate::render::text::prose;
use crate::render::{Page, Table};
use crate::words::caveat::READ_FIRST;
use crate::words::number::{count, grouped, milliseconds, rate};

/// Lines of the table that are printed; the files have all.
const LINES: usize = 40;

/// Lines with a run of bars.
const RUNS: usize = 8;

/// Bars from low to high.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The sweep as plain text.
pub fn terminal(sweep: &Sweep) -> String {
    let mut page = Page::new("");
    page.callout(READ_FIRST, caveats(sweep));
    let (model, parameters) = (prose(&sweep.model.model_id), grouped(sweep.model.parameters.total));
    let points = count(sweep.points.len() as u64, "point");
    let about = [
        ("model", Some(format!("{model}, {parameters} parameters"))),
        ("sweep", Some(format!("{points} over {}", prose(&axes(sweep))))),
    ];
    page.facts(about.into_iter().chain(best(sweep)));
    page.table(&table(sweep, sweep.points.iter().take(LINES)));
    if sweep.points.len() > LINES {
        page.paragraph(&format!("... and {} more", count((sweep.points.len() - LINES) as u64, "point")));
    }
    if let Some(bars) = bars(sweep) {
        page.table(&bars);
    }
    page.facts([(
        "origin",
        Some(
            "modelled, nothing measured: roofline times at the devices' peak rates; eager forecasts with 90% intervals"
                .into(),
        ),
    )]);
    page.list(forecasts(sweep));
    page.terminal()
}

/// What a reader must know before the first number.
pub(super) fn caveats(sweep: &Sweep) -> Vec<String> {
    stopped(sweep).into_iter().chain(assumed(sweep)).collect()
}

/// That it did not get to its end.
pub(crate) fn stopped(sweep: &Sweep) -> Option<String> {
    let (done, all) = (grouped(sweep.points.len() as u128), grouped(sweep.points_planned));
    sweep.stopped.then(|| format!("The sweep stopped after {done} of {all} points."))
}

/// What forecasts rest on that is assumed.
pub(crate) fn assumed(sweep: &Sweep) -> impl Iterator<Item = String> {
    bases(sweep, true)
        .map(|(device, basis)| format!("Forecasts for {device} rest at least partly on assumptions: {basis}."))
}

/// What the forecasts rest on, device by device, where caveats do not say it.
pub(super) fn forecasts(sweep: &Sweep) -> Vec<String> {
    bases(sweep, false).map(|(device, basis)| format!("Forecasts for {device}: {basis}.")).collect()
}

/// Devices with what their forecasts rest on: those with an assumed forecast, or the others.
fn bases(sweep: &Sweep, assumed: bool) -> impl Iterator<Item = (String, String)> {
    let is_assumed = |device: &str| {
        let points = sweep.points.iter().filter(|point| point.hardware == device);
        let mut forecasts = points.filter_map(|point| point.figures.as_ref()?.forecast);
        forecasts.any(|forecast| forecast.origin == Origin::Assumed)
    };
    let devices = sweep.hardware.iter().filter(move |device| is_assumed(&device.id) == assumed);
    devices.filter_map(|device| Some((prose(&device.id), prose(device.forecast_basis.as_ref()?))))
}

/// What varies, on one line.
pub(crate) fn axes(sweep: &Sweep) -> String {
    let values =
        |axis: &types::SweepAxis| format!("{} ({})", short(&axis.key), count(axis.values.len() as u64, "value"));
    let parts: Vec<String> = sweep.axes.iter().map(values).collect();
    let devices = count(sweep.hardware.len() as u64, "device");
    if parts.is_empty() { devices } else { format!("{} on {devices}", parts.join(" and ")) }
}

/// The points one would choose among those that fit, each with its name.
pub(crate) fn best(sweep: &Sweep) -> Vec<(&'static str, Option<String>)> {
    let known = || sweep.points.iter().filter_map(|point| Some((point, point.figures.as_ref()?)));
    let fitting = || known().filter(|(_, figures)| figures.fits);
    let rated = fitting().filter_map(|(point, figures)| Some((point, figures.decode_tokens_per_second?)));
    let highest = rated.max_by(|a, b| a.1.total_cmp(&b.1));
    let soonest = fitting().min_by(|a, b| a.1.ttft_ms.total_cmp(&b.1.ttft_ms));
    let throughput = highest.map(|(point, tokens)| format!("{} tokens/s at {}", rate(tokens), describe(sweep, point)));
    let ttft =
        soonest.map(|(point, figures)| format!("{} at {}", milliseconds(figures.ttft_ms), describe(sweep, point)));
    let none = soonest.is_none().then(|| "no point fits its device".to_owned());
    vec![("highest throughput", throughput), ("shortest time to first token", ttft), ("fits", none)]
}

/// What throughput does along the first axis: `From batch 1 to 32, decode goes from 3,976 to 21,964 tokens/s.` Of several lines, how
/// far apart their ends are.
pub(crate) fn range(sweep: &Sweep) -> Option<String> {
    let series = Series::new(sweep, |figures| figures.decode_tokens_per_second)?;
    let ((_, from), (_, to)) = (series.ticks.first()?, series.ticks.last()?);
    let ends = |of: fn(&[PlottedPoint]) -> Option<&PlottedPoint>| {
        let mut ends: Vec<f64> = series.lines.iter().filter_map(|line| Some(of(&line.points)?.y)).collect();
        ends.sort_by(f64::total_cmp);
        let (low, high) = (rate(*ends.first()?), rate(*ends.last()?));
        Some(if low == high { low } else { format!("{low}..{high}") })
    };
    let (slow, fast) = (ends(|line| line.first())?, ends(|line| line.last())?);
    Some(format!("From {} {from} to {to}, decode goes from {slow} to {fast} tokens/s.", prose(short(&series.axis))))
}

/// A point by its settings.
fn describe(sweep: &Sweep, point: &SweepPoint) -> String {
    let set = |axis: &types::SweepAxis| Some(format!("{}={}", short(&axis.key), value(point.settings.get(&axis.key)?)));
    let parts: Vec<String> = sweep.axes.iter().filter_map(set).chain([point.hardware.clone()]).collect();
    prose(&parts.join(", "))
}

/// Tokens per second along the first axis, a line of bars for each series.
fn bars(sweep: &Sweep) -> Option<Table> {
    let series = Series::new(sweep, |figures| figures.decode_tokens_per_second)?;
    let highest = series.lines.iter().flat_map(|line| line.points.iter().map(|point| point.y)).fold(0.0, f64::max);
    if highest <= 0.0 || series.ticks.len() < 3 {
        return None;
    }
    let (first, last) = (&series.ticks.first()?.1, &series.ticks.last()?.1);
    let mut table = Table::new(&format!("tokens/s | {} {first} to {last} | ", short(&series.axis)));
    for line in series.lines.iter().take(RUNS) {
        let bar = |y: f64| BARS[((y / highest * BARS.len() as f64) as usize).min(BARS.len() - 1)];
        let ends = [line.points.first()?.y, line.points.last()?.y].map(rate);
        table.row([prose(&line.label), line.points.iter().map(|point| bar(point.y)).collect(), ends.join(" to ")]);
    }
    Some(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::sweep::sample;

    #[test]
    fn the_table_follows_the_best_points() {
        insta::assert_snapshot!(terminal(&sample::sweep()));
    }

    #[test]
    fn a_long_sweep_is_cut_and_says_so() {
        let mut sweep = sample::sweep();
        let one = sweep.points[0].clone();
        sweep.points.extend(std::iter::repeat_n(one, 100));
        let text = terminal(&sweep);
        assert!(text.contains(&format!("... and {} points more", sweep.points.len() - LINES)), "{text}");
    }

    #[test]
    fn where_nothing_fits_nothing_is_recommended() {
        let mut sweep = sample::sweep();
        for figures in sweep.points.iter_mut().filter_map(|point| point.figures.as_mut()) {
            figures.fits = false;
        }
        let best: Vec<_> = best(&sweep).into_iter().filter(|(_, text)| text.is_some()).collect();
        assert_eq!(best, [("fits", Some("no point fits its device".to_owned()))]);
    }

    #[test]
    fn an_assumed_forecast_is_said_before_the_first_number() {
        let mut sweep = sample::sweep();
        assert_eq!((caveats(&sweep).len(), forecasts(&sweep).len()), (0, 1));
        for figures in sweep.points.iter_mut().filter_map(|point| point.figures.as_mut()) {
            figures.forecast.iter_mut().for_each(|forecast| forecast.origin = Origin::Assumed);
        }
        assert!(
            terminal(&sweep)
                .starts_with("Read this first:\n  - Forecasts for h200 rest at least partly on assumptions")
        );
        assert_eq!(forecasts(&sweep), Vec::<String>::new());
    }
}
