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
    use candle_core::{Device, Tensor};

    use super::super::tests::numbers;
    use super::*;

    #[test]
    fn every_way_of_repeating_equals_the_tensor_librarys() {
        let shapes: [(&[usize], &[usize]); 5] = [
            (&[60, 30, 40], &[60, 30, 40]),
            (&[60, 30, 40], &[40]),
            (&[60, 30, 1], &[60, 1, 40]),
            (&[1, 30, 40], &[60, 1, 1]),
            (&[60, 30, 40], &[30, 1]),
        ];
        for (a_dims, b_dims) in shapes {
            let make = |dims: &[usize], seed: u32| {
                Tensor::from_vec(numbers(dims.iter().product(), seed), dims, &Device::Cpu).unwrap()
            };
            let (a, b) = (make(a_dims, 1), make(b_dims, 2));
            let dims = [60, 30, 40];
            let (wide_a, wide_b) = (a.broadcast_as(&dims).unwrap(), b.broadcast_as(&dims).unwrap());
            let (flat_a, flat_b) = (a.flatten_all().unwrap(), b.flatten_all().unwrap());
            let (flat_a, flat_b) = (flat_a.to_vec1::<f32>().unwrap(), flat_b.to_vec1::<f32>().unwrap());
            let view_a = View { data: &flat_a, dims: &dims, strides: wide_a.stride() };
            let view_b = View { data: &flat_b, dims: &dims, strides: wide_b.stride() };
            let flat = |tensor: Tensor| tensor.flatten_all().unwrap().to_vec1::<f32>().unwrap();
            assert_eq!(add(&dims, view_a, view_b), flat(a.broadcast_add(&b).unwrap()), "{a_dims:?} {b_dims:?}");
            assert_eq!(multiply(&dims, view_a, view_b), flat(a.broadcast_mul(&b).unwrap()), "{a_dims:?} {b_dims:?}");
        }
    }
}
