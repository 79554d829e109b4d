//! Checks every number of the catalogue against what the lanes and clocks of the device allow.
//!
//! A published rate is lanes x operations per clock x clock; a rate that does not come out that way is a slip of the
//! pen, a sparse rate taken for a dense one, or a fact about the device that its file must explain.

use llm_perf_meter::hardware::Catalogue;
use types::{ComputeUnit, DType, Hardware, Peak};

/// Vendors print three digits, and clocks to the nearest 15 MHz.
const TOLERANCE: f64 = 0.02;

fn catalogue() -> Catalogue {
    Catalogue::built_in().unwrap()
}

fn is_geforce(device: &Hardware) -> bool {
    device.name.starts_with("GeForce")
}

/// Dense operations one SM does in one clock, a multiply-add being two, by compute capability.
fn operations_per_clock(device: &Hardware, peak: &Peak) -> f64 {
    let generation = device.compute_capability.as_deref().unwrap_or(&device.architecture);
    let count = match peak.unit {
        _ if device.vendor == "AMD" => instinct_operations(generation, peak),
        ComputeUnit::Vector => vector_operations(generation, peak.dtype),
        ComputeUnit::Matrix => matrix_operations(generation, peak.dtype),
    };
    let count = count.unwrap_or_else(|| panic!("{}: no {:?} unit for {} is known", device.id, peak.unit, peak.dtype));
    // GeForce parts halve matmuls that accumulate in FP32, FP4 excepted; the H20 has a quarter of Hopper's rate.
    let fp32_sums = peak.unit == ComputeUnit::Matrix && peak.accumulate == Some(DType::Fp32);
    let halved = is_geforce(device) && fp32_sums && peak.dtype != DType::Fp4;
    let quartered = device.id == "h20" && peak.unit == ComputeUnit::Matrix;
    f64::from(count) * if halved { 0.5 } else { 1.0 } * if quartered { 0.25 } else { 1.0 }
}

/// Of one compute unit, from the white papers of CDNA 2, 3 and 4.
fn instinct_operations(generation: &str, peak: &Peak) -> Option<u32> {
    Some(match (generation, peak.unit, peak.dtype) {
        ("CDNA 2", ComputeUnit::Vector, DType::Fp64 | DType::Fp32) => 128,
        ("CDNA 2", ComputeUnit::Matrix, DType::Fp64 | DType::Fp32) => 256,
        ("CDNA 2", ComputeUnit::Matrix, DType::Fp16 | DType::Bf16 | DType::Int8) => 1024,
        ("CDNA 3" | "CDNA 4", ComputeUnit::Vector, DType::Fp64) => 128,
        ("CDNA 3" | "CDNA 4", ComputeUnit::Vector, DType::Fp32) => 256,
        ("CDNA 3", ComputeUnit::Matrix, DType::Fp64 | DType::Fp32) => 256,
        ("CDNA 3", ComputeUnit::Matrix, DType::Tf32) => 1024,
        ("CDNA 3", ComputeUnit::Matrix, DType::Fp16 | DType::Bf16) => 2048,
        ("CDNA 3", ComputeUnit::Matrix, DType::Fp8 | DType::Int8) => 4096,
        ("CDNA 4", ComputeUnit::Matrix, DType::Fp64) => 128,
        ("CDNA 4", ComputeUnit::Matrix, DType::Fp32) => 256,
        ("CDNA 4", ComputeUnit::Matrix, DType::Fp16 | DType::Bf16) => 4096,
        ("CDNA 4", ComputeUnit::Matrix, DType::Fp8 | DType::Int8) => 8192,
        ("CDNA 4", ComputeUnit::Matrix, DType::Fp4) => 16384,
        _ => return None,
    })
}

fn vector_operations(generation: &str, dtype: DType) -> Option<u32> {
    Some(match (generation, dtype) {
        ("7.0" | "7.5" | "8.0", DType::Fp32) => 128,
        ("8.6" | "8.9" | "9.0" | "10.0" | "12.0", DType::Fp32) => 256,
        ("7.0" | "8.0", DType::Fp64) => 64,
        ("9.0" | "10.0", DType::Fp64) => 128,
        ("7.5" | "8.6" | "8.9" | "12.0", DType::Fp64) => 4,
        ("7.0" | "7.5" | "8.6" | "8.9" | "12.0", DType::Fp16) => 256,
        ("8.0" | "9.0", DType::Fp16) => 512,
        ("8.0" | "8.6" | "8.9" | "12.0", DType::Bf16) => 256,
        ("9.0", DType::Bf16) => 512,
        _ => return None,
    })
}

