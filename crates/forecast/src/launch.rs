//! What launches cost, and how far that may be off.

use types::{Hardware, LaunchCost};

use crate::prior;

/// Least and most that launches may cost as a share of what was measured, which is the fastest of several steps. On the shared
/// host of an H200, eager passes of five decoders took 0.7 to 2.2 times what a small decoder takes for a kernel; 152 of 156
/// lay within these.
const MEASURED: [f64; 2] = [0.8, 2.0];

/// The same where the cost is assumed.
const ASSUMED: [f64; 2] = [0.4, 3.0];

/// What launches cost, and between which shares of it.
#[derive(Clone, Copy)]
pub(crate) struct Launches {
    pub(crate) cost: LaunchCost,
    pub(crate) bounds: [f64; 2],
}

impl Launches {
    /// As measured, or as assumed of such a device.
    pub(crate) fn new(measured: Option<LaunchCost>, hardware: &Hardware) -> Self {
        match measured {
            Some(cost) => Self { cost, bounds: MEASURED },
            None => Self { cost: assumed(hardware), bounds: ASSUMED },
        }
    }
}

/// A processor runs operations as function calls.
const NONE: LaunchCost = LaunchCost { eager_us: 0.0, graph_us: 0.0, synchronise_us: 0.0, plan_us: None };

fn assumed(hardware: &Hardware) -> LaunchCost {
    let is_gpu = !hardware.nvml_names.is_empty() || hardware.compute_capability.is_some();
    if is_gpu { prior::LAUNCH } else { NONE }
}
