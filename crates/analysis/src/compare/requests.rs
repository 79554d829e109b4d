//! Requests to servers: their latencies, and where they spend their time.
//!
//! One load per side has the intervals of its figures, drawn anew by request; the interval of a ratio follows from those of its two
//! sides (Zou and Donner, 2008). Requests of one load share their steps, and so their luck: where the two halves of a load differ
//! like the sides do, nothing is said. Several loads per side are compared load by load.

use types::{
    Base, Change, Count, Facts, Latency, Measured, Nanos, Quantile, Remark, Replication, RequestParts, ServedLoad,
    Serving,
};

use super::row::{Evidence, Row, geometric_mean, judged, log_ratio, time};
use super::samples::several;
use super::stages::BEYOND_HALVES;
use super::{RunRecords, Sides};
use crate::disturbed;
use crate::statistics::{LogInterval, mean, normal_beyond, relative_spread};

/// How many standard errors a 95% interval reaches to either side.
const REACH: f64 = 1.959_964;

/// One latency of a load by its name in files.
type Kind = (&'static str, fn(&ServedLoad) -> Option<Latency>);

const KINDS: [Kind; 4] =
    [("ttft", |load| load.ttft), ("tpot", |load| load.tpot), ("itl", |load| load.itl), ("e2el", |load| load.e2el)];

/// One figure of a latency, and the fewest requests that tell its noise: a resampled 99th percentile cannot lie above the slowest
/// request, so that some must be slower.
type Figure = (&'static str, u64, fn(&Latency) -> Quantile);

const FIGURES: [Figure; 3] = [("mean", 20, |of| of.mean), ("p50", 20, |of| of.p50), ("p99", 500, |of| of.p99)];

/// A row for each latency and figure that a side has.
pub(super) fn latencies(sides: Sides<'_>) -> Vec<Change> {
    let rows = KINDS.into_iter().flat_map(|kind| FIGURES.map(|figure| row(sides, kind, figure)));
    judged(rows.filter(|row| row.base.samples + row.with.samples > 0).collect())
}

/// Where the average request spends its time, and what the whole load takes for a token, the largest change first. Not tested within
/// a run.
pub(super) fn parts(sides: Sides<'_>) -> Vec<Change> {
    let names = RequestParts::default().named().map(|(name, _)| name);
    let row = |place: usize, name: &str| {
        let of = |runs: &[RunRecords]| -> Vec<f64> {
            runs.iter().filter_map(serving).filter_map(|serving| part_or_whole(serving, place)).collect()
        };
        let (base, with) = (of(sides.base), of(sides.with));
        let side = |values: &[f64]| Measured {
            time_ns: time(mean(values)),
            samples: values.len() as u64,
            spread: relative_spread(values),
            ..Measured::default()
        };
        let evidence = match sides.replication() {
            Replication::Repeats => Evidence::untested(Remark::new("untested.one-load", Facts::new())),
            Replication::Runs => several(&base, &with, [0; 2]).evidence,
        };
        let log_ratio = log_ratio(mean(&base), mean(&with));
        let name = name.to_owned();
        Row { name, base: side(&base), with: side(&with), log_ratio, evidence, ..Row::default() }
    };
    let rows = names.into_iter().chain(["load"]).enumerate().map(|(place, name)| row(place, name));
    let is_there =
        |row: &Row| [row.base, row.with].iter().any(|side| side.time_ns.is_some_and(|time| time > Nanos::new(0)));
    let mut changes = judged(rows.filter(is_there).collect());
    let size = |change: &Change| {
        let time = |side: &Measured| side.time_ns.map_or(0, Nanos::get);
        time(&change.with).abs_diff(time(&change.base))
    };
    changes.sort_by_key(|change| std::cmp::Reverse(size(change)));
    changes
}

/// Nanoseconds that a part takes of the average request, or that the whole load takes for a token behind the last of them.
fn part_or_whole(serving: &Serving, place: usize) -> Option<f64> {
    let parts = RequestParts::default().named().len();
    if place == parts {
        return serving.load.output_throughput.filter(|rate| *rate > 0.0).map(|rate| 1e9 / rate);
    }
    let (parts, join) = serving.parts.as_ref().zip(serving.join.as_ref())?;
    Some(parts.named()[place].1.get() as f64 / join.requests.max(1) as f64)
}

fn serving(run: &RunRecords) -> Option<&Serving> {
    run.metrics.served.serving.as_ref()
}

fn row(sides: Sides<'_>, (kind, latency): Kind, (figure, fewest, quantile): Figure) -> Row {
    let of = |runs: &[RunRecords]| -> Vec<Latency> {
        runs.iter().filter_map(serving).filter_map(|serving| latency(&serving.load)).collect()
    };
    let (base, with) = (of(sides.base), of(sides.with));
    let name = format!("{kind}: {figure}");
    let samples = [&base, &with].map(|side| side.iter().map(|latency| latency.n).sum::<Count>().get());
    let values = |side: &[Latency]| -> Vec<f64> { side.iter().map(|one| quantile(one).ns.get() as f64).collect() };
    match (sides.replication(), &base[..], &with[..]) {
        (_, [], _) | (_, _, []) => {
            let side =
                |of: &[f64], samples| Measured { time_ns: time(geometric_mean(of)), samples, ..Measured::default() };
            let reason = if base.is_empty() {
                Remark::new("untested.only-second", Facts::new())
            } else {
                Remark::new("untested.only-first", Facts::new())
            };
            let (base, with) = (side(&values(&base), samples[0]), side(&values(&with), samples[1]));
            Row { name, base, with, evidence: Evidence::untested(reason), ..Row::default() }
        }
        (Replication::Repeats, [one], [other]) => {
            let ratio = log_ratio(Some(quantile(one).ns.get() as f64), Some(quantile(other).ns.get() as f64));
            let row = Row { name, log_ratio: ratio, ..several(&values(&base), &values(&with), samples) };
            let is_few = sides.runs().filter_map(serving).any(|serving| serving.load.completed < fewest);
            let tested = || within(sides, [one, other], quantile, ratio);
            Row { evidence: if is_few { too_few() } else { tested() }, ..row }
        }
        _ => Row { name, ..several(&values(&base), &values(&with), samples) },
    }
}

fn too_few() -> Evidence {
    Evidence::untested(Remark::new("untested.few-requests", Facts::new()))
}

/// What one load per side tells of one figure.
fn within(sides: Sides<'_>, loads: [&Latency; 2], figure: fn(&Latency) -> Quantile, ratio: Option<f64>) -> Evidence {
    let logs = |of: Quantile| {
        let log = |time: Nanos| Some((time.get() as f64).ln()).filter(|log| log.is_finite());
        Some([log(of.low_ns?)?, log(of.ns)?, log(of.high_ns?)?])
    };
    let Some(((base, with), ratio)) = logs(figure(loads[0])).zip(logs(figure(loads[1]))).zip(ratio) else {
        return too_few();
    };
    let low = ratio - (with[1] - with[0]).hypot(base[2] - base[1]);
    let high = ratio + (with[2] - with[1]).hypot(base[1] - base[0]);
    let interval = LogInterval { low, high };
    if let Some(reason) = unsteady(sides, loads, ratio) {
        return Evidence::Untested { interval: Some(interval), reason };
    }
    // How far away no change is, by the error to that side.
    let reach = if ratio > 0.0 { ratio - low } else { high - ratio };
    if reach <= 0.0 {
        return Evidence::Untested {
            interval: Some(interval),
            reason: Remark::new("untested.equal-times", Facts::new()),
        };
    }
    Evidence::Tested { interval, p_value: normal_beyond(ratio.abs() / (reach / REACH)) }
}

/// Why requests of one load do not tell how far loads differ, where they do not.
fn unsteady(sides: Sides<'_>, loads: [&Latency; 2], ratio: f64) -> Option<Remark> {
    if let Some(reason) = sides.runs().find_map(|run| disturbed::verdict(&run.metrics)) {
        return Some(Remark::new("untested.busy", Facts::new().with("reason", reason)));
    }
    let halves = |load: &Latency| {
        let [first, second] = load.halves_ns?.map(|time| time.get() as f64);
        log_ratio(Some(first), Some(second)).map(f64::abs)
    };
    let apart = loads.into_iter().filter_map(halves).max_by(f64::total_cmp)?;
    (ratio != 0.0 && ratio.abs() < BEYOND_HALVES * apart).then(|| {
        let facts = Facts::new().with_share("apart", apart.exp_m1(), Base::Itself);
        Remark::new("untested.halves-differ", facts)
    })
}
