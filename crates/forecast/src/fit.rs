//! A curve and its residual for every operation and element type of a table.

use std::collections::BTreeMap;

use types::{CalibratedGroup, DType, Hardware, IntervalWidth, LeftOut};

use crate::curve::Curve;
use crate::process::Process;
use crate::shape::Work;
use crate::{Family, ForecastError, MeasuredPoint};

/// Points below which a curve of several sizes says nothing.
const NEEDED: usize = 24;

/// Points below which a ramp of one size says nothing.
const NEEDED_OF_RAMP: usize = 5;

/// Points below which attention under a mask is taken from attention without one: a library may take half a second to get ready
/// for each, so that a calibration has few.
const NEEDED_OF_MASKS: usize = 8;

/// Parts that predictions are sorted into by how sure they are; each gets its own width.
const WIDTHS: usize = 4;

/// How much wider an interval is than the points ask for. Points are left out of the process but not of the curve and the scales,
/// and a new model has widths that no point has: on an H200, 1,350 shapes of other widths needed this much.
const UNSEEN: f64 = 1.2;

/// Standard deviations that hold 90% of a normal distribution, where nothing better is known.
const NORMAL: f64 = 1.645;

/// Fits every group of `points`, which were measured on `hardware`.
pub fn fit(points: &[MeasuredPoint], hardware: &Hardware) -> Result<Vec<CalibratedGroup>, ForecastError> {
    let mut groups: BTreeMap<(Family, DType), Vec<&MeasuredPoint>> = BTreeMap::new();
    for point in points {
        groups.entry((point.shape.family, point.shape.dtype)).or_default().push(point);
    }
    std::thread::scope(|scope| {
        let started: Vec<_> = groups
            .iter()
            .map(|((family, dtype), points)| scope.spawn(|| group(*family, *dtype, points, hardware)))
            .collect();
        // A panic in a thread is one here.
        started.into_iter().map(|fit| fit.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    })
}

fn group(
    family: Family,
    dtype: DType,
    points: &[&MeasuredPoint],
    hardware: &Hardware,
) -> Result<CalibratedGroup, ForecastError> {
    let points = once_each(points);
    let needed = match family {
        Family::MaskedAttention => NEEDED_OF_MASKS,
        family if family.columns().len() == 1 => NEEDED_OF_RAMP,
        _ => NEEDED,
    };
    if points.len() < needed {
        let group = format!("{} in {dtype}", family.name());
        return Err(ForecastError::TooFew { group, points: points.len(), needed });
    }
    let works = points.iter().map(|(point, _)| point.shape.work(hardware)).collect::<Result<Vec<Work>, _>>()?;
    let times: Vec<f64> = points.iter().map(|(_, time)| *time).collect();
    let curve = Curve::through(&works.iter().zip(times.iter().copied()).collect::<Vec<_>>());
    let residuals: Vec<f64> = works.iter().zip(&times).map(|(work, time)| (time / curve.at(work)).ln()).collect();
    let sites: Vec<u64> = points.iter().map(|(point, _)| site(family, &point.shape.sizes)).collect();
    let features: Vec<Vec<f64>> = works.into_iter().map(|work| work.features).collect();
    let process = Process { features: &features, residuals: &residuals, sites: &sites, weights: &[] };
    let scales = process.scales();
    let errors = process.left_out(&scales);
    let weights = process.weights(&scales);
    let mut relative: Vec<f64> = errors.iter().map(|(error, _)| (-error).exp_m1().abs()).collect();
    relative.sort_by(f64::total_cmp);
    let rows = points.iter().map(|(point, time)| point.shape.sizes.iter().copied().chain([*time]).collect());
    Ok(CalibratedGroup {
        op: family.name().to_owned(),
        dtype,
        floor_us: curve.floor_us,
        compute_efficiency: curve.compute,
        memory_efficiency: curve.memory,
        scales: scales.scales,
        spread: scales.spread,
        noise: scales.noise,
        intervals: widths(errors),
        left_out: LeftOut { points: relative.len() as u64, median: at(&relative, 0.5), p90: at(&relative, 0.9) },
        columns: family.columns().iter().map(|&name| name.to_owned()).collect(),
        points: rows.collect(),
        run_points: Vec::new(),
        weights,
    })
}

/// Each shape once; repeated measurements become their median.
fn once_each<'a>(points: &[&'a MeasuredPoint]) -> Vec<(&'a MeasuredPoint, f64)> {
    let mut by_shape: BTreeMap<Vec<u64>, (&MeasuredPoint, Vec<f64>)> = BTreeMap::new();
    for point in points {
        let key = point.shape.sizes.iter().map(|size| size.to_bits()).collect();
        by_shape.entry(key).or_insert_with(|| (point, Vec::new())).1.push(point.microseconds);
    }
    let median = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        at(&times, 0.5)
    };
    by_shape.into_values().map(|(point, times)| (point, median(times))).collect()
}

pub(crate) fn site(family: Family, sizes: &[f64]) -> u64 {
    // FNV-1a: sizes of one site are equal, and others seldom collide.
    let bytes = sizes[family.site()].iter().flat_map(|size| size.to_bits().to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// How many standard deviations held 90% of the errors, for predictions as sure as each other.
fn widths(mut errors: Vec<(f64, f64)>) -> Vec<IntervalWidth> {
    errors.sort_by(|a, b| a.1.total_cmp(&b.1));
    let part = errors.len().div_ceil(WIDTHS).max(20);
    let width = |errors: &[(f64, f64)]| {
        let mut ratios: Vec<f64> = errors.iter().map(|(error, deviation)| error.abs() / deviation).collect();
        ratios.sort_by(f64::total_cmp);
        let up_to = errors.last().map_or(f64::MAX, |(_, deviation)| *deviation);
        // One more than a share of the points: with few of them, their own 90% holds fewer of the next.
        IntervalWidth { up_to, factor: UNSEEN * at(&ratios, (0.9 * (1.0 + 1.0 / ratios.len() as f64)).min(1.0)) }
    };
    if errors.len() < 20 {
        return vec![IntervalWidth { up_to: f64::MAX, factor: NORMAL.max(width(&errors).factor) }];
    }
    errors.chunks(part).filter(|part| part.len() >= 10).map(width).collect()
}

/// Quantile of sorted values, between neighbours where it falls between them.
fn at(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let place = share * last as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[(place.ceil() as usize).min(last)]);
    below + (above - below) * place.fract()
}
