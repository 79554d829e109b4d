//! The time of an exchange between devices, from the datasheet's links.

use meter::{Collective, Message};
use types::Hardware;

use crate::estimator::{Basis, Estimate};

/// Share of a link's one-way bandwidth that large exchanges reach. NVIDIA's nccl-tests on eight H100 (NVLink, 450 GB/s one way)
/// report a bus bandwidth of 360 to 370 GB/s for large all-reduces.
const BANDWIDTH: f64 = 0.8;

/// Time of the smallest exchange, microseconds: NCCL's own model of its ring with the protocol for short messages (`baseLat` in
/// src/graph/tuning.cc).
const BASE_US: f64 = 6.6;

/// What every step of a ring adds to that, microseconds (`hwLat` there, NVLink).
const STEP_US: f64 = 0.6;

/// How far either way an exchange that nobody measured may be off.
const FACTOR: f64 = 2.0;

/// One exchange; nothing where the catalogue has no link, which the roofline refused before.
pub(crate) fn collective(message: &Message, hardware: &Hardware) -> Estimate {
    let others = message.devices.saturating_sub(1) as f64;
    let steps = match message.collective {
        Collective::AllReduce => 2.0 * others,
        Collective::AllGather | Collective::AllToAll => others,
        Collective::PointToPoint => others.min(1.0),
    };
    let latency = if steps > 0.0 { BASE_US + STEP_US * steps } else { 0.0 };
    let sent = message.collective.sent(message.tensor, message.devices).as_f64();
    let one_way = hardware.interconnect_bytes_per_second.map_or(f64::INFINITY, |link| link.get() / 2.0);
    let time = latency + sent / (BANDWIDTH * one_way) * 1e6;
    Estimate { microseconds: time, low: time / FACTOR, high: time * FACTOR, basis: Basis::Assumed }
}

#[cfg(test)]
mod tests {
    use meter::hardware::Catalogue;
    use types::Bytes;

    use super::*;

    fn time(collective: Collective, devices: u64, bytes: u64) -> f64 {
        let module = network::Builder::new("Root").finish().root();
        let message = Message { module, collective, devices, tensor: Bytes::new(bytes), count: 1 };
        super::collective(&message, Catalogue::built_in().unwrap().find("h200").unwrap()).microseconds
    }

    #[test]
    fn a_large_all_reduce_of_eight_worked_by_hand() {
        // 1 GB: each device sends 1.75 GB at 0.8 * 450 GB/s, 4,861 us; fourteen steps of 0.6 and the base of 6.6 add 15.
        let found = time(Collective::AllReduce, 8, 1_000_000_000);
        assert!((found - (4861.1 + 15.0)).abs() < 0.1, "{found}");
    }

    #[test]
    fn a_short_one_is_all_latency_and_grows_with_the_ring() {
        let two = time(Collective::AllReduce, 2, 8192);
        assert!((two - (6.6 + 1.2 + 0.0228)).abs() < 0.01, "{two}");
        assert!(time(Collective::AllReduce, 8, 8192) > two);
        assert!(time(Collective::AllGather, 8, 8192) < time(Collective::AllReduce, 8, 8192));
    }

    #[test]
    fn one_device_waits_for_nobody() {
        assert_eq!(time(Collective::AllReduce, 1, 1 << 20), 0.0);
    }
}
