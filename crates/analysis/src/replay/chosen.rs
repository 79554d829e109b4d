//! Which device work a change is about.

use types::DType;
use types::timeline::{CopyDirection, WorkKind};

use super::setting::Setting;
use crate::device::Mark;
use crate::kernel::Family;

/// Which device work is meant.
#[derive(Clone, Debug, PartialEq)]
pub enum Chosen {
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
            Self::Gemms(dtype) => {
                let is_matrix = matches!(family, Family::Gemm | Family::Gemv | Family::Convolution);
                is_matrix && setting.kind(row).dtype == Some(*dtype)
            }
            Self::LayoutCopies => family == Family::Copy || work.kind == WorkKind::Copy(CopyDirection::DeviceToDevice),
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

    /// What is meant, in words.
    pub(super) fn phrase(&self) -> &'static str {
        match self {
            Self::Gemms(_) => "GEMMs and convolutions in single precision",
            Self::LayoutCopies => "kernels that only copy",
            Self::FewBlocks(_) => "GEMMs with fewer blocks than multiprocessors",
            Self::Marked(Mark::ScoreSoftmax) => "softmax kernels over attention scores",
            Self::Marked(Mark::Expert) => "GEMMs of experts",
            Self::Marked(Mark::Head) => "kernels of the head",
        }
    }

    /// The share, in words.
    pub(super) fn share_phrase(&self, share: f64) -> String {
        match self {
            Self::FewBlocks(_) => "the share of multiprocessors that they use".to_owned(),
            _ => format!("{:.1}%", share * 100.0),
        }
    }
}

fn blocks(setting: &Setting<'_>, row: usize) -> Option<u64> {
    let shape = setting.timeline.launch_shapes.get(setting.timeline.work[row].launch?);
    Some(shape.grid.iter().map(|side| u64::from(*side)).product())
}
