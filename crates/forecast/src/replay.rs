//! Host and device side by side: a kernel starts when it was launched and the one before it has ended.

/// A kernel, and what launching it costs the host; microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Launched {
    pub(crate) device_us: f64,
    pub(crate) host_us: f64,
}

/// What each kernel adds to the time of a stage that begins with an idle device, its wait for the launch included.
pub(crate) fn replay(kernels: impl IntoIterator<Item = Launched>) -> Vec<f64> {
    let (mut host, mut device) = (0.0, 0.0f64);
    let step = |kernel: Launched| {
        host += kernel.host_us;
        let before = device;
        device = before.max(host) + kernel.device_us;
        device - before
    };
    kernels.into_iter().map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(device_us: f64, host_us: f64) -> f64 {
        replay([Launched { device_us, host_us }; 10]).iter().sum()
    }

    #[test]
    fn short_kernels_wait_for_the_host_and_long_ones_hide_it() {
        // Ten launches of 5, and the last kernel behind them.
        assert!((total(2.0, 5.0) - 52.0).abs() < 1e-9);
        // The first launch, then the device is never idle.
        assert!((total(20.0, 5.0) - 205.0).abs() < 1e-9);
        assert!((total(2.0, 0.0) - 20.0).abs() < 1e-9);
    }

    #[test]
    fn a_long_kernel_lets_the_host_run_ahead() {
        let kernels = [(50.0, 5.0), (2.0, 5.0), (2.0, 5.0)].map(|(device_us, host_us)| Launched { device_us, host_us });
        assert_eq!(replay(kernels), [55.0, 2.0, 2.0]);
    }
}
