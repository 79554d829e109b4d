//! Which device work a change is about.

use types::timeline::{CopyDirection, WorkKind};
use types::{Base, Count, DType, Facts};

use super::setting::Setting;
use crate::device::Mark;
use crate::kernel::Family;

/// Which device work is meant.
#[derive(Clone, Debug, PartialEq)]
pub enum Chosen {
    /// All kernels.
    All,
    /// GEMMs and convolutions of one element type.
    Gemms(DType),
    /// Kernels that only copy, and copies on the device.
    LayoutCopies,
    /// GEMMs with fewer blocks than this, the number of multiprocessors.
    FewBlocks(u64),
    /// What a finding has marked.
    Marked(Mark),
}

impl Chosen {
    /// Whether a row is meant.
    pub(super) fn holds(&self, setting: &Setting<'_>, row: usize) -> bool {
        let (work, family) = (&setting.timeline.work[row], setting.family(row));
        match self {
            Self::All => work.kind == WorkKind::Kernel,
            Self::Gemms(dtype) => {
                let is_matrix = matches!(family, Family::Gemm | Family::Gemv | Family::Convolution);
                is_matrix && setting.kind(row).dtype == Some(*dtype) && !setting.reads_half[row]
            }
            Self::LayoutCopies => {
                let is_copy = family == Family::Copy || work.kind == WorkKind::Copy(CopyDirection::DeviceToDevice);
                is_copy && setting.marks.get(row).copied().flatten() != Some(Mark::Dequantisation)
            }
            Self::FewBlocks(multiprocessors) => {
                let is_matrix = matches!(family, Family::Gemm | Family::Gemv);
                is_matrix && blocks(setting, row).is_some_and(|blocks| blocks < *multiprocessors)
            }
            Self::Marked(mark) => setting.marks.get(row).copied().flatten() == Some(*mark),
        }
    }

    /// The share of its time that a row takes: with few blocks, as many multiprocessors as it uses.
    pub(super) fn share(&self, setting: &Setting<'_>, row: usize, share: f64) -> f64 {
        match self {
            Self::FewBlocks(all) => blocks(setting, row).map_or(1.0, |blocks| blocks as f64 / *all as f64),
            _ => share,
        }
    }

    /// What is meant, and what share of it stays.
    pub(super) fn facts(&self, share: f64) -> Facts {
        let which = match self {
            Self::All => "all",
            Self::Gemms(_) => "fp32",
            Self::LayoutCopies => "copies",
            Self::FewBlocks(_) => "few_blocks",
            Self::Marked(Mark::ScoreSoftmax) => "softmax",
            Self::Marked(Mark::Expert) => "experts",
            Self::Marked(Mark::Head) => "head",
            Self::Marked(Mark::Dequantisation) => "dequantisation",
        };
        Facts::new().with_if(which, true).with_share("share", share, Base::Itself)
    }
}

fn blocks(setting: &Setting<'_>, row: usize) -> Option<u64> {
    let shape = setting.timeline.launch_shapes.get(setting.timeline.work[row].launch?);
    // A grid of none is one that the recorder did not know.
    Some(shape.grid.iter().product::<Count>().get()).filter(|blocks| *blocks > 0)
}
