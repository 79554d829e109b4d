//! Operators that a run recorded with their shapes, as measured points.
//!
//! Only operators whose shapes say all that their time depends on: GEMMs, attention of one position over a cache, means of rows
//! and sums of whole tensors. A prompt's attention is left out, because shapes do not say whether it was causal.

use types::{CalibratedGroup, DType, DeviceCalibration, Hardware, ShapeGroup};

use crate::points::impossible;
use crate::{Family, MeasuredPoint, OpShape};

/// The points among `operators`, each the mean of its calls, and how many of them cannot be: those are left out.
pub fn points_of_operators(operators: &[ShapeGroup], hardware: &Hardware) -> (Vec<MeasuredPoint>, u64) {
    let mut refused = 0;
    let points = operators.iter().filter_map(|operator| {
        let time = operator.device_ns.filter(|time| time.get() > 0)?;
        let microseconds = time.get() as f64 / 1e3 / operator.calls.max(1) as f64;
        let point = MeasuredPoint { shape: shape(operator)?, microseconds };
        match impossible(&point.shape, microseconds, hardware) {
            Ok(None) => Some(point),
            _ => {
                refused += 1;
                None
            }
        }
    });
    let points = points.collect();
    (points, refused)
}

/// The points of a calibration.
pub fn measured_points(calibration: &DeviceCalibration) -> Vec<MeasuredPoint> {
    calibration.groups.iter().flat_map(rows).collect()
}

/// Keys of the shapes that runs recorded, [`OpShape::key`].
pub fn run_keys(calibration: &DeviceCalibration) -> Vec<Vec<u64>> {
    let of = |group: &CalibratedGroup| {
        let rows = rows(group);
        let places = group.run_points.iter().filter_map(|place| usize::try_from(*place).ok());
        places.filter_map(|place| rows.get(place).map(|point| point.shape.key())).collect::<Vec<_>>()
    };
    calibration.groups.iter().flat_map(of).collect()
}

/// Places of the points of `group` whose key is one of those.
pub fn places(group: &CalibratedGroup, is_one: impl Fn(&Vec<u64>) -> bool) -> Vec<u64> {
    let rows = rows(group);
    let places = rows.iter().enumerate().filter(|(_, point)| is_one(&point.shape.key()));
    places.map(|(place, _)| place as u64).collect()
}

fn rows(group: &CalibratedGroup) -> Vec<MeasuredPoint> {
    let Some(family) = Family::find(&group.op) else { return Vec::new() };
    let point = |row: &Vec<f64>| {
        let (time, sizes) = row.split_last()?;
        let shape = OpShape { family, dtype: group.dtype, sizes: sizes.to_vec() };
        (sizes.len() == family.columns().len()).then_some(MeasuredPoint { shape, microseconds: *time })
    };
    group.points.iter().filter_map(point).collect()
}

fn shape(operator: &ShapeGroup) -> Option<OpShape> {
    let dtype = operator.dtype?;
    let shapes: Vec<&[u64]> = operator.shapes.iter().map(Vec::as_slice).filter(|shape| !shape.is_empty()).collect();
    let half = matches!(dtype, DType::Bf16 | DType::Fp16);
    match (operator.name.as_str(), shapes.as_slice()) {
        ("aten::mm", [a, b]) | ("aten::addmm", [_, a, b]) if half => match (*a, *b) {
            ([m, k], [rows, n]) if k == rows => Some(OpShape::gemm(dtype, [*m, *n, *k])),
            _ => None,
        },
        ("aten::_cudnn_attention_forward", [q, k, _]) if half => match (*q, *k) {
            ([batch, heads, 1, width], [_, kv_heads, keys, _]) => {
                Some(generation(dtype, [*batch, *keys, *heads, *kv_heads, *width]))
            }
            _ => None,
        },
        // The same with positions before heads.
        ("aten::_flash_attention_forward", [q, k, _]) if half => match (*q, *k) {
            ([batch, 1, heads, width], [_, keys, kv_heads, _]) => {
                Some(generation(dtype, [*batch, *keys, *heads, *kv_heads, *width]))
            }
            _ => None,
        },
        ("aten::mean", [x]) if dtype == DType::Fp32 => {
            let width = *x.last()?;
            let rows = x.iter().product::<u64>() / width.max(1);
            Some(OpShape::rows(Family::Reduce, rows as f64, width as f64))
        }
        // Four dimensions are heads, which may lie transposed.
        ("aten::add" | "aten::mul", [a, b]) if a == b && a.len() <= 3 => {
            let elements = a.iter().product::<u64>() as f64;
            Some(OpShape::elementwise(dtype, 3.0 * elements * dtype.bits() as f64 / 8.0))
        }
        _ => None,
    }
}

