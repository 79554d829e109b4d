//! What launches cost, and how far that may be off.

use types::{Hardware, LaunchCost};

use crate::prior;

/// Least and most that launches may cost as a share of what was measured. On the shared host of an H200, eager decode steps
/// took 0.8 to 3.8 times what launches of a small decoder had just been timed at.
const MEASURED: [f64; 2] = [0.6, 3.5];

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
fn assumed(hardware: &Hardware) -> LaunchCost {
    let is_gpu = !hardware.nvml_names.is_empty() || hardware.compute_capability.is_some();
    if is_gpu { prior::LAUNCH } else { LaunchCost { eager_us: 0.0, graph_us: 0.0, synchronise_us: 0.0 } }
}
