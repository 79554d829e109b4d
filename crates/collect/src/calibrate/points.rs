//! Times of single operations on this processor: GEMMs of the shapes models have, and a ramp of elementwise work.
//!
//! A table in the form that measured points of any device have; what is fitted to it is decided elsewhere.

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::{Duration, Instant};

use gemm_common::Parallelism;
use gemm_f32::gemm::f32::get_gemm_fn;
use types::UserError;

use super::CalibrationSettings;
use crate::error::not_calibrated;

/// Rows of the activations: one token, and more.
const ROWS: [usize; 6] = [1, 3, 16, 64, 200, 512];

/// Widths of weights.
const WIDTHS: [usize; 4] = [64, 192, 512, 1280];

/// Elements of the ramp, as powers of two.
const RAMP: std::ops::RangeInclusive<u32> = 8..=22;

/// Repetitions of one shape: at least and at most, and the time after which no further one starts.
const TIMES: [usize; 2] = [3, 20];
const BUDGET: Duration = Duration::from_millis(3);

/// Measures; the table has the columns `op,dtype,m,n,k,bytes,microseconds`.
pub fn points(settings: &CalibrationSettings, progress: &mut dyn FnMut(&str)) -> Result<String, UserError> {
    let threads = settings.threads.max(1);
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|error| not_calibrated("threads", &error.to_string()))?;
    progress("measuring: GEMMs of many shapes");
    let mut table = "op,dtype,m,n,k,bytes,microseconds\n".to_owned();
    for m in ROWS {
        for n in WIDTHS {
            for k in WIDTHS {
                let time = pool.install(|| linear(m, n, k, threads));
                let _ = writeln!(table, "gemm,fp32,{m},{n},{k},,{time:.4}");
            }
        }
    }
    for power in RAMP {
        let elements = 1usize << power;
        let (from, mut to) = (vec![1.0f32; elements], vec![0.0f32; elements]);
        let time = shortest(|| {
            to.iter_mut().zip(black_box(&from)).for_each(|(to, from)| *to = from + 1.0);
            black_box(&mut to);
        });
        let _ = writeln!(table, "elementwise,fp32,,,,{},{time:.4}", 8 * elements);
    }
    Ok(table)
}

/// Microseconds of `x [m, k]` times the transpose of `weight [n, k]`, as a linear layer runs it.
fn linear(m: usize, n: usize, k: usize, threads: usize) -> f64 {
    let (x, weight, mut result) = (vec![1.0f32; m * k], vec![1.0f32; n * k], vec![0.0f32; m * n]);
    let parallelism = if threads > 1 { Parallelism::Rayon(threads) } else { Parallelism::None };
    let stride = |length: usize| isize::try_from(length).unwrap_or(isize::MAX);
    shortest(|| {
        // The kernels write columns, so what is computed is the transpose: the weights times the transpose of x.
        // SAFETY: the result has m x n elements in rows of n, the weights n x k in rows of k and x m x k in rows of k;
        // transposed, rows are columns. The result overlaps neither operand.
        unsafe {
            get_gemm_fn()(
                n,
                m,
                k,
                result.as_mut_ptr(),
                stride(n),
                1,
                false,
                weight.as_ptr(),
                1,
                stride(k),
                x.as_ptr(),
                stride(k),
                1,
                0.0,
                1.0,
                false,
                false,
                false,
                parallelism,
            );
        }
        black_box(&mut result);
    })
}

/// The shortest of several runs, in microseconds; the first, which touches the memory, does not count.
fn shortest(mut work: impl FnMut()) -> f64 {
    work();
    let started = Instant::now();
    let mut best = Duration::MAX;
    for turn in 0..TIMES[1] {
        if turn >= TIMES[0] && started.elapsed() > BUDGET {
            break;
        }
        let begun = Instant::now();
        work();
        best = best.min(begun.elapsed());
    }
    // A clock that cannot see a run still saw that it took some time.
    best.as_secs_f64().max(1e-9) * 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_has_a_time() {
        let table = points(&CalibrationSettings { threads: 1, ..CalibrationSettings::default() }, &mut |_| {}).unwrap();
        let rows: Vec<&str> = table.lines().skip(1).collect();
        assert_eq!(rows.len(), ROWS.len() * WIDTHS.len() * WIDTHS.len() + RAMP.count());
        let time = |row: &&str| row.rsplit(',').next().unwrap().parse::<f64>().unwrap();
        assert!(rows.iter().map(time).all(|time| time > 0.0));
    }
}
