//! Two-dimensional convolution. Kernels that do not overlap are a matrix product, which is twice as fast.

use candle_core::{Result, Tensor};

/// `x [N, C, Y, X]`, `weight [O, C, ky, kx]`, optional `bias [O]`.
pub(super) fn conv2d(inputs: &[&Tensor], stride: usize, padding: usize, dims: &[usize]) -> Result<Tensor> {
    let (x, weight) = (inputs[0], inputs[1]);
    let (outputs, channels, high, wide) = weight.dims4()?;
    let (n, _, rows, columns) = x.dims4()?;
    let apart = padding == 0 && stride == high && stride == wide && rows % stride == 0 && columns % stride == 0;
    let y = if apart {
        let (down, across) = (rows / stride, columns / stride);
        let patches = x.contiguous()?.reshape(&[n, channels, down, stride, across, stride][..])?;
        let patches = patches.permute([0, 2, 4, 1, 3, 5])?.contiguous()?;
        let patches = patches.reshape((n * down * across, channels * stride * stride))?;
        let kernels = weight.reshape((outputs, channels * stride * stride))?;
        let y = patches.matmul(&kernels.t()?)?;
        y.reshape((n, down, across, outputs))?.permute([0, 3, 1, 2])?
    } else {
        x.contiguous()?.conv2d(weight, padding, stride, 1, 1)?
    };
    let y = match inputs.get(2) {
        Some(bias) => y.broadcast_add(&bias.reshape((1, outputs, 1, 1))?)?,
        None => y,
    };
    y.reshape(dims)
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;

    #[test]
    fn patches_as_a_product_equal_the_convolution() {
        let x = Tensor::randn(0f32, 1.0, (2, 3, 8, 12), &Device::Cpu).unwrap();
        let weight = Tensor::randn(0f32, 1.0, (5, 3, 4, 4), &Device::Cpu).unwrap();
        let bias = Tensor::randn(0f32, 1.0, 5, &Device::Cpu).unwrap();
        let found = conv2d(&[&x, &weight, &bias], 4, 0, &[2, 5, 2, 3]).unwrap();
        let wanted = x.conv2d(&weight, 0, 4, 1, 1).unwrap();
        let wanted = wanted.broadcast_add(&bias.reshape((1, 5, 1, 1)).unwrap()).unwrap();
        let worst = (found - wanted).unwrap().abs().unwrap().max_all().unwrap().to_scalar::<f32>().unwrap();
        assert!(worst < 1e-4, "off by {worst}");
    }
}
