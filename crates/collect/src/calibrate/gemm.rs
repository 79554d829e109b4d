//! Square GEMMs, run as the engine runs them: rows one after another, the result not read before it is written,
//! threads of rayon.

use gemm_common::Parallelism;
use gemm_f32::gemm::f32::get_gemm_fn;
use half::{bf16, f16};

/// Whole numbers from -3 to 3, in an order without a short period. Their products and sums are exact in every element
/// type that is measured, so a result can be compared with one computed in whole numbers.
const PATTERN: [i8; 11] = [1, -2, 3, 0, -1, 2, -3, 1, 1, -1, 2];

/// A GEMM that can be repeated and checked.
pub(super) trait Gemm {
    /// Matrices of that side, filled.
    fn new(side: usize) -> Self;

    /// Multiplies.
    fn run(&mut self, threads: usize);

    /// Destroys the results that will be checked, so that a run that does nothing is found out.
    fn poison(&mut self);

    /// Compares some results with what they must be.
    fn check(&self) -> Result<(), String>;

    /// What was multiplied, for the record.
    fn method(side: usize) -> String;
}

/// A GEMM of single precision, which the kernels take as it is.
pub(super) struct SingleGemm {
    side: usize,
    left: Vec<f32>,
    right: Vec<f32>,
    result: Vec<f32>,
}

/// The number at one place of the left and of the right matrix; different strides, so that the two are not each other's
/// transpose.
fn left_number(row: usize, column: usize) -> i8 {
    PATTERN[(row * 7 + column) % PATTERN.len()]
}

fn right_number(row: usize, column: usize) -> i8 {
    PATTERN[(row * 5 + column * 3) % PATTERN.len()]
}

fn fill<T>(side: usize, element: impl Fn(usize, usize) -> T) -> Vec<T> {
    (0..side * side).map(|place| element(place / side, place % side)).collect()
}

/// Places that are checked: corners, which the edge kernels write, and the middle.
fn checked_places(side: usize) -> [(usize, usize); 5] {
    let last = side - 1;
    [(0, 0), (0, last), (last, 0), (last, last), (side / 2, side / 2)]
}

/// A share of the sum of all magnitudes that went into an element. Wide enough for half precision, whose partial sums are
/// rounded to eleven bits once per block, and far from what any wrong kernel would give.
const TOLERANCE: f64 = 1.0 / 128.0;

fn check(side: usize, found: impl Fn(usize) -> f64) -> Result<(), String> {
    for (row, column) in checked_places(side) {
        let products =
            || (0..side).map(|inner| i64::from(left_number(row, inner)) * i64::from(right_number(inner, column)));
        let expected = products().sum::<i64>() as f64;
        let magnitude = products().map(i64::abs).sum::<i64>() as f64;
        let found = found(row * side + column);
        let error = (found - expected).abs();
        if error.is_nan() || error > TOLERANCE * magnitude {
            return Err(format!("element {row},{column} of a {side}x{side} result is {found}; expected {expected}"));
        }
    }
    Ok(())
}

impl Gemm for SingleGemm {
    fn new(side: usize) -> Self {
        Self {
            side,
            left: fill(side, |row, column| left_number(row, column).into()),
            right: fill(side, |row, column| right_number(row, column).into()),
            result: vec![0.0; side * side],
        }
    }

    fn run(&mut self, threads: usize) {
        let side = self.side;
        let rows = side as isize;
        let parallelism = if threads > 1 { Parallelism::Rayon(threads) } else { Parallelism::None };
        // The kernels write columns, so they are given all matrices transposed, and the operands in the other order.
        // SAFETY: each matrix has side x side elements in rows of `side`, which transposed is what the sizes (side, side,
        // side), column strides `side` and row strides 1 describe; the result overlaps neither operand.
        unsafe {
            get_gemm_fn()(
                side,
                side,
                side,
                self.result.as_mut_ptr(),
                rows,
                1,
                false,
                self.right.as_ptr(),
                rows,
                1,
                self.left.as_ptr(),
                rows,
                1,
                0.0,
                1.0,
                false,
                false,
                false,
                parallelism,
            );
        }
    }

    fn poison(&mut self) {
        for (row, column) in checked_places(self.side) {
            self.result[row * self.side + column] = f32::NAN;
        }
    }

    fn check(&self) -> Result<(), String> {
        check(self.side, |place| self.result[place].into())
    }

    fn method(side: usize) -> String {
        format!("gemm {side}x{side}x{side}")
    }
}

/// An element of half the bytes.
pub(super) trait Half: Copy + Into<f32> {
    fn narrow(value: f32) -> Self;
}

impl Half for f16 {
    fn narrow(value: f32) -> Self {
        Self::from_f32(value)
    }
}

impl Half for bf16 {
    fn narrow(value: f32) -> Self {
        Self::from_f32(value)
    }
}

/// A GEMM of elements that are multiplied in single precision: both operands are widened and the result narrowed on every call,
/// which is how such a tensor has to be multiplied.
pub(super) struct WidenedGemm<T> {
    left: Vec<T>,
    right: Vec<T>,
    wide: SingleGemm,
    result: Vec<T>,
}

impl<T: Half> Gemm for WidenedGemm<T> {
    fn new(side: usize) -> Self {
        let wide = SingleGemm::new(side);
        let narrow = |numbers: &[f32]| numbers.iter().map(|number| T::narrow(*number)).collect();
        Self { left: narrow(&wide.left), right: narrow(&wide.right), result: narrow(&wide.result), wide }
    }

    fn run(&mut self, threads: usize) {
        let widen = |wide: &mut [f32], narrow: &[T]| {
            wide.iter_mut().zip(narrow).for_each(|(wide, narrow)| *wide = (*narrow).into());
        };
        widen(&mut self.wide.left, &self.left);
        widen(&mut self.wide.right, &self.right);
        self.wide.run(threads);
        self.result.iter_mut().zip(&self.wide.result).for_each(|(narrow, wide)| *narrow = T::narrow(*wide));
    }

    fn poison(&mut self) {
        for (row, column) in checked_places(self.wide.side) {
            self.result[row * self.wide.side + column] = T::narrow(f32::NAN);
        }
        self.wide.poison();
    }

    fn check(&self) -> Result<(), String> {
        check(self.wide.side, |place| f64::from(self.result[place].into()))
    }

    fn method(side: usize) -> String {
        format!("gemm {side}x{side}x{side} in fp32, with operands widened and the result narrowed on every call")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn right_after_a_run<P: Gemm>(side: usize) {
        for threads in [1, 2] {
            let mut gemm = P::new(side);
            gemm.poison();
            assert!(gemm.check().is_err(), "what was not computed is found out");
            gemm.run(threads);
            assert_eq!(gemm.check(), Ok(()), "{} with {threads} threads", P::method(side));
        }
    }

    #[test]
    fn every_element_type_multiplies_right() {
        for side in [1, 17, 64] {
            right_after_a_run::<SingleGemm>(side);
            right_after_a_run::<WidenedGemm<f16>>(side);
            right_after_a_run::<WidenedGemm<bf16>>(side);
        }
    }

    #[test]
    fn a_wrong_result_is_named() {
        let mut gemm = SingleGemm::new(4);
        gemm.run(1);
        gemm.result[0] += 1.0;
        // 1*1 + -2*2 + 3*2 + 0*-1 = 3, by the pattern at strides 1 and 5.
        assert_eq!(gemm.check().unwrap_err(), "element 0,0 of a 4x4 result is 4; expected 3");
    }
}