fn generation(dtype: DType, sizes: [u64; 5]) -> OpShape {
    let sizes = sizes.map(|size| size as f64).into_iter().chain([dtype.bits() as f64, 0.0]);
    OpShape { family: Family::GenerationAttention, dtype, sizes: sizes.collect() }
}

#[cfg(test)]
mod tests {
    use meter::hardware::Catalogue;
    use types::{Flops, Nanos};

    use super::*;

    fn operator(name: &str, shapes: &[&[u64]], dtype: DType, calls: u64, device_ns: i64) -> ShapeGroup {
        ShapeGroup {
            name: name.into(),
            shapes: shapes.iter().map(|shape| shape.to_vec()).collect(),
            calls,
            total_ns: Nanos::new(device_ns),
            bytes_allocated: None,
            flops_matrix: Flops::new(0),
            flops_per_second: None,
            device_ns: Some(Nanos::new(device_ns)),
            dtype: Some(dtype),
            bytes: None,
            bytes_per_second: None,
            roofline_ns: None,
            bound: None,
            roofline_share: None,
        }
    }

    fn read(operators: &[ShapeGroup]) -> (Vec<MeasuredPoint>, u64) {
        points_of_operators(operators, Catalogue::built_in().unwrap().find("h200").unwrap())
    }

    #[test]
    fn operators_of_a_llama_step_are_points_with_the_mean_of_their_calls() {
        let recorded = [
            operator("aten::mm", &[&[1, 4096], &[4096, 14336]], DType::Bf16, 240, 7_631_405),
            operator("aten::addmm", &[&[2304], &[4900, 768], &[768, 2304], &[], &[]], DType::Bf16, 16, 800_000),
            operator(
                "aten::_cudnn_attention_forward",
                &[&[1, 32, 1, 128], &[1, 8, 526, 128], &[1, 8, 526, 128]],
                DType::Bf16,
                8,
                59_616,
            ),
            operator("aten::mean", &[&[1, 512, 4096]], DType::Fp32, 17, 159_233),
        ];
        let (points, refused) = read(&recorded);
        assert_eq!((points.len(), refused), (4, 0));
        assert_eq!(points[0].shape, OpShape::gemm(DType::Bf16, [1, 14336, 4096]));
        assert!((points[0].microseconds - 31.797).abs() < 0.001);
        assert_eq!(points[1].shape, OpShape::gemm(DType::Bf16, [4900, 2304, 768]));
        assert_eq!(points[2].shape.sizes, [1.0, 526.0, 32.0, 8.0, 128.0, 16.0, 0.0]);
        assert_eq!(points[3].shape.sizes, [512.0, 4096.0]);
    }

    #[test]
    fn what_shapes_do_not_decide_is_left_out() {
        let recorded = [
            operator(
                "aten::_cudnn_attention_forward",
                &[&[1, 32, 512, 128], &[1, 8, 512, 128], &[1, 8, 512, 128]],
                DType::Bf16,
                8,
                100_194,
            ),
            operator("aten::mm", &[&[1, 1280], &[1280, 64]], DType::Fp32, 88, 330_000),
            operator("aten::mul", &[&[1, 32, 1, 128], &[1, 1, 1, 128]], DType::Bf16, 240, 525_382),
            operator("aten::topk", &[&[1, 64]], DType::Fp32, 1, 4_000),
        ];
        assert_eq!(read(&recorded), (vec![], 0));
    }

    #[test]
    fn a_rate_above_the_peak_is_counted_and_left_out() {
        let recorded = [operator("aten::mm", &[&[8192, 8192], &[8192, 8192]], DType::Bf16, 1, 1_000)];
        assert_eq!(read(&recorded), (vec![], 1));
    }
}
