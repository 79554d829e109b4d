//! Two-dimensional convolution as a GEMM over the patches under the kernel.

use rayon::prelude::*;

use super::matmul::{Matrix, Output, Threads, multiply};

/// Sizes of a convolution.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Convolution {
    pub(crate) channels: usize,
    /// Rows and columns of an image.
    pub(crate) image: [usize; 2],
    /// Rows and columns of the kernel.
    pub(crate) kernel: [usize; 2],
    pub(crate) stride: usize,
    /// Zeros around the rows and around the columns of an image.
    pub(crate) padding: [usize; 2],
    pub(crate) outputs: usize,
    /// Rows and columns of the output.
    pub(crate) output: [usize; 2],
}

/// `x [N, C, Y, X]`, `weight [O, C, ky, kx]`, optional `bias [O]`.
pub(crate) fn conv2d(x: &[f32], weight: &[f32], bias: Option<&[f32]>, sizes: Convolution) -> Vec<f32> {
    let Convolution { channels, image, kernel, stride, padding, outputs, output } = sizes;
    let places = output[0] * output[1];
    let taps = channels * kernel[0] * kernel[1];
    let as_is = kernel == [1, 1] && stride == 1 && padding == [0, 0];
    let images = x.chunks_exact((channels * image[0] * image[1]).max(1));
    let mut y = vec![0f32; images.len() * outputs * places];
    let mut patches = vec![0f32; if as_is { 0 } else { taps * places }];
    for (x, y) in images.zip(y.chunks_exact_mut((outputs * places).max(1))) {
        if let Some(bias) = bias {
            y.chunks_exact_mut(places).zip(bias).for_each(|(row, bias)| row.fill(*bias));
        }
        let columns = if as_is {
            x
        } else {
            gather(x, sizes, &mut patches);
            &patches
        };
        let (weight, columns) = (Matrix::rows(weight, taps), Matrix::rows(columns, places));
        multiply([outputs, places, taps], 1.0, weight, columns, (y, places), Output::Add, Threads::All);
    }
    y
}

/// One row for each channel and place in the kernel: what it meets at every output, zero outside the image.
fn gather(x: &[f32], sizes: Convolution, patches: &mut [f32]) {
    let Convolution { image: [high, wide], kernel, stride, padding, output, .. } = sizes;
    let rows = patches.par_chunks_exact_mut((output[0] * output[1]).max(1)).enumerate();
    rows.for_each(|(tap, row)| {
        let (channel, down, across) = (tap / kernel[1] / kernel[0], tap / kernel[1] % kernel[0], tap % kernel[1]);
        let x = &x[channel * high * wide..][..high * wide];
        for (y, line) in row.chunks_exact_mut(output[1]).enumerate() {
            let from = (y * stride + down).checked_sub(padding[0]).filter(|from| *from < high);
            let Some(from) = from else {
                line.fill(0.0);
                continue;
            };
            let from = &x[from * wide..][..wide];
            for (column, value) in line.iter_mut().enumerate() {
                let at = (column * stride + across).wrapping_sub(padding[1]);
                *value = from.get(at).copied().unwrap_or(0.0);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::super::tests::{numbers, worst};
    use super::*;

    /// One output at a time.
    fn by_definition(x: &[f32], weight: &[f32], bias: &[f32], sizes: Convolution) -> Vec<f32> {
        let Convolution { channels, image: [high, wide], kernel: [down, across], stride, padding, outputs, output } =
            sizes;
        let mut y = Vec::new();
        for image in x.chunks(channels * high * wide) {
            for place in 0..outputs * output[0] * output[1] {
                let (out, row, column) =
                    (place / output[1] / output[0], place / output[1] % output[0], place % output[1]);
                let tap = |tap: usize| {
                    let (channel, dy, dx) = (tap / across / down, tap / across % down, tap % across);
                    let at = (row * stride + dy).checked_sub(padding[0]).filter(|at| *at < high);
                    let to = (column * stride + dx).checked_sub(padding[1]).filter(|to| *to < wide);
                    let Some((at, to)) = at.zip(to) else { return 0.0 };
                    image[(channel * high + at) * wide + to] * weight[out * channels * down * across + tap]
                };
                y.push(bias[out] + (0..channels * down * across).map(tap).sum::<f32>());
            }
        }
        y
    }

    #[test]
    fn every_kind_of_kernel_equals_the_definition() {
        for (kernel, stride, padding) in [
            ([4, 4], 4, [0, 0]),
            ([3, 3], 1, [1, 1]),
            ([3, 3], 2, [1, 1]),
            ([1, 1], 1, [0, 0]),
            ([1, 1], 2, [0, 0]),
            ([7, 7], 2, [3, 3]),
            ([1, 3], 2, [0, 1]),
        ] {
            let (n, channels, outputs, image) = (2, 3, 5, [8, 12]);
            let output = [0, 1].map(|side: usize| (image[side] + 2 * padding[side] - kernel[side]) / stride + 1);
            let sizes = Convolution { channels, image, kernel, stride, padding, outputs, output };
            let x = numbers(n * channels * image[0] * image[1], 1);
            let (weight, bias) = (numbers(outputs * channels * kernel[0] * kernel[1], 2), numbers(outputs, 3));
            let found = conv2d(&x, &weight, Some(&bias), sizes);
            let wanted = by_definition(&x, &weight, &bias, sizes);
            assert!(worst(&found, &wanted) < 1e-4, "kernel {kernel:?}, stride {stride}, padding {padding:?}");
        }
    }
}
