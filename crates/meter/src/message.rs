//! What devices that share a model send to each other, and how long that takes.

use network::Module;
use types::{Bytes, BytesPerSecond, Seconds};

types::named! {
    /// How several devices exchange data.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Collective {
        /// Every device has a summand, and all get the sum.
        AllReduce = "all-reduce",
        /// Every device has a piece, and all get the whole.
        AllGather = "all-gather",
        /// Every device has a piece for every other.
        AllToAll = "all-to-all",
        /// One device hands on to the next.
        PointToPoint = "point-to-point",
    }
}

/// One exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Module that needs what is exchanged.
    pub module: Module,
    /// How.
    pub collective: Collective,
    /// Devices that take part.
    pub devices: u64,
    /// Size of the tensor: the sum, the gathered whole, or what one device has for all others.
    pub tensor: Bytes,
    /// Times it is done.
    pub count: u64,
}

impl Collective {
    /// Bytes each of `n` devices sends for a tensor of `N` bytes.
    ///
    /// The ring algorithms, which send the least any algorithm can. All-gather: in each of `n - 1` rounds a device hands
    /// on one piece of `N / n`, so `(n - 1) / n * N`. All-reduce is a reduce-scatter, which is the same with additions,
    /// and an all-gather: `2 (n - 1) / n * N`. All-to-all: of `N` bytes the `1 / n` meant for the device itself stay,
    /// `(n - 1) / n * N`. Point to point: all of it, `N`. One device sends nothing to itself.
    ///
    /// Sources: Patarasuk and Yuan 2009, Bandwidth optimal all-reduce algorithms for clusters of workstations; NVIDIA,
    /// nccl-tests PERFORMANCE.md, which calls the same factors bus bandwidth.
    pub fn sent(self, tensor: Bytes, n: u64) -> Bytes {
        let rounds = u128::from(n.saturating_sub(1));
        let whole = u128::from(tensor.get());
        let pieces = u128::from(n.max(1));
        let bytes = match self {
            Self::AllReduce => (2 * rounds * whole).div_ceil(pieces),
            Self::AllGather | Self::AllToAll => (rounds * whole).div_ceil(pieces),
            Self::PointToPoint if n > 1 => whole,
            Self::PointToPoint => 0,
        };
        Bytes::new(u64::try_from(bytes).unwrap_or(u64::MAX))
    }
}

impl Message {
    /// Bytes each device sends, all times together. Of a chain of devices each hands on once.
    pub fn sent(&self) -> Bytes {
        let times = if self.collective == Collective::PointToPoint { 1 } else { self.count };
        self.collective.sent(self.tensor, self.devices) * times
    }

    /// Shortest time over links that carry `both_ways` bytes per second, both directions together: a device sends while it
    /// receives, so it sends at half of that.
    pub fn time(&self, both_ways: BytesPerSecond) -> Seconds {
        let one_way = both_ways * 0.5;
        (self.collective.sent(self.tensor, self.devices) / one_way) * self.count as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEGA: Bytes = Bytes::new(1_000_000);

    #[test]
    fn a_ring_of_four_worked_by_hand() {
        // Four pieces of 250 kB: three rounds of reduce-scatter and three of all-gather, 250 kB each.
        assert_eq!(Collective::AllReduce.sent(MEGA, 4), Bytes::new(6 * 250_000));
        assert_eq!(Collective::AllGather.sent(MEGA, 4), Bytes::new(3 * 250_000));
        assert_eq!(Collective::AllToAll.sent(MEGA, 4), Bytes::new(3 * 250_000));
        assert_eq!(Collective::PointToPoint.sent(MEGA, 4), MEGA);
    }

    #[test]
    fn the_factors_are_those_that_nccl_tests_publishes() {
        // PERFORMANCE.md of nccl-tests: bus bandwidth = algorithm bandwidth * 2 (n - 1) / n for all-reduce, and
        // (n - 1) / n for all-gather and all-to-all. For n = 8: 1.75 and 0.875.
        assert_eq!(Collective::AllReduce.sent(MEGA, 8), Bytes::new(1_750_000));
        assert_eq!(Collective::AllGather.sent(MEGA, 8), Bytes::new(875_000));
        assert_eq!(Collective::AllToAll.sent(MEGA, 8), Bytes::new(875_000));
    }

    #[test]
    fn many_devices_send_twice_the_tensor_and_no_more() {
        let sent = |n| Collective::AllReduce.sent(MEGA, n).get();
        assert!((2..200).all(|n| sent(n) < sent(n + 1) && sent(n) < 2 * MEGA.get()));
        assert_eq!(sent(1_000_000), 1_999_998);
    }

    #[test]
    fn one_device_sends_nothing() {
        assert!(Collective::ALL.into_iter().all(|collective| collective.sent(MEGA, 1) == Bytes::ZERO));
    }

    #[test]
    fn a_link_of_900_gb_per_second_carries_450_each_way() {
        let blueprint = network::Builder::new("Root").finish();
        let message = Message {
            module: blueprint.root(),
            collective: Collective::AllGather,
            devices: 2,
            tensor: Bytes::new(900_000_000),
            count: 3,
        };
        // Half of the tensor, 450 MB, takes a millisecond.
        assert!((message.time(BytesPerSecond::new(900e9)).as_millis() - 3.0).abs() < 1e-12);
    }
}
