//! Messages of all-to-alls: how evenly ranks share tokens of experts, or rows of tables.

use types::Bytes;

use super::meeting::Meeting;
use crate::operators::is_exchange;

/// What one rank exchanged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exchanged {
    /// Calls that were found on all of their ranks.
    pub(super) calls: u64,
    /// Its messages in them: what it hands in, or gets where that is more.
    pub(super) bytes: Bytes,
    /// Messages of the mean rank in the same calls.
    pub(super) mean: f64,
}

impl Exchanged {
    /// Its messages against those of the mean rank.
    pub(super) fn against_mean(&self) -> Option<f64> {
        (self.mean > 0.0).then(|| self.bytes.get() as f64 / self.mean)
    }
}

/// Of each rank, by its place; `None` without an exchange whose ranks are all here and say how much they sent.
pub(super) fn by_rank(ranks: usize, meetings: &[Meeting]) -> Vec<Option<Exchanged>> {
    let mut sums: Vec<Option<Exchanged>> = vec![None; ranks];
    for meeting in meetings.iter().filter(|meeting| meeting.whole && is_exchange(&meeting.kind.name)) {
        let Some(sizes) = meeting.bytes.iter().copied().collect::<Option<Vec<Bytes>>>() else { continue };
        let mean = sizes.iter().map(|size| size.get() as f64).sum::<f64>() / sizes.len() as f64;
        for (rank, size) in meeting.ranks.iter().zip(sizes) {
            let sum = sums[*rank].get_or_insert(Exchanged { calls: 0, bytes: Bytes::new(0), mean: 0.0 });
            sum.calls += 1;
            sum.bytes = Bytes::new(sum.bytes.get().saturating_add(size.get()));
            sum.mean += mean;
        }
    }
    sums
}
