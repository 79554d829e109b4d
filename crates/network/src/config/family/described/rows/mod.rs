//! The rows, each a constant of its own: as one, they take rustc six gigabytes.

mod gated;
mod gpt;
mod mixture;
mod plain;
mod remote;

use super::Described;

/// Every row.
pub(in crate::config) fn rows() -> impl Iterator<Item = &'static Described> {
    [gpt::ROWS, plain::ROWS, gated::ROWS, mixture::ROWS, remote::ROWS].into_iter().flatten()
}
