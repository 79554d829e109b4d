//! Few rows times many weight rows, as dot products: each weight is read from memory once, which is all that one token
//! can be limited by. Weights may be stored in half the bytes and are widened in registers.

use half::bf16;
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

/// Weight rows one thread takes at a time hold about this many elements: enough to be worth a hand-over.
const SHARE: usize = 1 << 16;
/// Rows and weight rows multiplied together; their sums fit the registers.
const TILE: [usize; 2] = [4, 4];
/// Weight rows a single row is multiplied with together.
const SINGLE: usize = 8;

/// How weights are stored.
pub(crate) trait Element: Copy + Send + Sync {
    /// Weights in each 32-bit lane.
    const PER_LANE: usize;
    /// What a register of them is loaded as.
    type Lanes<S: Simd>: Copy;

    /// Registers of a row, and the rest.
    fn split<S: Simd>(row: &[Self]) -> (&[Self::Lanes<S>], &[Self]);
    /// Weights `part`, `part + PER_LANE`, ... of a register.
    fn widen<S: Simd>(simd: S, lanes: Self::Lanes<S>, part: usize) -> S::f32s;
    /// One weight.
    fn to_f32(self) -> f32;
}

impl Element for f32 {
    const PER_LANE: usize = 1;
    type Lanes<S: Simd> = S::f32s;

    #[inline(always)]
    fn split<S: Simd>(row: &[Self]) -> (&[S::f32s], &[Self]) {
        S::as_simd_f32s(row)
    }

    #[inline(always)]
    fn widen<S: Simd>(_: S, lanes: S::f32s, _: usize) -> S::f32s {
        lanes
    }

    #[inline(always)]
    fn to_f32(self) -> f32 {
        self
    }
}

/// The upper half of a single-precision number is a bf16, so of two neighbours in a lane the second (on little-endian
/// machines) needs a mask and the first a shift.
impl Element for bf16 {
    const PER_LANE: usize = 2;
    type Lanes<S: Simd> = S::u32s;

    #[inline(always)]
    fn split<S: Simd>(row: &[Self]) -> (&[S::u32s], &[Self]) {
        // SAFETY: a bf16 is two bytes without padding in which every pattern is a number, and so is each half of a u32.
        let (before, pairs, _) = unsafe { row.align_to::<u32>() };
        if !before.is_empty() || cfg!(target_endian = "big") {
            return (&[], row);
        }
        let (registers, _) = S::as_simd_u32s(pairs);
        (registers, &row[registers.len() * S::U32_LANES * 2..])
    }

    #[inline(always)]
    fn widen<S: Simd>(simd: S, lanes: S::u32s, part: usize) -> S::f32s {
        let bits = if part == 0 {
            simd.wrapping_dyn_shl_u32s(lanes, simd.splat_u32s(16))
        } else {
            simd.and_u32s(lanes, simd.splat_u32s(0xFFFF_0000))
        };
        simd.transmute_f32s_u32s(bits)
    }

    #[inline(always)]
    fn to_f32(self) -> f32 {
        bf16::to_f32(self)
    }
}

/// `x [rows, inputs]` times `weight [outputs, inputs]` transposed, as `[rows, outputs]`.
pub(crate) fn dots<W: Element>(x: &[f32], weight: &[W], inputs: usize) -> Vec<f32> {
    let (rows, outputs) = (x.len() / inputs.max(1), weight.len() / inputs.max(1));
    if rows == 0 {
        return Vec::new();
    }
    let x = apart::<W>(x, inputs);
    // Output-major while threads share out weight rows; turned around in the end.
    let mut columns = vec![0f32; rows * outputs];
    let share = (SHARE / inputs.max(1)).next_multiple_of(SINGLE).max(SINGLE);
    let work = |(columns, weight): (&mut [f32], &[W])| {
        Arch::new().dispatch(Dots { x: &x, weight, inputs, columns, rows });
    };
    if outputs <= share {
        work((&mut columns, weight));
    } else {
        columns.par_chunks_mut(share * rows).zip(weight.par_chunks(share * inputs)).for_each(work);
    }
    if rows == 1 {
        return columns;
    }
    let mut y = vec![0f32; rows * outputs];
    for (output, column) in columns.chunks_exact(rows).enumerate() {
        for (row, value) in column.iter().enumerate() {
            y[row * outputs + output] = *value;
        }
    }
    y
}

/// Each row as the parts a lane holds: for pairs, all first ones, then all second ones. What is left of an odd row stays
/// last.
fn apart<W: Element>(x: &[f32], inputs: usize) -> Vec<f32> {
    let mut x = x.to_vec();
    if W::PER_LANE == 1 {
        return x;
    }
    let lanes = inputs / W::PER_LANE;
    let mut sorted = vec![0f32; lanes * W::PER_LANE];
    for row in x.chunks_exact_mut(inputs.max(1)) {
        for (index, value) in row[..sorted.len()].iter().enumerate() {
            sorted[index % W::PER_LANE * lanes + index / W::PER_LANE] = *value;
        }
        row[..sorted.len()].copy_from_slice(&sorted);
    }
    x
}

struct Dots<'a, W> {
    x: &'a [f32],
    weight: &'a [W],
    inputs: usize,
    columns: &'a mut [f32],
    rows: usize,
}

impl<W: Element> WithSimd for Dots<'_, W> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        if self.rows == 1 {
            self.tiles::<S, 1, SINGLE>(simd);
        } else {
            self.tiles::<S, { TILE[0] }, { TILE[1] }>(simd);
        }
    }
}

