//! A time that comes again and again, and how much of it does not.

use types::Nanos;

/// Times before one kind of work.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Recurring {
    longest: Nanos,
    total: Nanos,
    times: i64,
}

impl Recurring {
    pub(super) fn add(&mut self, time: Nanos) {
        self.longest = self.longest.max(time);
        self.total += time;
        self.times += 1;
    }

    /// What comes once: the longest time, beyond the mean of the others.
    pub(super) fn once(self) -> Nanos {
        let others = (self.total - self.longest).get().checked_div(self.times - 1);
        self.longest - Nanos::new(others.unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_comes_once_beyond_the_others() {
        let once = |times: &[i64]| {
            let mut recurring = Recurring::default();
            times.iter().for_each(|time| recurring.add(Nanos::new(*time)));
            recurring.once().get()
        };
        assert_eq!((once(&[]), once(&[70]), once(&[70, 70])), (0, 70, 0));
        assert_eq!(once(&[10, 100, 20, 30]), 80);
    }
}
