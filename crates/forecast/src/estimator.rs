//! The time of any shape, with its interval, from a calibration.

use std::collections::HashMap;

use types::{CalibratedGroup, DType, DeviceCalibration, Hardware};

use crate::curve::Curve;
use crate::fit::site;
use crate::process::{Process, Scales, Without};
use crate::{Family, ForecastError, OpShape};

/// Octaves outside the sizes measured beyond which an estimate is marked.
const FAR: f64 = 2.0;

/// Points below which a process does not know how sure it is; what it errs by on points left out is the least width then.
const FEW: usize = 48;

/// By how much a measurement differs from the next one of the same shape, at least; a standard deviation.
const REPEATED: f64 = 0.006;

/// Standard deviations of a normal 90% interval.
const NORMAL: f64 = 1.645;

types::named! {
    /// What an estimate rests on.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Basis {
        /// This very shape was measured.
        Measured = "measured",
        /// Shapes around it were measured.
        Interpolated = "interpolated",
        /// A size lies more than two octaves outside those measured.
        Extrapolated = "extrapolated",
        /// Nothing was measured: assumed efficiencies.
        Assumed = "assumed",
    }
}

/// A time with its 90% interval, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The likely time.
    pub microseconds: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// What it rests on.
    pub basis: Basis,
}

impl Estimate {
    /// The same operation on a device that is slower by a factor.
    pub(crate) fn times(self, factor: f64) -> Self {
        let Self { microseconds, low, high, basis } = self;
        Self { microseconds: microseconds * factor, low: low * factor, high: high * factor, basis }
    }
}

/// Estimates from one calibration.
pub struct Estimator<'a> {
    hardware: &'a Hardware,
    groups: Vec<Group<'a>>,
}

struct Group<'a> {
    family: Family,
    dtype: DType,
    stored: &'a CalibratedGroup,
    curve: Curve,
    scales: Scales,
    features: Vec<Vec<f64>>,
    residuals: Vec<f64>,
    sites: Vec<u64>,
    exact: HashMap<Vec<u64>, f64>,
    /// Least and largest of each size.
    range: Vec<[f64; 2]>,
}

impl<'a> Estimator<'a> {
    /// From a calibration of `hardware`.
    pub fn new(calibration: &'a DeviceCalibration, hardware: &'a Hardware) -> Result<Self, ForecastError> {
        let groups = calibration.groups.iter().filter_map(|stored| {
            let family = Family::find(&stored.op)?;
            Some(Group::new(family, stored, hardware))
        });
        Ok(Self { hardware, groups: groups.collect::<Result<_, _>>()? })
    }

    /// The time of `shape`; an error where nothing like it was measured.
    pub fn estimate(&self, shape: &OpShape) -> Result<Estimate, ForecastError> {
        let found = self.groups.iter().find(|group| group.family == shape.family && group.dtype == shape.dtype);
        let group = found.ok_or_else(|| ForecastError::NotCalibrated {
            device: self.hardware.id.clone(),
            group: shape.group(),
            known: self.known(),
        })?;
        group.estimate(shape, self.hardware)
    }

    /// Whether such an operation was measured.
    pub fn knows(&self, family: Family, dtype: DType) -> bool {
        self.groups.iter().any(|group| group.family == family && group.dtype == dtype)
    }

    fn known(&self) -> String {
        let names: Vec<String> =
            self.groups.iter().map(|group| format!("{} in {}", group.family.name(), group.dtype)).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    }
}

impl<'a> Group<'a> {
    fn new(family: Family, stored: &'a CalibratedGroup, hardware: &Hardware) -> Result<Self, ForecastError> {
        let columns = family.columns().len();
        let curve =
            Curve { floor_us: stored.floor_us, compute: stored.compute_efficiency, memory: stored.memory_efficiency };
        let mut group = Self {
            family,
            dtype: stored.dtype,
            stored,
            curve,
            scales: Scales { scales: stored.scales.clone(), spread: stored.spread, noise: stored.noise },
            features: Vec::with_capacity(stored.points.len()),
            residuals: Vec::with_capacity(stored.points.len()),
            sites: Vec::with_capacity(stored.points.len()),
            exact: HashMap::with_capacity(stored.points.len()),
            range: vec![[f64::INFINITY, 0.0]; columns],
        };
        // A row of another length is of another version's making; it is left out rather than misread.
        for row in stored.points.iter().filter(|row| row.len() == columns + 1) {
            let (sizes, time) = (&row[..columns], row[columns]);
            let shape = OpShape { family, dtype: stored.dtype, sizes: sizes.to_vec() };
            let work = shape.work(hardware)?;
            group.residuals.push((time / curve.at(&work)).ln());
            group.features.push(work.features);
            group.sites.push(site(family, sizes));
            group.exact.insert(bits(sizes), time);
            for ([least, most], size) in group.range.iter_mut().zip(sizes) {
                (*least, *most) = (least.min(*size), most.max(*size));
            }
        }
        Ok(group)
    }

    fn estimate(&self, shape: &OpShape, hardware: &Hardware) -> Result<Estimate, ForecastError> {
        let below = |(size, [least, _]): (&f64, &[f64; 2])| least.is_finite() && size < least;
        if self.family.moves() && shape.sizes.iter().zip(&self.range).any(below) {
            // Kernels smaller than the smallest that was measured take as long.
            let sizes = shape.sizes.iter().zip(&self.range).map(|(size, [least, _])| size.max(*least)).collect();
            let smallest = self.estimate(&OpShape { sizes, ..shape.clone() }, hardware)?;
            return Ok(Estimate { basis: Basis::Interpolated, ..smallest });
        }
        if let Some(time) = self.exact.get(&bits(&shape.sizes)) {
            let noise = (NORMAL * self.stored.noise.max(REPEATED)).exp();
            return Ok(Estimate { microseconds: *time, low: time / noise, high: time * noise, basis: Basis::Measured });
        }
        let work = shape.work(hardware)?;
        let process = Process {
            features: &self.features,
            residuals: &self.residuals,
            sites: &self.sites,
            weights: &self.stored.weights,
        };
        let (mean, deviation) =
            process.at(&work.features, Without::Nothing, &self.scales).unwrap_or((0.0, self.stored.spread.max(0.5)));
        let time = self.curve.at(&work) * mean.exp();
        let intervals = &self.stored.intervals;
        let interval = intervals.iter().find(|interval| deviation <= interval.up_to).or(intervals.last());
        let width = interval.map_or(NORMAL, |interval| interval.factor) * deviation;
        let least = if self.stored.points.len() < FEW { self.stored.left_out.p90.ln_1p() } else { 0.0 };
        let width = width.max(least).exp();
        let outside = |(size, [least, most]): (&f64, &[f64; 2])| {
            // A window of zero is none at all; there is no octave below it.
            let (size, least, most) = (size.max(1.0), least.max(1.0), most.max(1.0));
            (least / size).max(size / most).log2() > FAR
        };
        let far = shape.sizes.iter().zip(&self.range).any(outside);
        let basis = if far { Basis::Extrapolated } else { Basis::Interpolated };
        Ok(Estimate { microseconds: time, low: time / width, high: time * width, basis })
    }
}

fn bits(sizes: &[f64]) -> Vec<u64> {
    sizes.iter().map(|size| size.to_bits()).collect()
}
