//! Square GEMMs, run as the engine runs them: rows one after another, the result not read before it is written,
//! threads of rayon.

use gemm_common::Parallelism;
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

/// A GEMM of the library: rows and columns of the result and the length of a dot product; each matrix with its column and row
/// strides, the result first; whether the result is read; factors of the result and of the product; whether matrices are
/// conjugated, which means nothing here; threads.
type Kernel<T> = unsafe fn(
    usize,
    usize,
    usize,
    *mut T,
    isize,
    isize,
    bool,
    *const T,
    isize,
    isize,
    *const T,
    isize,
    isize,
    T,
    T,
    bool,
    bool,
    bool,
    Parallelism,
);

/// An element the kernels take as it is.
pub(super) trait Element: Copy + Send + Sync + 'static {
    const ZERO: Self;
    const ONE: Self;
    const POISON: Self;
    /// What happens to the element inside the kernel, for the record.
    const NOTE: &'static str;
    fn of(number: i8) -> Self;
    fn value(self) -> f64;
    fn kernel() -> Kernel<Self>;
}

macro_rules! element {
    ($type:ty, $zero:expr, $one:expr, $kernel:path, $note:literal) => {
        impl Element for $type {
            const ZERO: Self = $zero;
            const ONE: Self = $one;
            const POISON: Self = <$type>::NAN;
            const NOTE: &'static str = $note;
            fn of(number: i8) -> Self {
                number.into()
            }
            fn value(self) -> f64 {
                self.into()
            }
            fn kernel() -> Kernel<Self> {
                $kernel()
            }
        }
    };
}

element!(f32, 0.0, 1.0, gemm_f32::gemm::f32::get_gemm_fn, "");
element!(f64, 0.0, 1.0, gemm_f64::gemm::f64::get_gemm_fn, "");
element!(f16, f16::ZERO, f16::ONE, gemm_f16::gemm::f16::get_gemm_fn, ", widened to fp32 inside the kernel");

/// A GEMM of elements the kernels take as they are.
pub(super) struct NativeGemm<T> {
    side: usize,
    left: Vec<T>,
    right: Vec<T>,
    result: Vec<T>,
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

impl<T: Element> Gemm for NativeGemm<T> {
    fn new(side: usize) -> Self {
        Self {
            side,
            left: fill(side, |row, column| T::of(left_number(row, column))),
            right: fill(side, |row, column| T::of(right_number(row, column))),
            result: vec![T::ZERO; side * side],
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
            T::kernel()(
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
                T::ZERO,
                T::ONE,
                false,
                false,
                false,
                parallelism,
            );
        }
    }

    fn poison(&mut self) {
        for (row, column) in checked_places(self.side) {
            self.result[row * self.side + column] = T::POISON;
        }
    }

    fn check(&self) -> Result<(), String> {
        check(self.side, |place| self.result[place].value())
    }

    fn method(side: usize) -> String {
        format!("gemm {side}x{side}x{side}{}", T::NOTE)
    }
}

/// A GEMM of elements the kernels do not know: both operands are widened to fp32 and the result narrowed on every
/// call, which is how such a tensor has to be multiplied.
pub(super) struct WidenedGemm<T> {
    left: Vec<T>,
    right: Vec<T>,
    wide: NativeGemm<f32>,
    result: Vec<T>,
}

impl Gemm for WidenedGemm<bf16> {
    fn new(side: usize) -> Self {
        Self {
            left: fill(side, |row, column| bf16::from(left_number(row, column))),
            right: fill(side, |row, column| bf16::from(right_number(row, column))),
            wide: NativeGemm::new(side),
            result: vec![bf16::ZERO; side * side],
        }
    }

    fn run(&mut self, threads: usize) {
        let widen = |wide: &mut [f32], narrow: &[bf16]| {
            wide.iter_mut().zip(narrow).for_each(|(wide, narrow)| *wide = narrow.to_f32());
        };
        widen(&mut self.wide.left, &self.left);
        widen(&mut self.wide.right, &self.right);
        self.wide.run(threads);
        self.result.iter_mut().zip(&self.wide.result).for_each(|(narrow, wide)| *narrow = bf16::from_f32(*wide));
    }

    fn poison(&mut self) {
        for (row, column) in checked_places(self.wide.side) {
            self.result[row * self.wide.side + column] = bf16::NAN;
        }
        self.wide.poison();
    }

    fn check(&self) -> Result<(), String> {
        check(self.wide.side, |place| self.result[place].into())
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
            right_after_a_run::<NativeGemm<f32>>(side);
            right_after_a_run::<NativeGemm<f64>>(side);
            right_after_a_run::<NativeGemm<f16>>(side);
            right_after_a_run::<WidenedGemm<bf16>>(side);
        }
    }

    #[test]
    fn a_wrong_result_is_named() {
        let mut gemm = NativeGemm::<f32>::new(4);
        gemm.run(1);
        gemm.result[0] += 1.0;
        // 1*1 + -2*2 + 3*2 + 0*-1 = 3, by the pattern at strides 1 and 5.
        assert_eq!(gemm.check().unwrap_err(), "element 0,0 of a 4x4 result is 4; expected 3");
    }
}