fn matrix_operations(generation: &str, dtype: DType) -> Option<u32> {
    let half = match generation {
        "7.0" | "7.5" | "8.6" | "8.9" | "12.0" => 1024,
        "8.0" => 2048,
        "9.0" => 4096,
        "10.0" => 8192,
        _ => return None,
    };
    Some(match dtype {
        DType::Fp64 if generation == "9.0" => 256,
        DType::Fp64 if generation == "8.0" || generation == "10.0" => 128,
        DType::Tf32 => half / 2,
        DType::Fp16 | DType::Bf16 => half,
        DType::Fp8 | DType::Int8 => half * 2,
        DType::Fp4 | DType::Int4 => half * 4,
        _ => return None,
    })
}

/// Clock the vendor assumed for a rate. Hopper's whitepaper has one of its own for matrix work below FP64.
fn assumed_clock(device: &Hardware, peak: &Peak) -> Option<f64> {
    let low_precision = peak.unit == ComputeUnit::Matrix && peak.dtype != DType::Fp64;
    match device.id.as_str() {
        "h100-sxm" | "h200" | "gh200-96gb" | "gh200-144gb" if low_precision => Some(1.83e9),
        "h100-pcie" if low_precision => Some(1.62e9),
        // Nor does one state the clock of these, which the rates imply to be 1.545 GHz.
        "h100-nvl" | "h200-nvl" if low_precision => Some(1.545e9),
        // The datasheet's rates imply 1.86 GHz, which no document states.
        "b200" if low_precision => None,
        _ => device.boost_clock_hz,
    }
}

#[test]
fn every_rate_follows_from_lanes_and_clock() {
    let mut checked = 0;
    for device in catalogue().devices() {
        for peak in &device.peaks {
            let Some(clock) = assumed_clock(device, peak) else { continue };
            let computed = f64::from(device.sm_count) * operations_per_clock(device, peak) * clock;
            let error = (peak.flops.get() / computed - 1.0).abs();
            assert!(error <= TOLERANCE, "{}: {peak:?} is {:.1}% off {computed:e}", device.id, error * 100.0);
            checked += 1;
        }
    }
    assert!(checked > 180, "only {checked} rates have a clock to be checked against");
}

#[test]
fn no_matrix_rate_is_a_sparse_one() {
    /// Top clock of other parts of the generation, for the H20 and the GB200, whose own is not published.
    const HOPPER_CLOCK: f64 = 1.98e9;
    const BLACKWELL_CLOCK: f64 = 2.1e9;
    for device in catalogue().devices() {
        let other = if device.architecture == "Blackwell" { BLACKWELL_CLOCK } else { HOPPER_CLOCK };
        let clock = device.boost_clock_hz.unwrap_or(other);
        for peak in device.peaks.iter().filter(|peak| peak.unit == ComputeUnit::Matrix) {
            let dense = f64::from(device.sm_count) * operations_per_clock(device, peak) * clock;
            assert!(peak.flops.get() <= dense * (1.0 + TOLERANCE), "{}: {peak:?} exceeds {dense:e}", device.id);
        }
    }
}

#[test]
fn a_rate_printed_with_sparsity_is_halved() {
    let mut halved = 0;
    for device in catalogue().devices() {
        for peak in &device.peaks {
            let source_note = device.sources[&peak.source].note.as_deref().unwrap_or_default();
            let printed_sparse =
                source_note.contains("dense is half") && peak.unit == ComputeUnit::Matrix && peak.dtype != DType::Fp64;
            match peak.note.as_deref().and_then(sparse_rate) {
                Some(printed) => {
                    let ratio = printed / peak.flops.get();
                    assert!((ratio - 2.0).abs() < 1e-9, "{}: {peak:?} is not half of {printed:e}", device.id);
                    halved += 1;
                }
                None => assert!(!printed_sparse, "{}: {peak:?} must be halved", device.id),
            }
        }
    }
    assert!(halved >= 16, "only {halved} rates come from a sparse one");
}

/// The rate in a note such as `1,979 TFLOPS with sparsity, halved`.
fn sparse_rate(note: &str) -> Option<f64> {
    let (printed, _) = note.split_once("OPS with sparsity, halved")?;
    let (number, unit) = printed.split_once(' ')?;
    let number: f64 = number.replace(',', "").parse().ok()?;
    Some(number * if unit.starts_with('P') { 1e15 } else { 1e12 })
}

