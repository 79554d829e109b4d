//! Matmuls over strided operands: the only caller of the GEMM library.

use gemm_common::Parallelism;
use gemm_f32::gemm::f32::get_gemm_fn;
use rayon::prelude::*;

/// A matrix, wherever its elements lie.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matrix<'a> {
    pub(crate) data: &'a [f32],
    /// Elements from one row to the next.
    pub(crate) row: usize,
    /// Elements from one column to the next.
    pub(crate) column: usize,
}

/// What a matmul does with what its output holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    Replace,
    Add,
}

/// How many threads a matmul may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Threads {
    /// The one that calls: the caller distributes several matmuls itself.
    One,
    All,
}

impl<'a> Matrix<'a> {
    /// Rows of `columns` elements, one behind the other.
    pub(crate) fn rows(data: &'a [f32], columns: usize) -> Self {
        Self { data, row: columns, column: 1 }
    }

    /// The same with rows and columns exchanged.
    pub(crate) fn transposed(self) -> Self {
        Self { row: self.column, column: self.row, ..self }
    }

    fn holds(&self, rows: usize, columns: usize) -> bool {
        rows == 0 || columns == 0 || (rows - 1) * self.row + (columns - 1) * self.column < self.data.len()
    }
}

/// `factor * a [m, k] * b [k, n]` into rows of `y` that start `stride` elements apart.
pub(crate) fn multiply(
    [m, n, k]: [usize; 3],
    factor: f32,
    a: Matrix<'_>,
    b: Matrix<'_>,
    (y, stride): (&mut [f32], usize),
    output: Output,
    threads: Threads,
) {
    assert!(a.holds(m, k) && b.holds(k, n), "operands of a matmul of {m} x {n} x {k} are too short");
    assert!(stride >= n && Matrix::rows(y, stride).holds(m, n), "the output of a matmul of {m} x {n} is too short");
    if m == 0 || n == 0 {
        return;
    }
    let parallelism = match threads {
        Threads::One => Parallelism::None,
        Threads::All => Parallelism::Rayon(rayon::current_num_threads()),
    };
    // The library's kernels write columns, so they are given all matrices transposed, and the operands in the other order.
    // SAFETY: every element the matmul reads or writes was checked above to lie within its slice, and the output, being
    // borrowed mutably, overlaps neither operand.
    unsafe {
        get_gemm_fn()(
            n,
            m,
            k,
            y.as_mut_ptr(),
            stride as isize,
            1,
            output == Output::Add,
            b.data.as_ptr(),
            b.row as isize,
            b.column as isize,
            a.data.as_ptr(),
            a.row as isize,
            a.column as isize,
            1.0,
            factor,
            false,
            false,
            false,
            parallelism,
        );
    }
}

/// Every `a [m, k]` times its `b [n, k]` transposed, of as many as there are.
pub(crate) fn batched([m, n, k]: [usize; 3], a: &[f32], b: &[f32]) -> Vec<f32> {
    let mut y = vec![0f32; a.len() / (m * k).max(1) * m * n];
    let all = y.par_chunks_mut((m * n).max(1)).zip(a.par_chunks((m * k).max(1))).zip(b.par_chunks((n * k).max(1)));
    all.for_each(|((y, a), b)| {
        let (a, b) = (Matrix::rows(a, k), Matrix::rows(b, k).transposed());
        multiply([m, n, k], 1.0, a, b, (y, n), Output::Replace, Threads::One);
    });
    y
}

#[cfg(test)]
mod tests {
    use super::super::tests::{numbers, worst};
    use super::*;

    #[test]
    fn strided_operands_multiply_by_the_definition() {
        let [m, n, k] = [5, 7, 9];
        let (a, b) = (numbers(m * k, 1), numbers(n * k, 2));
        let mut wanted = vec![0f32; m * n];
        for (index, wanted) in wanted.iter_mut().enumerate() {
            *wanted = 0.5 * (0..k).map(|at| a[index / n * k + at] * b[index % n * k + at]).sum::<f32>();
        }
        for threads in [Threads::One, Threads::All] {
            let mut y = vec![9f32; m * 10];
            let (a, b) = (Matrix::rows(&a, k), Matrix::rows(&b, k).transposed());
            multiply([m, n, k], 0.5, a, b, (&mut y, 10), Output::Replace, threads);
            let rows: Vec<f32> = y.chunks(10).flat_map(|row| row[..n].to_vec()).collect();
            assert!(worst(&rows, &wanted) < 1e-5);
            assert!(y.chunks(10).all(|row| row[n..] == [9.0; 3]), "the gap between rows is left alone");
            multiply([m, n, k], 0.5, a, b, (&mut y, 10), Output::Add, threads);
            let twice: Vec<f32> = wanted.iter().map(|value| 2.0 * value).collect();
            let rows: Vec<f32> = y.chunks(10).flat_map(|row| row[..n].to_vec()).collect();
            assert!(worst(&rows, &twice) < 1e-5);
        }
    }

    #[test]
    #[should_panic(expected = "too short")]
    fn operands_shorter_than_their_sizes_are_refused() {
        let mut y = [0f32; 4];
        let short = Matrix::rows(&[1.0; 3], 2);
        multiply([2, 2, 2], 1.0, short, short, (&mut y, 2), Output::Replace, Threads::One);
    }
}
