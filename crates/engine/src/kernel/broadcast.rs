//! Elementwise additions and multiplications of two tensors, one of which may repeat along dimensions.

use super::runs::{View, Walk};
use super::{filled, vectorised};

/// `a + b` over `dims`, to which both were expanded.
pub(crate) fn add(dims: &[usize], a: View<'_>, b: View<'_>) -> Vec<f32> {
    join(
        dims,
        a,
        b,
        #[inline(always)]
        |a, b| a + b,
    )
}

/// `a * b` over `dims`, to which both were expanded.
pub(crate) fn multiply(dims: &[usize], a: View<'_>, b: View<'_>) -> Vec<f32> {
    join(
        dims,
        a,
        b,
        #[inline(always)]
        |a, b| a * b,
    )
}

fn join(dims: &[usize], a: View<'_>, b: View<'_>, function: impl Fn(f32, f32) -> f32 + Sync) -> Vec<f32> {
    let walk = Walk::new(dims, [a.strides, b.strides]);
    filled(dims.iter().product(), 1, |start, piece| {
        vectorised(
            #[inline(always)]
            || {
                let mut to = 0;
                walk.visit(
                    start,
                    start + piece.len(),
                    #[inline(always)]
                    |[from_a, from_b], count| {
                        let y = &mut piece[to..to + count];
                        let (a, b) = (&a.data[from_a..], &b.data[from_b..]);
                        match walk.step() {
                            [1, 1] => y.iter_mut().zip(a).zip(b).for_each(|((y, a), b)| *y = function(*a, *b)),
                            [1, 0] => y.iter_mut().zip(a).for_each(|(y, a)| *y = function(*a, b[0])),
                            [0, 1] => y.iter_mut().zip(b).for_each(|(y, b)| *y = function(a[0], *b)),
                            [by_a, by_b] => {
                                for (index, y) in y.iter_mut().enumerate() {
                                    *y = function(a[index * by_a], b[index * by_b]);
                                }
                            }
                        }
                        to += count;
                    },
                );
            },
        );
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::numbers;
    use super::*;

    #[test]
    fn every_way_of_repeating_equals_the_definition() {
        let shapes: [(&[usize], &[usize]); 5] = [
            (&[60, 30, 40], &[60, 30, 40]),
            (&[60, 30, 40], &[40]),
            (&[60, 30, 1], &[60, 1, 40]),
            (&[1, 30, 40], &[60, 1, 1]),
            (&[60, 30, 40], &[30, 1]),
        ];
        let dims = [60, 30, 40];
        // Strides of a tensor that is repeated where a size is one or missing in front.
        let strides = |own: &[usize]| {
            let front = dims.len() - own.len();
            let stride = |dim: usize| if own[dim] == 1 { 0 } else { own[dim + 1..].iter().product() };
            (0..dims.len()).map(|dim| if dim < front { 0 } else { stride(dim - front) }).collect::<Vec<usize>>()
        };
        for (a_dims, b_dims) in shapes {
            let (a, b) = (numbers(a_dims.iter().product(), 1), numbers(b_dims.iter().product(), 2));
            let (a_strides, b_strides) = (strides(a_dims), strides(b_dims));
            let view_a = View { data: &a, dims: &dims, strides: &a_strides };
            let view_b = View { data: &b, dims: &dims, strides: &b_strides };
            let by = |function: fn(f32, f32) -> f32| -> Vec<f32> {
                let place = |index: usize| [index / 1200, index / 40 % 30, index % 40];
                let at =
                    |index: usize, strides: &[usize]| (0..3).map(|dim| place(index)[dim] * strides[dim]).sum::<usize>();
                (0..60 * 30 * 40).map(|index| function(a[at(index, &a_strides)], b[at(index, &b_strides)])).collect()
            };
            assert_eq!(add(&dims, view_a, view_b), by(|a, b| a + b), "{a_dims:?} {b_dims:?}");
            assert_eq!(multiply(&dims, view_a, view_b), by(|a, b| a * b), "{a_dims:?} {b_dims:?}");
        }
    }
}
