//! Values of several kernels on their way to one.

use types::RollUp;

/// What is needed to roll up by any rule.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Accumulator {
    sum: f64,
    weighted: f64,
    weight: f64,
    extremes: Option<(f64, f64)>,
    /// Kernels without a value.
    pub(super) missing: u64,
}

impl Accumulator {
    /// Adds what one kernel has to say, and the time it took.
    pub(super) fn add(&mut self, value: Option<f64>, time: Option<f64>) {
        let Some(value) = value else {
            self.missing += 1;
            return;
        };
        self.sum += value;
        if let Some(time) = time {
            self.weighted += value * time;
            self.weight += time;
        }
        let (min, max) = self.extremes.unwrap_or((value, value));
        self.extremes = Some((min.min(value), max.max(value)));
    }

    /// The one value; absent where no kernel had one, or for a mean where no time is known.
    pub(super) fn value(&self, rule: RollUp) -> Option<f64> {
        let (min, max) = self.extremes?;
        match rule {
            RollUp::Sum => Some(self.sum),
            RollUp::TimeWeightedMean => (self.weight > 0.0).then(|| self.weighted / self.weight),
            RollUp::Max => Some(max),
            RollUp::Min => Some(min),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[(Option<f64>, Option<f64>)]) -> Accumulator {
        let mut all = Accumulator::default();
        for (value, time) in values {
            all.add(*value, *time);
        }
        all
    }

    #[test]
    fn each_rule_gives_its_own_number() {
        // 10% for 3 us and 50% for 1 us: (30 + 50) / 4 = 20%.
        let all = of(&[(Some(10.0), Some(3.0)), (Some(50.0), Some(1.0)), (None, Some(9.0))]);
        let rules = [RollUp::Sum, RollUp::TimeWeightedMean, RollUp::Max, RollUp::Min];
        assert_eq!(rules.map(|rule| all.value(rule)), [Some(60.0), Some(20.0), Some(50.0), Some(10.0)]);
        assert_eq!(all.missing, 1);
    }

    #[test]
    fn nothing_counted_is_absent_and_a_mean_without_times_too() {
        assert_eq!(of(&[(None, Some(1.0))]).value(RollUp::Sum), None);
        let untimed = of(&[(Some(5.0), None)]);
        assert_eq!((untimed.value(RollUp::TimeWeightedMean), untimed.value(RollUp::Sum)), (None, Some(5.0)));
    }
}
