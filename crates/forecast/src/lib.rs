//! From measured times of single operations to what a workload is likely to take.
//!
//! [`read_points`] reads tables of measured operations, [`fit`] lays a curve through them, an [`Estimator`] gives the time of
//! any other shape with an interval, and [`forecast`] adds such times up over a metered workload. Values in, values out:
//! files, clocks and devices belong to others.

mod attention;
mod call;
mod collective;
mod curve;
mod eager;
mod error;
mod estimator;
mod fit;
mod kernels;
mod launch;
mod operators;
mod pass;
mod points;
mod prior;
mod process;
mod replay;
mod search;
pub mod serving;
mod shape;
mod sums;
mod times;
mod workload;

pub use error::ForecastError;
pub use estimator::{Basis, Estimate, Estimator};
pub use fit::fit;
pub use operators::{measured_points, places, points_of_operators, run_keys};
pub use points::{MeasuredPoint, Table, read_points, read_shapes};
pub use shape::{Family, OpShape};
pub use sums::{Forecaster, QuickForecast};
pub use workload::{Subject, basis, forecast};
