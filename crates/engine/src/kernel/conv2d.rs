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
    pub(crate) padding: usize,
    pub(crate) outputs: usize,
    /// Rows and columns of the output.
    pub(crate) output: [usize; 2],
}

/// `x [N, C, Y, X]`, `weight [O, C, ky, kx]`, optional `bias [O]`.
pub(crate) fn conv2d(x: &[f32], weight: &[f32], bias: Option<&[f32]>, sizes: Convolution) -> Vec<f32> {
    let Convolution { channels, image, kernel, stride, padding, outputs, output } = sizes;
    let places = output[0] * output[1];
    let taps = channels * kernel[0] * kernel[1];
    let as_is = kernel == [1, 1] && stride == 1 && padding == 0;
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
            let from = (y * stride + down).checked_sub(padding).filter(|from| *from < high);
            let Some(from) = from else {
                line.fill(0.0);
                continue;
            };
            let from = &x[from * wide..][..wide];
            for (column, value) in line.iter_mut().enumerate() {
                let at = (column * stride + across).wrapping_sub(padding);
                *value = from.get(at).copied().unwrap_or(0.0);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Tensor};

    use super::super::tests::{numbers, worst};
    use super::*;

    #[test]
    fn every_kind_of_kernel_equals_the_tensor_librarys() {
        for (kernel, stride, padding) in [(4, 4, 0), (3, 1, 1), (3, 2, 1), (1, 1, 0), (1, 2, 0), (7, 2, 3)] {
            let (n, channels, outputs, image) = (2, 3, 5, [8, 12]);
            let side = |size: usize| (size + 2 * padding - kernel) / stride + 1;
            let output = image.map(side);
            let sizes = Convolution { channels, image, kernel: [kernel, kernel], stride, padding, outputs, output };
            let x = numbers(n * channels * image[0] * image[1], 1);
            let (weight, bias) = (numbers(outputs * channels * kernel * kernel, 2), numbers(outputs, 3));
            let found = conv2d(&x, &weight, Some(&bias), sizes);
            let x = Tensor::from_vec(x, (n, channels, image[0], image[1]), &Device::Cpu).unwrap();
            let weight = Tensor::from_vec(weight, (outputs, channels, kernel, kernel), &Device::Cpu).unwrap();
            let bias = Tensor::from_vec(bias, (1, outputs, 1, 1), &Device::Cpu).unwrap();
            let wanted = x.conv2d(&weight, padding, stride, 1, 1).unwrap().broadcast_add(&bias).unwrap();
            assert_eq!(wanted.dims(), [n, outputs, output[0], output[1]]);
            let wanted = wanted.flatten_all().unwrap().to_vec1::<f32>().unwrap();
            assert!(worst(&found, &wanted) < 1e-4, "kernel {kernel}, stride {stride}, padding {padding}");
        }
    }
}