impl<W: Element> Dots<'_, W> {
    #[inline(always)]
    fn tiles<S: Simd, const R: usize, const C: usize>(self, simd: S) {
        let Self { x, weight, inputs, columns, rows } = self;
        let outputs = columns.len() / rows;
        for output in (0..outputs).step_by(C) {
            // Past the end, the last one is computed again and thrown away.
            let row_of = |at: usize| &weight[(output + at).min(outputs - 1) * inputs..][..inputs];
            let weights: [&[W]; C] = std::array::from_fn(row_of);
            for row in (0..rows).step_by(R) {
                let xs: [&[f32]; R] = std::array::from_fn(|at| &x[(row + at).min(rows - 1) * inputs..][..inputs]);
                let sums = tile(simd, xs, weights);
                for (r, sums) in sums.iter().enumerate().take(rows - row) {
                    for (c, sum) in sums.iter().enumerate().take(outputs - output) {
                        columns[(output + c) * rows + row + r] = *sum;
                    }
                }
            }
        }
    }
}

/// Asks for what will be read one tile later: rows are too short for the processor to foresee it.
#[inline(always)]
fn prefetch<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing and cannot fault, wherever it points.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// The dot product of every row with every weight row.
#[inline(always)]
fn tile<S: Simd, W: Element, const R: usize, const C: usize>(
    simd: S,
    xs: [&[f32]; R],
    weights: [&[W]; C],
) -> [[f32; C]; R] {
    let lanes = xs[0].len() / W::PER_LANE;
    let split = weights.map(|row| W::split::<S>(row));
    let registers = split.iter().map(|(registers, _)| registers.len()).min().unwrap_or(0);
    let weight_registers = split.map(|(lanes, _)| &lanes[..registers]);
    // The second part is there only where a lane holds two weights.
    let x_registers: [[&[S::f32s]; 2]; R] = xs.map(|x| {
        [0, 1].map(|part| {
            let part = if part < W::PER_LANE { part } else { 0 };
            &S::as_simd_f32s(&x[part * lanes..(part + 1) * lanes]).0[..registers]
        })
    });
    let ahead = C * size_of_val(weights[0]);
    let mut sums = [[simd.splat_f32s(0.0); C]; R];
    for index in 0..registers {
        let loaded = weight_registers.map(|registers| {
            prefetch(std::ptr::from_ref(&registers[index]).wrapping_byte_add(ahead));
            registers[index]
        });
        for part in 0..W::PER_LANE {
            let wide = loaded.map(|lanes| W::widen(simd, lanes, part));
            for (x, sums) in x_registers.iter().zip(&mut sums) {
                let x = x[part][index];
                for (sum, weight) in sums.iter_mut().zip(wide) {
                    *sum = simd.mul_add_e_f32s(x, weight, *sum);
                }
            }
        }
    }
    let done = registers * S::F32_LANES;
    let mut totals = [[0f32; C]; R];
    for (r, x) in xs.iter().enumerate() {
        for (c, weight) in weights.iter().enumerate() {
            let mut total = simd.reduce_sum_f32s(sums[r][c]);
            for (index, weight) in weight.iter().enumerate().skip(done * W::PER_LANE) {
                let paired = index < lanes * W::PER_LANE;
                let at = if paired { index % W::PER_LANE * lanes + index / W::PER_LANE } else { index };
                total += x[at] * weight.to_f32();
            }
            totals[r][c] = total;
        }
    }
    totals
}

#[cfg(test)]
mod tests {
    use super::super::tests::{numbers, worst};
    use super::*;

    fn by_definition(x: &[f32], weight: &[f32], inputs: usize) -> Vec<f32> {
        let dot = |x: &[f32], w: &[f32]| x.iter().zip(w).map(|(x, w)| f64::from(*x) * f64::from(*w)).sum::<f64>();
        x.chunks(inputs).flat_map(|x| weight.chunks(inputs).map(move |w| dot(x, w) as f32)).collect()
    }

    #[test]
    fn dots_equal_the_definition_for_whole_and_odd_sizes_in_both_types() {
        for (rows, inputs, outputs) in [(1, 640, 448), (1, 37, 9), (3, 64, 10), (5, 33, 301), (9, 1, 2), (2, 100, 1)] {
            let (x, weight) = (numbers(rows * inputs, 1), numbers(outputs * inputs, 2));
            let found = dots(&x, &weight, inputs);
            assert!(worst(&found, &by_definition(&x, &weight, inputs)) < 1e-4, "{rows} {inputs} {outputs}");
            let narrow: Vec<bf16> = weight.iter().map(|value| bf16::from_f32(*value)).collect();
            let rounded: Vec<f32> = narrow.iter().map(|value| value.to_f32()).collect();
            let found = dots(&x, &narrow, inputs);
            assert!(worst(&found, &by_definition(&x, &rounded, inputs)) < 1e-4, "{rows} {inputs} {outputs} bf16");
        }
    }

    #[test]
    fn weights_that_lie_between_lanes_are_still_multiplied() {
        let narrow: Vec<bf16> = numbers(2 * 64 + 1, 3).into_iter().map(bf16::from_f32).collect();
        let x = numbers(64, 4);
        let rounded: Vec<f32> = narrow[1..].iter().map(|value| value.to_f32()).collect();
        assert!(worst(&dots(&x, &narrow[1..], 64), &by_definition(&x, &rounded, 64)) < 1e-4);
    }
}
