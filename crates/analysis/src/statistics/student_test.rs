//! Whether runs of two sides differ: Student's test (1908) on logarithms of times.
//!
//! Runs are few, too few to draw anew or to rank, so a distribution has to be assumed: that the logarithms of run times are
//! normal and scatter alike on both sides. One side may then have a single run, as when a change is compared with a
//! baseline of several.

use super::distribution::{student_beyond, student_quantile};
use super::mean;
use super::strata::LogInterval;

/// What the test found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StudentTest {
    /// Mean of the second side's logarithms less that of the first's.
    pub log_ratio: f64,
    /// Where the true one lies.
    pub interval: LogInterval,
    /// Chance of a difference at least this large where nothing changed.
    pub p_value: f64,
}

/// The test; absent where a side is empty or has a time that is not positive, where there are not three runs, and where all
/// runs of each side are equal, which real ones never are.
pub fn student_test(base: &[f64], with: &[f64], confidence: f64) -> Option<StudentTest> {
    let base = logarithms(base)?;
    let with = logarithms(with)?;
    let freedom = (base.len() + with.len()).checked_sub(2).filter(|freedom| *freedom > 0)? as f64;
    let (base_mean, with_mean) = (mean(&base)?, mean(&with)?);
    let squares = squares(&base, base_mean) + squares(&with, with_mean);
    let error = (squares / freedom * (1.0 / base.len() as f64 + 1.0 / with.len() as f64)).sqrt();
    if error <= 0.0 {
        return None;
    }
    let log_ratio = with_mean - base_mean;
    let reach = student_quantile(1.0 - confidence, freedom) * error;
    Some(StudentTest {
        log_ratio,
        interval: LogInterval { low: log_ratio - reach, high: log_ratio + reach },
        p_value: student_beyond(log_ratio / error, freedom),
    })
}

fn logarithms(times: &[f64]) -> Option<Vec<f64>> {
    times.iter().map(|time| Some(time.ln()).filter(|log| log.is_finite())).collect()
}

fn squares(values: &[f64], mean: f64) -> f64 {
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::Random;

    #[test]
    fn a_case_worked_by_hand() {
        // Logarithms 0 and 2, 3 and 5: means 1 and 4, squares 2 + 2 over 2 degrees of freedom, error sqrt(2 * 1). t = 3 /
        // sqrt(2), whose two-sided chance with 2 degrees of freedom is 1 - t / sqrt(t^2 + 2) = 1 - sqrt(4.5 / 6.5).
        let found = student_test(&[1.0, 2f64.exp()], &[3f64.exp(), 5f64.exp()], 0.95).unwrap();
        assert!((found.log_ratio - 3.0).abs() < 1e-12);
        assert!((found.p_value - (1.0 - (4.5f64 / 6.5).sqrt())).abs() < 1e-9, "{found:?}");
        assert!((found.interval.high - 3.0 - 4.302_653 * 2f64.sqrt()).abs() < 1e-5, "{found:?}");
    }

    #[test]
    fn what_cannot_be_tested_is_not() {
        assert_eq!(student_test(&[1.0], &[2.0], 0.95), None);
        assert_eq!(student_test(&[], &[2.0, 3.0, 4.0], 0.95), None);
        assert_eq!(student_test(&[1.0, 1.0], &[2.0, 2.0], 0.95), None);
        assert_eq!(student_test(&[1.0, 0.0], &[2.0, 3.0], 0.95), None);
        assert!(student_test(&[1.0, 1.1], &[2.0], 0.95).is_some());
    }

    #[test]
    fn runs_of_one_distribution_are_told_apart_as_rarely_as_stated() {
        let mut random = Random::new(5);
        for (base, with) in [(2, 2), (3, 3), (5, 1)] {
            let mut runs = |count| (0..count).map(|_| (0.03 * random.normal()).exp()).collect::<Vec<f64>>();
            let wrong = (0..4_000).filter(|_| student_test(&runs(base), &runs(with), 0.95).unwrap().p_value <= 0.05);
            // 5% of 4,000 is 200, with a standard deviation of 14.
            let wrong = wrong.count();
            assert!((150..=250).contains(&wrong), "{base} and {with} runs: {wrong}");
        }
    }
}
