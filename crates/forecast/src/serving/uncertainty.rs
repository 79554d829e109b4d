//! How far the times of a server may be from the likely ones.

/// Standard deviations, in logarithms. `docs/concepts/capacity.md` says which runs they come from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Uncertainty {
    /// Of everything but attention on the device, as a multiple of the calibration's own error.
    pub device: f64,
    /// Of an engine's attention, as a multiple of the library's.
    pub attention: f64,
    /// Of what devices send to each other.
    pub links: f64,
    /// Of the engine's host.
    pub host: f64,
    /// Of the way to and from clients.
    pub way: f64,
    /// Of single requests around what a simulation says of them: of TTFT from the first step on, and of TPOT.
    pub requests: [f64; 2],
}

impl Uncertainty {
    /// Of a server whose device was calibrated, or was not, and the speed of whose host was measured, or was not.
    pub const fn of(is_calibrated: bool, host_is_measured: bool) -> Self {
        let [host, way] = if host_is_measured { [0.05, 0.08] } else { [0.35, 0.35] };
        let device = if is_calibrated { 0.5 } else { 1.0 };
        // A factor of two either way, for nine of ten links.
        Self { device, attention: 0.10, links: 0.42, host, way, requests: [0.10, 0.01] }
    }
}
