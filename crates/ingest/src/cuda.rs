//! Words of CUPTI that every recorder passes on: functions with versions, and numbers of copies.

use types::timeline::CopyDirection;

/// The name of a function without the version CUPTI puts behind runtime functions (`cudaLaunchKernel_v7000`). A driver
/// function's own version (`cuMemAlloc_v2`) has one digit and is part of its name.
pub(crate) fn function(name: &str) -> &str {
    match name.rsplit_once("_v") {
        Some((function, version))
            if (4..=5).contains(&version.len()) && version.bytes().all(|b| b.is_ascii_digit()) =>
        {
            function
        }
        _ => name,
    }
}

/// Direction and name of a copy by its kind, which is CUPTI's; the names are those nsys prints.
pub(crate) fn copy(kind: i64) -> (CopyDirection, &'static str) {
    use CopyDirection::{DeviceToDevice, DeviceToHost, HostToDevice, HostToHost, PeerToPeer, Unknown};
    match kind {
        1 => (HostToDevice, "[CUDA memcpy Host-to-Device]"),
        2 => (DeviceToHost, "[CUDA memcpy Device-to-Host]"),
        3 => (HostToDevice, "[CUDA memcpy Host-to-Array]"),
        4 => (DeviceToHost, "[CUDA memcpy Array-to-Host]"),
        5 => (DeviceToDevice, "[CUDA memcpy Array-to-Array]"),
        6 => (DeviceToDevice, "[CUDA memcpy Array-to-Device]"),
        7 => (DeviceToDevice, "[CUDA memcpy Device-to-Array]"),
        8 => (DeviceToDevice, "[CUDA memcpy Device-to-Device]"),
        9 => (HostToHost, "[CUDA memcpy Host-to-Host]"),
        10 => (PeerToPeer, "[CUDA memcpy Peer-to-Peer]"),
        11 => (HostToDevice, "[CUDA memcpy Unified Host-to-Device]"),
        12 => (DeviceToHost, "[CUDA memcpy Unified Device-to-Host]"),
        13 => (DeviceToDevice, "[CUDA memcpy Unified Device-to-Device]"),
        _ => (Unknown, "[CUDA memcpy Unknown]"),
    }
}

#[cfg(test)]
mod tests {
    use super::function;

    #[test]
    fn the_version_of_a_runtime_function_is_no_part_of_its_name() {
        assert_eq!(function("cudaLaunchKernel_v7000"), "cudaLaunchKernel");
        assert_eq!(function("cudaStreamIsCapturing_v10000"), "cudaStreamIsCapturing");
        assert_eq!(function("cudaLaunchKernelExC_v11060"), "cudaLaunchKernelExC");
        assert_eq!(function("cuMemAlloc_v2"), "cuMemAlloc_v2");
        assert_eq!(function("cuLaunchKernel"), "cuLaunchKernel");
        assert_eq!(function("odd_vabcd"), "odd_vabcd");
    }
}
