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

/// Kernels that are launched one behind the other, some times over, as what they do to host and device.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Block {
    /// Time of the host.
    host: f64,
    /// Time of the device.
    device: f64,
    /// From the host's beginning to the device's end where the device was idle.
    idle: f64,
    repeats: u64,
}

/// Neighbours that repeat as often make a block.
pub(crate) fn blocks(kernels: impl IntoIterator<Item = (Launched, u64)>) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    for (kernel, repeats) in kernels {
        if blocks.last().is_none_or(|block| block.repeats != repeats) {
            blocks.push(Block { repeats, ..Block::default() });
        }
        let Some(block) = blocks.last_mut() else { continue };
        block.host += kernel.host_us;
        block.device += kernel.device_us;
        block.idle = block.idle.max(block.host) + kernel.device_us;
    }
    blocks
}

impl Block {
    /// What all of them take, from an idle device on. A block leaves the device at the later of two ends: its own kernels
    /// behind those before, or as if the device had been idle.
    pub(crate) fn total(blocks: &[Self]) -> f64 {
        let (mut host, mut device) = (0.0, 0.0f64);
        for block in blocks {
            for _ in 0..block.repeats {
                device = (device + block.device).max(host + block.idle);
                host += block.host;
            }
        }
        device
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_take_what_their_kernels_take_one_by_one() {
        let kernel = |device_us: f64, host_us: f64| Launched { device_us, host_us };
        // A layer that waits for launches at first and hides them at its end.
        let layer = [kernel(1.0, 5.0), kernel(30.0, 5.0), kernel(2.0, 5.0), kernel(4.0, 5.0)];
        let (first, last) = (kernel(3.0, 5.0), kernel(50.0, 5.0));
        let all = [first].into_iter().chain(layer.into_iter().cycle().take(4 * 7)).chain([last]);
        let one_by_one: f64 = replay(all).iter().sum();
        let parts = [(first, 1)].into_iter().chain(layer.map(|kernel| (kernel, 7))).chain([(last, 1)]);
        assert!((Block::total(&blocks(parts)) - one_by_one).abs() < 1e-9);
    }

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
