//! The normal distribution and Student's, as far as tests and intervals need them.

/// `P(Z <= z)` of a standard normal `Z`.
///
/// Half the complementary error function of `-z / sqrt(2)`, by the Chebyshev fit of Press et al., Numerical Recipes, 6.2;
/// its relative error is below 1.2e-7 everywhere, far out in the tail included.
pub(crate) fn normal_below(z: f64) -> f64 {
    const FIT: [f64; 10] = [
        -1.265_512_23,
        1.000_023_68,
        0.374_091_96,
        0.096_784_18,
        -0.186_288_06,
        0.278_868_07,
        -1.135_203_98,
        1.488_515_87,
        -0.822_152_23,
        0.170_872_77,
    ];
    let x = -z / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.5 * x.abs());
    let exponent = FIT.iter().rev().fold(0.0, |sum, coefficient| sum * t + coefficient);
    let beyond = t * (exponent - x * x).exp();
    0.5 * if x >= 0.0 { beyond } else { 2.0 - beyond }
}

/// `P(|T| >= |t|)` of Student's `T` with `freedom` degrees of freedom: `I_x(freedom / 2, 1 / 2)` at
/// `x = freedom / (freedom + t^2)`.
pub(crate) fn student_beyond(t: f64, freedom: f64) -> f64 {
    if !t.is_finite() {
        return 0.0;
    }
    incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + t * t))
}

/// The `t` that Student's `|T|` exceeds in `share` of all draws, found by halving.
pub(crate) fn student_quantile(share: f64, freedom: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while student_beyond(high, freedom) > share && high < 1e12 {
        high *= 2.0;
    }
    // As many steps as a double has bits.
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if student_beyond(middle, freedom) > share { low = middle } else { high = middle }
    }
    high
}

/// The regularised incomplete beta function, by its continued fraction (Numerical Recipes, 6.4).
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln()).exp();
    // The fraction converges quickly on this side of the mean only.
    if x < (a + 1.0) / (a + b + 2.0) {
        front * beta_fraction(a, b, x) / a
    } else {
        1.0 - front * beta_fraction(b, a, 1.0 - x) / b
    }
}

/// Lentz's method. It has converged long before the last step for every `a` and `b` up to some ten thousand.
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away = |value: f64| if value.abs() < TINY { TINY } else { value };
    let (mut c, mut d) = (1.0, 1.0 / away(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = d;
    for step in 1..=1_000 {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut factor = 1.0;
        for term in [even, odd] {
            d = 1.0 / away(1.0 + term * d);
            c = away(1.0 + term / c);
            factor = c * d;
            fraction *= factor;
        }
        if (factor - 1.0).abs() < 1e-15 {
            break;
        }
    }
    fraction
}

/// The logarithm of the gamma function of a positive number (Lanczos, 1964; coefficients of Numerical Recipes, 6.1).
fn ln_gamma(x: f64) -> f64 {
    const SERIES: [f64; 6] = [
        76.180_091_729_471_46,
        -86.505_320_329_416_77,
        24.014_098_240_830_91,
        -1.231_739_572_450_155,
        0.120_865_097_386_617_9e-2,
        -0.539_523_938_495_3e-5,
    ];
    let shifted = x + 5.5;
    let series =
        SERIES.iter().enumerate().fold(1.000_000_000_190_015, |sum, (i, one)| sum + one / (x + 1.0 + i as f64));
    (x + 0.5) * shifted.ln() - shifted + (2.506_628_274_631_000_5 * series / x).ln()
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
