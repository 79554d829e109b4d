//! The forecast of a workload from its sums, for sweeps: layers that are alike are timed once.

use meter::{Estimate, TallyRow};
use network::Model;
use types::{Cost, DeviceCalibration, ExecutionMode, ForecastRange, Hardware, Origin, Workload};

use crate::ForecastError;
use crate::call::Call;
use crate::eager::Experts;
use crate::kernels::Style;
use crate::launch::Launches;
use crate::pass::{Framework, PassForecast, PassOp};
use crate::times::Times;
use crate::workload::{experts, milliseconds, origin, steps};

/// Forecasts many workloads on one device in eager mode; several threads may ask.
pub struct Forecaster<'a> {
    times: Times<'a>,
    experts: Experts,
    launch: Launches,
    launches_measured: bool,
}

/// What is likely of one workload, in eager mode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuickForecast {
    /// Time to the first token, milliseconds.
    pub ttft_ms: ForecastRange,
    /// Mean time of a decode step, milliseconds; absent without decode.
    pub time_per_output_token_ms: Option<ForecastRange>,
    /// `modelled` where most of the time and the launches come from a calibration, else `assumed`.
    pub origin: Origin,
}

impl<'a> Forecaster<'a> {
    /// Of `model` on `hardware`, from its calibration where there is one.
    pub fn new(
        model: &Model,
        hardware: &'a Hardware,
        calibration: Option<&'a DeviceCalibration>,
    ) -> Result<Self, ForecastError> {
        let measured = calibration.and_then(|stored| stored.launch);
        Ok(Self {
            times: Times::new(hardware, calibration)?,
            experts: experts(model, hardware),
            launch: Launches::new(measured, hardware),
            launches_measured: measured.is_some(),
        })
    }

    /// The forecast of `workload`, whose sums are `estimate`.
    pub fn forecast(&self, workload: &Workload, estimate: &Estimate) -> Result<QuickForecast, ForecastError> {
        let style = Style { mode: ExecutionMode::Eager, attention: workload.attention, experts: self.experts };
        let framework = Framework { times: &self.times, style, launch: self.launch };
        let (mut prefill, mut decode) = (PassForecast::default(), PassForecast::default());
        let ops: Vec<PassOp<'_>> = estimate.prefill.iter().map(|row| summed(row, row.cost)).collect();
        prefill.add(&ops, &estimate.prefill_messages, 0, 1.0, &framework)?;
        let ops: Vec<PassOp<'_>> = estimate.step_rows().map(|(row, cost)| summed(row, cost)).collect();
        let count = if ops.is_empty() { 0 } else { estimate.steps };
        for (step, weight) in steps(count).into_iter().filter(|_| count > 0) {
            // Rows are of a step behind one position.
            let more = estimate.prefilled.saturating_sub(1) + step;
            decode.add(&ops, &estimate.step_messages, more, weight, &framework)?;
        }
        let device = prefill.device + decode.device;
        let share = if device > 0.0 { (prefill.calibrated + decode.calibrated) / device } else { 0.0 };
        let count = count as f64;
        let synchronise = self.launch.cost.synchronise_us;
        let per_step = |time: [f64; 3]| milliseconds(time.map(|time| time / count));
        Ok(QuickForecast {
            ttft_ms: milliseconds(prefill.range(synchronise)),
            time_per_output_token_ms: (count > 0.0).then(|| per_step(decode.range(synchronise * count))),
            origin: origin(share, self.launches_measured),
        })
    }
}

fn summed(row: &TallyRow, cost: Cost) -> PassOp<'_> {
    let call = Call { bytes: cost.bytes.total().as_f64(), ..Call::from(row) };
    PassOp { call, module: None, repeats: row.count }
}
