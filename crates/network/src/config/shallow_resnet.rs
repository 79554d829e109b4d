//! Sizes of the dummy residual network.

use types::DType;

use super::ConfigProblem;
use super::fields::Fields;

/// The whole model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShallowResnetConfig {
    /// Channels of the image.
    pub in_channels: u64,
    /// Channels inside.
    pub channels: u64,
    /// Residual blocks.
    pub blocks: u64,
    /// Classes it tells apart.
    pub classes: u64,
    /// Side of the image.
    pub image_size: u64,
    /// Element type of the weights.
    pub dtype: DType,
}

impl ShallowResnetConfig {
    pub(crate) fn read(fields: &Fields<'_>) -> Result<Self, ConfigProblem> {
        Ok(Self {
            in_channels: fields.size_or("in_channels", 3)?,
            channels: fields.size("channels")?,
            blocks: fields.layers("blocks")?,
            classes: fields.size("num_classes")?,
            image_size: fields.size("image_size")?,
            dtype: fields.dtype_or(DType::Fp32)?,
        })
    }
}