#[test]
fn bandwidth_is_bus_width_times_memory_clock() {
    // Bus width in bits and clock in hertz as the drivers report them; data moves on both edges.
    let buses = [
        ("h200", 6016.0, 3.201e9),
        ("h100-pcie", 5120.0, 1.593e9),
        ("b200", 7680.0, 3.996e9),
        ("a100-sxm-80gb", 5120.0, 1.593e9),
        ("a100-sxm-40gb", 5120.0, 1.215e9),
        ("a100-pcie-80gb", 5120.0, 1.512e9),
        ("a100-pcie-40gb", 5120.0, 1.215e9),
        ("l40s", 384.0, 9.001e9),
        ("l4", 192.0, 6.251e9),
        ("t4", 256.0, 5.001e9),
        ("v100-sxm2-16gb", 4096.0, 0.877e9),
        ("v100-pcie-32gb", 4096.0, 0.877e9),
        ("v100s-pcie-32gb", 4096.0, 1.107e9),
        ("rtx-3090", 384.0, 9.75e9),
        ("rtx-4090", 384.0, 10.5e9),
        ("rtx-5090", 512.0, 14.001e9),
    ];
    let catalogue = catalogue();
    for (id, bits, clock) in buses {
        let computed = bits / 8.0 * clock * 2.0;
        let stated = catalogue.find(id).unwrap().bytes_per_second.get();
        assert!((stated / computed - 1.0).abs() <= TOLERANCE, "{id}: {stated:e} against {computed:e}");
    }
}

#[test]
fn geforce_halves_products_summed_in_fp32() {
    for device in catalogue().devices().filter(|device| is_geforce(device)) {
        let with = |accumulate| {
            let peak = device
                .peaks
                .iter()
                .find(|p| (p.dtype, p.unit, p.accumulate) == (DType::Fp16, ComputeUnit::Matrix, Some(accumulate)));
            peak.unwrap().flops
        };
        assert!((with(DType::Fp16) / with(DType::Fp32) - 2.0).abs() < 0.01, "{}", device.id);
        let default = device.peak(DType::Fp16, ComputeUnit::Matrix).unwrap();
        assert_eq!(default.flops, with(DType::Fp32), "the rate libraries reach is the halved one");
    }
}

#[test]
fn every_device_has_the_rates_a_roofline_needs() {
    for device in catalogue().devices() {
        for (dtype, unit) in [(DType::Fp16, ComputeUnit::Matrix), (DType::Fp32, ComputeUnit::Vector)] {
            assert!(device.peak(dtype, unit).is_some(), "{} has no {unit:?} rate for {dtype}", device.id);
        }
        let newer_than_turing = device.compute_capability.as_deref().is_none_or(|cc| cc != "7.0" && cc != "7.5");
        assert_eq!(device.peak(DType::Bf16, ComputeUnit::Matrix).is_some(), newer_than_turing, "{}", device.id);
    }
}

#[test]
fn the_drivers_names_of_common_devices_are_known() {
    let names = [
        ("NVIDIA H200", "h200"),
        ("NVIDIA GH200 480GB", "gh200-96gb"),
        ("NVIDIA GH200 144G HBM3e", "gh200-144gb"),
        ("NVIDIA A100-PG509-200", "a100-sxm-40gb"),
        ("AMD Instinct MI210", "mi210"),
        ("AMD Instinct MI250X", "mi250x"),
        ("AMD Instinct MI300X", "mi300x"),
        ("AMD Instinct MI300X VF", "mi300x"),
        ("AMD Instinct MI325X", "mi325x"),
        ("AMD Instinct MI355X", "mi355x"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("NVIDIA H100 PCIe", "h100-pcie"),
        ("NVIDIA H20", "h20"),
        ("NVIDIA B200", "b200"),
        ("NVIDIA GB200", "gb200"),
        ("NVIDIA H100 NVL", "h100-nvl"),
        ("NVIDIA H200 NVL", "h200-nvl"),
        ("NVIDIA A100-SXM4-40GB", "a100-sxm-40gb"),
        ("NVIDIA A100-SXM4-80GB", "a100-sxm-80gb"),
        ("NVIDIA A100-PCIE-40GB", "a100-pcie-40gb"),
        ("NVIDIA A100 80GB PCIe", "a100-pcie-80gb"),
        ("A100-SXM4-40GB", "a100-sxm-40gb"),
        ("NVIDIA A800-SXM4-80GB", "a800-sxm-80gb"),
        ("NVIDIA A800 80GB PCIe", "a800-pcie-80gb"),
        ("NVIDIA L40S", "l40s"),
        ("NVIDIA L4", "l4"),
        ("Tesla T4", "t4"),
        ("Tesla V100-SXM2-16GB", "v100-sxm2-16gb"),
        ("Tesla V100-SXM2-32GB", "v100-sxm2-32gb"),
        ("Tesla V100-PCIE-16GB", "v100-pcie-16gb"),
        ("Tesla V100-PCIE-32GB", "v100-pcie-32gb"),
        ("Tesla V100S-PCIE-32GB", "v100s-pcie-32gb"),
        ("NVIDIA GeForce RTX 3090", "rtx-3090"),
        ("GeForce RTX 3090", "rtx-3090"),
        ("NVIDIA GeForce RTX 4090", "rtx-4090"),
        ("NVIDIA GeForce RTX 5090", "rtx-5090"),
    ];
    let catalogue = catalogue();
    for (name, id) in names {
        assert_eq!(catalogue.find(name).unwrap().id, id);
    }
}
