//! The normal distribution and Student's, as far as tests and intervals need them. The special functions are those of
//! `statrs`.

use std::f64::consts::SQRT_2;

use statrs::function::beta::{beta_reg, inv_beta_reg};
use statrs::function::erf::erfc;

/// `P(Z <= z)` of a standard normal `Z`.
pub(super) fn normal_below(z: f64) -> f64 {
    0.5 * erfc(-z / SQRT_2)
}

/// `P(|Z| >= |z|)` of a standard normal `Z`.
pub(crate) fn normal_beyond(z: f64) -> f64 {
    erfc(z.abs() / SQRT_2)
}

/// `P(|T| >= |t|)` of Student's `T` with `freedom` degrees of freedom: `I_x(freedom / 2, 1 / 2)` at
/// `x = freedom / (freedom + t^2)`.
pub(super) fn student_beyond(t: f64, freedom: f64) -> f64 {
    if !t.is_finite() {
        return 0.0;
    }
    beta_reg(freedom / 2.0, 0.5, freedom / (freedom + t * t))
}

/// The `t` that Student's `|T|` exceeds in `share` of all draws: [`student_beyond`] solved for `t`.
pub(crate) fn student_quantile(share: f64, freedom: f64) -> f64 {
    let x = inv_beta_reg(freedom / 2.0, 0.5, share);
    (freedom * (1.0 - x) / x).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_normal_distribution_has_its_published_values() {
        // Abramowitz and Stegun, table 26.1; the last one 26.2.
        for (z, expected) in [(0.0, 0.5), (1.0, 0.841_344_746), (-1.96, 0.024_997_895), (-5.0, 2.866_516e-7)] {
            assert!((normal_below(z) / expected - 1.0).abs() < 1e-6, "{z}: {}", normal_below(z));
        }
    }

    #[test]
    fn students_distribution_has_its_published_values() {
        // Fisher and Yates, table III: two-sided 5% and 1% points.
        for (share, freedom, expected) in
            [(0.05, 1.0, 12.706_2), (0.05, 4.0, 2.776_4), (0.01, 10.0, 3.169_3), (0.05, 120.0, 1.979_9)]
        {
            let found = student_quantile(share, freedom);
            assert!((found - expected).abs() < 1e-4, "{share} {freedom}: {found}");
            assert!((student_beyond(found, freedom) - share).abs() < 1e-9);
        }
    }

    #[test]
    fn quantiles_and_tails_undo_each_other() {
        for freedom in [1.0, 2.0, 3.0, 7.0, 30.0, 500.0, 1e4] {
            for share in [0.9, 0.5, 0.05, 0.01, 1e-3, 1e-6] {
                let found = student_beyond(student_quantile(share, freedom), freedom);
                assert!((found / share - 1.0).abs() < 1e-6, "{share} {freedom}: {found}");
            }
        }
    }

    #[test]
    fn one_degree_of_freedom_is_the_cauchy_distribution() {
        // P(|T| >= t) = 1 - 2 atan(t) / pi.
        for t in [0.0f64, 0.3, 1.0, 7.0, 1e4] {
            let expected = 1.0 - 2.0 * t.atan() / std::f64::consts::PI;
            assert!((student_beyond(t, 1.0) - expected).abs() < 1e-9, "{t}");
            assert_eq!(student_beyond(t, 1.0), student_beyond(-t, 1.0));
        }
        assert_eq!(student_beyond(f64::INFINITY, 3.0), 0.0);
    }

    #[test]
    fn many_degrees_of_freedom_are_the_normal_distribution() {
        assert!((student_beyond(1.96, 1e6) - 2.0 * normal_below(-1.96)).abs() < 1e-6);
    }
}
