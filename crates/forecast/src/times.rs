//! Times of operations, from the calibration where it has them.

use std::cell::RefCell;
use std::collections::HashMap;

use types::{DType, DeviceCalibration, Hardware};

use crate::estimator::Estimate;
use crate::prior;
use crate::{Estimator, Family, ForecastError, OpShape};

/// Time in which a device that multiplies reaches its power limit, microseconds: half of the slowdown is there after it.
const POWER_US: f64 = 100_000.0;

/// An operation: its family, element type and shape.
pub(crate) type Operation = (Family, DType, Vec<u64>);

/// Shapes and their times, each estimated once.
pub(crate) struct Times<'a> {
    pub(crate) hardware: &'a Hardware,
    estimator: Option<Estimator<'a>>,
    known: RefCell<HashMap<Operation, Estimate>>,
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
        Ok(Self { hardware, estimator, known: RefCell::default(), slowdown })
    }

    /// How many times as long GEMMs take in a pass of so many microseconds as in a burst.
    pub(crate) fn sustained(&self, whole: f64) -> f64 {
        1.0 + (self.slowdown - 1.0) * whole / (whole + POWER_US)
    }

    /// The time of an operation.
    pub(crate) fn of(&self, shape: &OpShape) -> Result<(Estimate, Operation), ForecastError> {
        let key = (shape.family, shape.dtype, shape.sizes.iter().map(|size| size.to_bits()).collect::<Vec<_>>());
        if let Some(known) = self.known.borrow().get(&key) {
            return Ok((*known, key));
        }
        let estimate = self.estimate(shape)?;
        self.known.borrow_mut().insert(key.clone(), estimate);
        Ok((estimate, key))
    }

    /// From the calibration, or from the nearest thing it has.
    fn estimate(&self, shape: &OpShape) -> Result<Estimate, ForecastError> {
        let Some(estimator) = &self.estimator else { return prior::assume(shape, self.hardware) };
        if estimator.knows(shape.family, shape.dtype) {
            return estimator.estimate(shape);
        }
        // Kernels that only move memory take as long in any element type.
        if matches!(shape.family, Family::Elementwise | Family::Copy) {
            let other = DType::ALL.into_iter().find(|dtype| estimator.knows(shape.family, *dtype));
            if let Some(dtype) = other {
                return estimator.estimate(&OpShape { dtype, ..shape.clone() });
            }
        }
        // Half-precision types run at one rate.
        let twin = match shape.dtype {
            DType::Bf16 => Some(DType::Fp16),
            DType::Fp16 => Some(DType::Bf16),
            _ => None,
        };
        match twin.filter(|dtype| estimator.knows(shape.family, *dtype)) {
            Some(dtype) => estimator.estimate(&OpShape { dtype, ..shape.clone() }),
            None => prior::assume(shape, self.hardware),
        }
    }
}
