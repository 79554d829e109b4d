//! How alike the forward passes are that inference rests on.

use types::Nanos;
use types::timeline::{Timeline, WorkKind};

use super::forward::{Forward, Kind};

/// Confidence where nothing repeats, so that nothing can be compared.
const WITHOUT_REPETITION: f64 = 0.5;

/// Kernels of two passes that have a partner of the same name in the other, as a share of the larger pass. Both lists
/// are sorted.
pub(super) fn alike(one: &[u32], other: &[u32]) -> f64 {
    let (mut left, mut right, mut both) = (0, 0, 0usize);
    while let (Some(a), Some(b)) = (one.get(left), other.get(right)) {
        both += usize::from(a == b);
        left += usize::from(a <= b);
        right += usize::from(b <= a);
    }
    both as f64 / one.len().max(other.len()).max(1) as f64
}

/// How sure the stages are: the mean likeness of each decode step to the one before it.
pub(super) fn confidence(timeline: &Timeline, moments: &[Option<Nanos>], forwards: &[Forward]) -> f64 {
    let mut names: Vec<Vec<u32>> = vec![Vec::new(); forwards.len()];
    for (work, moment) in timeline.work.iter().zip(moments).filter(|(work, _)| work.kind == WorkKind::Kernel) {
        let Some(moment) = *moment else { continue };
        let after = forwards.partition_point(|forward| forward.span.start <= moment);
        if let Some(place) = after.checked_sub(1).filter(|place| forwards[*place].span.contains(moment)) {
            names[place].push(work.name.index() as u32);
        }
    }
    names.iter_mut().for_each(|names| names.sort_unstable());
    let steps: Vec<&[u32]> = forwards
        .iter()
        .zip(&names)
        .filter_map(|(forward, names)| (forward.kind == Kind::Decode).then_some(names.as_slice()))
        .collect();
    let likeness: Vec<f64> = steps.windows(2).map(|pair| alike(pair[0], pair[1])).collect();
    if likeness.is_empty() {
        return WITHOUT_REPETITION;
    }
    likeness.iter().sum::<f64>() / likeness.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn likeness_counts_partners_of_the_same_name() {
        assert_eq!(alike(&[1, 1, 2, 3], &[1, 2, 2, 3]), 0.75);
        assert_eq!(alike(&[1, 2], &[1, 2]), 1.0);
        assert_eq!(alike(&[1], &[2]), 0.0);
        assert_eq!(alike(&[], &[]), 0.0);
    }
}
