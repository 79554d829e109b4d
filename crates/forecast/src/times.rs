//! Times of operations, from the calibration where it has them.

use std::collections::HashMap;
use std::sync::RwLock;

use types::{DType, DeviceCalibration, Hardware};

use crate::estimator::Estimate;
use crate::prior;
use crate::{Estimator, Family, ForecastError, OpShape};

/// Time in which a device that multiplies reaches its power limit, microseconds: half of the slowdown is there after it. Power is
/// averaged before it is limited: on an H200, GEMMs of a pass of 0.2 s take what they take in a burst, those of 1.8 s all of it.
pub(crate) const POWER_US: f64 = 500_000.0;

/// Most sizes of a shape.
const SIZES: usize = 7;

/// An operation: its family, element type and shape.
pub(crate) type Operation = (Family, DType, [u64; SIZES]);

/// Shapes and their times, each estimated once.
pub(crate) struct Times<'a> {
    pub(crate) hardware: &'a Hardware,
    estimator: Option<Estimator<'a>>,
    known: RwLock<HashMap<Operation, Estimate>>,
    /// How many times as long GEMMs take at the device's power limit as in a burst.
    slowdown: f64,
}

impl<'a> Times<'a> {
    /// From a calibration, or from what is assumed of the device.
    pub(crate) fn new(
        hardware: &'a Hardware,
        calibration: Option<&'a DeviceCalibration>,
    ) -> Result<Self, ForecastError> {
        let estimator = calibration.map(|stored| Estimator::new(stored, hardware)).transpose()?;
        let slowdown = calibration.and_then(|stored| stored.sustained).unwrap_or(1.0).max(1.0);
        Ok(Self { hardware, estimator, known: RwLock::default(), slowdown })
    }

    /// How many times as long GEMMs take in a pass of so many microseconds as in a burst.
    pub(crate) fn sustained(&self, whole: f64) -> f64 {
        let square = (whole / POWER_US).powi(2);
        1.0 + (self.slowdown - 1.0) * square / (1.0 + square)
    }

    /// The same where a share of the time goes to matrices, on the average over [`POWER_US`].
    pub(crate) fn slowdown(&self, share: f64) -> f64 {
        1.0 + (self.slowdown - 1.0) * share.clamp(0.0, 1.0).powi(2)
    }

    /// The time of an operation.
    pub(crate) fn of(&self, shape: &OpShape) -> Result<(Estimate, Operation), ForecastError> {
        let sizes = std::array::from_fn(|index| shape.sizes.get(index).map_or(0, |size| size.to_bits()));
        let key = (shape.family, shape.dtype, sizes);
        // A lock that a panic left behind only costs the estimate again.
        if let Some(known) = self.known.read().ok().and_then(|known| known.get(&key).copied()) {
            return Ok((known, key));
        }
        let estimate = self.estimate(shape)?;
        if let Ok(mut known) = self.known.write() {
            known.insert(key, estimate);
        }
        Ok((estimate, key))
    }

    /// Whether the calibration has such operations.
    pub(crate) fn knows(&self, family: Family, dtype: DType) -> bool {
        self.near(family, dtype).is_some()
    }

    /// The element type, of those measured, in which such operations take as long.
    fn near(&self, family: Family, dtype: DType) -> Option<DType> {
        let estimator = self.estimator.as_ref()?;
        // Half-precision types run at one rate, and kernels that only move memory take as long in any type.
        let halves = [DType::Bf16, DType::Fp16].into_iter().filter(|half| half.bits() == dtype.bits());
        let others = DType::ALL.into_iter().filter(|_| family.moves());
        [dtype].into_iter().chain(halves).chain(others).find(|dtype| estimator.knows(family, *dtype))
    }

    /// From the calibration, or from the nearest thing it has.
    fn estimate(&self, shape: &OpShape) -> Result<Estimate, ForecastError> {
        match (&self.estimator, self.near(shape.family, shape.dtype), shape.stand_in()) {
            (Some(estimator), Some(dtype), _) => estimator.estimate(&OpShape { dtype, ..shape.clone() }),
            (Some(_), None, Some(near)) => self.estimate(&near),
            _ => prior::assume(shape, self.hardware),
        }
    }
}
